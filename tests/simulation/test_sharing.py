"""Agents come, run dry and go: sites change hands, and nothing is missing or asked too soon."""

from __future__ import annotations

from rehearsal import HASTY, faults, simulation

from geomi.cluster.simulate import SimAgent, Simulation


def held(sim: Simulation, agent: SimAgent) -> int:
    row = sim.store.one(
        "SELECT count(*) FROM sites WHERE holder = ?", (f"{agent.name}/{agent.incarnation}",)
    )
    assert row is not None
    return int(row[0])


def test_an_agent_that_comes_late_gets_its_share() -> None:
    sim, world = simulation(5, sites=12, pages=40, agents=1, sets=(*HASTY, "manners.rest_s=3"))
    sim.begin()
    sim.advance(until=sim.now + 20.0)
    first = sim.agents[0]
    before = held(sim, first)
    assert before >= 6
    second = sim.start_agent("a1")
    sim.advance(until=sim.now + 8.0)
    assert held(sim, second) >= 2
    assert held(sim, first) < before
    assert sim.advance(until=sim.now + 86_400.0)
    sim.finish()
    assert {seen.agent for seen in sim.log} == {"a0", "a1"}
    assert faults(sim, world) == []


def test_the_sites_of_an_agent_that_goes_are_taken_by_the_others() -> None:
    sim, world = simulation(6, sites=12, pages=40, agents=3, sets=(*HASTY, "manners.rest_s=3"))
    sim.begin()
    sim.advance(until=sim.now + 15.0)
    gone = sim.agents[1]
    gone.is_dead = True
    sim.agents.remove(gone)
    assert sim.advance(until=sim.now + 86_400.0)
    sim.finish()
    assert faults(sim, world) == []


def test_with_one_site_left_nobody_takes_it_away() -> None:
    sim, world = simulation(7, sites=1, pages=60, agents=2, sets=(*HASTY, "manners.rest_s=1"))
    sim.begin()
    assert sim.advance(until=sim.now + 86_400.0)
    sim.finish()
    shared = sim.store.one("SELECT sum(value) FROM counters WHERE name = 'sites.shared_out'")
    assert shared in (None, (None,), (0,))
    assert faults(sim, world) == []
