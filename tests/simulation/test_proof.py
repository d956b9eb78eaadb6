"""`verify --politeness` judges all agents together: what two of them did to one server is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_manners import Hosts, ManyLinks

from geomi import config
from geomi.cluster.politeness import check_politeness
from geomi.cluster.simulate import Simulation
from geomi.history.politeness import Politeness
from geomi.seeds.lists import Seed

SETTINGS = config.load(
    Path("no-such-directory/geomi.toml"),
    ["manners.rest_s=1", "manners.rest_factor=0", "manners.address_rest_s=0.5",
     'manners.groups={pair = ["h1.example", "h2.example"]}'],
)  # fmt: skip


class Paired(Hosts):
    """h0 and h7 share an address, h1 and h2 are a declared group."""

    def address(self, number: int) -> str:
        return f"127.67.0.{number % 7 + 1}"


@pytest.fixture
def crawled() -> Simulation:
    sim = Simulation(
        Paired(8), SETTINGS, agents=3, extractor=lambda: ManyLinks(40),
        seeds=[Seed(url=f"http://h{n}.example/", source="test") for n in range(8)],
    )  # fmt: skip
    sim.begin()
    assert sim.advance(until=sim.now + 86_400.0)
    sim.finish()
    assert len({seen.agent for seen in sim.log}) == 3
    return sim


def judged(sim: Simulation) -> Politeness:
    return check_politeness(sim.store, lambda _: SETTINGS, where=str)


def test_what_agents_did_to_servers_they_shared_is_proved_polite(crawled: Simulation) -> None:
    seen = judged(crawled)
    assert seen.ok and seen.violations == 0
    assert seen.requests == len(crawled.log)
    assert seen.servers == {"host": 8, "address": 7, "group": 1}


@pytest.mark.parametrize(
    ("kind", "name", "one", "two"),
    [
        ("address", "127.67.0.1", "h0.example", "h7.example"),
        ("group", "pair", "h1.example", "h2.example"),
        ("host", "h3.example", "h3.example", "h3.example"),
    ],
)
def test_a_visit_of_another_agent_that_came_too_soon_is_found(
    crawled: Simulation, kind: str, name: str, one: str, two: str
) -> None:
    store = crawled.store
    first = store.one(
        "SELECT started, ended, b.batch, b.agent FROM visits v JOIN batches b ON b.batch = v.batch"
        " WHERE host = ? ORDER BY started DESC LIMIT 1",
        (one,),
    )
    assert first is not None
    started, ended, _, agent = first
    # A visit of another agent to the second host, of another batch: right after the first.
    other = store.one("SELECT batch FROM batches WHERE agent <> ? ORDER BY batch DESC", (agent,))
    assert other is not None
    at = ended + 0.6 if kind == "host" else started + 0.2
    columns = "page, site_id, url, purpose, run, reason, epoch, host, address"
    rest = (
        'outcome, code, mime, digest, size, changed, file, "offset", length, stored_date,'
        " revisit, batch, detail"
    )
    store.run(
        f"INSERT INTO visits ({columns}, started, ended, {rest}) SELECT {columns}, ?, ?,"
        f" {rest.replace('batch', str(int(other[0])))} FROM visits WHERE host = ? LIMIT 1",
        (at, at + 0.01, two),
    )
    seen = judged(crawled)
    assert not seen.ok
    assert (kind, name) in {
        (server.kind, server.name) for server in seen.worst if server.violations
    }
