"""Several writers of one store: nothing is given twice, written twice, or missed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from geomi import config
from geomi import url as urls
from geomi.cluster import leases, parts, tables
from geomi.cluster.admitted import Latecomers
from geomi.cluster.batch import Batch, answered, commit
from geomi.cluster.commands import Claim, Release
from geomi.cluster.context import Plan
from geomi.cluster.coordinator import Coordinator
from geomi.cluster.plan import plan_of
from geomi.cluster.tables import MIGRATIONS
from geomi.errors import ConflictError, ResourceError
from geomi.frontier import counters
from geomi.frontier import tables as frontier
from geomi.history.past import follow
from geomi.history.tables import number_batches
from geomi.records import Lease, Reason, Wanted
from geomi.seeds.lists import Seed
from geomi.seeds.tables import PUT_OUTSIDE
from geomi.store import SQLITE, SqliteStore, Store
from geomi.store.migrate import migrate

NOW = 1_700_000_000.0
SETTINGS = config.load(Path("no-such-directory/geomi.toml"), [])
Connect = Callable[..., Store]


@pytest.fixture
def store(connect: Connect) -> Store:
    made = connect()
    migrate(made, MIGRATIONS, where="c")
    return made


def crawl(store: Store, sites: int) -> Coordinator:
    """A crawl that has begun, of so many sites with a page each."""
    coordinator = Coordinator(store, SETTINGS)
    coordinator.begin(again=False, options={}, now=NOW)
    seeds = [Seed(url=f"http://s{n}.example/") for n in range(sites)]
    coordinator.add_seeds(seeds, now=NOW)
    while coordinator.step(run=1, now=NOW):
        pass
    return coordinator


def plan(store: Store, name: str) -> Plan:
    number = tables.begin_agent(store, name, "elsewhere", 1, NOW)
    return plan_of(SETTINGS, store, agent=name, incarnation=number, run=1)


def visits_of(plan: Plan, site_id: int, epoch: int, number: int) -> Batch:
    """A batch of visits to robots.txt of a site."""
    batch = Batch(agent=plan.agent, incarnation=plan.incarnation, holder=plan.holder, run=1)
    batch.epochs[site_id] = epoch
    for _ in range(number):
        batch.visits.append([
            0, site_id, "http://x/robots.txt", "robots", 1, 2, epoch, "x", "192.0.2.1", NOW, NOW,
            "OK", 200, "text/plain", "", 1, -1, 0, 0, 0, "", 0, 0, "",
        ])  # fmt: skip
    return batch


def give_back(store: Store, one: Plan, lease: Lease, *, go_to: str = "") -> None:
    event = Release(site_id=lease.site_id, epoch=lease.epoch, rest_until=0, rest_s=0, failures=0,
                    go_to=go_to)  # fmt: skip
    leases.release(store, one, event, now=NOW)


def letter(site: str, path: str = "") -> Wanted:
    return Wanted(url=f"http://{site}/{path}", site=site, reason=Reason.LINK, depth=1, kind="a")


# -- leases and claims -----------------------------------------------------------------------------


def test_no_site_is_given_to_two_agents_who_ask_at_once(store: Store, connect: Connect) -> None:
    crawl(store, 40)
    plans = [plan(store, f"a{n}") for n in range(4)]
    ready = threading.Barrier(4)

    def ask(one: Plan, mine: Store) -> list[int]:
        ready.wait()
        got = []
        for _ in range(8):
            got += [lease.site_id for lease in leases.grant(mine, one, 3, now=NOW)]
        return got

    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(ask, plans, [connect() for _ in plans]))
    every = [site for got in given for site in got]
    assert len(every) == len(set(every)) == 40


def test_who_was_meant_for_a_site_gets_it_first(store: Store) -> None:
    crawl(store, 3)
    one, two = plan(store, "a0"), plan(store, "a1")
    (lease, *_) = leases.grant(store, one, 3, now=NOW)
    give_back(store, one, lease, go_to=two.holder)
    assert lease.site_id not in [got.site_id for got in leases.grant(store, one, 9, now=NOW)]
    assert lease.site_id == leases.grant(store, two, 1, now=NOW)[0].site_id


def test_an_address_is_claimed_by_one_of_those_who_claim_it_at_once(
    store: Store, connect: Connect
) -> None:
    plans = [plan(store, f"a{n}") for n in range(4)]
    ready = threading.Barrier(4)

    def claim(one: Plan, mine: Store) -> list[str]:
        ready.wait()
        # Keys in another order from each: still nobody waits for a circle.
        keys = ["192.0.2.1", "192.0.2.2", "group:x"]
        start = one.incarnation % 3
        return [
            parts.claim(
                mine, one, Claim(0, tuple(f"{key}/{n}" for key in keys[start:] + keys[:start])),
                now=NOW,
            ).other
            for n in range(20)
        ]  # fmt: skip

    with ThreadPoolExecutor(4) as pool:
        others = list(pool.map(claim, plans, [connect() for _ in plans]))
    for said in zip(*others, strict=True):
        winners = [one.holder for one, other in zip(plans, said, strict=True) if not other]
        assert len(winners) == 1
        assert {other for other in said if other} <= {winners[0]}
    held = dict(store.all("SELECT address, holder FROM addresses WHERE holder <> ''"))
    assert len(held) == 60


def test_a_lease_that_ended_is_taken_back_but_not_while_its_holder_commits(
    store: Store, connect: Connect
) -> None:
    coordinator = crawl(store, 1)
    one, mine = plan(store, "a0"), connect()
    (lease,) = leases.grant(store, one, 1, now=NOW)
    if store.dialect != SQLITE:
        with mine.transaction():
            commit(mine, visits_of(one, lease.site_id, lease.epoch, 2), now=NOW, lengths={})
            coordinator.step(run=1, now=NOW + 61)  # waits for nobody
            assert store.all("SELECT holder FROM sites") == [(one.holder,)]
    coordinator.step(run=1, now=NOW + 61)
    assert store.all("SELECT holder FROM sites") == [("",)]
    late = commit(store, visits_of(one, lease.site_id, lease.epoch, 2), now=NOW, lengths={})
    assert late.refused == {lease.site_id}


def test_a_lease_that_its_holder_never_heard_of_is_given_back(store: Store) -> None:
    crawl(store, 2)
    one = plan(store, "a0")
    first, second = leases.grant(store, one, 2, now=NOW)
    held = leases.renew(store, one, now=NOW, disown=[second.site_id])
    assert held == [first.site_id]
    assert [lease.site_id for lease in leases.grant(store, one, 2, now=NOW)] == [second.site_id]


def test_ids_and_shares_are_given_once(store: Store, connect: Connect) -> None:
    with store.transaction():
        counters.set_quota(store, 100)

    def take(mine: Store) -> tuple[list[int], int]:
        ids, share = [], 0
        for _ in range(25):
            with mine.transaction():
                ids.append(counters.take_ids(mine, "page", 10))
            share += leases.draw(mine, 7)
        return ids, share

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(take, [connect() for _ in range(4)]))
    firsts = sorted(first for ids, _ in taken for first in ids)
    assert firsts == list(range(1, 1001, 10))
    assert sum(share for _, share in taken) == 100


# -- batches ---------------------------------------------------------------------------------------


def test_who_starts_first_and_commits_last_is_missed_by_no_follower_of_the_log(
    store: Store, connect: Connect
) -> None:
    crawl(store, 2)
    plans = [plan(store, "a0"), plan(store, "a1")]
    given = [leases.grant(store, one, 1, now=NOW)[0] for one in plans]
    first, second = (
        visits_of(one, lease.site_id, lease.epoch, 3)
        for one, lease in zip(plans, given, strict=True)
    )
    slow, quick = connect(), connect()
    seen: list[int] = []
    at = 0

    def look() -> None:
        nonlocal at
        number_batches(store)
        for seq, change, visit in follow(store, at, str):
            assert change == "added"
            seen.append(visit)
            at = max(at, seq)

    if store.dialect == SQLITE:  # the second waits for the first
        with ThreadPoolExecutor(1) as pool:
            with slow.transaction():
                commit(slow, first, now=NOW, lengths={})
                later = pool.submit(commit, quick, second, now=NOW, lengths={})
            later.result()
        look()
    else:
        with slow.transaction():
            commit(slow, first, now=NOW, lengths={})
            commit(quick, second, now=NOW, lengths={})
            look()
            assert len(seen) == 3
        look()
    assert sorted(seen) == [row[0] for row in store.all("SELECT visit FROM visits ORDER BY visit")]
    assert len(seen) == len(set(seen)) == 6
    assert store.all("SELECT seq FROM batches ORDER BY seq") == [(1,), (2,)]


def test_visits_of_batches_written_at_once_are_found_by_their_batch(
    store: Store, connect: Connect
) -> None:
    crawl(store, 4)
    plans = [plan(store, f"a{n}") for n in range(4)]
    given = [leases.grant(store, one, 1, now=NOW)[0] for one in plans]
    ready = threading.Barrier(4)

    def write(one: Plan, lease: Any, mine: Store) -> None:
        ready.wait()
        for number in (1, 17, 40, 2, 0, 33):
            batch = visits_of(one, lease.site_id, lease.epoch, number)
            batch.counts["x"] = number
            commit(mine, batch, now=NOW, lengths={})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, plans, given, [connect() for _ in plans]))
    number_batches(store)
    rows = store.all(
        "SELECT b.batch, b.visits, count(v.visit) FROM batches b LEFT JOIN visits v"
        " ON v.visit BETWEEN b.first_visit AND b.last_visit AND v.batch = b.batch"
        " GROUP BY b.batch, b.visits"
    )
    assert len(rows) == 24 and all(visits == found for _, visits, found in rows)
    assert sum(1 for _ in follow(store, 0, str)) == 4 * 93
    assert counters.counters(store)["x"] == 4 * 93
    assert counters.counter(store, "visits") == 0  # robots.txt is none
    assert counters.counter(store, "requests") == 4 * 93


@contextmanager
def unanswered(store: Store) -> Iterator[None]:
    """The next transaction is committed, and its answer is lost."""
    honest = store.transaction

    @contextmanager
    def transaction() -> Iterator[None]:
        del store.transaction
        with honest():
            yield
        raise ResourceError("the connection was lost")

    store.transaction = transaction  # type: ignore[method-assign]
    yield


def test_a_batch_whose_commit_was_not_answered_is_not_written_twice(store: Store) -> None:
    crawl(store, 1)
    one = plan(store, "a0")
    (lease,) = leases.grant(store, one, 1, now=NOW)
    batch = visits_of(one, lease.site_id, lease.epoch, 5)
    assert answered(store, batch) is None
    with unanswered(store), pytest.raises(ResourceError):
        commit(store, batch, now=NOW, lengths={})
    known = answered(store, batch)
    assert known is not None and known.refused == frozenset()
    assert store.all("SELECT count(*) FROM visits") == [(5,)]


def test_a_batch_that_was_not_committed_is_written_again(store: Store) -> None:
    crawl(store, 1)
    one = plan(store, "a0")
    (lease,) = leases.grant(store, one, 1, now=NOW)
    batch = visits_of(one, lease.site_id, lease.epoch, 5)
    with pytest.raises(ResourceError), store.transaction():
        commit(store, batch, now=NOW, lengths={})
        raise ResourceError("the connection was lost before the commit")
    assert answered(store, batch) is None
    # Another agent's batch may have got the number meanwhile.
    other = plan(store, "a1")
    commit(store, visits_of(other, 99, 1, 0), now=NOW, lengths={})
    assert answered(store, batch) is None
    commit(store, batch, now=NOW, lengths={})
    assert store.all("SELECT count(*) FROM visits") == [(5,)]


# -- the end, and the rounds before it -------------------------------------------------------------


@pytest.mark.parametrize(
    "sentence",
    [
        "UPDATE sites SET holder = ''",
        "UPDATE sites SET waiting = 0",
        "UPDATE sites SET state = 'parked'",
        "UPDATE sites SET rest_until = 1700000500",
        "UPDATE sites SET next_due = 1700009000",
        "UPDATE sites SET rest_until = 1700009000",
        "UPDATE sites SET waiting = 0, holder = 'a0/1' WHERE site_id = 2",
        "INSERT INTO inbox (site, url, kind, via, depth, party, reason, not_before, weight, hops,"
        " admit) SELECT site, 'http://x/', 'a', '', 1, 1, 2, 0, 0, 0, '' FROM sites",
    ],
)
def test_a_crawl_is_over_when_nothing_is_held_or_due_or_on_its_way(
    store: Store, sentence: str
) -> None:
    coordinator = crawl(store, 3)
    store.run(
        "UPDATE sites SET waiting = 0" if "INSERT" in sentence else "UPDATE sites SET epoch = 1"
    )
    store.run(sentence)
    at = coordinator.standing(now=NOW)
    assert coordinator.is_over(now=NOW) == (not (at.held or at.due or at.letters))


def test_a_round_costs_no_more_when_more_sites_wait(store: Store) -> None:
    if not isinstance(store, SqliteStore):
        pytest.skip("counts the steps of SQLite")
    coordinator = crawl(store, 50)
    assert leases.grant(store, plan(store, "a0"), 20, now=NOW)
    few = _steps(store, coordinator)
    coordinator.add_seeds([Seed(url=f"http://more{n}.example/") for n in range(2_000)], now=NOW)
    while coordinator.step(run=1, now=NOW, at_once=True):
        pass
    assert coordinator.standing(now=NOW).due > 2_000
    assert _steps(store, coordinator) < few * 1.5


def _steps(store: SqliteStore, coordinator: Coordinator) -> int:
    """Of SQLite's machine in half a minute of rounds, with nothing to do."""
    steps = 0

    def one() -> None:
        nonlocal steps
        steps += 1

    store._db.set_progress_handler(one, 1)
    for tenth in range(1, 300):
        assert not coordinator.step(run=1, now=NOW + tenth / 10)
        assert not coordinator.is_over(now=NOW + tenth / 10)
    store._db.set_progress_handler(None, 0)
    return steps


