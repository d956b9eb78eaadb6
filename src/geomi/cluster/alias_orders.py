"""What the operator says of names: these are one site, these are not, these never will be.

Only the pair is written here; the coordinator moves the pages, of this crawl or the next one.
"""

from __future__ import annotations

from typing import Any

from geomi import url as urls
from geomi.errors import OperatorError
from geomi.frontier import alias_tables
from geomi.frontier.aliases import ONE, State, port_of
from geomi.store import Store

_BY_HAND = "by hand"


def merge(store: Store, kept: str, alias: str, *, now: float) -> str:
    """URLs of `alias` are visited under `kept` from now on. Returns what was done, for people."""
    with store.transaction():
        kept, kept_id, alias, alias_id = *_site(store, kept), *_site(store, alias)
        if kept_id == alias_id:
            raise OperatorError(f"{kept}: give two names")
        if port_of(kept) != port_of(alias):
            raise OperatorError(f"{kept} and {alias}: their ports differ, so no URL is the same")
        if name := alias_tables.kept_name(store, alias_id):
            raise OperatorError(f"{alias} is another name of {name}; --undo {alias} first")
        if _root(store, kept_id) == alias_id:
            raise OperatorError(f"{kept} is another name of {alias}; --undo {kept} first")
        pair = _pair(store, kept_id, alias_id, State.MERGING, now)
        # It may have been found the other way round.
        store.run(
            "UPDATE aliases SET site_id = ?, alias_id = ?, relation = 'hand' WHERE pair = ?",
            (kept_id, alias_id, pair),
        )
        alias_tables.recall(store, alias_id)
    return f"{alias} is another name of {kept}"


def undo(store: Store, site: str, *, now: float) -> str:
    """A name is a site of its own again."""
    with store.transaction():
        site, site_id = _site(store, site)
        name = alias_tables.kept_name(store, site_id)
        if not name:
            others = [row[2] for row in alias_tables.listed(store, [site]) if row[3] in ONE]
            hint = f"; it is the kept name of {', '.join(others)}" if others else ""
            raise OperatorError(f"{site}: no other name of a site{hint}")
        _part(store, site_id, State.UNDONE, now)
    return f"{site} is no other name of {name}"


def never(store: Store, one: str, other: str, *, now: float) -> str:
    """Two names are never taken for one site by rule, and no longer if they were."""
    with store.transaction():
        one, one_id, other, other_id = *_site(store, one), *_site(store, other)
        if one_id == other_id:
            raise OperatorError(f"{one}: give two names")
        found = alias_tables.pair_of(store, one_id, other_id)
        if found is not None and found[1] in (*ONE, State.PARTING):
            _part(store, found[3], State.NEVER, now)
        else:
            _pair(store, one_id, other_id, State.NEVER, now)
    return f"{one} and {other} are two sites"


def _site(store: Store, text: str) -> tuple[str, int]:
    """A site by its name, or by a URL of it."""
    url = urls.canonical(text if "://" in text else f"http://{text}/")
    site = urls.site_of(url) if url else text
    row = store.one("SELECT site_id FROM sites WHERE site = ?", (site,))
    if row is None:
        raise OperatorError(f"{site}: no such site in the collection")
    return site, int(row[0])


def _root(store: Store, site_id: int) -> int:
    """The site whose URLs are kept in the end: a name may be kept that is a second one itself."""
    while True:
        row = store.one(
            "SELECT site_id FROM aliases WHERE alias_id = ? AND state IN ('merging', 'merged')",
            (site_id,),
        )
        if row is None:
            return site_id
        site_id = int(row[0])


def _pair(store: Store, kept_id: int, alias_id: int, state: State, now: float) -> int:
    found = alias_tables.pair_of(store, kept_id, alias_id)
    if found is None:
        return alias_tables.put_pair(
            store, kept_id, alias_id, relation="hand", state=state, why=_BY_HAND, now=now
        )
    if found[1] is State.PARTING:
        raise OperatorError("the names are being parted; try again when the crawl has done it")
    alias_tables.set_state(store, found[0], state, now=now, why=_BY_HAND)
    return found[0]


def _part(store: Store, alias_id: int, ends: State, now: float) -> None:
    store.run(
        "UPDATE aliases SET state = 'parting', ends = ?, why = ?, decided = ? WHERE alias_id = ?"
        " AND state IN ('merging', 'merged', 'parting')",
        (str(ends), _BY_HAND, now, alias_id),
    )
    alias_tables.recall(store, alias_id)


def facts(store: Store, sites: list[str]) -> list[dict[str, Any]]:
    """Pairs of names with all evidence, as plain values."""
    names = [_site(store, site)[0] for site in sites]
    return [
        {
            "site": kept, "alias": alias, "state": state, "relation": relation, "why": why,
            "found": found, "decided": decided or None, "skipped": _skipped(store, alias, state),
            "evidence": [
                {
                    "test": kind, "url": url, "alias_url": other, "made": made,
                    "decided": at or None, "verdict": verdict or "open", "said": said,
                    "alias_said": alias_said,
                }
                for kind, url, other, made, at, verdict, said, alias_said in alias_tables.evidence(
                    store, pair
                )
            ],
        }
        for pair, kept, alias, state, relation, why, found, decided in alias_tables.listed(
            store, names
        )
    ]  # fmt: skip


def _skipped(store: Store, alias: str, state: str) -> int:
    """URLs of a second name that were not asked for."""
    if state not in (*ONE, State.PARTING):
        return 0
    row = store.one(
        "SELECT count(*) FROM pages WHERE outcome = 'skip' AND substr(why, 1, 6) = 'alias:'"
        " AND site_id = (SELECT site_id FROM sites WHERE site = ?)",
        (alias,),
    )
    return int(row[0]) if row else 0
