"""The simulator's store: SQLite in memory, with crash points and a disk that can be full."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from geomi.errors import ResourceError
from geomi.store import SqliteStore


class SimStore(SqliteStore):
    """SQLite in memory; each transaction is a crash point before, and one after its commit."""

    def __init__(self, tick: Callable[[str], None]) -> None:
        super().__init__(":memory:")
        self._tick = tick
        self.is_full = False  # no transaction can be committed

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        if self._inside:
            yield
            return
        self._tick("begin")
        with super().transaction():
            yield
            self._tick("before the commit")
            if self.is_full:
                raise ResourceError("the store: the disk is full")
        self._tick("after the commit")
