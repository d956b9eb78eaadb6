"""Agents that sleep past their leases, and disks that are full for a while."""

from __future__ import annotations

import random

import pytest
from rehearsal import HASTY, faults, simulation


@pytest.mark.parametrize("seed", range(12))
def test_an_agent_that_sleeps_past_its_leases_writes_nothing_afterwards(seed: int) -> None:
    rng = random.Random(seed)
    sim, world = simulation(seed, sites=10, sets=(*HASTY, "manners.rest_s=3"))
    sim.begin()
    sim.advance(until=sim.now + rng.uniform(1, 40))
    sim.stop(sim.agents[0], rng.uniform(70, 200))
    assert sim.advance(until=sim.now + 5 * 86_400)
    sim.finish()
    assert faults(sim, world) == []


def test_what_a_sleeper_had_in_hand_is_kept_as_orphans() -> None:
    """Its records are in the files, the store says they are nobody's, verify knows them."""
    orphans = 0
    for seed in range(12):
        sim, world = simulation(seed, sites=10, sets=(*HASTY, "manners.rest_s=1"))
        sim.begin()
        sim.advance(until=sim.now + 4.0 + seed / 7)
        sim.stop(sim.agents[0], 120.0)
        assert sim.advance(until=sim.now + 5 * 86_400)
        sim.finish()
        assert faults(sim, world) == []
        orphans += sim.store.all("SELECT count(*) FROM orphans")[0][0]
    assert orphans > 0


def test_a_full_disk_is_waited_for_and_nothing_is_lost() -> None:
    for seed in range(4):
        sim, world = simulation(seed)
        sim.begin()
        sim.files.room = 40_000
        assert not sim.advance(until=sim.now + 1_000)
        visits = sim.store.all("SELECT count(*) FROM visits")[0][0]
        sim.files.room = None
        assert sim.advance(until=sim.now + 5 * 86_400)
        sim.finish()
        assert sim.store.all("SELECT count(*) FROM visits")[0][0] > visits
        assert faults(sim, world) == []


def test_sites_are_spread_over_several_directories() -> None:
    sim, world = simulation(5, sets=(*HASTY, 'archive.directories=["one", "two", "three"]'))
    sim.begin()
    assert sim.advance(until=sim.now + 5 * 86_400)
    sim.finish()
    assert faults(sim, world) == []
    assert {path.split("/")[2] for path in sim.files.data} == {"one", "two", "three"}
