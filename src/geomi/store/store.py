"""What stages may ask of a database, and which database an address means."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Row = tuple[Any, ...]

SQLITE = "sqlite"
POSTGRESQL = "postgresql"


@dataclass(frozen=True, slots=True)
class Both:
    """One thought in the two languages, side by side. An empty sentence is not said at all."""

    sqlite: str
    postgresql: str

    def of(self, store: Store) -> str:
        return self.sqlite if store.dialect == SQLITE else self.postgresql


class Store(Protocol):
    """One object belongs to one thread.

    SQLite has one writer at a time: inside `transaction()` nothing changes but by the caller.
    PostgreSQL has many: what must not change meanwhile is locked by name, in the order of its keys.
    """

    dialect: str
    #: Called at the start of each transaction; raises where the caller may no longer write.
    fence: Callable[[Store], None] | None

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]: ...
    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None: ...
    def each(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]: ...
    def run(self, sql: str, params: Sequence[Any] = ()) -> int: ...
    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...
    def transaction(self) -> contextlib.AbstractContextManager[None]: ...

    def image(self) -> contextlib.AbstractContextManager[None]:
        """All reads inside see the same commits. Works where nothing may be written."""

    def make(self) -> None:
        """Inside the transaction of a migration: a place for the tables; others wait."""

    def is_empty(self) -> bool:
        """True where no collection is."""

    def enter(self, room: str) -> None:
        """Inside a transaction: it counts as present in a room until it ends. Waits for nobody."""

    def present(self, room: str) -> frozenset[str]:
        """The transactions of all writers that are in a room now, by names that never come again.

        For who changed what they may have looked at before: once none of them is left, all of
        them have ended. Where one writes at a time nobody else ever is.
        """

    def now(self) -> float:
        """The time leases are counted in: the same for all who share the store."""

    def close(self) -> None: ...


def open_store(
    address: str, *, readonly: bool = False, folder: str = ".", patient: bool = False
) -> Store:
    """Opens the store at a file path or a `postgresql://` address.

    `folder` is where `file:` secrets of an address are looked for. A server that does not answer is
    an OperatorError; for the patient, who started when it did, it is a ResourceError.
    """
    if "://" in address:
        from geomi.store.postgres import PostgresStore

        return PostgresStore(address, readonly=readonly, folder=folder, patient=patient)
    from geomi.store.sqlite import SqliteStore

    return SqliteStore(address, readonly=readonly)
