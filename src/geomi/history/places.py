"""Where the records of visits are kept, changed after the fact: what rewriting and deleting write.

A visit stays a line of history whatever becomes of its record; of one that was deleted nothing is
left but that the page was asked, when, and what came of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from geomi.history.parquet import DELETED
from geomi.store import Store

_CHUNK = 2_000


class Placed(NamedTuple):
    """A visit with a record, and whether that is its page's copy."""

    visit: int
    page: int
    offset: int
    length: int
    revisit: int
    date: str
    url: str
    is_copy: bool


def kept_in(store: Store, file: int, first: int, last: int) -> Iterator[list[Placed]]:
    """Visits in the store whose records lie in a file, some at a time, by number: they may be
    changed between. Those in Parquet are not among them."""
    after = first - 1
    while rows := store.all(
        'SELECT v.visit, v.page, v."offset", v.length, v.revisit, v.stored_date,'
        " coalesce(p.url, v.url),"
        ' CASE WHEN p.file = v.file AND p."offset" = v."offset" THEN 1 ELSE 0 END'
        " FROM visits v LEFT JOIN pages p ON p.page = v.page AND v.page > 0"
        " WHERE v.visit > ? AND v.visit <= ? AND v.file = ? ORDER BY v.visit LIMIT ?",
        (after, last, file, _CHUNK),
    ):
        yield [Placed._make((*row[:7], bool(row[7]))) for row in rows]
        after = rows[-1][0]


def put(store: Store, rows: Iterable[Sequence[Any]]) -> None:
    """New places: (offset, length, revisit, visit)."""
    store.many('UPDATE visits SET "offset" = ?, length = ?, revisit = ? WHERE visit = ?', rows)


def forget(store: Store, visits: Sequence[int]) -> None:
    """Their records are deleted."""
    store.many(
        "UPDATE visits SET file = 0, \"offset\" = 0, length = 0, revisit = 0, digest = '',"
        f" mime = '', stored_date = '', detail = '{DELETED}' WHERE visit = ?",
        [(visit,) for visit in visits],
    )


def open_change(store: Store, who: str, now: float) -> int:
    """A batch without visits, for the log; its number. The coordinator puts it in order later."""
    row = store.one(
        "INSERT INTO batches (agent, incarnation, committed, visits, first_visit, last_visit)"
        " VALUES (?, 0, ?, 0, 1, 0) RETURNING batch",
        (who, now),
    )
    assert row is not None
    return int(row[0])


def tell(store: Store, batch: int, change: str, visits: Iterable[int]) -> None:
    store.many(
        "INSERT INTO log (batch, change, visit) VALUES (?, ?, ?)",
        [(batch, change, visit) for visit in visits],
    )


def tell_moved(store: Store, batch: int, file: int) -> None:
    """All that is kept in a file may lie elsewhere in it."""
    store.run(
        "INSERT INTO log (batch, change, visit, file) VALUES (?, 'moved', 0, ?)", (batch, file)
    )
