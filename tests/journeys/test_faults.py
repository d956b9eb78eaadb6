"""Real faults, twenty of each in the long suite.

Nothing is missing, nothing is there twice, no server sees more than its rate by the kernel's time
of arrival, and verify finds nothing.

Leases are short here, so that a crawl outlives several.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from geomi.store import open_store
from journeys.crawling import agents_of, end, kill, start
from journeys.stamped import Stamped, stamped
from journeys.test_network import Wire, far, wire
from journeys.test_on_time import must_be_whole, must_have_been_polite, words
from journeys.test_postgres import own
from postgres import Postgres
from rays import Nodes, cluster

__all__ = ["far", "own", "wire"]

LEASE_S = 2.0
_TWENTY = range(20)

#: What happens to a crawl that runs; returns the process that is to end well.
Fault = Callable[["Crawl", random.Random], None]


class Crawl:
    """A crawl that goes wrong, and the web that sees it."""

    def __init__(self, web: Stamped, collection: Path, address: str, *more: str) -> None:
        self.web = web
        self.collection = collection
        self.address = address
        self.more = more
        self.process: subprocess.Popen[str] | None = None
        self.ended: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        """The first time, and again by the same command."""
        given = [f"store={self.address}"] if self.address and not self.collection.exists() else []
        self.process = start(
            *words(self.web, self.collection, f"cluster.lease_s={LEASE_S}", *given),
            "--agents", "2", *self.more,
        )  # fmt: skip

    def go_on(self) -> None:
        """The coordinator was killed: the same command again, while its agents may still write."""
        assert self.process is not None
        self.ended.append(self.process)
        self.start()

    @property
    def coordinator(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def agents(self) -> list[int]:
        return agents_of(self.coordinator)

    def until(self, requests: int) -> None:
        """Waits until servers saw so many."""
        limit = time.monotonic() + 60.0
        while len(self.web.log) < requests and time.monotonic() < limit:
            assert self.process is not None
            if self.process.poll() is not None:
                return
            time.sleep(0.005)
        assert len(self.web.log) >= requests, "the crawl does not go on"

    def must_end_well(self) -> None:
        assert self.process is not None
        done = end(self.process, timeout_s=120)
        assert done.code == 0, done
        for one in self.ended:
            one.communicate(timeout=60)
        must_have_been_polite(self.web)
        must_be_whole(self.web, self.collection)
        must_be_there_once(self)


def must_be_there_once(crawl: Crawl) -> None:
    """No page was visited well twice in a run, and no two visits have one place."""
    where = crawl.address or str(crawl.collection / "geomi.db")
    with closing(open_store(where, readonly=True)) as store:
        assert store.all(
            "SELECT page, run, count(*) FROM visits WHERE outcome = 'OK' AND page > 0"
            " GROUP BY page, run HAVING count(*) > 1"
        ) == []  # fmt: skip
        assert store.all(
            'SELECT file, "offset", count(*) FROM visits WHERE file > 0'
            ' GROUP BY file, "offset" HAVING count(*) > 1'
        ) == []  # fmt: skip


@pytest.fixture
def web() -> Iterator[Stamped]:
    with stamped(hosts=16, pages=10) as served:
        yield served


def an_agent_is_killed(crawl: Crawl, rng: random.Random) -> None:
    for requests in (10, 70):
        crawl.until(requests + rng.randrange(50))
        if agents := crawl.agents:
            kill(rng.choice(agents))


def the_coordinator_is_killed(crawl: Crawl, rng: random.Random) -> None:
    """Its agents end by themselves, while the next crawl begins."""
    for requests in (10, 70):
        crawl.until(requests + rng.randrange(50))
        kill(crawl.coordinator)
        time.sleep(rng.choice([0.0, 0.3]))
        crawl.go_on()


def all_are_killed(crawl: Crawl, rng: random.Random) -> None:
    for requests in (10, 70):
        crawl.until(requests + rng.randrange(50))
        agents = crawl.agents
        for one in (crawl.coordinator, *agents):
            kill(one)
        crawl.go_on()


def an_agent_is_stopped(crawl: Crawl, rng: random.Random) -> None:
    """Past its leases, so that others have its sites when it goes on."""
    for requests in (10, 70):
        crawl.until(requests + rng.randrange(30))
        if not (agents := crawl.agents):
            return
        one = rng.choice(agents)
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGSTOP)
            time.sleep(LEASE_S + rng.uniform(0.0, 1.5))
            os.kill(one, signal.SIGCONT)


def all_agents_are_stopped(crawl: Crawl, rng: random.Random) -> None:
    """The coordinator too, sometimes: then nobody takes anything back meanwhile."""
    crawl.until(20 + rng.randrange(60))
    stopped = [*crawl.agents, *([crawl.coordinator] if rng.random() < 0.5 else [])]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for one in stopped:
            with suppress(ProcessLookupError):
                os.kill(one, number)
        time.sleep(rng.uniform(0.5, 1.5) * LEASE_S if number is signal.SIGSTOP else 0.0)


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        an_agent_is_killed, the_coordinator_is_killed, all_are_killed, an_agent_is_stopped,
        all_agents_are_stopped,
    )
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("number", _TWENTY)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_nothing_but_time(
    tmp_path: Path, web: Stamped, shared: str, fault: str, number: int
) -> None:
    crawl = Crawl(web, tmp_path / "c", shared)
    crawl.start()
    FAULTS[fault](crawl, random.Random(number))
    crawl.must_end_well()


def test_an_agent_stopped_past_its_leases_costs_nothing_but_time(
    tmp_path: Path, web: Stamped
) -> None:
    crawl = Crawl(web, tmp_path / "c", "")
    crawl.start()
    an_agent_is_stopped(crawl, random.Random(99))
    crawl.must_end_well()


@pytest.mark.long
@pytest.mark.parametrize("number", _TWENTY)
def test_a_killed_postgresql_costs_nothing_but_time(
    tmp_path: Path, web: Stamped, own: Postgres, number: int
) -> None:
    rng = random.Random(number)
    crawl = Crawl(web, tmp_path / "c", own.schema())
    crawl.start()
    for requests in (10, 70):
        crawl.until(requests + rng.randrange(50))
        own.kill()
        time.sleep(rng.choice([0.0, 0.5, 1.5 * LEASE_S]))
        own.start()
    crawl.must_end_well()


@pytest.mark.long
@pytest.mark.parametrize("number", _TWENTY)
def test_a_network_cut_for_longer_than_a_lease_costs_nothing_but_time(
    tmp_path: Path, web: Stamped, far: Postgres, wire: Wire, number: int
) -> None:
    rng = random.Random(number)
    crawl = Crawl(web, tmp_path / "c", far.schema())
    crawl.start()
    crawl.until(10 + rng.randrange(100))
    wire.cut()
    time.sleep(rng.choice([0.5, 1.0, 3.0]) * LEASE_S)
    wire.join()
    crawl.must_end_well()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with cluster() as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("number", _TWENTY)
def test_a_killed_node_of_ray_costs_nothing_but_time(
    tmp_path: Path, web: Stamped, nodes: Nodes, number: int
) -> None:
    rng = random.Random(number)
    crawl = Crawl(web, tmp_path / "c", "", "--engine", "ray", "--address", nodes.address)
    crawl.start()
    crawl.until(10 + rng.randrange(100))
    nodes.kill(1)
    nodes.start(1)
    crawl.must_end_well()
