"""What a date that is set does to a collection in SQLite: nothing while a crawl runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomi import clock
from geomi.cluster import dating
from geomi.cluster.collection import Collection
from geomi.records import Reason
from geomi.store import SqliteStore


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    place = Collection(tmp_path / "c")
    place.create()
    return place


def opened(collection: Collection) -> SqliteStore:
    store = collection.open_store(collection.settings())
    assert isinstance(store, SqliteStore)
    return store


def test_all_who_open_the_store_later_count_from_the_date_of_the_crawl(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(collection)
    collection.set_out(first)
    began = first.now()
    monkeypatch.setattr(clock, "now", lambda: began + 86_400.0)
    monkeypatch.setattr("time.time", lambda: began + 86_400.0)
    second = opened(collection)
    assert began <= second.now() < began + 60
    assert abs(first.now() - second.now()) < 60
    collection.set_out(second)  # the next crawl takes the date as it is
    assert second.now() >= began + 86_400.0
    reader = collection.read_store()
    assert reader.now() >= began + 86_400.0
    for store in (first, second, reader):
        store.close()


def test_after_the_machine_started_anew_an_old_count_means_nothing(collection: Collection) -> None:
    store = opened(collection)
    dating.set_out(store, date=1000.0, counter=10.0, boot="one")
    assert dating.zero_of(store, boot="one") == 990.0
    assert dating.zero_of(store, boot="two") is None
    assert dating.set_out(store, date=2000.0, counter=5.0, boot="two") == 1995.0
    store.close()


@pytest.mark.parametrize("by_s", [-86_400.0, 3_600.0])
def test_what_waits_is_moved_with_the_date_and_what_is_due_by_the_calendar_is_not(
    collection: Collection, by_s: float
) -> None:
    store = opened(collection)
    dating.set_out(store, date=100_000.0, counter=0.0, boot="b")
    with store.transaction():
        store.many(
            "INSERT INTO pending (site_id, depth, page, reason, not_before, weight, tries)"
            " VALUES (1, 0, ?, ?, ?, 0, 0)",
            [(1, int(Reason.LINK), 100_060.0), (2, int(Reason.LINK), 0.0),
             (3, int(Reason.DUE), 100_500.0)],
        )  # fmt: skip
        store.run(
            "INSERT INTO addresses (address, slot, holder, epoch, until)"
            " VALUES ('192.0.2.1', 0, '', 0, 100030)"
        )
    assert dating.set_out(store, date=100_000.0 + by_s, counter=0.0, boot="b") == 100_000.0 + by_s
    waits = dict(store.all("SELECT page, not_before FROM pending"))
    assert waits == {1: 100_060.0 + by_s, 2: 0.0, 3: 100_500.0}
    assert store.all("SELECT until FROM addresses") == [(100_030.0 + by_s,)]
    store.close()


def test_a_date_put_right_by_a_second_moves_nothing(collection: Collection) -> None:
    store = opened(collection)
    assert dating.set_out(store, date=1000.0, counter=0.0, boot="b") == 1000.0
    assert dating.set_out(store, date=1000.9, counter=0.0, boot="b") == 1000.0
    store.close()
