"""What every store does with sentences, rows and transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count

import pytest

from geomi.errors import OperatorError, ResourceError
from geomi.store import SQLITE, Both, Store
from geomi.store.migrate import migrate

TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT, z REAL, b BLOB)",
)


@pytest.fixture
def store(connect: Callable[..., Store]) -> Store:
    made = connect()
    migrate(made, [TABLES], where="c")
    return made


def rows(store: Store) -> list[int]:
    return [row[0] for row in store.all("SELECT x FROM t ORDER BY x")]


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        store.many("INSERT INTO t (x) VALUES (?)", [(2,), (3,)])
        assert rows(store) == [1, 2, 3]
        1 / 0  # noqa: B018
    assert rows(store) == []
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
    assert rows(store) == [1]


def test_a_nested_transaction_joins_the_outer_one(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        with store.transaction():
            store.run("INSERT INTO t (x) VALUES (2)")
        assert rows(store) == [1, 2]
        1 / 0  # noqa: B018
    assert rows(store) == []


def test_a_nested_transaction_that_fails_and_is_caught_outside_loses_the_whole(
    store: Store,
) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        with store.transaction():
            1 / 0  # noqa: B018
    assert rows(store) == []


def test_after_a_rollback_the_store_goes_on(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        raise KeyboardInterrupt
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (2)")
    assert rows(store) == [2]


def test_a_reader_sees_what_was_committed_and_nothing_of_what_is_under_way(
    store: Store, connect: Callable[..., Store]
) -> None:
    reader = connect(readonly=True)
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        assert rows(reader) == []
    assert rows(reader) == [1]


def test_run_says_how_many_rows_it_touched(store: Store) -> None:
    assert store.run("INSERT INTO t (x) VALUES (1), (2)") == 2
    assert store.run("DELETE FROM t WHERE x = 2") == 1
    assert store.run("DELETE FROM t WHERE x = 2") == 0


def test_one_gives_nothing_where_there_is_no_row(store: Store) -> None:
    assert store.one("SELECT x FROM t") is None


def test_each_gives_every_row_however_many_there_are(store: Store) -> None:
    with store.transaction():
        store.many("INSERT INTO t (x) VALUES (?)", ((x,) for x in range(2500)))
    assert [row[0] for row in store.each("SELECT x FROM t ORDER BY x")] == list(range(2500))


def test_our_own_mistakes_in_sql_are_no_fault_of_the_surroundings(store: Store) -> None:
    with pytest.raises(Exception, match="z9") as raised:
        store.all("SELECT z9 FROM t")
    assert not isinstance(raised.value, OperatorError | ResourceError)


def test_text_and_numbers_come_back_as_they_went_in(store: Store) -> None:
    values = [
        (-(2**63), "거미", 0.1, b"\0\xff"), (2**63 - 1, "a\\b\t\n\"'", 1700000000.123457, b""),
        (0, None, -1e300, None), (7, "", 3, b"\\x41"),
    ]  # fmt: skip
    last = (8, "?", 0.5, b"?")
    with store.transaction():
        store.many("INSERT INTO t (x, y, z, b) VALUES (?, ?, ?, ?)", values)
        store.run("INSERT INTO t (x, y, z, b) VALUES (?, ?, ?, ?)", last)
    assert sorted(store.all("SELECT x, y, z, b FROM t")) == sorted([*values, last])


def test_a_character_that_no_text_can_hold_costs_no_batch(store: Store) -> None:
    with store.transaction():
        store.many("INSERT INTO t (x, y) VALUES (?, ?)", [(1, "a\0b"), (2, "c")])
        store.run("UPDATE t SET y = ? WHERE x = 2", ("\0",))
    wanted = ["a\0b", "\0"] if store.dialect == SQLITE else ["a\ufffdb", "\ufffd"]
    assert [row[0] for row in store.all("SELECT y FROM t ORDER BY x")] == wanted


def test_true_and_false_are_numbers(store: Store) -> None:
    with store.transaction():
        store.many("INSERT INTO t (x) VALUES (?)", [(True,), (False,)])
        assert store.run("DELETE FROM t WHERE x = ?", (True,)) == 1
    assert rows(store) == [0]


def test_sums_of_whole_numbers_are_whole_numbers(store: Store) -> None:
    store.many("INSERT INTO t (x, z) VALUES (?, ?)", [(2**62, 0.5), (1, 1)])
    row = store.one("SELECT sum(x), sum(z), count(*), avg(z) FROM t")
    assert row == (2**62 + 1, 1.5, 2, 0.75)
    assert row is not None and [type(value) for value in row] == [int, float, int, float]


def test_text_is_ordered_by_its_bytes(store: Store) -> None:
    store.many("INSERT INTO t (x, y) VALUES (?, ?)", list(zip(count(), "bAa_Z.거", strict=False)))
    assert "".join(y for (y,) in store.all("SELECT y FROM t ORDER BY y")) == ".AZ_ab거"


def test_many_writes_nothing_where_there_are_no_rows(store: Store) -> None:
    store.many("INSERT INTO t (x) VALUES (?)", [])
    store.many("UPDATE t SET y = ? WHERE x = ?", iter(()))
    assert rows(store) == []


def test_many_takes_sentences_of_any_kind_in_order(store: Store) -> None:
    with store.transaction():
        store.many("INSERT INTO t (x, y) VALUES (?, 'a')", [(1,), (2,)])
        store.many(
            "INSERT INTO t (x, y) VALUES (?, ?) ON CONFLICT (x) DO UPDATE SET y = t.y || ?",
            [(2, "n", "b"), (2, "n", "c"), (3, "n", "d")],
        )
        store.many("UPDATE t SET y = y || ? WHERE x = ?", [("e", 1), ("f", 1)])
        store.many("DELETE FROM t WHERE x = ?", [(3,), (4,)])
    assert store.all("SELECT x, y FROM t ORDER BY x") == [(1, "aef"), (2, "abc")]


def test_a_row_that_cannot_be_undoes_the_transaction_and_the_store_goes_on(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)unique"), store.transaction():
        store.many("INSERT INTO t (x) VALUES (?)", [(1,), (2,), (1,)])
    store.many("INSERT INTO t (x) VALUES (?)", [(1,), (2,)])
    assert rows(store) == [1, 2]


def test_streams_may_be_nested_left_early_and_written_beside(store: Store) -> None:
    store.many("INSERT INTO t (x) VALUES (?)", [(x,) for x in range(2500)])
    seen = 0
    for (outer,) in store.each("SELECT x FROM t ORDER BY x"):
        for (inner,) in store.each("SELECT x FROM t WHERE x >= ? ORDER BY x", (outer,)):
            seen += inner - outer
            break
        if outer == 3:
            with store.transaction():
                store.run("DELETE FROM t WHERE x >= 2000")
        if outer >= 5:
            break
    assert (seen, len(rows(store))) == (0, 2000)


def test_a_stream_inside_a_transaction_sees_what_it_wrote(store: Store) -> None:
    with store.transaction():
        store.many("INSERT INTO t (x) VALUES (?)", [(x,) for x in range(1200)])
        assert sum(1 for _ in store.each("SELECT x FROM t")) == 1200


def test_an_image_does_not_change_while_others_write(
    store: Store, connect: Callable[..., Store]
) -> None:
    reader = connect(readonly=True)
    with reader.image():
        assert rows(reader) == []
        store.run("INSERT INTO t (x) VALUES (1)")
        assert rows(reader) == [] and list(reader.each("SELECT x FROM t")) == []
    assert rows(reader) == [1]


def test_an_image_may_be_taken_inside_a_transaction(store: Store) -> None:
    with store.transaction():
        store.run("INSERT INTO t (x) VALUES (1)")
        with store.image():
            assert rows(store) == [1]
        store.run("INSERT INTO t (x) VALUES (2)")
    assert rows(store) == [1, 2]


def test_a_reader_changes_nothing(store: Store, connect: Callable[..., Store]) -> None:
    reader = connect(readonly=True)
    with pytest.raises(ResourceError, match="read"):
        reader.run("INSERT INTO t (x) VALUES (1)")
    assert rows(store) == []


def test_a_thought_in_two_languages_is_said_in_the_one_that_is_understood(store: Store) -> None:
    assert Both("sqlite", "postgresql").of(store) == store.dialect


def test_its_time_goes_on(store: Store) -> None:
    first = store.now()
    assert 1_600_000_000 < first <= store.now()


def test_who_is_in_a_room_is_seen_until_the_transaction_ends(
    store: Store, connect: Callable[..., Store]
) -> None:
    other = connect()
    with other.transaction():
        other.enter("a")
        there = store.present("a")
        assert store.present("b") == frozenset()
        assert len(there) == (0 if store.dialect == SQLITE else 1)
    assert store.present("a") == frozenset()
    with other.transaction():
        other.enter("a")
        assert not there & store.present("a")  # it is another one now


def test_a_closed_store_may_be_closed_again(connect: Callable[..., Store]) -> None:
    store = connect()
    store.close()
    store.close()


def test_two_writers_of_one_row_wait_for_each_other(
    store: Store, connect: Callable[..., Store]
) -> None:
    store.run("INSERT INTO t (x, y) VALUES (1, '')")
    other = connect()
    inside, done = threading.Event(), threading.Event()

    def write() -> None:
        inside.set()
        with other.transaction():
            other.run("UPDATE t SET y = y || 'b' WHERE x = 1")
        done.set()

    thread = threading.Thread(target=write)
    with store.transaction():
        store.run("UPDATE t SET y = y || 'a' WHERE x = 1")
        thread.start()
        inside.wait()
        assert not done.is_set()
    thread.join()
    assert store.all("SELECT y FROM t") == [("ab",)]
