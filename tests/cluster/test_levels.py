"""Depths are exact under a limit: levels end before the next begins, and shorter ways count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from small import SEED, T

from geomi import config
from geomi import url as urls
from geomi.cluster import leases
from geomi.cluster.batch import Batch, commit
from geomi.cluster.coordinator import Coordinator
from geomi.cluster.found import NewPage
from geomi.cluster.plan import plan_of
from geomi.cluster.tables import MIGRATIONS
from geomi.frontier.tables import Known, want
from geomi.records import Reason, Wanted
from geomi.seeds.lists import Seed
from geomi.store import SqliteStore
from geomi.store.migrate import migrate
from geomi.store.sqlite import Row

NOWHERE = Path("no-such-directory/geomi.toml")


class Two:
    """A coordinator and a store, with a limit of depth; `sets` beside it."""

    def __init__(self, path: Path, *sets: str) -> None:
        self.settings = config.load(
            NOWHERE, ["crawl.max_depth=4", "retry.gap_s=5", "retry.gap_factor=4", *sets]
        )
        self.store = Meddled(str(path / "s.db"))
        migrate(self.store, MIGRATIONS, where="c")
        self.coordinator = Coordinator(self.store, self.settings)
        self.run = self.coordinator.begin(again=False, options={}, now=T)
        self.coordinator.add_seeds([Seed(url=SEED)], now=T)
        self.deliver()
        self.plan = plan_of(self.settings, self.store, agent="a0", incarnation=1, run=self.run)

    def deliver(self) -> None:
        self.coordinator.step(run=self.run, now=T)

    def find(self, path: str, depth: int, **more: Any) -> None:
        """A letter for a page, which the coordinator delivers."""
        url = SEED + path
        one = Wanted(url=url, site="a.example", reason=Reason.LINK, depth=depth, **more)
        want(self.store, [one])
        self.deliver()

    def level(self) -> int:
        return leases.level(self.store, self.plan, now=T)

    def waits(self, path: str) -> tuple[Any, ...]:
        """(depth, rank, via) of a page that waits."""
        row = self.store.one(
            "SELECT p.depth, w.depth, p.via FROM pages p JOIN pending w ON w.page = p.page"
            " WHERE p.url = ?", (SEED + path,),
        )  # fmt: skip
        assert row is not None
        return row


class Meddled(SqliteStore):
    """Between two sentences of one reader another program may write: `meddle` does."""

    meddle: Any = None

    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        row = super().one(sql, params)
        if (meddle := self.meddle) is not None:
            self.meddle = None
            meddle()
        return row


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    made = Two(tmp_path)
    yield made
    made.store.close()


def settle(two: Two, path: str) -> None:
    with two.store.transaction():
        two.store.run(
            "DELETE FROM pending WHERE page = (SELECT page FROM pages WHERE url = ?)",
            (SEED + path,),
        )


def test_a_letter_that_becomes_a_page_while_the_level_is_read_is_not_overlooked(two: Two) -> None:
    two.find("deep", 3)
    settle(two, "")
    want(two.store, [Wanted(url=SEED + "b", site="a.example", reason=Reason.LINK, depth=2)])
    two.store.meddle = two.deliver
    assert two.level() == 2
    two.deliver()
    assert two.level() == 2


def test_a_level_waits_for_a_site_that_failed_once_and_is_soon_tried_again(two: Two) -> None:
    for failures, level in ((0, 0), (1, 0), (2, 3)):
        with two.store.transaction():
            two.store.run("UPDATE sites SET failures = ?", (failures,))
            two.store.run("DELETE FROM inbox")
            want(two.store, [Wanted(url="http://b/", site="b", reason=Reason.LINK, depth=3)])
        assert two.level() == level


def test_a_waiting_page_found_by_a_shorter_way_moves_forward(two: Two) -> None:
    two.find("a", 3, via="far")
    assert two.waits("a") == (3, 3, "far")
    two.find("a", 2, via="near", kind="e")
    assert two.waits("a") == (2, 2, "near")
    two.find("a", 4, via="very far")
    assert two.waits("a") == (2, 2, "near")
    assert two.store.all("SELECT waiting FROM sites") == [(2,)]


def test_a_page_refused_as_too_deep_takes_the_depth_of_the_way_that_lets_it_in(two: Two) -> None:
    two.find("a", 5)
    assert two.store.all("SELECT outcome, why FROM pages WHERE depth = 5") == [("skip", "depth")]
    two.find("a", 4, via="near")
    assert two.waits("a") == (4, 4, "near")


def test_what_robots_refused_stays_refused_whoever_finds_it(two: Two) -> None:
    two.find("a", 2)
    with two.store.transaction():
        two.store.run("UPDATE pages SET outcome = 'skip', why = 'guard:private' WHERE depth = 2")
    settle(two, "a")
    two.find("a", 1)
    assert two.store.all("SELECT page FROM pending WHERE depth > 0") == []


def test_pages_that_a_batch_finds_twice_wait_at_the_lesser_depth(two: Two) -> None:
    """Also where the same batch finds them for the first time; not what it settles itself."""
    with two.store.transaction():
        two.store.run("UPDATE sites SET holder = 'a0/1', epoch = 5")
    batch = Batch(agent="a0", incarnation=1, holder="a0/1", run=1)
    batch.epochs[1] = 5

    def found(page: int, path: str, depth: int, *, near: bool) -> Known:
        url = SEED + path
        known = Known(
            page, url, depth, depth, 1, "a", f"from {depth}", 0, "NULL", 0, 0, "", "", "", "", "",
            "", 2, 0.0, 0,
        )  # fmt: skip
        batch.new.append(NewPage(1, known, urls.url_hash(url), T, 1, "", True, near))
        return known

    found(101, "a", 3, near=False)
    found(102, "a", 2, near=True)
    settled = found(103, "b", 3, near=False)
    found(104, "b", 2, near=True)
    batch.done.append((1, settled.rank, 103))
    result = commit(two.store, batch, now=T, lengths={})
    assert [new.known.page for new in result.inserted] == [101, 103]
    assert [(new.known.page, new.known.rank, new.known.depth) for new in result.nearer] == [
        (101, 2, 2)
    ]
    assert two.waits("a") == (2, 2, "from 2")
    assert two.store.all("SELECT count(*) FROM pending WHERE page = 103") == [(0,)]
    assert two.store.all("SELECT waiting FROM sites") == [(2,)]


def test_a_batch_that_is_filling_follows_a_page_that_moved() -> None:
    batch = Batch(agent="a0", incarnation=1, holder="a0/1", run=1)
    old = Known(7, "u", 3, 3, 1, "a", "", 0, "NULL", 0, 0, "", "", "", "", "", "", 2, 0.0, 0)
    batch.done = [(1, 3, 7), (1, 3, 8)]
    batch.retried = [(1, old)]
    batch.move(old._replace(rank=2, depth=2))
    assert batch.done == [(1, 2, 7), (1, 3, 8)]
    assert [known.rank for _, known in batch.retried] == [2]
    assert batch.settles(7) and batch.settles(8) and not batch.settles(9)
