"""Rests of hosts and gaps of addresses, in virtual time. An hour is a number."""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.frontier.politeness import Gaps, Host, Manners, retry_after_s, server_of


@dataclass
class Party:
    """A host that always has a page to ask for."""

    keys: tuple[str, ...]
    manners: Manners
    took_s: float
    host: Host = field(init=False)
    is_slotted: bool = False
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.host = Host(self.manners)


def drive(
    parties: list[Party],
    *,
    until: float,
    gaps: Gaps | None = None,
    late: random.Random | None = None,
) -> dict[str, list[float]]:
    """What an agent does with its turns. Starts of requests by key, in order of time."""
    gaps = gaps or Gaps()
    starts: dict[str, list[float]] = defaultdict(list)
    turns = [(0.0, number, "turn") for number in range(len(parties))]
    while turns:
        now, number, what = heapq.heappop(turns)
        if now >= until:
            break
        if late is not None:  # a busy machine: whatever should happen now happens a little later
            now += late.random() * 0.05
        one = parties[number]
        gap_s = one.manners.address_rest_s
        if what == "end":
            one.host.ended(now, one.took_s)
            one.ends.append(now)
            heapq.heappush(turns, (one.host.rest_until, number, "turn"))
            continue
        if one.host.rest_until > now:
            heapq.heappush(turns, (one.host.rest_until, number, "turn"))
            continue
        at = now
        if not one.is_slotted:
            one.is_slotted = True
            at = gaps.reserve(one.keys, gap_s, now=now)
        if at <= now:
            at = gaps.earliest(one.keys, gap_s, now=now)
        if at > now:
            heapq.heappush(turns, (at, number, "turn"))
            continue
        one.is_slotted = False
        one.host.started()
        gaps.started(one.keys, gap_s, now=now)
        one.starts.append(now)
        for key in one.keys:
            starts[key].append(now)
        heapq.heappush(turns, (now + one.took_s, number, "end"))
    return starts


def smallest_gap(times: list[float]) -> float:
    return min((b - a for a, b in pairwise(sorted(times))), default=1e9)


KEYS = st.lists(st.sampled_from(["192.0.2.1", "192.0.2.2", "group:a", "group:b"]),
                min_size=1, max_size=3, unique=True)  # fmt: skip


@given(
    st.lists(st.tuples(KEYS, st.floats(0.0, 1.0)), min_size=1, max_size=40),
    st.sampled_from([0.1, 0.25, 1.0]), st.sampled_from([0.0, 0.01]), st.integers(0, 10**6),
)  # fmt: skip
def test_no_two_starts_at_a_key_lie_closer_than_the_gap_even_when_turns_come_late(
    hosts: list[tuple[list[str], float]], gap_s: float, margin_s: float, seed: int
) -> None:
    manners = Manners(rest_s=0.5, rest_factor=1.0, address_rest_s=gap_s)
    parties = [Party(tuple(keys), manners, took_s) for keys, took_s in hosts]
    starts = drive(parties, until=30.0, gaps=Gaps(margin_s=margin_s), late=random.Random(seed))
    assert starts
    for key, times in starts.items():
        assert smallest_gap(times) >= gap_s + margin_s - 1e-9, key


@given(
    st.lists(st.tuples(st.floats(0.1, 5.0), st.floats(0.0, 2.0), st.floats(0.0, 40.0)),
             min_size=1, max_size=10), st.integers(0, 10**6),
)  # fmt: skip
def test_a_host_rests_the_longest_of_its_rules_after_each_visit(
    hosts: list[tuple[float, float, float]], seed: int
) -> None:
    parties = []
    for number, (rest_s, took_s, delay_s) in enumerate(hosts):
        manners = Manners(rest_s=rest_s, rest_factor=10.0, rest_factor_max_s=15.0)
        parties.append(Party((str(number),), manners, took_s))
        parties[-1].host.crawl_delay_s = delay_s
    drive(parties, until=200.0, late=random.Random(seed))
    for one, (rest_s, took_s, delay_s) in zip(parties, hosts, strict=True):
        wanted = max(rest_s, min(10.0 * took_s, 15.0), delay_s)
        for ended, started in zip(one.ends, one.starts[1:], strict=False):
            assert started - ended >= wanted - 1e-9


@pytest.mark.parametrize("addresses", [1, 7, 50])
def test_a_thousand_parties_on_few_addresses_use_what_the_gaps_allow(addresses: int) -> None:
    manners = Manners(rest_s=2.0, rest_factor=10.0, address_rest_s=0.25)
    parties = [Party((f"192.0.2.{number % addresses}",), manners, 0.05) for number in range(1000)]
    starts = drive(parties, until=600.0)
    allowed = sum(
        min(600.0 / 0.25, len(parties) / addresses * 600.0 / 2.05) for _ in range(addresses)
    )
    assert sum(map(len, starts.values())) >= 0.98 * allowed
    assert all(smallest_gap(times) >= 0.25 - 1e-9 for times in starts.values())