# -- links and letters -----------------------------------------------------------------------------


def outside(url: str) -> tuple[Any, ...]:
    site = urls.site_of(url)
    return (urls.url_hash(url), url, site, site, "a", "http://s0.example/", 1, 1, NOW)


def test_a_link_committed_while_its_site_is_admitted_is_not_lost(
    store: Store, connect: Connect
) -> None:
    coordinator = crawl(store, 1)
    if store.dialect == SQLITE:
        pytest.skip("one writes at a time")
    mine = connect()
    with mine.transaction():  # an agent that looked before, and commits after
        mine.enter("outside")
        mine.run(PUT_OUTSIDE, outside("http://new.example/late"))
        coordinator.add_seeds([Seed(url="http://new.example/")], now=NOW)
        for _ in range(3):
            coordinator.step(run=1, now=NOW)
        # Nobody has it, so it is not over, whatever else is.
        store.run("UPDATE sites SET waiting = 0")
        assert not coordinator.is_over(now=NOW)
    while coordinator.step(run=1, now=NOW):
        pass
    assert store.all("SELECT count(*) FROM outside") == [(0,)]
    found = store.one("SELECT outcome FROM pages WHERE url = 'http://new.example/late'")
    assert found == ("NULL",)


def test_what_a_dead_coordinator_left_outside_is_wanted_by_the_next(store: Store) -> None:
    crawl(store, 1)
    if store.dialect == SQLITE:
        pytest.skip("one writes at a time")
    store.run(PUT_OUTSIDE, outside("http://s0.example/late"))
    assert Latecomers(store).look_at_all() == 1
    assert store.all("SELECT url FROM inbox") == [("http://s0.example/late",)]


