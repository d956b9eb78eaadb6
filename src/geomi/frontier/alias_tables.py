"""What is asked and written of names that may be one site: front pages, pairs, what was compared.

The coordinator writes all of it but `faces`, which come with the visits of agents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from geomi import url as urls
from geomi.frontier.aliases import WHY, Again, State, Tally, Twin, Verdict
from geomi.store import Store

PUT_FACE = (
    "INSERT INTO faces (site_id, url, digest, address) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (site_id, url) DO UPDATE SET digest = excluded.digest,"
    " address = excluded.address, looked = CASE WHEN faces.digest = excluded.digest"
    " AND faces.address = excluded.address THEN faces.looked ELSE 0 END"
)


def look_again(store: Store, site_id: int) -> None:
    """A site was given up: the coordinator looks whether others rely on it."""
    store.run("UPDATE faces SET looked = 0 WHERE site_id = ?", (site_id,))


#: The second names of a merge, as a part of other sentences.
SECOND_NAMES = "SELECT alias_id FROM aliases WHERE state IN ('merging', 'merged')"
RECALLED = "SELECT site_id FROM recalled"

_CHUNK = 400  # parameters of a sentence


def kept_name(store: Store, site_id: int) -> str:
    """The site whose URLs are kept in the place of this one's; empty: its own are."""
    row = store.one(
        "SELECT s.site FROM aliases a JOIN sites s ON s.site_id = a.site_id"
        " WHERE a.alias_id = ? AND a.state IN ('merging', 'merged')",
        (site_id,),
    )
    return str(row[0]) if row else ""