def test_parties_with_addresses_of_their_own_use_what_the_rests_allow() -> None:
    manners = Manners(rest_s=2.0, rest_factor=10.0, address_rest_s=0.25)
    parties = [Party((str(number),), manners, 0.5) for number in range(100)]
    starts = drive(parties, until=3600.0)
    assert sum(map(len, starts.values())) >= 0.98 * 100 * 3600.0 / 5.5


def test_a_group_over_many_addresses_uses_what_its_own_gap_allows() -> None:
    manners = Manners(rest_s=1.0, rest_factor=0.0, address_rest_s=0.5)
    parties = [Party((f"192.0.2.{number}", "group:press"), manners, 0.1) for number in range(20)]
    starts = drive(parties, until=500.0)
    assert len(starts["group:press"]) >= 0.98 * 500.0 / 0.5
    assert smallest_gap(starts["group:press"]) >= 0.5 - 1e-9


def test_a_place_in_line_belongs_to_who_reserved_it() -> None:
    gaps = Gaps()
    places = [gaps.reserve(("a",), 0.5, now=100.0) for _ in range(4)]
    assert places == [100.0, 100.5, 101.0, 101.5]
    assert gaps.reserve(("b",), 0.5, now=100.0) == 100.0
    assert gaps.reserve(("a", "b"), 0.5, now=100.0) == 102.0


def test_without_a_gap_or_a_key_nobody_waits() -> None:
    gaps = Gaps()
    for _ in range(3):
        assert gaps.reserve(("a",), 0.0, now=5.0) == 5.0
        assert gaps.reserve((), 1.0, now=5.0) == 5.0
        gaps.started(("a",), 0.0, now=5.0)
        assert gaps.earliest(("a",), 0.0, now=5.0) == 0.0


def test_an_address_that_is_held_starts_nothing_before() -> None:
    gaps = Gaps()
    gaps.hold("a", 160.0)
    gaps.hold("a", 130.0)  # a shorter hold takes nothing back
    assert gaps.reserve(("a",), 0.25, now=100.0) == 160.0


def test_memory_is_bounded_by_the_addresses_of_the_last_minutes() -> None:
    gaps = Gaps()
    for number in range(10_000):
        key = (str(number),)
        gaps.reserve(key, 0.25, now=float(number))
        gaps.started(key, 0.25, now=float(number))
    assert len(gaps._next) < 2000
    assert len(gaps._last) < 2000
    assert gaps.reserve(("9999",), 0.25, now=9999.0) == 9999.25


def test_a_host_of_ones_own_neither_rests_nor_makes_a_new_holder_wait() -> None:
    host = Host(Manners(is_own=True, connections=8))
    host.started()
    host.ended(10.0, 5.0)
    assert host.rest_until == 0.0
    assert host.full_rest_s() == 0.0


def test_retry_after_rests_a_host_and_a_shorter_rest_does_not_end_it() -> None:
    host = Host(Manners())
    host.rest(100.0, 60.0)
    host.started()
    host.ended(101.0, 0.1)
    assert host.rest_until == 160.0


def test_a_new_holder_waits_the_longest_rest_that_is_known() -> None:
    host = Host(Manners(rest_s=2.0))
    assert host.full_rest_s() == 2.0
    host.crawl_delay_s = 20.0
    assert host.full_rest_s() == 20.0
    host.rest(0.0, 300.0)
    assert host.full_rest_s() == 300.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:28:30 -0000", 30.0),
        ("Wed, 21 Oct 2015 07:28:30", 30.0),
        ("Tue, 20 Oct 2015 07:28:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),  # a digit to Python, no number
        ("9" * 400, None),
        ("Wed, 99 Oct 2015 07:28:30 GMT", None),
        ("Wed, 21 Oct 99999 07:28:30 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_nonsense_is_nothing(
    value: str, seconds: float | None
) -> None:
    assert retry_after_s(value, now=1445412480.0) == seconds


@given(st.text(max_size=40))
def test_no_retry_after_breaks_the_robot(value: str) -> None:
    seconds = retry_after_s(value, now=0.0)
    assert seconds is None or seconds >= 0.0


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("64:ff9b::192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("::1", "::1"),
    ],
)
def test_forms_of_one_address_are_one_server(address: str, server: str) -> None:
    assert server_of(address) == server


def test_a_host_with_a_rate_rests_until_what_came_is_paid_for() -> None:
    host = Host(Manners(rest_s=0.0, rest_factor=0.0, rate_bytes_per_s=1000, is_own=True))
    host.started()
    host.ended(10.0, 1.0, size_bytes=5000)
    assert host.rest_until == 14.0  # from its start: five seconds
    # What came by several connections adds up; time that passed since does not count twice.
    for _ in range(2):
        host.started()
        host.ended(14.5, 0.5, size_bytes=1000)
    assert host.rest_until == 16.0
    host.started()
    host.ended(100.0, 2.0, size_bytes=100)
    assert host.rest_until < 100.0
