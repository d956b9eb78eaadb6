from __future__ import annotations

from collections.abc import Callable

import pytest

from geomi.cluster.tables import MIGRATIONS
from geomi.errors import OperatorError
from geomi.store import SQLITE, Store
from geomi.store.copy import OWN
from geomi.store.migrate import check_version, migrate, version_of

META = "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
FIRST = (META, "CREATE TABLE a (x INTEGER)")
SECOND = ("ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 7", "INSERT INTO a (x) VALUES (1)")
WRONG = ("CREATE TABLE b (x INTEGER)", "CREATE TABLE a (x INTEGER)")


@pytest.fixture
def store(connect: Callable[[], Store]) -> Store:
    return connect()


def tables_of(store: Store) -> set[str]:
    if store.dialect == SQLITE:
        return {row[0] for row in store.all("SELECT name FROM sqlite_master WHERE type = 'table'")}
    names = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()"
    return {row[0] for row in store.all(names)}


def test_an_empty_database_has_version_zero(store: Store) -> None:
    assert version_of(store) == 0


def test_migrations_are_applied_once_and_in_order(store: Store) -> None:
    assert migrate(store, [FIRST], where="c") == 1
    assert migrate(store, [FIRST], where="c") == 0
    assert migrate(store, [FIRST, SECOND], where="c") == 1
    assert version_of(store) == 2
    assert store.all("SELECT x, y FROM a") == [(1, 7)]


def test_a_migration_that_fails_leaves_the_store_as_it_was(store: Store) -> None:
    migrate(store, [FIRST], where="c")
    with pytest.raises(Exception, match="already exists"):
        migrate(store, [FIRST, SECOND, WRONG], where="c")
    assert version_of(store) == 1
    assert store.all("SELECT * FROM a") == []
    assert "b" not in tables_of(store)


def test_a_store_of_a_newer_program_is_not_touched(store: Store) -> None:
    migrate(store, [FIRST, SECOND], where="news")
    with pytest.raises(OperatorError, match="news: its schema is version 2, this geomi knows 1"):
        migrate(store, [FIRST], where="news")
    with pytest.raises(OperatorError, match="use a newer geomi"):
        check_version(2, 1, "news")
    assert version_of(store) == 2


def test_two_processes_that_migrate_at_once_migrate_once(
    store: Store, connect: Callable[[], Store]
) -> None:
    other = connect()
    before = [
        migrate(other, [FIRST, SECOND], where="c"),
        migrate(store, [FIRST, SECOND], where="c"),
    ]
    assert before == [2, 0]
    assert store.all("SELECT count(*) FROM a") == [(1,)]


def test_the_first_migration_of_geomi_makes_every_table(store: Store) -> None:
    migrate(store, MIGRATIONS, where="c")
    assert tables_of(store) - OWN == {
        "meta", "runs", "agents", "sites", "pages", "pending", "inbox", "addresses", "robots",
        "counters", "seeds", "outside", "asked", "files", "orphans", "visits", "batches", "log",
        "past", "faces", "aliases", "alias_tests", "recalled", "refers", "rules", "imports",
        "meaningless", "features", "hidden", "unsettled", "probes", "rewrites", "edits",
        "generations",
    }  # fmt: skip
