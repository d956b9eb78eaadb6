"""SQLite, the embedded store. The only file that names sqlite3."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from geomi.errors import OperatorError, ResourceError
from geomi.store.store import SQLITE, Row, Store

#: How long a writer waits for another's transaction. Batches hold the lock for some milliseconds.
BUSY_S = 60.0


class SqliteStore:
    """One connection. Writes happen inside `transaction()`, which takes the write lock at once."""

    dialect = SQLITE

    def __init__(self, path: str, *, readonly: bool = False) -> None:
        self.path = path
        self._inside = False
        self.fence: Callable[[Store], None] | None = None
        self.clock: Callable[[], float] = time.time  # that of the crawl, once one has begun
        try:
            if readonly:
                uri = f"{Path(path).absolute().as_uri()}?mode=ro"
                self._db = _connected(f"{uri}&immutable=1" if _is_frozen(path) else uri)
            else:
                self._db = _connected(path)
            self._setup(readonly=readonly)
        except sqlite3.Error as error:
            raise _translated(error, path) from error

    def _setup(self, *, readonly: bool) -> None:
        if not readonly:
            self._db.execute("PRAGMA journal_mode=WAL")
            # FULL: a commit that returned survives a power cut; one sync a batch is cheap.
            self._db.execute("PRAGMA synchronous=FULL")
            # A checkpoint each 16,000 pages of log keeps the log below some 64 MiB. In a table of
            # a million pages each new URL dirties a leaf of its index; the longer the log, the
            # more of them are written back once (4,000: 4 % fewer pages/s at a million).
            self._db.execute("PRAGMA wal_autocheckpoint=16000")
        self._db.execute("PRAGMA cache_size=-32768")  # 32 MiB, whatever the collection's size
        self._db.execute("PRAGMA temp_store=MEMORY")

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        try:
            return self._db.execute(sql, params).fetchall()
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error

    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        try:
            row: Row | None = self._db.execute(sql, params).fetchone()
            return row
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error

    def each(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """Rows as they come, a thousand at a time; memory does not grow with their number."""
        try:
            cursor = self._db.execute(sql, params)
            while rows := cursor.fetchmany(1000):
                yield from rows
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Executes one sentence that writes; returns how many rows it touched."""
        try:
            return self._db.execute(sql, params).rowcount
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        try:
            self._db.executemany(sql, rows)
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Nested calls join the outer one."""
        if self._inside:
            yield
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error
        self._inside = True
        try:
            if self.fence is not None:
                self.fence(self)
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise
        else:
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise _translated(error, self.path) from error
        finally:
            self._inside = False

    @contextlib.contextmanager
    def image(self) -> Iterator[None]:
        """All reads inside see the same commits."""
        if self._inside:
            yield
            return
        self.run("BEGIN")
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
            self.run("ROLLBACK")

    def make(self) -> None:
        """A file needs nothing more, and the transaction keeps all others out."""

    def is_empty(self) -> bool:
        return self.one("SELECT 1 FROM sqlite_master WHERE name = 'meta'") is None

    def enter(self, room: str) -> None:
        """The write lock keeps all others out."""

    def present(self, room: str) -> frozenset[str]:
        return frozenset()

    def now(self) -> float:
        return self.clock()

    def close(self) -> None:
        self._db.close()


def _connected(path: str) -> sqlite3.Connection:
    return sqlite3.connect(
        path, uri=path.startswith("file:"), timeout=BUSY_S, isolation_level=None,
        check_same_thread=False,
    )  # fmt: skip


def _is_frozen(path: str) -> bool:
    """True on a medium that cannot be written, where SQLite can keep no index of its log.

    Nobody writes there, so none is needed; with a log beside it the file alone would be stale.
    """
    try:
        has_log = os.path.getsize(path + "-wal") > 0
    except OSError:
        has_log = False
    return not has_log and not os.access(os.path.dirname(path) or ".", os.W_OK)


def _translated(error: sqlite3.Error, path: str) -> Exception:
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if "full" in text:
            return ResourceError(f"{path}: the disk is full")
        if "locked" in text or "busy" in text:
            return ResourceError(f"{path}: another program holds the database: {text}")
        if "unable to open" in text or "readonly" in text or "disk I/O" in text:
            return ResourceError(f"{path}: {text}")
        return error
    if isinstance(error, sqlite3.DatabaseError) and (
        "not a database" in text or "malformed" in text
    ):
        return OperatorError(f"{path}: not a geomi store: {text}")
    return error
