"""Moves old visits from the store to Parquet, a little at a time. Only the coordinator has one.

The last visits of a page stay, and the one whose record is its copy; requests that are for no page
stay for a time. A file has its row before it exists; once it is whole and synced, each transaction
that takes visits out of the store says how far the file counts. So nothing is lost and nothing is
there twice, whenever it ends. Visits of open WARC files stay (their index is made of them), those
of batches without a number too.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from geomi.archive.files import Files
from geomi.cluster.ledger import read_chunks
from geomi.frontier.counters import take_ids
from geomi.history import parquet
from geomi.history.past import Part, Past, parts_of
from geomi.settings import History
from geomi.store import Store

_LOOK_PAGES = 100  # pages looked at in one step; some milliseconds
_FILE_ROWS = 10_000  # visits written at once
_TAKE_ROWS = 500  # visits taken out of the store in one transaction: agents wait for it
_REST_S = 60.0  # least time between two passes over the pages
_MERGED = 8  # so many files of a month, alike in size, become one
_LEAST_ROWS = 1_000  # fewer wait for the next pass, but at the end of a run
_MERGE_ROWS = 1_000_000  # more are merged at the end of a run only: it takes seconds
_REPLACED_S = 86_400.0  # a merged file stays for who still reads it

_COLUMNS = ", ".join(
    "coalesce(p.url, v.url)" if name == "url" else "b.committed" if name == "committed"
    else f'v."{name}"'
    for name in parquet.COLUMNS
)  # fmt: skip
_MAY_MOVE = (
    "FROM visits v JOIN batches b ON b.batch = v.batch LEFT JOIN pages p ON p.page = v.page"
    " AND v.page > 0 WHERE b.seq IS NOT NULL AND v.visit < (SELECT max(visit) FROM visits)"
    " AND NOT EXISTS (SELECT 1 FROM files f WHERE f.file = v.file AND f.state <> 'closed')"
)
OLD_VISITS = (
    f"SELECT {_COLUMNS} {_MAY_MOVE} AND v.page = ? AND v.page > 0 AND v.visit <"
    " (SELECT visit FROM visits o WHERE o.page = ? AND o.page > 0 ORDER BY o.visit DESC"
    ' LIMIT 1 OFFSET ?) AND NOT (v.file > 0 AND v.file = p.file AND v."offset" = p."offset")'
    " ORDER BY v.visit"
)
OLD_REQUESTS = (
    f"SELECT {_COLUMNS} {_MAY_MOVE} AND v.page = 0 AND v.started < ?"
    " AND (v.started > ? OR v.started = ? AND v.visit > ?) ORDER BY v.started, v.visit LIMIT ?"
)
#: Both as the index over them has it; see frontier.tables.
OFTEN = "SELECT page FROM pages WHERE visits - moved > 2 AND visits - moved = ? AND page > ?"
NEXT_OFTEN = "SELECT min(visits - moved) FROM pages WHERE visits - moved > 2 AND visits - moved > ?"
_VISIT, _PAGE, _STARTED, _FILE, _BATCH = (
    list(parquet.COLUMNS).index(name) for name in ("visit", "page", "started", "file", "batch")
)

Row = tuple[Any, ...]


class Mover:
    """`step` does one piece of the work. Its owner holds the collection's lock."""

    def __init__(
        self, store: Store, files: Files, *, where: Callable[[str], str], keep: History,
        scratch: str | None = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._files = files
        self._where = where
        self._scratch = scratch
        self._keep = keep.keep_visits
        self._keep_requests_s = keep.keep_requests_s
        self._reset()
        self._pass_at = 0.0  # when the next pass over the pages may begin

    def _reset(self) -> None:
        """As at the start; what the store says is begun is gone on with."""
        self._steps: Iterator[None] | None = None
        self._is_last = False

    def step(self, now: float) -> bool:
        """Some milliseconds of work, or a file's writing. False: nothing is to do for now."""
        if self._steps is None:
            if now < self._pass_at:
                return False
            self._steps = self._pass(now)
        try:
            next(self._steps)
            return True
        except StopIteration:
            # A pass that found much takes long, and one that found nothing is cheap.
            self._pass_at = now + _REST_S
            self._reset()
            return False
        except BaseException:
            self._reset()
            raise

    def finish(self, now: float) -> Iterator[None]:
        """All that is to do, to the last visit, a piece a time. At the end of a run."""
        self._reset()
        self._is_last = True
        self._pass_at = 0.0
        while self.step(now):
            yield
        self._reset()

    def begun(self, now: float) -> Iterator[None]:
        """What was begun is ended, and nothing else: each file then counts as a whole."""
        self._clear(now)
        for part in parts_of(self._store, "moving"):
            yield from self._take_out(part, now)

    def _readable(self, name: str) -> str:
        return self._files.readable(self._where(name))

    # -- one pass ----------------------------------------------------------------------------------

    def _pass(self, now: float) -> Iterator[None]:
        self._clear(now)
        for part in parts_of(self._store, "moving"):  # begun before
            yield from self._take_out(part, now)
        # By number: a page that is visited meanwhile may be met twice.
        found: dict[int, Row] = {}
        for rows in self._old(now):
            found.update((row[_VISIT], row) for row in rows)
            if len(found) >= _FILE_ROWS:
                yield from self._move(found.values(), now)
                found.clear()
            yield
        if len(found) >= (1 if self._is_last else _LEAST_ROWS):
            yield from self._move(found.values(), now)
        yield from self._merge(now)

    def _clear(self, now: float) -> None:
        """Files that were not written to their end, and merged ones that nobody reads any more."""
        for part in parts_of(self._store, "writing", "replaced"):
            if part.state == "writing" or part.changed <= now - _REPLACED_S:
                path = self._where(part.name)
                self._files.remove(path)
                self._files.remove(path + ".new")
                with self._store.transaction():
                    self._store.run("DELETE FROM past WHERE part = ?", (part.part,))

    def _old(self, now: float) -> Iterator[list[Row]]:
        """Visits to move, by page; then requests for no page."""
        store, keep = self._store, self._keep
        # One more than are kept: the copy's own visit. While a run lasts some more gather first, so
        # that they move together.
        often = keep + 1 if self._is_last else keep + 1 + keep // 2
        while True:
            row = store.one(NEXT_OFTEN, (often,))
            if row is None or row[0] is None:
                break
            often, page = row[0], 0
            while pages := store.all(f"{OFTEN} ORDER BY page LIMIT ?", (often, page, _LOOK_PAGES)):
                rows: list[Row] = []
                for (page,) in pages:
                    rows += store.all(OLD_VISITS, (page, page, keep - 1))
                yield rows
        before, visit = -1.0, 0
        until = now - self._keep_requests_s
        while rows := store.all(OLD_REQUESTS, (until, before, before, visit, _TAKE_ROWS)):
            before, visit = rows[-1][_STARTED], rows[-1][_VISIT]
            yield rows

    def _move(self, rows: Iterable[Row], now: float) -> Iterator[None]:
        """A file for each month, and then its visits out of the store."""
        months: dict[str, list[Row]] = {}
        for row in rows:
            months.setdefault(month_of(row[_STARTED]), []).append(row)
        for month in sorted(months):
            part = self._write(month, sorted(months[month], key=_order), now)
            yield
            keys = [(row[_PAGE], row[_VISIT], row[_BATCH]) for row in months[month]]
            yield from self._take_out(part, now, sorted(keys))

    def _begin(self, month: str, now: float) -> tuple[int, str]:
        """The number and name of a new file: its row comes before it."""
        with self._store.transaction():
            number = take_ids(self._store, "past", 1)
            name = f"history/{month}/visits-{number:06d}.parquet"
            self._store.run(
                "INSERT INTO past (part, month, name, state, changed)"
                " VALUES (?, ?, ?, 'writing', ?)",
                (number, month, name, now),
            )
        return number, name

    def _write(self, month: str, rows: Sequence[Row], now: float) -> Part:
        number, name = self._begin(month, now)
        path = self._where(name)
        with parquet.written(rows, self._scratch) as new:
            self._files.write(path, read_chunks(new))
        pages = [row[_PAGE] for row in rows]
        files = [row[_FILE] for row in rows]
        with self._store.transaction():
            self._store.run(
                "UPDATE past SET state = 'moving', rows = ?, size = ?, first_page = ?,"
                " last_page = ?, first_file = ?, last_file = ?, changed = ? WHERE part = ?",
                (len(rows), self._files.size(path), min(pages), max(pages), min(files), max(files),
                 now, number),
            )  # fmt: skip
        (part,) = (one for one in parts_of(self._store, "moving") if one.part == number)
        return part

    def _take_out(
        self, part: Part, now: float, keys: Sequence[tuple[int, int, int]] | None = None
    ) -> Iterator[None]:
        """Deletes the visits of a whole file from the store. `keys`: (page, visit, batch)."""
        store = self._store
        left = deque(Past([], self._readable).keys_behind(part) if keys is None else keys)
        while True:
            some = [left.popleft() for _ in range(min(_TAKE_ROWS, len(left)))]
            page, visit, _ = some[-1] if some else (part.done_page, part.done_visit, 0)
            pages = Counter(one[0] for one in some if one[0])
            batches = Counter(one[2] for one in some)
            with store.transaction():
                store.many("DELETE FROM visits WHERE visit = ?", [(one[1],) for one in some])
                store.many(
                    "UPDATE pages SET moved = moved + ? WHERE page = ?",
                    [(number, one) for one, number in sorted(pages.items())],
                )
                store.many(
                    "UPDATE batches SET moved = moved + ? WHERE batch = ?",
                    [(number, one) for one, number in sorted(batches.items())],
                )
                store.run(
                    "UPDATE past SET done_page = ?, done_visit = ?, state = ?, changed = ?"
                    " WHERE part = ?",
                    (page, visit, "moving" if left else "whole", now, part.part),
                )
            if not left:
                return
            yield

    def _merge(self, now: float) -> Iterator[None]:
        """Many small files of a month become one, eight times as large, again and again."""
        while True:
            alike: dict[tuple[str, int], list[Part]] = {}
            for part in parts_of(self._store, "whole"):
                # Files of up to 10,000 rows, of up to 80,000, …
                size, tier = _FILE_ROWS, 0
                while part.rows > size:
                    size, tier = size * _MERGED, tier + 1
                alike.setdefault((part.month, tier), []).append(part)
            for (month, _), parts in sorted(alike.items()):
                rows = sum(part.rows for part in parts)
                if len(parts) >= _MERGED and (self._is_last or rows <= _MERGE_ROWS):
                    self._merge_into_one(month, parts, now)
                    yield
                    break
            else:
                return

    def _merge_into_one(self, month: str, parts: Sequence[Part], now: float) -> None:
        number, name = self._begin(month, now)
        path = self._where(name)
        with parquet.merged([self._readable(part.name) for part in parts], self._scratch) as new:
            self._files.write(path, read_chunks(new))
        with self._store.transaction():
            self._store.run(
                "UPDATE past SET state = 'whole', rows = ?, size = ?, first_page = ?,"
                " last_page = ?, first_file = ?, last_file = ?, done_page = ?, done_visit = ?,"
                " changed = ? WHERE part = ?",
                (
                    sum(part.rows for part in parts), self._files.size(path),
                    min(part.first_page for part in parts), max(part.last_page for part in parts),
                    min(part.first_file for part in parts), max(part.last_file for part in parts),
                    *max((part.done_page, part.done_visit) for part in parts), now, number,
                ),
            )  # fmt: skip
            self._store.many(
                "UPDATE past SET state = 'replaced', changed = ? WHERE part = ?",
                [(now, part.part) for part in parts],
            )


def month_of(when: float) -> str:
    """As `2026-11`, in UTC."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m")


def _order(row: Row) -> tuple[int, int]:
    return row[_PAGE], row[_VISIT]
