from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomi.errors import OperatorError, ResourceError
from geomi.store import SqliteStore, open_store, sqlite


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    made = SqliteStore(path)
    made.run("CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT)")
    yield made
    made.close()


def rows(store: SqliteStore) -> list[int]:
    return [row[0] for row in store.all("SELECT x FROM t ORDER BY x")]


def test_a_transaction_is_all_or_nothing(store: SqliteStore) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        store.many("INSERT INTO t (x) VALUES (?)", [(2,), (3,)])
        assert rows(store) == [1, 2, 3]
        1 / 0  # noqa: B018
    assert rows(store) == []
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
    assert rows(store) == [1]


def test_a_nested_transaction_joins_the_outer_one(store: SqliteStore) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        with store.transaction():
            store.run("INSERT INTO t (x) VALUES (2)")
        assert rows(store) == [1, 2]
        1 / 0  # noqa: B018
    assert rows(store) == []


def test_a_nested_transaction_that_fails_and_is_caught_outside_loses_the_whole(
    store: SqliteStore,
) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        with store.transaction():
            1 / 0  # noqa: B018
    assert rows(store) == []


def test_after_a_rollback_the_store_goes_on(store: SqliteStore) -> None:
    with pytest.raises(KeyboardInterrupt), store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        raise KeyboardInterrupt
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (2)")
    assert rows(store) == [2]


def test_a_reader_sees_what_was_committed_and_nothing_of_what_is_under_way(
    store: SqliteStore, path: str
) -> None:
    reader = SqliteStore(path, readonly=True)
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        assert rows(reader) == []
    assert rows(reader) == [1]
    reader.close()


def test_a_reader_cannot_write(store: SqliteStore, path: str) -> None:
    reader = SqliteStore(path, readonly=True)
    with pytest.raises(ResourceError, match="readonly"):
        reader.run("INSERT INTO t (x) VALUES (1)")
    reader.close()


def test_on_a_medium_that_cannot_be_written_a_store_is_read_without_a_trace(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = SqliteStore(path)
    writer.run("CREATE TABLE t (x INTEGER)")
    writer.close()
    before = sorted(Path(path).parent.iterdir())
    monkeypatch.setattr(sqlite.os, "access", lambda *_: False)
    reader = SqliteStore(path, readonly=True)
    assert rows(reader) == []
    assert sorted(Path(path).parent.iterdir()) == before
    reader.close()


def test_a_writer_that_waits_too_long_says_who_is_to_blame(
    store: SqliteStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.0)
    other = SqliteStore(path)
    with (
        store.transaction(),
        pytest.raises(ResourceError, match="another program holds the database"),
        other.transaction(),
    ):
        raise AssertionError("two writers at once")
    with other.transaction():  # it is no worse for it
        other.run("INSERT INTO t (x) VALUES (1)")
    other.close()
    assert rows(store) == [1]


def test_a_writer_waits_for_the_others_transaction(store: SqliteStore, path: str) -> None:
    other = SqliteStore(path)
    inside, done = threading.Event(), threading.Event()

    def write() -> None:
        inside.set()
        with other.transaction():
            other.run("INSERT INTO t (x) SELECT max(x) + 1 FROM t")
        done.set()

    thread = threading.Thread(target=write)
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        thread.start()
        inside.wait()
        store.run("INSERT INTO t (x) VALUES (2)")
        assert not done.is_set()
    thread.join()
    other.close()
    assert rows(store) == [1, 2, 3]


def test_a_commit_that_returned_was_synced(store: SqliteStore) -> None:
    assert store.one("PRAGMA synchronous") == (2,)  # FULL
    assert store.one("PRAGMA journal_mode") == ("wal",)


def test_run_says_how_many_rows_it_touched(store: SqliteStore) -> None:
    assert store.run("INSERT INTO t (x) VALUES (1), (2)") == 2
    assert store.run("DELETE FROM t WHERE x = 2") == 1
    assert store.run("DELETE FROM t WHERE x = 2") == 0


def test_one_gives_nothing_where_there_is_no_row(store: SqliteStore) -> None:
    assert store.one("SELECT x FROM t") is None


def test_each_gives_every_row_however_many_there_are(store: SqliteStore) -> None:
    with store.transaction():
        store.many("INSERT INTO t (x) VALUES (?)", ((x,) for x in range(2500)))
    assert [row[0] for row in store.each("SELECT x FROM t ORDER BY x")] == list(range(2500))


def test_text_and_numbers_come_back_as_they_went_in(store: SqliteStore) -> None:
    values = [(-(2**63), "거미"), (2**63 - 1, "a\0b"), (0, None)]
    with store.transaction():
        store.many("INSERT INTO t VALUES (?, ?)", values)
    assert sorted(store.all("SELECT x, y FROM t")) == sorted(values)


def test_a_directory_that_is_not_there_is_the_fault_of_the_surroundings(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="unable to open"):
        SqliteStore(str(tmp_path / "none" / "s.db"))


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"this is no database, but long enough to be taken for one" * 100)
    with pytest.raises(OperatorError, match=r"s\.db: not a geomi store"):
        SqliteStore(str(path))


def test_a_full_disk_is_told_and_can_be_outlived(store: SqliteStore) -> None:
    pages = store.one("PRAGMA page_count") or (0,)
    store.one(f"PRAGMA max_page_count = {pages[0] + 2}")
    with pytest.raises(ResourceError, match="the disk is full"), store.transaction():
        store.many("INSERT INTO t VALUES (?, ?)", ((x, "y" * 1000) for x in range(1000)))
    assert rows(store) == []
    store.one("PRAGMA max_page_count = 1000000")
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
    assert rows(store) == [1]


def test_our_own_mistakes_in_sql_are_no_fault_of_the_surroundings(store: SqliteStore) -> None:
    with pytest.raises(Exception, match="no such column") as raised:
        store.all("SELECT z FROM t")
    assert not isinstance(raised.value, OperatorError | ResourceError)


def test_an_address_of_another_database_is_refused_in_one_sentence() -> None:
    with pytest.raises(OperatorError, match="SQLite only"):
        open_store("postgresql://localhost/geomi")
