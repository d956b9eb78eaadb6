"""Brings a store to the schema of this program, step by step, never backwards."""

from __future__ import annotations

from collections.abc import Sequence

from geomi.errors import OperatorError
from geomi.store.sqlite import Store

#: One step: its sentences, in order. The number of a step is its place in the list, from one.
Migration = Sequence[str]


def version_of(store: Store) -> int:
    """The schema's version; 0 for an empty database."""
    if store.dialect == "sqlite" and not store.one(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
    ):
        return 0
    row = store.one("SELECT value FROM meta WHERE name = 'schema'")
    return int(row[0]) if row else 0


def migrate(store: Store, migrations: Sequence[Migration], *, where: str) -> int:
    """Applies what is missing, each step in a transaction. Returns the number of steps applied."""
    have = version_of(store)
    check_version(have, len(migrations), where)
    if have == len(migrations):
        return 0
    with store.transaction():
        have = version_of(store)  # another process may have been quicker
        for number, sentences in enumerate(migrations[have:], start=have + 1):
            for sentence in sentences:
                store.run(sentence)
            store.run(
                "INSERT INTO meta (name, value) VALUES ('schema', ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (str(number),),
            )
    return len(migrations) - have


def check_version(have: int, want: int, where: str) -> None:
    if have > want:
        raise OperatorError(
            f"{where}: its schema is version {have}, this geomi knows {want}; use a newer geomi"
        )
