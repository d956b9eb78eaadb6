"""Brings a store to the schema of this program, step by step, never backwards."""

from __future__ import annotations

from collections.abc import Sequence

from geomi.errors import OperatorError
from geomi.store.store import Both, Store

#: One step: its sentences, in order. The number of a step is its place in the list, from one.
Migration = Sequence[str | Both]


def version_of(store: Store) -> int:
    """The schema's version; 0 for an empty database."""
    if store.is_empty():
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
        store.make()
        have = version_of(store)  # another process may have been quicker
        check_version(have, len(migrations), where)
        for number, sentences in enumerate(migrations[have:], start=have + 1):
            for sentence in sentences:
                text = sentence.of(store) if isinstance(sentence, Both) else sentence
                if text:
                    store.run(text)
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
