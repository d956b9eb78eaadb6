"""Requests on their way to the wire: what may be written, and from when gaps run."""

from __future__ import annotations

from typing import Any

import pytest

from geomi import url as urls
from geomi.cluster.commands import Command
from geomi.cluster.context import Context, SiteRules
from geomi.cluster.flights import Flights
from geomi.cluster.quota import Quota
from geomi.fetch.request import Fetch
from geomi.frontier.politeness import Gaps, Manners
from geomi.frontier.retry import Retry
from geomi.frontier.scope import Scope
from geomi.records import Lease

GAP_S, LEASE_S, QUIET_S = 0.5, 60.0, 12.0
KEY = "192.0.2.1"


class Agent:
    """Flights of two sites on one address, with a lease each until 60."""

    def __init__(self) -> None:
        self.out: list[Command] = []
        self.gaps = Gaps(margin_s=0.01)
        self.quota = Quota(is_limited=False, out=self.out)
        self.flights = Flights(
            gaps=self.gaps, quota=self.quota, quiet_s=QUIET_S, out=self.out
        )  # fmt: skip
        self.one, self.two = self.site(1), self.site(2)

    def site(self, number: int) -> Context:
        rules = SiteRules(
            manners=Manners(address_rest_s=GAP_S), scope=Scope(), retry=Retry()
        )  # fmt: skip
        lease = Lease(site_id=number, site=f"s{number}.example", epoch=1, until=LEASE_S)
        ctx = Context(lease, rules, window=10, token=number, until=LEASE_S)
        ctx.address, ctx.keys = KEY, (KEY,)
        return ctx

    def start(self, ctx: Context, now: float, **more: Any) -> int:
        url = f"http://{ctx.site}/"
        self.flights.start(ctx, None, urls.split(url), KEY, now, url=url, **more)
        fetch = self.out[-1]
        assert isinstance(fetch, Fetch)
        return fetch.ticket

    def earliest(self, now: float) -> float:
        return self.gaps.earliest((KEY,), GAP_S, now=now)


@pytest.fixture
def agent() -> Agent:
    return Agent()


def test_the_next_start_keeps_its_distance_from_what_was_written(agent: Agent) -> None:
    ticket = agent.start(agent.one, 1.0)
    assert agent.flights.may_send(ticket, now=1.3)
    agent.flights.sent(ticket, now=1.4)  # the process was stopped in between
    assert agent.earliest(1.45) == pytest.approx(1.4 + GAP_S + 0.01)


def test_nothing_starts_while_another_request_is_not_written_yet(agent: Agent) -> None:
    agent.start(agent.one, 1.0)
    assert agent.earliest(1.6) == pytest.approx(1.6 + GAP_S + 0.01)
    # A connection that hangs keeps its neighbours for a second.
    assert agent.earliest(2.0) == pytest.approx(1.51)


def test_what_would_be_written_too_soon_is_refused(agent: Agent) -> None:
    slow, quick = agent.start(agent.one, 1.0), agent.start(agent.two, 2.1)
    assert agent.flights.may_send(quick, now=2.2)
    assert not agent.flights.may_send(slow, now=2.2)  # it is not known when that was written
    agent.flights.sent(quick, now=2.3)
    assert not agent.flights.may_send(slow, now=2.3 + GAP_S - 0.001)
    assert agent.flights.may_send(slow, now=2.3 + GAP_S)


def test_nothing_is_written_in_the_last_part_of_a_lease(agent: Agent) -> None:
    ticket = agent.start(agent.one, 40.0)
    assert not agent.flights.may_send(ticket, now=LEASE_S - QUIET_S + 0.001)
    agent.one.until += 45.0  # renewed
    assert agent.flights.may_send(ticket, now=LEASE_S)


def test_nothing_is_written_that_nobody_wants_any_more(agent: Agent) -> None:
    ticket = agent.start(agent.one, 1.0)
    agent.flights.abort(agent.one, 1.1)
    assert not agent.flights.may_send(ticket, now=1.2)
    agent.flights.sent(ticket, now=1.2)
    assert not agent.flights.may_send(99, now=1.2)


def test_nothing_is_written_while_its_address_rests(agent: Agent) -> None:
    ticket = agent.start(agent.one, 1.0)
    agent.gaps.hold(KEY, 30.0)  # two of its hosts said Retry-After meanwhile
    assert not agent.flights.may_send(ticket, now=29.9)
    assert agent.flights.may_send(ticket, now=30.0)


def test_a_request_that_libcurl_sends_again_is_no_second_one(agent: Agent) -> None:
    ticket = agent.start(agent.one, 1.0)
    assert agent.flights.may_send(ticket, now=1.0)
    assert agent.flights.may_send(ticket, now=1.01)
    agent.flights.sent(ticket, now=1.01)
    assert agent.flights.may_send(ticket, now=1.2)
    agent.flights.sent(ticket, now=1.2)
    assert agent.earliest(1.3) == pytest.approx(1.2 + GAP_S + 0.01)
    # Not where somebody else was there in between.
    other = agent.start(agent.two, 1.8)
    assert agent.flights.may_send(other, now=1.8)
    agent.flights.sent(other, now=1.8)
    assert not agent.flights.may_send(ticket, now=1.9)


@pytest.mark.parametrize("how", ["landed", "aborted"])
def test_one_that_ended_before_it_was_known_to_be_written_keeps_nobody(
    agent: Agent, how: str
) -> None:
    ticket = agent.start(agent.one, 1.0)
    assert agent.flights.may_send(ticket, now=1.0)
    if how == "landed":
        agent.flights.landed(ticket, started=1.0, now=1.3)
    else:
        agent.flights.abort(agent.one, 1.3)
    other = agent.start(agent.two, 2.0)
    assert not agent.flights.may_send(other, now=1.3 + GAP_S - 0.01)
    assert agent.flights.may_send(other, now=1.3 + GAP_S)


def test_a_connection_that_failed_counts_from_when_it_was_tried(agent: Agent) -> None:
    ticket = agent.start(agent.one, 1.0)
    agent.flights.landed(ticket, started=1.2, now=1.25)  # the loop was busy: begun late
    assert agent.earliest(1.3) == pytest.approx(1.2 + GAP_S + 0.01)


def test_what_is_taken_back_was_no_visit(agent: Agent) -> None:
    left = agent.quota.left
    ticket = agent.start(agent.one, 1.0)
    assert agent.one.host.flying == 1
    assert agent.flights.take_back(ticket) is not None
    assert (agent.one.host.flying, agent.one.flying, agent.quota.left) == (0, set(), left)
    assert agent.one.host.rest_until == 0.0
    assert agent.earliest(1.1) == pytest.approx(1.0 + GAP_S + 0.01)
    assert agent.flights.take_back(ticket) is None


def test_hosts_without_a_gap_are_asked_as_they_come(agent: Agent) -> None:
    agent.one.gap_s = agent.two.gap_s = 0.0
    first, second = agent.start(agent.one, 1.0), agent.start(agent.two, 1.0)
    assert agent.flights.may_send(first, now=1.0) and agent.flights.may_send(second, now=1.0)
