"""What pages and revisits say of the records that hold their payloads, when a file is switched.

Where the store keeps references (`refers`, `pages.stored_url`), they follow; where it does not, a
page whose payload is another URL's is asked without conditions once.
"""

from __future__ import annotations

from typing import NamedTuple

from geomi.archive import rewrite_tables
from geomi.archive.names import header_uri
from geomi.archive.rewrite_tables import Edit, Kept
from geomi.archive.shifts import Kind, Shifts
from geomi.frontier import copies
from geomi.history.past import Past
from geomi.history.places import Placed
from geomi.store import Store


class Follower:
    """Of one switch, inside its transaction. First `shift_elsewhere`, then `saw` for each visit,
    then `settle`."""

    def __init__(self, store: Store, file: Kept) -> None:
        self._store = store
        self._file = file
        self._has = rewrite_tables.keeps_references(store)
        # Filled by saw(), emptied by settle().
        self._copies: list[tuple[int, str, Edit]] = []  # page, its URL, what its copy became
        self._refers: list[tuple[int, int]] = []
        self._free: list[int] = []

    def shift_elsewhere(self, shifts: Shifts, *, is_back: bool = False) -> None:
        """Pages of other URLs whose payload lies in this file."""
        if not self._has:
            return
        moved, lost = [], []
        for page, offset, length in copies.elsewhere(self._store, self._file.file):
            new = (shifts.back if is_back else shifts.place)(offset, length)
            if new is None or (new.kind is Kind.GONE and not is_back):
                lost.append(page)
            else:
                moved.append((new.offset, new.length, page))
        copies.place(self._store, moved)
        copies.lose_elsewhere(self._store, lost)

    def saw(self, visit: int, offset: int, kind: Kind, row: Placed | None = None) -> None:
        """What became of a visit's record, by its old place. `row`: of one in the store."""
        if kind in (Kind.REVISIT, Kind.POINT) and (self._has or (row and row.is_copy)):
            edit = rewrite_tables.edit_at(self._store, self._file.file, offset)
            self._refers.append((visit, edit.original))
            if row is not None and row.is_copy and kind is Kind.REVISIT:
                self._copies.append((row.page, row.url, edit))
        elif kind in (Kind.RESPONSE, Kind.GONE):
            self._free.append(visit)

    def settle(self, past: Past) -> None:
        """Once all visits of the file have their new places."""
        store = self._store
        rewrite_tables.was_copy(
            store, [(page, edit.file, edit.offset) for page, _, edit in self._copies]
        )
        own, other, anew = [], [], []
        for page, url, edit in self._copies:
            if edit.uri == header_uri(url):
                own.append((edit.date, edit.id, page))
            elif self._has and (at := _place(store, past, edit.original)) is not None:
                place = (at.file, at.offset, at.length, edit.date, edit.id, at.url)
                other.append((*place, page))
            else:
                anew.append(page)
        copies.refer(store, own)
        copies.ask_anew(store, anew)
        if self._has:
            copies.put_elsewhere(store, other)
            rewrite_tables.refer(store, self._refers)
            rewrite_tables.refer_no_more(store, self._free)

    def take_back(self, dates: dict[int, str], revisits: list[int]) -> None:
        """After a switch back. `dates`: of records, by place; `revisits` are none any more."""
        rows = rewrite_tables.copies_of(self._store, self._file.file)
        copies.own_again(
            self._store,
            [
                (self._file.file, offset, length, dates[offset], page)
                for page, offset, length in rows
                if offset in dates
            ],
        )
        if self._has:
            self._store.many(
                "UPDATE pages SET stored_url = '' WHERE page = ?", [(row[0],) for row in rows]
            )
            rewrite_tables.refer_no_more(self._store, revisits)


class _At(NamedTuple):
    file: int
    offset: int
    length: int
    url: str


def _place(store: Store, past: Past, visit: int) -> _At | None:
    row = store.one(
        'SELECT v.file, v."offset", v.length, coalesce(p.url, v.url) FROM visits v'
        " LEFT JOIN pages p ON p.page = v.page AND v.page > 0 WHERE v.visit = ? AND v.file > 0",
        (visit,),
    )
    if row is None and past.parts:
        row = past.of_visit('file, "offset", length, url', visit)
    return None if row is None else _At(*row)