def test_letters_are_delivered_once_by_coordinator_or_holder(
    store: Store, connect: Connect
) -> None:
    coordinator = crawl(store, 8)
    frontier.want(store, [letter(f"s{n}.example", f"p{m}") for n in range(8) for m in range(20)])
    one, mine = plan(store, "a0"), connect()
    given = leases.grant(store, one, 4, now=NOW)
    held = tuple(lease.site for lease in given)
    assert coordinator.deliver(run=1, now=NOW) == 80
    letters = leases.drain(mine, held)
    assert {one.wanted.site for one in letters} == set(held) and len(letters) == 80
    assert store.all("SELECT count(*) FROM pages") == [(88,)]
    if store.dialect != SQLITE:  # while letters of free sites are delivered nobody gets those
        for lease in given:
            give_back(store, one, lease)
        with store.transaction():
            coordinator.deliver(run=1, now=NOW)
            got = {lease.site for lease in leases.grant(mine, one, 99, now=NOW)}
            assert not got & set(held)


def test_known_sites_that_are_admitted_twice_are_one(store: Store, connect: Connect) -> None:
    crawl(store, 1)
    ready = threading.Barrier(3)

    def add(mine: Store) -> int:
        coordinator = Coordinator(mine, SETTINGS)
        ready.wait()
        new = coordinator.add_seeds([Seed(url=f"http://t{n}.example/") for n in range(20)], now=NOW)
        coordinator.await_latecomers(lambda _: None)
        return new

    with ThreadPoolExecutor(3) as pool:
        new = list(pool.map(add, [connect() for _ in range(3)]))
    assert sum(new) == 20
    assert store.all("SELECT count(*) FROM sites") == [(21,)]
    assert store.all("SELECT count(*) FROM seeds") == [(21,)]


