"""Parts of the scaling study in virtual time: figures 14 and 15, 64 agents on a million sites."""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter
from typing import Any

from geomi.cluster.simweb import WorldWeb
from geomi.seeds.lists import Seed
from geomi.world import Params, World
from geomi.world.features import PLAIN
from rehearsed import Judge, Links, Lot, Rehearsal, rehearse, resident_mib

MEAN_PAGES = 50  # of a site of the small world
CONTEXTS = 40  # seed contexts of an agent: so waiting is the limit
REST_S = 2.0  # what the preset `polite` rests, and ten times the last download
ADDRESS_REST_S = 0.25
WINDOW_S = 600.0
WARM_S = 120.0
LEASE_OVER_S = 70.0  # by then the first sites are through, and leases change hands all the time


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def world_of(pages: int) -> World:
    """The small world with some `pages` pages."""
    sites = max(1, pages // MEAN_PAGES)
    return World(Params(
        seed=5, sites=sites, pages=MEAN_PAGES, shares=PLAIN, addresses=sites,
    ))  # fmt: skip


def crawl_world(world: World, agents: int, *, window_s: float | None = None) -> dict[str, Any]:
    """A whole crawl of the small world; with `window_s` only so long of it, after a warm-up."""
    sim, judge = rehearse(
        WorldWeb(world, seed=1), agents=agents, extractor=None, rest_s=REST_S,
        sets=[f"agent.contexts={CONTEXTS}", "manners.rest_factor=10", f"crawl.agents={agents}"],
        address_rest_s=ADDRESS_REST_S, second_s=10.0,
        seeds=(Seed(url=url, source="bench") for url in world.seeds()),
    )  # fmt: skip
    began = time.process_time()
    if window_s is not None:
        sim.advance(until=sim.began + WARM_S)
        before, start, coordinator_s = judge.requests, sim.now, sim.coordinator_s
        is_over = sim.advance(until=sim.began + WARM_S + window_s)
        requests, seconds = judge.requests - before, sim.now - start
        coordinator_s = sim.coordinator_s - coordinator_s
    else:
        is_over = sim.advance(until=sim.began + 365 * 86_400.0)
        requests, seconds, coordinator_s = judge.requests, sim.now - sim.began, sim.coordinator_s
    row = {
        "agents": agents, "sites": len(world.sites), "is_whole": window_s is None,
        "is_over": is_over, "requests": requests, "virtual_s": seconds,
        "requests_per_s": requests / seconds, "ninety_percent_s": _when(judge, 0.9),
        "broken_gaps": judge.broken,
        "coordinator_percent_per_1000": 100 * coordinator_s / requests * 1000,
        "cpu_s": time.process_time() - began, "resident_mib": resident_mib(),
    }  # fmt: skip
    say(
        f"{len(world.sites):,} sites, {agents} agents: {requests:,} requests in {seconds:,.0f} s of"
        f" virtual time, {row['requests_per_s']:.1f}/s; {row['cpu_s']:.0f} s of CPU"
    )
    return row


def _when(judge: Judge, share: float) -> float:
    """Virtual seconds until so much of it was asked for."""
    asked = 0
    for second in sorted(judge.series):
        asked += judge.series[second]
        if asked >= share * judge.requests:
            return (second + 1) * 10.0
    return 0.0


def figures(sizes: list[int], agents: list[int]) -> list[dict[str, Any]]:
    """Each size with each number of agents; the greatest whole with the most agents alone."""
    rows = []
    for size in sizes:
        world = world_of(size)
        for number in agents:
            is_long = size >= 1_000_000
            rows.append({
                "pages": size,
                **crawl_world(world, number, window_s=WINDOW_S if is_long else None),
            })  # fmt: skip
            if is_long and number == max(agents):
                rows.append({"pages": size, **crawl_world(world, number)})
    return rows


# -- 64 agents, a million sites --------------------------------------------------------------------


def million(
    *, sites: int, agents: int, contexts: int, window_s: float, across: float
) -> dict[str, Any]:
    """A window of a crawl that nobody could wait for: rate, fairness, gaps, coordinator, leases."""
    lot = Lot(sites, mean_pages=60, least=50)
    rest_s = 1.0
    began = time.process_time()
    sim, judge = rehearse(
        lot, agents=agents, extractor=lambda: Links(lot, across=across), rest_s=rest_s,
        sets=[f"agent.contexts={contexts}", "agent.window=100", f"crawl.agents={agents}"],
        address_rest_s=ADDRESS_REST_S,
        seeds=(Seed(url=f"http://s{n}.lot.test/", source="bench") for n in range(sites)),
    )  # fmt: skip
    say(f"{sites:,} sites admitted: {time.process_time() - began:.0f} s, {resident_mib():.0f} MiB")
    sim.advance(until=sim.began + 1.0)
    while sim.coordinator.step(run=sim.run, now=sim.now):
        pass  # the front pages of all sites become pages
    say(f"delivered: {time.process_time() - began:.0f} s, {resident_mib():.0f} MiB")
    sim.advance(until=sim.now + LEASE_OVER_S)
    before = _Marks(sim, judge)
    wall = time.process_time()
    sim.advance(until=sim.now + window_s)
    after = _Marks(sim, judge)
    requests = after.requests - before.requests
    leases = after.leases - before.leases
    coordinator_s = after.coordinator_s - before.coordinator_s
    rate = requests / window_s
    by_agent = [after.by_agent[name] - before.by_agent[name] for name in after.by_agent]
    letters = after.letters - before.letters
    row = {
        "sites": sites, "agents": agents, "contexts": contexts, "rest_s": rest_s,
        "across": across, "virtual_s": window_s, "requests": requests, "requests_per_s": rate,
        "could_per_s": agents * contexts / (rest_s + lot.mean_seconds),
        "agent_least": min(by_agent) / statistics.mean(by_agent),
        "agent_most": max(by_agent) / statistics.mean(by_agent),
        "hosts_asked": len(judge.by_host), "broken_gaps": judge.broken,
        "least_host_gap_s": judge.least_host_gap_s,
        "least_address_gap_s": judge.least_address_gap_s,
        "leases": leases, "leases_per_s": leases / window_s,
        "pages_a_lease": requests / leases if leases else 0.0,
        "jobs_per_s": {
            name: round((number - before.jobs[name]) / window_s, 2)
            for name, number in sorted(after.jobs.items())
        },
        "letters": letters,
        "rounds": after.rounds - before.rounds,
        "round_ms": 1000 * coordinator_s / (after.rounds - before.rounds),
        "coordinator_percent": 100 * coordinator_s / window_s,
        "coordinator_percent_per_1000": 100 * coordinator_s / requests * 1000,
        "longest_round_s": sim.longest_round_s,
        "cpu_ms_per_request": 1000 * (time.process_time() - wall) / requests,
        "resident_mib": resident_mib(),
        "cpu_s": time.process_time() - began,
    }  # fmt: skip
    say(str(row))
    return row


class _Marks:
    """Sums at a moment."""

    def __init__(self, sim: Rehearsal, judge: Judge) -> None:
        self.requests = judge.requests
        self.by_agent = Counter(judge.by_agent)
        self.coordinator_s = sim.coordinator_s
        self.rounds = sim.rounds
        self.jobs = Counter(sim.jobs)
        row = sim.store.one("SELECT sum(epoch) FROM sites")
        self.leases = int(row[0]) if row and row[0] else 0
        self.letters = sim.letters
