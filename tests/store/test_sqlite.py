from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomi.errors import OperatorError, ResourceError
from geomi.store import SqliteStore, sqlite


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