# -- what goes wrong -------------------------------------------------------------------------------


def test_of_two_who_wait_for_each_other_one_is_told_to_begin_again(
    store: Store, connect: Connect
) -> None:
    if store.dialect == SQLITE:
        pytest.skip("one writes at a time")
    crawl(store, 2)
    ready = threading.Barrier(2)

    def write(mine: Store, order: str) -> int:
        conflicts = 0
        for attempt in range(9):
            try:
                with mine.transaction():
                    for place, site in enumerate(order):
                        mine.run(f"UPDATE sites SET failures = failures + 1 WHERE site_id = {site}")
                        if not (place or attempt):
                            ready.wait()
                return conflicts
            except ConflictError:
                conflicts += 1
        raise AssertionError("never done")

    with ThreadPoolExecutor(2) as pool:
        conflicts = list(pool.map(write, [connect(), connect()], ["12", "21"]))
    assert sum(conflicts) >= 1
    assert store.all("SELECT failures FROM sites") == [(2,), (2,)]


def test_who_may_no_longer_write_is_stopped_at_the_start_of_a_transaction(store: Store) -> None:
    def fence(_: Store) -> None:
        raise ResourceError("no")

    store.fence = fence
    with pytest.raises(ResourceError), store.transaction():
        raise AssertionError("it went on")
    store.fence = None
    with store.transaction():
        store.run("DELETE FROM runs")


