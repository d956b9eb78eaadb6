"""One transaction in which a file becomes its next generation, or what it was before again.

In it: the file's row, the places of its visits (in the store and in Parquet), its pages' copies,
its orphans, the log, and the index of the new file. Before it, nothing refers to the new file;
after it, nothing to the old one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from geomi.archive import cdxj, rewrite_tables
from geomi.archive.files import Files
from geomi.archive.rewrite_tables import Kept
from geomi.archive.shifts import Kind, Moved, Shifts
from geomi.cluster.ledger import index_of, index_path, read_chunks
from geomi.cluster.originals import Follower
from geomi.errors import InternalError, ResourceError
from geomi.frontier import copies
from geomi.frontier.counters import take_ids
from geomi.history import parquet, places
from geomi.history import tables as history_tables
from geomi.history.past import Part, Past, parts_of
from geomi.history.places import Placed
from geomi.store import Store

#: Changes that alter what a reader of a record gets, not only where it is.
_REPLACED = (Kind.REVISIT, Kind.RESPONSE, Kind.POINT)
_CAPTURE = 'url, stored_date, mime, code, digest, "offset", length, revisit'
#: (offset, length, revisit) now -> what it becomes; None: no such record.
Place = Callable[[int, int, int], Moved | None]


class Target(NamedTuple):
    """What a file becomes. `folder`: where it lies."""

    name: str
    committed: int
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """What a switch works with. `where` turns a path below the collection into a path."""

    store: Store
    files: Files
    where: Callable[[str], str]
    now: Callable[[], float]
    scratch: str | None = None


def forward(
    shell: Shell, old: Kept, target: Target, shifts: Shifts, *, rewrite: int, who: str
) -> None:
    """The next generation counts from now on."""
    store = shell.store

    def place(offset: int, length: int, _: int) -> Moved | None:
        return shifts.place(offset, length)

    with ExitStack() as stack:
        parts = list(_new_parts(shell, stack, old.file, place))
        with store.transaction():
            if not rewrite_tables.switched(
                store, old, name=target.name, committed=target.committed, rewrite=rewrite,
                now=shell.now(),
            ):  # fmt: skip
                raise ResourceError(f"{old.name}: its row changed meanwhile")
            batch = places.open_change(store, who, shell.now())
            follower = Follower(store, old)
            follower.shift_elsewhere(shifts)
            for rows in places.kept_in(store, old.file, old.first_visit, old.last_visit):
                _forward_visits(shell, old, rows, place, batch, follower)
            rewrite_tables.orphans_out(store, old.file)
            _switch_parts(shell, parts, batch)
            for part in parts:
                for visit, offset, kind in part.seen:
                    follower.saw(visit, offset, kind)
            follower.settle(_past(shell))
            places.tell_moved(store, batch, old.file)
            history_tables.number_batches(store)  # its owner is the coordinator
            write_index(shell, old.file, target)


def backward(shell: Shell, now_it_is: Kept, target: Target, shifts: Shifts, *, who: str) -> None:
    """The generation before counts again. Nothing of it may have been deleted."""
    store = shell.store

    def place(offset: int, length: int, revisit: int) -> Moved | None:
        return shifts.back(offset, length)

    with ExitStack() as stack:
        parts = list(_new_parts(shell, stack, now_it_is.file, place, is_back=True))
        with store.transaction():
            rewrite_tables.switched_back(store, now_it_is.file, now_it_is.generation - 1)
            batch = places.open_change(store, who, shell.now())
            follower = Follower(store, now_it_is)
            follower.shift_elsewhere(shifts, is_back=True)
            copies_back: dict[int, str] = {}
            free: list[int] = []
            for rows in places.kept_in(
                store, now_it_is.file, now_it_is.first_visit, now_it_is.last_visit
            ):
                dates, revisits = _back_visits(shell, now_it_is, rows, place, batch)
                copies_back |= dates
                free += revisits
            rewrite_tables.orphans_back(
                store, rewrite_tables.edits_of(store, now_it_is.file)
            )  # fmt: skip
            _switch_parts(shell, parts, batch)
            for part in parts:
                free += [visit for visit, _, kind in part.seen if kind is Kind.REVISIT]
            follower.take_back(copies_back, free)
            places.tell_moved(store, batch, now_it_is.file)
            history_tables.number_batches(store)
            write_index(shell, now_it_is.file, target)


# -- visits in the store ---------------------------------------------------------------------------


def _forward_visits(
    shell: Shell, old: Kept, rows: list[Placed], place: Place, batch: int, follower: Follower
) -> None:
    store = shell.store
    moved, pages, gone, gone_pages, replaced = [], [], [], [], []
    for row in rows:
        new = _must_be(place(row.offset, row.length, row.revisit), old, row.visit, row.offset)
        follower.saw(row.visit, row.offset, new.kind, row)
        if new.kind is Kind.GONE:
            gone.append(row.visit)
            if row.is_copy:
                gone_pages.append(row.page)
            continue
        moved.append((new.offset, new.length, _revisit(row.revisit, new.kind), row.visit))
        if row.is_copy:
            pages.append((new.offset, new.length, row.page))
        if new.kind in _REPLACED:
            replaced.append(row.visit)
    places.put(store, moved)
    places.forget(store, gone)
    copies.place(store, pages)
    copies.without(store, gone_pages)
    places.tell(store, batch, "replaced", replaced)
    places.tell(store, batch, "removed", gone)


def _back_visits(
    shell: Shell, file: Kept, rows: list[Placed], place: Place, batch: int
) -> tuple[dict[int, str], list[int]]:
    """Dates of records that are responses again, by their places; and their visits."""
    store = shell.store
    moved, pages, replaced, revisits = [], [], [], []
    dates: dict[int, str] = {}
    for row in rows:
        before = _must_be(place(row.offset, row.length, row.revisit), file, row.visit, row.offset)
        moved.append(
            (before.offset, before.length, _revisit_before(row.revisit, before.kind), row.visit)
        )
        if row.is_copy:
            pages.append((before.offset, before.length, row.page))
        if before.kind in _REPLACED:
            replaced.append(row.visit)
        if before.kind is Kind.REVISIT:
            revisits.append(row.visit)
            if row.page:
                dates[before.offset] = row.date
    places.put(store, moved)
    copies.place(store, pages)
    places.tell(store, batch, "replaced", replaced)
    return dates, revisits


def _must_be(new: Moved | None, file: Kept, visit: int, offset: int) -> Moved:
    if new is None:
        raise InternalError(f"{file.name} at {offset}: visit {visit} is there, and no record")
    return new


def _revisit(before: int, kind: Kind) -> int:
    return 1 if kind is Kind.REVISIT else 0 if kind is Kind.RESPONSE else before


def _revisit_before(now: int, kind: Kind) -> int:
    return 0 if kind is Kind.REVISIT else 1 if kind is Kind.RESPONSE else now


# -- visits in Parquet -----------------------------------------------------------------------------


class _NewPart(NamedTuple):
    old: Part
    number: int
    name: str
    replaced: list[int]
    gone: list[int]
    seen: list[tuple[int, int, Kind]]  # visit, its old place, what became of its record


def _new_parts(
    shell: Shell, stack: ExitStack, file: int, place: Place, *, is_back: bool = False
) -> Iterator[_NewPart]:
    """Copies of the parts that hold visits of a file, with their places as they will be."""
    store = shell.store
    past = _past(shell)
    for part in past.parts:
        if part.state != "whole":
            raise InternalError(f"{part.name}: is {part.state}, wanted it whole")
        if not part.first_file <= file <= part.last_file:
            continue
        rows, replaced, gone = [], [], []
        seen: list[tuple[int, int, Kind]] = []
        for visit, offset, length, revisit in past.of_file_in(
            part, 'visit, "offset", length, revisit', file
        ):
            new = place(offset, length, revisit)
            if new is None:
                raise InternalError(f"{part.name}: visit {visit} is at {offset}, and no record")
            if new.kind is not Kind.COPY:
                seen.append((visit, offset, new.kind))
            if new.kind is Kind.GONE:
                gone.append(visit)
                rows.append((visit, 0, 0, 0, True))
                continue
            if new.kind in _REPLACED:
                replaced.append(visit)
            as_it_is = (_revisit_before if is_back else _revisit)(revisit, new.kind)
            rows.append((visit, new.offset, new.length, as_it_is, False))
        if not rows:
            continue
        with store.transaction():
            number = take_ids(store, "past", 1)
            name = f"history/{part.month}/visits-{number:06d}.parquet"
            store.run(
                "INSERT INTO past (part, month, name, state, changed)"
                " VALUES (?, ?, ?, 'writing', ?)",
                (number, part.month, name, shell.now()),
            )
        new_file = stack.enter_context(
            parquet.placed(shell.files.readable(shell.where(part.name)), rows, shell.scratch)
        )
        shell.files.write(shell.where(name), read_chunks(new_file))
        yield _NewPart(part, number, name, replaced, gone, seen)


def _past(shell: Shell) -> Past:
    return Past.of(shell.store, lambda name: shell.files.readable(shell.where(name)))


def _switch_parts(shell: Shell, parts: list[_NewPart], batch: int) -> None:
    store, now = shell.store, shell.now()
    for one in parts:
        old = one.old
        store.run(
            "UPDATE past SET state = 'whole', rows = ?, size = ?, first_page = ?, last_page = ?,"
            " first_file = ?, last_file = ?, done_page = ?, done_visit = ?, changed = ?"
            " WHERE part = ?",
            (
                old.rows, shell.files.size(shell.where(one.name)), old.first_page, old.last_page,
                old.first_file, old.last_file, old.done_page, old.done_visit, now, one.number,
            ),
        )  # fmt: skip
        store.run("UPDATE past SET state = 'replaced', changed = ? WHERE part = ?", (now, old.part))
        places.tell(store, batch, "replaced", one.replaced)
        places.tell(store, batch, "removed", one.gone)


def drop_unfinished_parts(shell: Shell) -> None:
    """Parts that a kill left half written."""
    for part in parts_of(shell.store, "writing"):
        path = shell.where(part.name)
        shell.files.remove(path)
        shell.files.remove(path + ".new")
        with shell.store.transaction():
            shell.store.run("DELETE FROM past WHERE part = ?", (part.part,))


# -- the index -------------------------------------------------------------------------------------


def write_index(shell: Shell, file: int, target: Target) -> None:
    """The CDXJ of a file as the store has it now; of the records where it has no visits of it."""
    path = os.path.join(target.folder, target.name)
    past = _past(shell)
    name = os.path.basename(target.name)
    lines = list(index_of(shell.store, file, name, past.of_file(_CAPTURE, file)))
    if not lines and shell.files.size(path):
        lines = cdxj.sort_lines(cdxj.from_warc(shell.files.readable(path), name))
    shell.files.write(index_path(path), lines)
