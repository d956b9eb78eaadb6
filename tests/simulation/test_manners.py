"""A thousand parties and more in virtual time, judged by the simulated servers' own log."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from geomi import config
from geomi.cluster.simulate import Simulation
from geomi.cluster.simweb import Reply, Seen
from geomi.fetch.request import Fetch
from geomi.records import Page, Target
from geomi.seeds.lists import Seed
from geomi.states import Outcome

WARM_S = 120.0
WINDOW_S = 300.0
TINY = 1e-6


class Hosts:
    """Hosts with more pages than the window holds. Some addresses carry one host, some many."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts

    def address(self, number: int) -> str:
        if number % 10 < 7:
            return f"127.64.{number // 250}.{number % 250 + 1}"
        return f"127.65.0.{number % 7 + 1}"  # shared hosting: some 43 of 1,000 hosts each

    def crawl_delay_s(self, number: int) -> float:
        return 11.0 if number % 13 == 0 else 0.0

    def resolve(self, name: str) -> tuple[Sequence[str], float]:
        return [self.address(int(name[1:].partition(".")[0]))], 3600.0

    def seconds(self, fetch: Fetch) -> float:
        return 0.02 + 0.5 * random.Random(fetch.url).random() ** 3

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        number = int(fetch.host[1:].partition(".")[0])
        body, kind = b"", "text/html"
        if fetch.target == "/robots.txt":
            delay = self.crawl_delay_s(number)
            body = f"User-agent: *\nCrawl-delay: {delay:g}\n".encode() if delay else b""
            kind = "text/plain"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
        return Reply(
            outcome=Outcome.OK, code=200, head=head, body=body, seconds=self.seconds(fetch)
        )


