"""Addresses and groups with several holders, on both stores: their slots never meet."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from geomi import config
from geomi.cluster import leases, parts, tables
from geomi.cluster.commands import Claim, Release, Share
from geomi.cluster.context import Plan
from geomi.cluster.coordinator import Coordinator
from geomi.cluster.plan import plan_of
from geomi.cluster.tables import MIGRATIONS
from geomi.frontier.slots import ALWAYS, Slot
from geomi.store import Store
from geomi.store.migrate import migrate

NOW = 1_700_000_000.0
SETTINGS = config.load(Path("no-such-directory/geomi.toml"), [])
A = "192.0.2.1"
Connect = Callable[..., Store]


@pytest.fixture
def store(connect: Connect) -> Store:
    made = connect()
    migrate(made, MIGRATIONS, where="c")
    return made


def plan(store: Store, name: str) -> Plan:
    number = tables.begin_agent(store, name, "elsewhere", 1, NOW)
    return plan_of(SETTINGS, store, agent=name, incarnation=number, run=1)


def claim(
    store: Store, one: Plan, *keys: str, site_id: int = 0, may_share: bool = True, now: float = NOW
) -> tuple[str, list[Slot]]:
    got = parts.claim(store, one, Claim(site_id, keys or (A,), "", A, may_share), now=now)
    return got.other, [slot for _, slot in got.slots]


def share(store: Store, one: Plan, keep: Slot, *, rests_until: float = 0.0) -> Slot:
    return parts.share(store, one, Share(A, keep, rests_until), now=NOW)


def let_go(store: Store, one: Plan, *, until: float = 0.0) -> None:
    leases.release(
        store, one,
        Release(site_id=0, epoch=0, rest_until=0, rest_s=0, failures=0, unclaim=((A, until),)),
        now=NOW,
    )  # fmt: skip


def test_who_is_refused_makes_a_wish_and_gets_the_half_that_is_left(store: Store) -> None:
    one, two = plan(store, "a0"), plan(store, "a1")
    assert claim(store, one) == ("", [ALWAYS])
    assert parts.wished(store, one) == []
    assert claim(store, two) == (one.holder, [])
    assert parts.wished(store, one) == [A]
    assert share(store, one, Slot(0, 2)) == Slot(0, 2)
    assert parts.wished(store, one) == []
    assert claim(store, two) == ("", [Slot(1, 2)])
    assert claim(store, one) == ("", [Slot(0, 2)])  # for another of its sites


def test_the_half_that_is_left_rests_from_the_last_start_in_it(store: Store) -> None:
    one, two = plan(store, "a0"), plan(store, "a1")
    claim(store, one)
    share(store, one, Slot(1, 2), rests_until=NOW + 7)
    got = parts.claim(store, two, Claim(0, (A,)), now=NOW)
    assert got.slots == ((A, Slot(0, 2)),) and got.rests == ((A, NOW + 7),)


def test_a_slot_that_is_not_ours_is_not_shared(store: Store) -> None:
    one = plan(store, "a0")
    assert share(store, one, Slot(0, 2)) == ALWAYS
    claim(store, one)
    assert share(store, one, Slot(0, 4)) == ALWAYS
    assert store.all("SELECT slot, slots FROM addresses") == [(0, 1)]


def test_no_more_slots_than_the_settings_say(store: Store) -> None:
    one, two, three = (replace(plan(store, f"a{n}"), slots=2) for n in range(3))
    claim(store, one)
    share(store, one, Slot(0, 2))
    claim(store, two)
    others = {claim(store, three, site_id=n)[0] for n in range(4)}
    assert others == {one.holder, two.holder}  # by turns
    assert parts.wished(store, one) == parts.wished(store, two) == []


def test_what_somebody_lets_go_of_is_taken_back_once_it_has_rested(store: Store) -> None:
    one, two = plan(store, "a0"), plan(store, "a1")
    claim(store, one)
    share(store, one, Slot(0, 2))
    claim(store, two)
    assert parts.widen(store, two, now=NOW) == [(A, Slot(1, 2))]
    let_go(store, one, until=NOW + 5)
    assert parts.widen(store, two, now=NOW + 4) == [(A, Slot(1, 2))]
    assert parts.widen(store, two, now=NOW + 5) == [(A, ALWAYS)]
    assert claim(store, one, now=NOW + 5) == (two.holder, [])


def test_a_dead_holder_s_slot_is_free_when_its_time_is_over(store: Store) -> None:
    one, two, three = (plan(store, f"a{n}") for n in range(3))
    claim(store, one)
    share(store, one, Slot(0, 2))
    claim(store, two, now=NOW + 30)
    assert claim(store, three, now=NOW + 59)[0]
    assert claim(store, three, now=NOW + 61) == ("", [Slot(0, 2)])


def test_who_cannot_keep_to_parts_of_the_time_gets_none(store: Store) -> None:
    one, two = plan(store, "a0"), plan(store, "a1")
    claim(store, one)
    share(store, one, Slot(0, 2))
    assert claim(store, two, may_share=False)[0] == one.holder
    other = replace(two, gap_s=9.0)  # another run, with other settings: parts of another length
    assert claim(store, other)[0] == one.holder
    assert claim(store, two)[0] == ""


def test_of_an_address_and_a_group_slots_are_taken_that_meet(store: Store) -> None:
    one, two = plan(store, "a0"), plan(store, "a1")
    claim(store, one, A, "group:g")
    share(store, one, Slot(0, 2))
    parts.share(store, one, Share("group:g", Slot(0, 2), 0.0), now=NOW)
    other, slots = claim(store, two, A, "group:g")
    assert other == "" and slots == [Slot(1, 2), Slot(1, 2)]


def test_agents_that_claim_and_share_at_once_never_have_the_same_time(
    store: Store, connect: Connect
) -> None:
    plans = [plan(store, f"a{n}") for n in range(4)]
    ready = threading.Barrier(4)

    def work(one: Plan, mine: Store) -> None:
        ready.wait()
        for n in range(12):
            other, slots = claim(mine, one)
            if not other and slots[0].of < 16 and n % 2:
                share(mine, one, slots[0].halves()[n % 4 == 1])
            if n % 5 == 4:
                let_go(mine, one)
            parts.widen(mine, one, now=NOW)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, plans, [connect() for _ in plans]))
    held = [
        Slot(*row) for row in store.all("SELECT slot, slots FROM addresses WHERE until > ?", (NOW,))
    ]
    assert held and not any(a.meets(b) for a, b in combinations(held, 2))
    assert (
        store.all(
            "SELECT holder FROM addresses WHERE holder <> '' GROUP BY holder HAVING count(*) > 1"
        )
        == []
    )


def test_an_address_rests_from_a_holder_who_vanished_where_its_gap_is_long(store: Store) -> None:
    """It may have asked there until the quiet part of its lease, which is shorter than the gap."""
    one = replace(plan(store, "a"), gap_s=30.0, slots=1)
    two = replace(plan(store, "b"), gap_s=30.0, slots=1)
    assert claim(store, one)[0] == ""
    ended = NOW + one.lease_s
    rest = ended + 30.0 - one.quiet_s
    got = parts.claim(store, two, Claim(0, (A,), "", A, True), now=ended)
    assert (got.other, got.rests) == ("", ((A, rest),))
    three = replace(plan(store, "c"), gap_s=30.0, slots=1)
    later = parts.claim(store, three, Claim(0, (A,), "", A, True), now=rest + two.lease_s + 20.0)
    assert (later.other, later.rests) == ("", ())


def test_the_coordinator_keeps_the_rest_of_a_holder_who_vanished(store: Store) -> None:
    settings = config.load(Path("no-such-directory/geomi.toml"), ["manners.address_rest_s=30"])
    one = replace(plan(store, "a"), gap_s=30.0, slots=1)
    assert claim(store, one)[0] == ""
    store.run(
        "INSERT INTO sites (site_id, site, domain, added, holder, lease_until)"
        " VALUES (1, 's', 's', 0, ?, ?)",
        (one.holder, NOW + 60.0),
    )
    coordinator = Coordinator(store, settings)
    coordinator.step(run=1, now=NOW + 60.0, at_once=True)
    two = replace(plan(store, "b"), gap_s=30.0, slots=1)
    got = parts.claim(store, two, Claim(0, (A,), "", A, True), now=NOW + 61.0)
    assert got.rests == ((A, NOW + 60.0 + 30.0 - one.quiet_s),)
