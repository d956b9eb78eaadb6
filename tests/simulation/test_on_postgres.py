"""The same crawls with a real PostgreSQL as their store: crashes, sleepers, whole worlds."""

from __future__ import annotations

import random

import pytest
from rehearsal import HASTY, crawl, faults, simulation

from postgres import Postgres


def counted(number: int) -> list[object]:
    """Two in the normal suite, the others in the long one."""
    return [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, number))]


@pytest.mark.parametrize("seed", counted(20))
@pytest.mark.parametrize("kind", ["power", "kill", "agent"])
def test_crashes_at_any_operation_lose_nothing(postgres: Postgres, kind: str, seed: int) -> None:
    rng = random.Random(seed)
    sim, world = simulation(seed, address=postgres.schema())
    ticks = [rng.randint(1, 900) for _ in range(4)]
    assert crawl(sim, crash_ticks=ticks, kind=kind) == []
    assert faults(sim, world) == []
    sim.store.close()


@pytest.mark.parametrize("seed", counted(12))
def test_an_agent_that_sleeps_past_its_leases_writes_nothing_afterwards(
    postgres: Postgres, seed: int
) -> None:
    rng = random.Random(seed)
    sim, world = simulation(
        seed, sites=10, sets=(*HASTY, "manners.rest_s=3"), address=postgres.schema()
    )
    sim.begin()
    sim.advance(until=sim.now + rng.uniform(1, 40))
    sim.stop(sim.agents[0], rng.uniform(70, 200))
    assert sim.advance(until=sim.now + 5 * 86_400)
    sim.finish()
    assert faults(sim, world) == []
    sim.store.close()


@pytest.mark.parametrize(
    "sets",
    [("crawl.max_depth=3",), ("crawl.max_pages=7",), ("crawl.scope=domain",),
     ("crawl.scope=prefix",), ("seeds.sitemaps=true",)],
)  # fmt: skip
def test_limits_and_scopes_are_kept(postgres: Postgres, sets: tuple[str, ...]) -> None:
    """What a crawl in SQLite visits, with the same web and the same settings."""
    visited = []
    for address in ("", postgres.schema()):
        sim, _ = simulation(3, sets=(*HASTY, *sets), address=address)
        sim.begin()
        assert sim.advance(until=sim.now + 5 * 86_400)
        sim.finish()
        visited.append(sim.store.all("SELECT url, outcome, depth FROM pages ORDER BY url"))
        sim.store.close()
    assert visited[0] == visited[1]
