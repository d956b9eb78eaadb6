"""Visits that moved out of the store, as one image of it says. Reads; writes nothing.

Make one inside `store.image()` and read the table `visits` in the same image: each visit is then
in exactly one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from geomi.history import parquet
from geomi.history.tables import STORY
from geomi.store import Store

Row = tuple[Any, ...]


class Part(NamedTuple):
    """One file, as the store knows it."""

    part: int
    month: str
    name: str
    state: str
    rows: int
    size: int
    first_page: int
    last_page: int
    first_file: int
    last_file: int
    done_page: int
    done_visit: int
    changed: float


def parts_of(store: Store, *states: str) -> list[Part]:
    """Files in any of these states, oldest first."""
    marks = ", ".join("?" * len(states))
    return [
        Part(*row)
        for row in store.all(
            f"SELECT {', '.join(Part._fields)} FROM past WHERE state IN ({marks}) ORDER BY part",
            states,
        )
    ]


def follow(
    store: Store, after_seq: int, where: Callable[[str], str]
) -> Iterator[tuple[int, str, int]]:
    """(seq, change, visit) beyond `after_seq`, in order; each visit of a batch is named, also where
    it moved since."""
    for seq, batch, first, last in store.all(
        "SELECT seq, batch, first_visit, last_visit FROM batches WHERE seq > ? ORDER BY seq",
        (after_seq,),
    ):
        for change, visit, file in store.all(
            "SELECT change, visit, file FROM log WHERE batch = ? ORDER BY entry", (batch,)
        ):
            if visit:
                yield seq, change, visit
                continue
            if file:
                for number in _of_file(store, file, where):
                    yield seq, change, number
                continue
            with store.image():
                numbers = store.all(
                    "SELECT visit FROM visits WHERE visit BETWEEN ? AND ? AND batch = ?",
                    (first, last, batch),
                )
                row = store.one("SELECT moved FROM batches WHERE batch = ?", (batch,))
                if row is not None and row[0]:
                    numbers += Past.of(store, where).of_batch(batch)
            for (number,) in sorted(numbers):
                yield seq, change, number


def _of_file(store: Store, file: int, where: Callable[[str], str]) -> list[int]:
    """Visits whose records lie in a file, by number."""
    with store.image():
        numbers = store.all(
            "SELECT v.visit FROM files f JOIN visits v ON v.visit BETWEEN f.first_visit"
            " AND f.last_visit AND v.file = f.file WHERE f.file = ?",
            (file,),
        )
        numbers += Past.of(store, where).of_file("visit", file)
    return sorted(number for (number,) in numbers)


class Past:
    """Reads what counts of each file. `where` turns a path below the collection into a path."""

    def __init__(self, parts: Sequence[Part], where: Callable[[str], str]) -> None:
        self.parts = parts
        self.where = where

    @classmethod
    def of(cls, store: Store, where: Callable[[str], str]) -> Past:
        return cls(parts_of(store, "moving", "whole"), where)

    def of_page(self, page: int) -> list[Row]:
        """history.tables.STORY of the moved visits of one page, oldest first."""
        some = [part for part in self.parts if part.first_page <= page <= part.last_page]
        return list(self._ask(STORY, "WHERE page = ? ORDER BY visit", (page,), parts=some))

    def has_place(self, page: int, file: int, offset: int) -> bool:
        """True if a moved visit of the page has its record there."""
        some = [
            part for part in self.parts
            if part.first_page <= page <= part.last_page
            and part.first_file <= file <= part.last_file
        ]  # fmt: skip
        which = 'WHERE page = ? AND file = ? AND "offset" = ? AND revisit = 0'
        return any(self._ask("visit", which, (page, file, offset), parts=some))

    def of_file(self, columns: str, file: int) -> list[Row]:
        """These columns of the visits whose records lie in a WARC file, by offset."""
        some = [part for part in self.parts if part.first_file <= file <= part.last_file]
        order = 'WHERE file = ? ORDER BY "offset", visit'
        return list(self._ask(columns, order, (file,), parts=some))

    def of_file_in(self, part: Part, columns: str, file: int) -> Iterator[Row]:
        """The same, of one of the parts, in no order."""
        return self._ask(columns, "WHERE file = ?", (file,), parts=[part])

    def of_visit(self, columns: str, visit: int) -> Row | None:
        """The same of one visit with a record; None: it did not move."""
        return next(self._ask(columns, "WHERE visit = ? AND file > 0", (visit,)), None)

    def of_batch(self, batch: int) -> list[Row]:
        """The numbers of the moved visits of a batch."""
        return list(self._ask("visit", "WHERE batch = ?", (batch,)))

    def chosen(self, columns: str, condition: str, params: Iterable[Any] = ()) -> Iterator[Row]:
        """These columns of the moved visits for which something holds."""
        return self._ask(columns, f"WHERE {condition}", params)

    def of_batch_where(self, batch: int, columns: str, where: str) -> list[Row]:
        """These columns of those of its moved visits for which `where` holds."""
        return list(self._ask(columns, f"WHERE batch = ? AND {where}", (batch,)))

    def by_visit(self, columns: str) -> Iterator[Row]:
        """These columns of all moved visits, in the order of their numbers."""
        return self._ask(columns, "ORDER BY visit")

    def by_page(self, columns: str, where: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """These columns of some moved visits, in the order of their pages; `v` is the table."""
        return self._ask(columns, f"{where} ORDER BY page, visit", params)

    def grouped(self, columns: str, by: str, where: str = "") -> Iterator[Row]:
        """Aggregates of all moved visits, one row for each value of `by`."""
        return self._ask(columns, f"{where} GROUP BY {by} ORDER BY {by}")

    def totals(self) -> tuple[int, int, int]:
        """(visits, those of pages, bytes received)."""
        if not self.parts:
            return 0, 0, 0
        visits, pages, size = self.over_all("count(*), count(*) FILTER (page > 0), sum(size)")
        return int(visits), int(pages), int(size or 0)

    def over_all(self, columns: str) -> Row:
        """Aggregates of all moved visits, in one row. There must be a file."""
        (row,) = self._ask(columns)
        return row

    def keys_behind(self, part: Part) -> list[tuple[int, int, int]]:
        """(page, visit, batch) of rows of a file that are in the store yet."""
        return [
            (row[0], row[1], row[2])
            for row in parquet.ask(
                f"SELECT page, visit, batch FROM {parquet.files([self.where(part.name)])}"
                " WHERE (page, visit) > (?, ?) ORDER BY page, visit",
                (part.done_page, part.done_visit),
            )
        ]

    def _ask(
        self, columns: str, rest: str = "", params: Iterable[Any] = (), *,
        parts: Sequence[Part] | None = None,
    ) -> Iterator[Row]:  # fmt: skip
        some = self.parts if parts is None else parts
        if not some:
            return iter(())
        whole = [self.where(part.name) for part in some if part.state == "whole"]
        tables = [f"SELECT * FROM {parquet.files(whole)}"] if whole else []
        for part in some:
            if part.state == "moving":
                tables.append(
                    f"SELECT * FROM {parquet.files([self.where(part.name)])}"
                    f" WHERE (page, visit) <= ({part.done_page}, {part.done_visit})"
                )
        return parquet.ask(
            f"SELECT {columns} FROM ({' UNION ALL '.join(tables)}) AS v {rest}", tuple(params)
        )
