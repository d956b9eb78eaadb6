"""Who refers to a visit's payload, and what becomes of them when it goes.

For who deletes or rewrites: ask `referrers`, write another copy's record, then `promote` it; or
`forget` the visit, so that no later payload refers to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from geomi.archive import duplicates_tables as tables
from geomi.archive.duplicates import REDIRECTS, key_of
from geomi.archive.duplicates_tables import Kept
from geomi.cluster.digests import Index, Neighbour, moved
from geomi.errors import OperatorError, ResourceError
from geomi.history.past import Past
from geomi.states import Outcome
from geomi.store import Store

# Places in a row of history.tables.STORY.
_VISIT, _OUTCOME, _REVISIT, _FILE = 0, 5, 12, 13


class Referrer(NamedTuple):
    """A revisit. `home` empty: of the collection asked about; else the name of another."""

    home: str
    folder: str  # where that lies; empty: this one
    visit: int


def targets_of_page(store: Store, past: Past, page: int) -> dict[int, tuple[str, int]]:
    """(home, visit) each revisit of a page refers to, by the revisit's number.

    One with a row in `refers` to what that says; each other one to the page's last whole response
    before it, or to what the page's revisit before it referred to.
    """
    lines = tables.lines_of(store, page)
    lines += [
        (row[_VISIT], row[_OUTCOME], row[_FILE], row[_REVISIT])
        for row in (past.of_page(page) if past.parts else ())
    ]
    said = tables.rows_of(store, [visit for visit, _, _, revisit in lines if revisit])
    found: dict[int, tuple[str, int]] = {}
    last: tuple[str, int] | None = None
    for visit, outcome, file, revisit in sorted(lines):
        if not file:
            continue
        if not revisit:
            last = ("", visit) if outcome == Outcome.OK else last
            continue
        target = said.get(visit, last)
        if target is not None:
            found[visit] = target
            last = target if outcome in (Outcome.OK, Outcome.SAME) else last
    return found


def page_of(store: Store, past: Past, visit: int) -> int:
    """The page a visit was to; 0: none, or no such visit."""
    row = store.one("SELECT page FROM visits WHERE visit = ?", (visit,))
    if row is None and past.parts:
        row = next(past.chosen("page", "visit = ?", (visit,)), None)
    return int(row[0]) if row else 0


def originals(store: Store, past: Past, visits: Sequence[int]) -> dict[int, Kept]:
    """What the collection has of visits that may be referred to, wherever they are."""
    found = tables.kept(store, visits)
    missing = [visit for visit in visits if visit not in found]
    return found | moved(past, missing) if missing else found


def _in(neighbour: Neighbour, home: str, visit: int) -> list[int]:
    """Revisits of one collection that refer to a visit of `home` (empty: its own)."""
    store, past = neighbour.store, neighbour.past()
    named = tables.named_referrers(store, home, visit)
    pages = {page_of(store, past, one) for one in named}
    if not home:
        pages.add(page_of(store, past, visit))
    found = set(named)
    for page in pages - {0}:
        targets = targets_of_page(store, past, page)
        found |= {one for one, target in targets.items() if target == (home, visit)}
    return sorted(found)


def _others(index: Index, visits: Sequence[int]) -> Iterator[tuple[str, str, list[int]]]:
    """(name, folder, its revisits of these visits) of each other collection that shares the index.

    OperatorError if one of them cannot be asked: what it refers to is not known then.
    """
    for home, name, folder, address in tables.homes(index.store):
        if home == index.home:
            continue
        try:
            other = index.open_other(folder, address)
            with closing(other.store):
                found = [one for visit in visits for one in _in(other, index.name, visit)]
        except (OperatorError, ResourceError) as error:
            raise OperatorError(
                f"{folder}: shares the index and cannot be asked what it refers to: {error}"
            ) from error
        yield name, folder, found


def referrers(index: Index, visit: int) -> list[Referrer]:
    """All revisits that refer to a visit of the index's collection, in any that shares it.

    OperatorError if one of those cannot be asked.
    """
    found = [Referrer("", "", one) for one in _in(index.own, "", visit)]
    for name, folder, theirs in _others(index, [visit]):
        found += [Referrer(name, folder, one) for one in theirs]
    return found


def elsewhere(index: Index, visits: Sequence[int]) -> list[str]:
    """Folders of other collections with revisits of these visits of the index's collection.

    OperatorError if one of those that share the index cannot be asked.
    """
    return sorted(folder for _, folder, theirs in _others(index, visits) if theirs)


class Sharers:
    """What a deletion asks and tells those that share the index of payloads."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def elsewhere(self, visits: Sequence[int]) -> list[str]:
        return elsewhere(self._index, visits)

    def forget(self, visits: Sequence[int]) -> None:
        forget(self._index, visits)


def promote(
    index: Index, visit: int, to: int, *, digest: str, code: int, location: str = ""
) -> int:
    """The revisit `to` is a response now: what referred to `visit` refers to it; their number.

    Its row in `visits` says so already. The records of the others name the old one until they are
    rewritten. OperatorError, and nothing is changed, while another collection refers.
    """
    others = referrers(index, visit)
    if away := [one for one in others if one.home]:
        raise OperatorError(
            f"visit {visit}: {len(away)} revisits of {away[0].folder} refer to it; delete those"
            " first, or restore that collection"
        )
    left = [one.visit for one in others if one.visit != to]
    with index.here.transaction():
        index.here.run("DELETE FROM refers WHERE visit = ?", (to,))
        index.here.many(tables.PUT_REFERS, [(one, "", to) for one in left])
    with index.store.transaction():
        key = key_of(digest, code=code, location=location)
        was = (index.home, visit)
        if not tables.move(index.store, key, home=index.home, visit=to, was=was):
            tables.put(index.store, index.home, [(key, to)])
    return len(left)


def forget(index: Index, visits: Sequence[int]) -> None:
    """Payloads of these visits are not referred to any more. Before their records go."""
    found = originals(index.here, index.own.past(), visits)
    plain = [
        (key_of(kept.digest, code=kept.code), visit)
        for visit, kept in found.items()
        if kept.code not in REDIRECTS
    ]
    rest = [visit for visit in visits if visit not in {one for _, one in plain}]
    with index.store.transaction():
        tables.drop(index.store, index.home, plain)
        tables.drop_visits(index.store, index.home, rest)
