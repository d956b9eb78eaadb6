"""Very many sites on one address, or in one group: several agents serve it, and its gap holds.

Judged by the simulated server's own log.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from test_manners import Hosts, ManyLinks

from geomi import config
from geomi.cluster.simulate import Simulation
from geomi.cluster.simweb import Seen
from geomi.frontier.slots import length_s, starts_a_part
from geomi.seeds.lists import Seed

GAP_S = 0.5


class OneAddress(Hosts):
    def address(self, number: int) -> str:
        return "127.66.0.1"

    def crawl_delay_s(self, number: int) -> float:
        return 0.0


class OneGroup(OneAddress):
    def address(self, number: int) -> str:
        return f"127.66.{number // 200}.{number % 200 + 1}"


def start(web: Hosts, *sets: str, agents: int = 4) -> Simulation:
    settings = config.load(
        Path("no-such-directory/geomi.toml"),
        ["manners.rest_s=2", f"manners.address_rest_s={GAP_S}", "agent.batch_visits=5", *sets],
    )
    sim = Simulation(
        web, settings, agents=agents, extractor=lambda: ManyLinks(200),
        seeds=[Seed(url=f"http://h{n}.example/", source="test") for n in range(web.hosts)],
    )  # fmt: skip
    sim.begin()
    return sim


def smallest_gap(log: list[Seen]) -> float:
    return min(b - a for a, b in pairwise(sorted(seen.start for seen in log)))


def holders(sim: Simulation) -> list[int]:
    """Into how many parts the time of each held address or group is cut, for each holder."""
    return [row[0] for row in sim.store.all(
        "SELECT slots FROM addresses WHERE holder <> '' AND slots > 1 ORDER BY slots")]  # fmt: skip


@pytest.mark.parametrize("web", [OneAddress(300), OneGroup(300)], ids=["address", "group"])
def test_four_agents_serve_three_hundred_sites_and_use_what_their_slots_allow(web: Hosts) -> None:
    sets = ('manners.groups={g = ["*.example"]}',) if isinstance(web, OneGroup) else ()
    sim = start(web, *sets)
    sim.advance(until=sim.now + 200.0)
    assert holders(sim) == [4, 4, 4, 4]
    warm = len(sim.log)
    sim.advance(until=sim.now + 600.0)
    assert smallest_gap(sim.log) >= GAP_S - 1e-6
    made = sim.log[warm:]
    assert len({seen.agent for seen in made}) == 4
    assert min(Counter(seen.agent for seen in made).values()) >= 0.15 * len(made)
    allowed = starts_a_part(GAP_S) / length_s(GAP_S)
    assert allowed >= 0.8 / GAP_S
    assert len(made) >= 0.9 * 600.0 * allowed


def test_few_sites_stay_with_one_agent_that_uses_all_the_time() -> None:
    sim = start(OneAddress(20))
    sim.advance(until=sim.now + 300.0)
    assert holders(sim) == []
    assert smallest_gap(sim.log) >= GAP_S - 1e-6
    assert len([seen for seen in sim.log if seen.start > sim.began + 60]) >= 0.97 * 240 / GAP_S


def test_with_one_slot_an_address_is_one_agents_whatever_waits_there() -> None:
    sim = start(OneAddress(300), "manners.address_slots=1")
    sim.advance(until=sim.now + 200.0)
    assert holders(sim) == []
    assert smallest_gap(sim.log) >= GAP_S - 1e-6
    assert len({seen.agent for seen in sim.log}) == 1


@pytest.mark.parametrize("how", ["kill", "vanish", "stop"])
def test_the_slot_of_an_agent_that_dies_is_taken_by_the_others(how: str) -> None:
    sim = start(OneAddress(300))
    sim.advance(until=sim.now + 200.0)
    assert len(holders(sim)) == 4
    gone = sim.agents[1]
    if how == "kill":
        sim.replace(gone)
    elif how == "vanish":  # its machine: nobody recovers what it left
        gone.is_dead = True
        sim.agents.remove(gone)
    else:
        sim.stop(gone, 150.0)
    sim.advance(until=sim.now + 200.0)
    before = len(sim.log)
    sim.advance(until=sim.now + 200.0)
    assert smallest_gap(sim.log) >= GAP_S - 1e-6
    allowed = starts_a_part(GAP_S) / length_s(GAP_S)
    assert len(sim.log) - before >= 0.9 * 200.0 * allowed


def test_an_agent_that_comes_late_gets_a_slot() -> None:
    sim = start(OneAddress(300), agents=1)
    sim.advance(until=sim.now + 60.0)
    assert holders(sim) == []
    sim.start_agent("late")
    sim.advance(until=sim.now + 60.0)
    assert holders(sim) == [2, 2]
    sim.advance(until=sim.now + 60.0)
    assert {seen.agent for seen in sim.log[-50:]} == {"a0", "late"}
    assert smallest_gap(sim.log) >= GAP_S - 1e-6


def test_a_crawl_of_a_crowded_address_ends_and_leaves_nothing_claimed() -> None:
    web = OneAddress(150)
    settings = config.load(
        Path("no-such-directory/geomi.toml"),
        ["manners.rest_s=0.5", "manners.rest_factor=0", "manners.address_rest_s=0.05"],
    )
    sim = Simulation(
        web, settings, agents=3, extractor=lambda: ManyLinks(15),
        seeds=[Seed(url=f"http://h{n}.example/", source="test") for n in range(web.hosts)],
    )  # fmt: skip
    sim.begin()
    assert sim.advance(until=sim.now + 86_400.0)
    assert len({seen.url for seen in sim.log}) == 150 * 17
    assert smallest_gap(sim.log) >= 0.05 - 1e-6
    sim.finish()
    assert sim.store.all("SELECT address FROM addresses WHERE holder <> ''") == []
