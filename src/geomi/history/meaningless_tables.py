"""What is kept of pages that mean nothing: features of contents, a list of digests, marks, probes.

Nothing here is ever a reason to delete: a mark hides a capture from tables and search, and goes
again. The worker (cluster.scanning) writes all of it but the list, which people and imports write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from geomi.history import tables
from geomi.store import Store
from geomi.store.migrate import Migration

SCHEMA: Migration = (
    # The list. At crawl time a payload with a confirmed digest is void.
    """CREATE TABLE meaningless (
        digest TEXT PRIMARY KEY,              -- of the payload, as in visits
        state TEXT NOT NULL,                  -- candidate, confirmed, rejected
        reason TEXT NOT NULL,                 -- rule:NAME, probe:DIRECTORY, alike:URLS, or as given
        site TEXT NOT NULL,                   -- where it was found first; empty: elsewhere
        example TEXT NOT NULL,                -- a URL that had it
        count INTEGER NOT NULL,               -- pages with it or near it, void ones left out
        "by" TEXT NOT NULL,                   -- scan, threshold, hand, or import and of whom
        at REAL NOT NULL                      -- when it took its state
    )""",
    "CREATE INDEX meaningless_by_state ON meaningless (state, digest)",
    # One row for each payload of text/html that the worker has read.
    """CREATE TABLE features (
        digest TEXT PRIMARY KEY,
        simhash INTEGER NOT NULL,             -- of the main text, masked; signed
        main TEXT NOT NULL,                   -- name of the masked main text; empty: it is no HTML
        hints TEXT NOT NULL,                  -- the rule that knows it; empty: none
        words INTEGER NOT NULL,               -- in the main text
        length INTEGER NOT NULL,              -- bytes, unpacked
        verdict TEXT NOT NULL DEFAULT ''      -- confirmed, near:DIGEST, rule:NAME, probe:DIRECTORY
    )""",
    "CREATE INDEX features_judged ON features (digest) WHERE verdict <> ''",
    # Captures that tables and search leave out. Each change stands in the log: hidden, shown.
    """CREATE TABLE hidden (
        visit INTEGER PRIMARY KEY,
        page INTEGER NOT NULL,
        digest TEXT NOT NULL,
        reason TEXT NOT NULL,                 -- as the verdict on its content; probe
        at REAL NOT NULL
    )""",
    "CREATE INDEX hidden_by_page ON hidden (page)",
    # Pages with a visit that was hidden or shown since their copy was chosen. Filled with the
    # marks, emptied by the worker where nobody holds the site.
    "CREATE TABLE unsettled (page INTEGER PRIMARY KEY)",
    # Directories that were asked for a name that is not there.
    """CREATE TABLE probes (
        directory TEXT PRIMARY KEY,           -- scheme://site/…/
        site_id INTEGER NOT NULL,
        url TEXT NOT NULL,
        url_hash INTEGER NOT NULL,
        wanted REAL NOT NULL,
        decided REAL NOT NULL DEFAULT 0,      -- when its answer was read; 0: not yet
        outcome TEXT NOT NULL DEFAULT '',
        digest TEXT NOT NULL DEFAULT ''       -- of the page it came to; empty: none with 200
    )""",
)

#: Content that is read: whole or cut answers with a record of their own.
_HTML = "('text/html', 'application/xhtml+xml', '')"
_CHUNK = 500


class Entry(NamedTuple):
    """One row of the list."""

    digest: str
    state: str
    reason: str
    site: str
    example: str
    pages: int  # the column is called count
    by: str
    at: float


class Feature(NamedTuple):
    """What the worker made of a payload."""

    digest: str
    simhash: int
    main: str
    hints: str
    words: int
    length: int
    verdict: str


class Capture(NamedTuple):
    """A visit whose payload may be read."""

    visit: int
    page: int
    digest: str
    file: int
    offset: int


_ENTRY = 'digest, state, reason, site, example, count, "by", at'


# -- the list --------------------------------------------------------------------------------------


def listed(store: Store, *, state: str = "", site: str = "") -> Iterator[Entry]:
    """The list, candidates first, the greatest first; of one state or site, or all."""
    where, params = ["1 = 1"], []
    if state:
        where.append("state = ?")
        params.append(state)
    if site:
        where.append("site = ?")
        params.append(site)
    for row in store.each(
        f"SELECT {_ENTRY} FROM meaningless WHERE {' AND '.join(where)}"
        " ORDER BY state, count DESC, digest",
        params,
    ):
        yield Entry(*row)


def entry(store: Store, digest: str) -> Entry | None:
    row = store.one(f"SELECT {_ENTRY} FROM meaningless WHERE digest = ?", (digest,))
    return Entry(*row) if row else None


def put(store: Store, entries: Iterable[Entry]) -> None:
    """As given, in place of what was there."""
    store.many(
        f"INSERT INTO meaningless ({_ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (digest) DO UPDATE SET state = excluded.state, reason = excluded.reason,"
        " site = excluded.site, example = excluded.example, count = excluded.count,"
        ' "by" = excluded."by", at = excluded.at',
        entries,
    )


def put_candidates(store: Store, entries: Iterable[Entry]) -> None:
    """New ones; of those that are there only the count is written anew, whatever their state."""
    store.many(
        f"INSERT INTO meaningless ({_ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (digest) DO UPDATE SET count = excluded.count",
        entries,
    )


def drop_candidates(store: Store, at: float) -> int:
    """Forgets candidates that were not found again since; how many."""
    return store.run(
        "DELETE FROM meaningless WHERE state = 'candidate' AND \"by\" = 'scan' AND at < ?", (at,)
    )


def remove(store: Store, digest: str) -> bool:
    return bool(store.run("DELETE FROM meaningless WHERE digest = ?", (digest,)))


def in_state(store: Store, state: str) -> dict[str, tuple[int, str] | None]:
    """Digests with simhash and name of the main text; None for those that were never read here."""
    return {
        digest: (simhash, main) if main else None
        for digest, simhash, main in store.each(
            "SELECT m.digest, f.simhash, f.main FROM meaningless m LEFT JOIN features f"
            " ON f.digest = m.digest WHERE m.state = ?",
            (state,),
        )
    }


def known_among(store: Store, digests: Sequence[str]) -> set[str]:
    """Those of some digests that are in the list."""
    return set(_among(store, "meaningless", digests))


def _among(store: Store, table: str, digests: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(digests), _CHUNK):
        some = digests[start : start + _CHUNK]
        marks = ",".join("?" * len(some))
        for (digest,) in store.all(f"SELECT digest FROM {table} WHERE digest IN ({marks})", some):
            yield digest


# -- features --------------------------------------------------------------------------------------


def put_features(store: Store, features: Iterable[Feature]) -> None:
    store.many(
        "INSERT INTO features (digest, simhash, main, hints, words, length, verdict)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
        features,
    )


def feature(store: Store, digest: str) -> Feature | None:
    row = store.one(
        "SELECT digest, simhash, main, hints, words, length, verdict FROM features"
        " WHERE digest = ?", (digest,),
    )  # fmt: skip
    return Feature(*row) if row else None


def features_beyond(store: Store, digest: str, *, limit: int) -> list[Feature]:
    """Some features in order of their digest."""
    return [
        Feature(*row)
        for row in store.all(
            "SELECT digest, simhash, main, hints, words, length, verdict FROM features"
            " WHERE digest > ? ORDER BY digest LIMIT ?",
            (digest, limit),
        )
    ]


def judge(store: Store, verdicts: Iterable[tuple[str, str]]) -> None:
    """(verdict, digest)."""
    store.many("UPDATE features SET verdict = ? WHERE digest = ?", verdicts)


def judge_probed(store: Store, verdict: str, digests: Sequence[str]) -> int:
    """Contents that a probe came to, where nothing else was said of them; how many are new."""
    return sum(
        store.run(
            "UPDATE features SET verdict = ? WHERE digest = ? AND verdict = ''", (verdict, digest)
        )
        for digest in digests
    )


def unread(store: Store, captures: Sequence[Capture]) -> list[Capture]:
    """One capture of each payload without features, in the order of files."""
    first = {one.digest: one for one in reversed(captures)}
    known = set(_among(store, "features", list(first)))
    return sorted(
        (one for digest, one in first.items() if digest not in known),
        key=lambda one: (one.file, one.offset),
    )


# -- following the log -----------------------------------------------------------------------------


def batches_beyond(store: Store, seq: int, *, limit: int) -> list[tuple[int, int, int, int, int]]:
    """(seq, batch, first visit, last visit, moved) of numbered batches, in order."""
    return store.all(
        "SELECT seq, batch, first_visit, last_visit, moved FROM batches WHERE seq > ?"
        " ORDER BY seq LIMIT ?",
        (seq, limit),
    )


#: Of a visit, in the store and in Parquet.
CAPTURE = 'visit, page, digest, file, "offset"'
READABLE = (
    f"page > 0 AND file > 0 AND revisit = 0 AND digest <> '' AND code = 200 AND mime IN {_HTML}"
)


def captures_of(store: Store, batch: int, first: int, last: int) -> list[Capture]:
    """Readable captures of a batch that are in the store."""
    return [
        Capture(*row)
        for row in store.all(
            f"SELECT {CAPTURE} FROM visits WHERE visit BETWEEN ? AND ? AND batch = ?"
            f" AND {READABLE}",
            (first, last, batch),
        )
    ]


# -- marks -----------------------------------------------------------------------------------------

#: Visits whose mark is not as the verdict on their content says: (visit, page, digest, verdict,
#: mark or null, URL, kind, depth, hops).
_WRONG = (
    "SELECT v.visit, v.page, v.digest, coalesce(f.verdict, ''), h.reason, p.url, p.kind, p.depth,"
    " p.hops FROM visits v JOIN pages p ON p.page = v.page"
    " LEFT JOIN features f ON f.digest = v.digest AND f.verdict <> ''"
    " LEFT JOIN hidden h ON h.visit = v.visit"
    " WHERE v.visit BETWEEN ? AND ? AND v.page > 0 AND v.code IN (200, 304)"
    " AND (h.visit IS NOT NULL OR f.digest IS NOT NULL OR p.kind = 'p')"
)


def marked_wrongly(store: Store, first: int, last: int) -> list[tuple[Any, ...]]:
    """Visits between two numbers that have a mark or a verdict."""
    return store.all(_WRONG, (first, last))


def marks_of_moved(store: Store, rows: Sequence[tuple[int, int, str]]) -> list[tuple[Any, ...]]:
    """The same of (visit, page, digest) that moved out of the store."""
    found = []
    for start in range(0, len(rows), _CHUNK):
        some = rows[start : start + _CHUNK]
        verdicts = _by_key(store, "features", "digest", "verdict", [row[2] for row in some])
        marks = _by_key(store, "hidden", "visit", "reason", [row[0] for row in some])
        pages = {
            row[0]: row[1:]
            for row in store.all(
                "SELECT page, url, kind, depth, hops FROM pages WHERE page IN"
                f" ({','.join('?' * len(some))})",
                [row[1] for row in some],
            )
        }
        found += [
            (visit, page, digest, verdicts.get(digest, ""), marks.get(visit), *pages[page])
            for visit, page, digest in some
            if page in pages
        ]
    return found


def _by_key(store: Store, table: str, key: str, value: str, keys: Sequence[Any]) -> dict[Any, str]:
    marks = ",".join("?" * len(keys))
    return dict(store.all(f"SELECT {key}, {value} FROM {table} WHERE {key} IN ({marks})", keys))


def mark(
    store: Store,
    hide: Sequence[tuple[int, int, str, str]],
    show: Sequence[tuple[int, int]],
    *,
    now: float,
) -> None:
    """Inside a transaction: (visit, page, digest, reason) are hidden, (visit, page) shown again.

    Both stand in the log, in a batch of their own, so that followers see them in order.
    """
    if not hide and not show:
        return
    store.many(
        "INSERT INTO hidden (visit, page, digest, reason, at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (visit) DO UPDATE SET reason = excluded.reason",
        [(*row, now) for row in hide],
    )
    store.many("DELETE FROM hidden WHERE visit = ?", [(visit,) for visit, _ in show])
    batch = tables.open_batch(store, "meaningless", 0, now)
    store.many(
        "INSERT INTO log (batch, change, visit) VALUES (?, ?, ?)",
        [(batch, "hidden", row[0]) for row in hide] + [(batch, "shown", row[0]) for row in show],
    )
    store.many(
        "INSERT INTO unsettled (page) VALUES (?) ON CONFLICT (page) DO NOTHING",
        [(page,) for page in sorted({row[1] for row in hide} | {row[1] for row in show})],
    )


def number_hidden(store: Store) -> int:
    row = store.one("SELECT count(*) FROM hidden")
    return int(row[0]) if row else 0


# -- copies of pages -------------------------------------------------------------------------------


def unsettled(store: Store, *, after: int, limit: int) -> list[int]:
    """Pages whose copy is to be chosen anew, beyond `after`."""
    return [
        row[0]
        for row in store.all(
            "SELECT page FROM unsettled WHERE page > ? ORDER BY page LIMIT ?", (after, limit)
        )
    ]


def settled(store: Store, page: int) -> None:
    store.run("DELETE FROM unsettled WHERE page = ?", (page,))


def hidden_of(store: Store, page: int) -> list[tuple[int, str, str, float]]:
    """(visit, digest, reason, since) of a page's hidden captures."""
    return store.all(
        "SELECT visit, digest, reason, at FROM hidden WHERE page = ? ORDER BY visit", (page,)
    )
