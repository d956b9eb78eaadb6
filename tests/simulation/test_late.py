"""Requests written later than was meant: a busy loop, a slow connection, a stopped process.

Judged by the simulated server's own log.
"""

from __future__ import annotations

import random

import pytest
from rehearsal import HASTY, faults, simulation
from test_manners import Hosts
from test_slots import GAP_S, OneAddress, OneGroup, smallest_gap, start

from geomi.cluster.simulate import Simulation


def late(sim: Simulation, seed: int, most_s: float, often: float = 0.3) -> None:
    """Some requests leave at once, as on a kept connection, others up to `most_s` later."""
    rng = random.Random(seed)
    sim.late_s = lambda: rng.random() * most_s if rng.random() < often else 0.0


@pytest.mark.parametrize("hosts", [20, 300])
@pytest.mark.parametrize("most_s", [0.05, 0.4, 3.0])
@pytest.mark.parametrize("kind", [OneAddress, OneGroup])
def test_no_gap_is_too_short_however_late_requests_are_written(
    kind: type[Hosts], most_s: float, hosts: int
) -> None:
    sets = ('manners.groups={g = ["*.example"]}',) if kind is OneGroup else ()
    sim = start(kind(hosts), *sets)
    late(sim, seed=hosts, most_s=most_s)
    sim.advance(until=sim.now + 300.0)
    assert smallest_gap(sim.log) >= GAP_S - 1e-6
    # As many as go one after the other, each as late as is to be expected.
    mean_s = GAP_S + 0.3 * most_s / 2
    assert len(sim.log) >= 0.5 * 300.0 / mean_s


def test_without_the_question_gaps_would_be_too_short() -> None:
    sim = start(OneAddress(20))
    sim.asks = False
    late(sim, seed=1, most_s=3.0)
    sim.advance(until=sim.now + 300.0)
    assert smallest_gap(sim.log) < 0.1 * GAP_S


@pytest.mark.parametrize("seed", range(6))
def test_what_is_held_back_is_visited_all_the_same(seed: int) -> None:
    sim, world = simulation(seed, sites=10, sets=(*HASTY, "manners.address_rest_s=0.2"))
    late(sim, seed=seed, most_s=3.0)
    sim.begin()
    assert sim.advance(until=sim.now + 5 * 86_400)
    sim.finish()
    assert faults(sim, world) == []


@pytest.mark.parametrize("asks", [True, False])
def test_what_was_on_its_way_when_an_agent_was_stopped_is_not_sent_past_its_lease(
    asks: bool,
) -> None:
    """It sleeps past its leases, and others have them. Before it has new ones it sends nothing."""
    sent = 0
    for seed in range(4):
        sim = start(Hosts(60), "agent.batch_s=0.2", agents=2)
        sim.asks = asks
        late(sim, seed=seed, most_s=2.0, often=1.0)
        sim.advance(until=sim.now + 20.0)
        one, stopped = sim.agents[0], sim.now
        sim.stop(one, 90.0)
        sim.advance(until=stopped + 90.005)  # no job of its store is done so soon
        sent += sum(1 for seen in sim.log if seen.agent == one.name and seen.start > stopped)
        sim.advance(until=stopped + 200.0)
        assert any(seen.agent == one.name for seen in sim.log if seen.start > stopped + 91.0)
        assert sim.coordinator.standing(now=sim.now).counters["leases.lost"] > 0
    assert (sent == 0) == asks


def test_what_was_on_its_way_when_an_agent_was_stopped_for_a_moment_keeps_its_gap() -> None:
    sim = start(OneAddress(20), agents=1)
    late(sim, seed=3, most_s=0.4)
    for _ in range(100):
        sim.advance(until=sim.now + 3.1)
        sim.stop(sim.agents[0], 1.7)
    assert smallest_gap(sim.log) >= GAP_S - 1e-6
    assert len(sim.log) > 100


def test_a_request_held_back_as_its_agent_stops_keeps_nobody() -> None:
    for seed in range(20):
        sim, world = simulation(seed, sites=6, sets=(*HASTY, "manners.address_rest_s=0.5"))
        late(sim, seed=seed, most_s=4.0)
        sim.begin()
        sim.advance(until=sim.now + 2.0 + seed / 5)
        sim.finish()
        assert all(agent.is_done for agent in sim.agents)
        assert sim.store.all("SELECT site FROM sites WHERE holder <> ''") == []
        sim.begin()
        assert sim.advance(until=sim.now + 5 * 86_400)
        sim.finish()
        assert faults(sim, world) == []
