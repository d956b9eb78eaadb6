"""All rows of a store into another one, whatever its kind; as a stream, so that any number fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from geomi.errors import InternalError
from geomi.store.store import SQLITE, Store

#: Tables that say how one kind of store is used, and are nothing of the collection's.
OWN = frozenset({"coordinator", "payloads", "homes", "reflected"})
_ROWS = 5_000  # written at once


def copy_all(source: Store, target: Store, tell: Callable[[str, int, int], None]) -> dict[str, int]:
    """Every table, counted on both sides; rows by table. Both are inside transactions.

    `tell` gets table, rows so far, and all. The target has the tables, at the same version.
    """
    ours, theirs = tables_of(source), tables_of(target)
    if {name: set(columns) for name, columns in ours.items()} != {
        name: set(columns) for name, columns in theirs.items()
    }:
        raise InternalError(f"tables differ: {sorted(ours)} and {sorted(theirs)}")
    rows: dict[str, int] = {}
    for name, columns in ours.items():
        every = _count(source, name)
        target.run(f"DELETE FROM {name}")  # what migrations put there, as the schema's number
        done = 0
        listed = ", ".join(f'"{column}"' for column in columns)
        sentence = f"INSERT INTO {name} ({listed}) VALUES ({', '.join('?' * len(columns))})"
        for some in _chunks(source.each(f"SELECT {listed} FROM {name}{_in_order(source, name)}")):
            target.many(sentence, some)
            done += len(some)
            tell(name, done, every)
        rows[name] = _count(target, name)
        if not every == done == rows[name]:
            raise InternalError(f"{name}: {every} rows, {done} read, {rows[name]} written")
    if target.dialect != SQLITE:
        _number_on(target)
    return rows


def tables_of(store: Store) -> dict[str, list[str]]:
    """Columns by table, of all that belong to a collection."""
    if store.dialect == SQLITE:
        names = store.all("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return {
            name: [row[1] for row in store.all(f"PRAGMA table_info({name})")]
            for (name,) in names
            if name not in OWN
        }
    found: dict[str, list[str]] = {}
    for name, column in store.all(
        "SELECT table_name::text, column_name::text FROM information_schema.columns"
        " WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"
    ):
        if name not in OWN:
            found.setdefault(name, []).append(column)
    return found


def hold(store: Store) -> None:
    """Inside a transaction: nobody else writes until it ends; everybody may read."""
    if store.dialect != SQLITE:  # there the transaction itself keeps writers out
        names = ", ".join(sorted(tables_of(store)))
        store.run("SET LOCAL idle_in_transaction_session_timeout = 0")
        store.run(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")


def _in_order(store: Store, table: str) -> str:
    """By key, as the other one keeps its rows best. SQLite's rows are in that order."""
    if store.dialect == SQLITE:
        return ""
    columns = store.all(
        "SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid"
        " AND a.attnum = ANY(i.indkey) WHERE i.indrelid = to_regclass(?) AND i.indisprimary"
        " ORDER BY array_position(i.indkey::int2[], a.attnum)",
        (table,),
    )
    return " ORDER BY " + ", ".join(f'"{name}"' for (name,) in columns) if columns else ""


def _number_on(store: Store) -> None:
    """Keys that a table gives by itself go on after the greatest there is."""
    for table, column in store.all(
        "SELECT table_name::text, column_name::text FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND is_identity = 'YES'"
    ):
        store.run(
            f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'),"
            f' (SELECT greatest(max("{column}"), 1) FROM {table}),'
            f" EXISTS (SELECT 1 FROM {table}))"
        )


def _count(store: Store, table: str) -> int:
    row = store.one(f"SELECT count(*) FROM {table}")
    return int(row[0]) if row else 0


def _chunks(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while some := list(islice(rows, _ROWS)):
        yield some