def test_a_plan_has_a_holder_of_its_own(store: Store) -> None:
    one, two = plan(store, "a0"), plan(store, "a0")
    assert one.holder != two.holder
    assert replace(one).holder == one.holder


def test_a_site_whose_admission_commits_last_is_compared_with_its_other_name(
    connect: Connect, store: Store
) -> None:
    """It has a lower number than sites that were looked at before it could be seen."""
    settings = config.load(Path("no-such-directory/geomi.toml"), ["alias.detect=true"])
    coordinator = Coordinator(store, settings)
    coordinator.begin(again=False, options={}, now=NOW)
    coordinator.add_seeds([Seed(url="http://late.example/a")], now=NOW)

    def look() -> None:
        while coordinator.step(run=1, now=NOW, at_once=True):
            pass

    look()
    late = connect()
    seed = Seed(url="http://www.late.example/b")
    if store.dialect == SQLITE:  # one writes at a time
        Coordinator(late, settings).add_seeds([seed], now=NOW)
    else:
        with late.transaction():
            Coordinator(late, settings).add_seeds([seed], now=NOW)
            coordinator.add_seeds([Seed(url="http://other.example/")], now=NOW)
            look()
        numbers = store.all("SELECT site FROM sites ORDER BY site_id")
        assert [site for (site,) in numbers][1:] == ["www.late.example", "other.example"]
    look()
    pages = {url for (url,) in store.all("SELECT url FROM pages")}
    assert {"http://late.example/", "http://www.late.example/"} <= pages