def second_names(store: Store, sites: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Of these sites those that are other names of one: (pair, the name that is kept)."""
    if store.one(f"{SECOND_NAMES} LIMIT 1") is None:
        return {}
    names = list(sites)
    found: dict[str, tuple[int, str]] = {}
    for start in range(0, len(names), _CHUNK):
        some = names[start : start + _CHUNK]
        marks = ",".join("?" * len(some))
        for site, pair, kept in store.all(
            "SELECT m.site, a.pair, k.site FROM sites m JOIN aliases a ON a.alias_id = m.site_id"
            " AND a.state IN ('merging', 'merged') JOIN sites k ON k.site_id = a.site_id"
            f" WHERE m.site IN ({marks})",
            some,
        ):
            found[site] = (int(pair), kept)
    return found


def twins(store: Store, site_id: int, wanted: Sequence[str]) -> dict[str, Twin]:
    """Those of these URLs that are pages of the site, with what they came to."""
    hashes = [urls.url_hash(url) for url in wanted]
    names = set(wanted)
    found: dict[str, Twin] = {}
    for start in range(0, len(hashes), _CHUNK):
        some = hashes[start : start + _CHUNK]
        marks = ",".join("?" * len(some))
        for url, *facts in store.all(
            "SELECT url, outcome, code, digest, visited, visits FROM pages"
            f" WHERE site_id = ? AND url_hash IN ({marks})",
            (site_id, *some),
        ):
            if url in names:
                found[url] = Twin(*facts)
    return found


def contents(store: Store, site_id: int, *, limit: int) -> dict[str, int]:
    """URL -> depth of some pages with content, no requisites; always the same ones first."""
    return dict(
        store.all(
            "SELECT url, depth FROM (SELECT url, depth, digest, outcome, kind FROM pages"
            " WHERE site_id = ? ORDER BY url_hash LIMIT ?) AS few"
            " WHERE outcome IN ('OK', 'same') AND kind NOT IN ('e', 'm') AND digest <> ''",
            (site_id, limit),
        )
    )


def part_of(store: Store, site_id: int, *, share: float, start: int, limit: int) -> list[str]:
    """URLs of a share of a site's pages with content, in order of their hash from `start` on."""
    which = "outcome IN ('OK', 'same') AND kind NOT IN ('e', 'm')"
    row = store.one(
        f"SELECT count(*) FROM (SELECT 1 FROM pages WHERE site_id = ? AND {which} LIMIT ?) AS few",
        (site_id, int(limit / share) + 1),
    )
    number = min(limit, math.ceil(share * row[0])) if row else 0
    found: list[str] = []
    for first in (start, -(1 << 63)):  # round the end
        rows = store.all(
            f"SELECT url FROM pages WHERE site_id = ? AND url_hash >= ? AND {which}"
            " ORDER BY url_hash LIMIT ?",
            (site_id, first, number - len(found)),
        )
        found += [url for (url,) in rows if url not in found]
    return found


def skipped(store: Store, site_id: int, *, after: int, limit: int) -> list[str]:
    """URLs of a second name that were not asked for, in order of their hash, round the end."""
    found: list[str] = []
    for first in (after, -(1 << 63)):
        found += [
            row[0]
            for row in store.all(
                "SELECT url FROM pages WHERE site_id = ? AND url_hash >= ? AND outcome = 'skip'"
                f" AND substr(why, 1, {len(WHY)}) = ? ORDER BY url_hash LIMIT ?",
                (site_id, first, WHY, limit - len(found)),
            )
        ]
    return list(dict.fromkeys(found))


def readmit(store: Store, page: int) -> bool:
    """A skipped page of a second name is to be visited after all; False: it was not skipped so."""
    return bool(
        store.run(
            f"UPDATE pages SET outcome = 'NULL', why = '' WHERE page = ? AND outcome = 'skip'"
            f" AND substr(why, 1, {len(WHY)}) = ?",
            (page, WHY),
        )
    )


def number_of_pages(store: Store, site_id: int, *, limit: int) -> int:
    """With content; no more than `limit`."""
    row = store.one(
        "SELECT count(*) FROM (SELECT 1 FROM pages WHERE site_id = ? AND outcome = 'OK' LIMIT ?)"
        " AS few",
        (site_id, limit),
    )
    return int(row[0]) if row else 0


# -- tests -----------------------------------------------------------------------------------------

_PUT_TEST = (
    "INSERT INTO alias_tests (pair, kind, url, alias_url, made, decided, verdict, said,"
    " alias_said) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def put_tests(
    store: Store, pair: int, kind: str, pages: Iterable[tuple[str, str]], *, now: float
) -> None:
    """Open ones: (URL under the kept name, under the other)."""
    store.many(
        _PUT_TEST,
        [(pair, kind, url, alias, now, 0.0, "", "", "") for url, alias in pages],
    )


def put_fact(
    store: Store, pair: int, kind: str, pages: tuple[str, str], *, verdict: Verdict, said: str,
    alias_said: str, now: float,
) -> None:  # fmt: skip
    """What was compared and decided at once."""
    store.run(_PUT_TEST, (pair, kind, *pages, now, now, str(verdict), said[:200], alias_said[:200]))


def tally(store: Store, pair: int, kind: str) -> Tally:
    names = {"agree": "agree", "differ": "differ", "unknown": "unknown", "": "open"}
    found = Counter(
        names[verdict]
        for (verdict,) in store.all(
            "SELECT verdict FROM alias_tests WHERE pair = ? AND kind = ?", (pair, kind)
        )
    )
    return Tally(**found)


def tested(store: Store, pair: int, *, is_open: bool = False) -> list[str]:
    """URLs under the kept name that were compared, or are being; only those with `is_open`."""
    which = " AND verdict = ''" if is_open else ""
    return [
        row[0] for row in store.all(f"SELECT url FROM alias_tests WHERE pair = ?{which}", (pair,))
    ]


_OPEN_TESTS = (
    "SELECT t.test, t.pair, t.kind, t.url, t.alias_url, t.made, t.again, t.visits, t.was, t.looks,"
    " a.site_id, a.alias_id, a.state FROM alias_tests t JOIN aliases a ON a.pair = t.pair"
    " WHERE t.verdict = '' AND t.next_look <= ? {} LIMIT ?"
)


def open_tests(
    store: Store, *, now: float, limit: int, pair: int | None = None
) -> list[tuple[Any, ...]]:
    """Tests to look at, of all pairs or one: (test, pair, kind, url, alias URL, made, again,
    looks, kept, alias, state of the pair)."""
    if pair is None:
        rows = store.all(_OPEN_TESTS.format("ORDER BY t.next_look, t.test"), (now, limit))
    else:
        rows = store.all(_OPEN_TESTS.format("AND t.pair = ?"), (now, pair, limit))
    return [(*row[:6], _again(*row[6:9]), *row[9:]) for row in rows]


def _again(whose: str, visits: int, was: str) -> Again | None:
    return Again(whose == "alias", visits, was) if whose else None


def look_later(store: Store, test: int, *, next_look: float) -> None:
    store.run(
        "UPDATE alias_tests SET looks = looks + 1, next_look = ? WHERE test = ?", (next_look, test)
    )


def make_again(store: Store, test: int, again: Again, *, next_look: float) -> None:
    store.run(
        "UPDATE alias_tests SET again = ?, visits = ?, was = ?, next_look = ? WHERE test = ?",
        (
            "alias" if again.of_alias else "kept", again.visits, again.was[:200], next_look, test,
        ),
    )  # fmt: skip


def decide_test(
    store: Store, test: int, verdict: Verdict, *, said: str, alias_said: str, now: float
) -> None:
    store.run(
        "UPDATE alias_tests SET verdict = ?, said = ?, alias_said = ?, decided = ? WHERE test = ?",
        (str(verdict), said[:200], alias_said[:200], now, test),
    )


# -- pairs -----------------------------------------------------------------------------------------


def put_pair(
    store: Store, site_id: int, alias_id: int, *, relation: str, state: State, why: str,
    now: float,
) -> int:  # fmt: skip
    """The number of a new pair."""
    row = store.one(
        "INSERT INTO aliases (site_id, alias_id, relation, state, why, found, decided)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING pair",
        (
            site_id, alias_id, relation, str(state), why, now,
            0.0 if state is State.TESTING else now,
        ),
    )  # fmt: skip
    assert row is not None
    return int(row[0])


def pair_of(store: Store, one: int, other: int) -> tuple[int, State, int, int] | None:
    """(pair, state, kept, alias) of two sites, in whichever order."""
    row = store.one(
        "SELECT pair, state, site_id, alias_id FROM aliases WHERE (site_id = ? AND alias_id = ?)"
        " OR (site_id = ? AND alias_id = ?)",
        (one, other, other, one),
    )
    return None if row is None else (int(row[0]), State(row[1]), int(row[2]), int(row[3]))


def set_state(
    store: Store, pair: int, state: State, *, now: float, why: str | None = None, ends: str = ""
) -> None:
    store.run(
        "UPDATE aliases SET state = ?, why = coalesce(?, why), ends = ?, decided = ?"
        " WHERE pair = ?",
        (str(state), why, ends, now, pair),
    )


def in_state(
    store: Store, states: Sequence[State], *, now: float = float("inf"), limit: int = 1_000
) -> list[tuple[int, State, int, int, int]]:
    """(pair, state, kept, alias, looks) of pairs to look at, of each state the soonest first."""
    return [
        (int(pair), state, int(kept), int(alias), int(looks))
        for state in states
        for pair, kept, alias, looks in store.all(
            "SELECT pair, site_id, alias_id, looks FROM aliases"
            " WHERE state = ? AND next_look <= ? ORDER BY next_look, pair LIMIT ?",
            (str(state), now, limit),
        )
    ]


def recall(store: Store, site_id: int) -> None:
    """Its holder gives it back, and nobody gets it until `let_go`."""
    store.run("INSERT INTO recalled (site_id) VALUES (?) ON CONFLICT DO NOTHING", (site_id,))


def let_go(store: Store, site_id: int) -> None:
    store.run("DELETE FROM recalled WHERE site_id = ?", (site_id,))


def is_free(store: Store, site_id: int) -> bool:
    """True if nobody holds the site; and nobody will until the transaction ends."""
    return bool(
        store.run(
            "UPDATE sites SET waiting = waiting WHERE site_id = ? AND holder = ''", (site_id,)
        )
    )


_LISTED = (
    "SELECT a.pair, k.site, m.site, a.state, a.relation, a.why, a.found, a.decided"
    " FROM aliases a JOIN sites k ON k.site_id = a.site_id JOIN sites m ON m.site_id = a.alias_id"
)


def listed(store: Store, sites: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """(pair, kept, alias, state, relation, why, found, decided), those of some sites or all."""
    if not sites:
        return store.all(f"{_LISTED} ORDER BY k.site, m.site")
    marks = ",".join("?" * len(sites))
    return store.all(
        f"{_LISTED} WHERE k.site IN ({marks}) OR m.site IN ({marks}) ORDER BY k.site, m.site",
        (*sites, *sites),
    )


def evidence(store: Store, pair: int) -> list[tuple[Any, ...]]:
    """(kind, url, alias URL, made, decided, verdict, said, alias said), in order."""
    return store.all(
        "SELECT kind, url, alias_url, made, decided, verdict, said, alias_said FROM alias_tests"
        " WHERE pair = ? ORDER BY test",
        (pair,),
    )