class ManyLinks:
    """In the extractor's place: a front page links to all pages of its site, others to none."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def page(self, url: str, head: object, body: bytes) -> Page:
        page = Page(mime="text/html")
        if url.endswith("/"):
            site = url.split("/")[2]
            page.links = [("a", Target(f"{url}{n}", site)) for n in range(self.pages)]
        return page


def run(hosts: int, *, agents: int, sets: Sequence[str]) -> tuple[list[Seen], Hosts, float]:
    web = Hosts(hosts)
    settings = config.load(Path("no-such-directory/geomi.toml"), sets)
    sim = Simulation(
        web, settings, agents=agents, extractor=lambda: ManyLinks(400),
        seeds=[Seed(url=f"http://h{n}.example/", source="test") for n in range(hosts)],
    )  # fmt: skip
    sim.begin()
    sim.advance(until=sim.began + WARM_S + WINDOW_S)
    return sim.log, web, sim.began


def number_of(host: str) -> int:
    return int(host[1:].partition(".")[0])


def judge(
    log: list[Seen], web: Hosts, *, rest_s: float, factor: float, address_rest_s: float,
    began: float, groups: dict[str, set[int]] | None = None,
) -> float:  # fmt: skip
    """Asserts every gap; returns visits made as a share of those the rules allow."""
    by_host: dict[str, list[Seen]] = defaultdict(list)
    by_address: dict[str, list[Seen]] = defaultdict(list)
    for seen in sorted(log, key=lambda seen: seen.start):
        by_host[seen.host].append(seen)
        by_address[seen.address].append(seen)
        for name, members in (groups or {}).items():
            if number_of(seen.host) in members:
                by_address[f"group {name}"].append(seen)
    for host, visits in by_host.items():
        delay = web.crawl_delay_s(number_of(host))
        for before, after in pairwise(visits):
            rest = max(rest_s, min(factor * (before.end - before.start), 300.0), delay)
            assert after.start - before.end >= rest - TINY, (host, before, after)
    for address, visits in by_address.items():
        for before, after in pairwise(visits):
            assert after.start - before.start >= address_rest_s - TINY, (address, before, after)
    # What the rules allow in the window: each host its own pace, each address its own gap.
    low, high = began + WARM_S, began + WARM_S + WINDOW_S
    made, allowed = 0, 0.0
    pace: dict[str, float] = {}
    for host, visits in by_host.items():
        delay = web.crawl_delay_s(number_of(host))
        turns = [
            v.end - v.start + max(rest_s, factor * (v.end - v.start), delay)
            for v in visits
            if low <= v.start < high
        ]
        pace[host] = len(turns) / sum(turns) if turns else 0.0
        made += len(turns)
    for address, visits in by_address.items():
        if address.startswith("group"):
            continue
        of_hosts = sum(pace[host] for host in {v.host for v in visits})
        allowed += min(of_hosts, 1.0 / address_rest_s) * WINDOW_S
    return made / allowed if allowed else 1.0


@pytest.mark.parametrize(
    ("parties", "agents"),
    [(1000, 1), (1000, 3), *(pytest.param(10_000, n, marks=pytest.mark.long) for n in (1, 3))],
)
def test_parties_are_visited_as_often_as_the_rules_allow_and_no_oftener(
    parties: int, agents: int
) -> None:
    """(At ten thousand, two of a thousand wait in line at the crowded addresses to the end.)"""
    sets = ("manners.rest_s=12", "manners.rest_factor=10", f"agent.contexts={parties}",
            "manners.address_rest_s=0.5")  # fmt: skip
    log, web, began = run(parties, agents=agents, sets=sets)
    share = judge(log, web, rest_s=12.0, factor=10.0, address_rest_s=0.5, began=began)
    assert len({seen.host for seen in log}) >= 0.99 * parties
    assert share >= 0.98, share


def test_a_declared_group_keeps_its_gap_over_all_agents() -> None:
    sets = ("manners.rest_s=1", "manners.rest_factor=0", "manners.address_rest_s=0.5",
            'manners.groups={one = ["h1.example", "h2.example", "h3.example", "h4.example"]}',
            )  # fmt: skip
    log, web, began = run(12, agents=3, sets=sets)
    judge(
        log, web, rest_s=1.0, factor=0.0, address_rest_s=0.5, began=began,
        groups={"one": {1, 2, 3, 4}},
    )  # fmt: skip
    assert {number_of(seen.host) for seen in log} >= {1, 2, 3, 4}


class Crowded(Hosts):
    """All hosts on seven addresses."""

    def address(self, number: int) -> str:
        return f"127.65.0.{number % 7 + 1}"

    def crawl_delay_s(self, number: int) -> float:
        return 0.0


class Elsewhere(Hosts):
    """The robots.txt of two in three hosts lies at a host that is visited itself."""

    def crawl_delay_s(self, number: int) -> float:
        return 3.0 if number == 3 else 0.0

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        number = int(fetch.host[1:].partition(".")[0])
        if fetch.target == "/robots.txt" and number % 3:
            head = f"HTTP/1.1 302 X\r\nLocation: http://h{number % 4 * 3}.example/rules\r\n\r\n"
            return Reply(
                outcome=Outcome.CODE, code=302, head=head.encode(), seconds=self.seconds(fetch)
            )
        return super().ask(fetch, at=at)


def whole(
    web: Hosts, *, agents: int, pages: int, sets: Sequence[str], kills: int = 0
) -> list[Seen]:
    """The log of a crawl that came to its end, some agents killed on the way."""
    settings = config.load(Path("no-such-directory/geomi.toml"), sets)
    sim = Simulation(
        web, settings, agents=agents, extractor=lambda: ManyLinks(pages),
        seeds=[Seed(url=f"http://h{n}.example/", source="test") for n in range(web.hosts)],
    )  # fmt: skip
    sim.begin()
    for kill in range(kills):
        sim.advance(until=sim.now + 7.3)
        sim.replace(sim.agents[kill % agents])
    assert sim.advance(until=sim.began + 86_400.0)
    assert len({seen.url for seen in sim.log if "robots" not in seen.url}) >= web.hosts * pages
    return sim.log


@pytest.mark.parametrize("kills", [0, 6])
@pytest.mark.parametrize("pages", [2, 5])
def test_an_address_rests_although_another_agent_takes_over_its_next_host(
    pages: int, kills: int
) -> None:
    sets = ("manners.rest_s=0.1", "manners.rest_factor=0", "manners.address_rest_s=5",
            "agent.contexts=5", "agent.batch_visits=3")  # fmt: skip
    web = Crowded(60)
    log = whole(web, agents=3, pages=pages, sets=sets, kills=kills)
    judge(log, web, rest_s=0.1, factor=0.0, address_rest_s=5.0, began=log[0].start)


@pytest.mark.parametrize("agents", [1, 3])
def test_a_host_that_keeps_the_robots_txt_of_others_is_asked_for_it_as_for_its_own_pages(
    agents: int,
) -> None:
    sets = ("manners.rest_s=1", "manners.rest_factor=10", "manners.address_rest_s=0.5",
            "agent.contexts=20")  # fmt: skip
    web = Elsewhere(40)
    log = whole(web, agents=agents, pages=12, sets=sets)
    judge(log, web, rest_s=1.0, factor=10.0, address_rest_s=0.5, began=log[0].start)
    assert sum("/rules" in seen.url for seen in log) >= 26


class Busy(Hosts):
    """One host asks for a rest longer than anybody waits; another one asks for one that is not."""

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        number = int(fetch.host[1:].partition(".")[0])
        if fetch.target == "/1" and number < 2 and at < 60.0:
            rest_s = 3000 if number else 200
            return Reply(
                outcome=Outcome.CODE, code=503,
                head=f"HTTP/1.1 503 X\r\nRetry-After: {rest_s}\r\n\r\n".encode(),
            )  # fmt: skip
        return super().ask(fetch, at=at)


def test_a_crawl_ends_where_all_that_waits_waits_longer_than_its_patience() -> None:
    settings = config.load(Path("no-such-directory/geomi.toml"), ["crawl.patience=300"])
    sim = Simulation(
        Busy(3), settings, extractor=lambda: ManyLinks(6),
        seeds=[Seed(url=f"http://h{n}.example/", source="test") for n in range(3)],
    )  # fmt: skip
    sim.begin()
    assert sim.advance(until=sim.began + 600.0)
    sim.finish()
    waiting = sim.store.all("SELECT p.url FROM pending w JOIN pages p ON p.page = w.page")
    assert {url.split("/")[2] for (url,) in waiting} == {"h1.example"}
    assert sim.store.one("SELECT rest_until FROM sites WHERE site = 'h1.example'") == (
        pytest.approx(sim.began + 3000.0, abs=30.0),
    )
    sim.begin()  # the same command, much too early: nobody is asked
    before = len(sim.log)
    assert sim.advance(until=sim.now + 600.0)
    assert len(sim.log) == before
