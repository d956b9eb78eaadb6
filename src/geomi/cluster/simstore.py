"""The simulator's store: SQLite in memory, with crash points."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from geomi.store import SqliteStore

COMMIT = "before the commit"


class SimStore(SqliteStore):
    """SQLite in memory; each transaction is a crash point before, and one after its commit."""

    def __init__(self, tick: Callable[[str], None]) -> None:
        super().__init__(":memory:")
        self._tick = tick

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        if self._inside:
            yield
            return
        self._tick("begin")
        with super().transaction():
            yield
            self._tick(COMMIT)
        self._tick("after the commit")
