"""Whole crawls of small worlds in virtual time: visited equals reachable, exactly."""

from __future__ import annotations

import pytest
from rehearsal import HASTY, crawl, faults, simulation

from geomi.frontier.tables import want
from geomi.records import Reason, Wanted
from geomi.states import Outcome
from geomi.url import site_of
from geomi.world import reachable
from geomi.world.features import PLAIN, WHOLE


def check_world(seed: int, *, sites: int, sets: tuple[str, ...] = HASTY) -> None:
    sim, world = simulation(seed, sites=sites, pages=20, sets=sets)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    assert faults(sim, world) == []


@pytest.mark.parametrize("seed", range(8))
def test_visited_equals_reachable(seed: int) -> None:
    check_world(seed, sites=20)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 150))
def test_visited_equals_reachable_over_fifty_worlds(seed: int) -> None:
    check_world(seed, sites=40)


def check_wild_world(seed: int, *, sites: int) -> None:
    """Everything switched on: aliases, twins, walls, traps, charsets, marks, bad certificates."""
    sim, world = simulation(seed, sites=sites, pages=8, shares=WHOLE, trap_steps=2)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    assert faults(sim, world, traps=True) == []


@pytest.mark.parametrize("seed", [0, 24, 33, 37])
def test_visited_equals_reachable_with_everything_switched_on(seed: int) -> None:
    check_wild_world(seed, sites=30)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300, 350))
def test_visited_equals_reachable_over_fifty_wild_worlds(seed: int) -> None:
    check_wild_world(seed, sites=60)


TRAPS = ("calendar", "deep", "lost", "growing", "facets", "visits")


def test_endless_traps_end_at_valves_that_name_them_and_hide_no_page() -> None:
    shares = {**PLAIN, **{f"corner.{name}": 1.0 for name in TRAPS}}
    sets = (*HASTY, "traps.depth=12", "traps.parameters=4", "traps.template_pages=40",
            "manners.rest_s=0.01")  # fmt: skip
    sim, world = simulation(4, sites=2, pages=3, sets=sets, shares=shares)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    rows = sim.store.all("SELECT url, outcome, why FROM pages")
    wanted = reachable(world, [seed.url for seed in sim.seeds])
    got = {url: outcome for url, outcome, _ in rows}
    assert {url: got.get(url) for url in wanted} == {
        url: one.outcome for url, one in wanted.items()
    }
    beyond = {url: (outcome, why) for url, outcome, why in rows if url not in wanted}
    assert all(world.trap(url) for url in beyond)
    named = {why for outcome, why in beyond.values() if outcome == "skip"}
    assert named == {"trap:depth", "trap:path", "trap:query", "trap:template"}


@pytest.mark.parametrize("seed", range(3))
def test_the_bloom_filter_finds_the_same_pages(seed: int) -> None:
    sets = tuple(text for text in HASTY if "seen" not in text)
    check_world(seed, sites=10, sets=sets)


def check_depths(seed: int, *, agents: int, max_depth: int, sets: tuple[str, ...] = HASTY) -> None:
    sets = (*sets, f"crawl.max_depth={max_depth}")
    sim, world = simulation(seed, sites=12, pages=20, agents=agents, sets=sets)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    wanted = reachable(world, [seed.url for seed in sim.seeds], max_depth=max_depth)
    rows = sim.store.all("SELECT url, depth FROM pages WHERE outcome <> 'skip'")
    assert dict(rows) == {url: one.depth for url, one in wanted.items()}


@pytest.mark.parametrize("max_depth", [1, 2, 3])
@pytest.mark.parametrize("agents", [1, 4])
def test_under_a_limit_every_page_has_its_least_depth(agents: int, max_depth: int) -> None:
    for seed in (60, 61, 64):
        check_depths(seed, agents=agents, max_depth=max_depth)


def test_the_bloom_filter_keeps_no_shorter_way_from_counting() -> None:
    sets = tuple(text for text in HASTY if "seen" not in text)
    for seed in (60, 61, 64):
        check_depths(seed, agents=3, max_depth=3, sets=sets)


@pytest.mark.long
@pytest.mark.parametrize("agents", [1, 2, 5])
def test_under_a_limit_every_page_of_fifty_worlds_has_its_least_depth(agents: int) -> None:
    for seed in range(200, 250):
        check_depths(seed, agents=agents, max_depth=1 + seed % 3)


def test_sitemaps_lead_to_pages_that_no_link_leads_to() -> None:
    assert sum(pages_by_sitemap_alone(seed) for seed in range(4)) > 0


def pages_by_sitemap_alone(seed: int) -> int:
    sets = (*HASTY, "seeds.sitemaps=true")
    sim, world = simulation(seed, sites=12, pages=40, sets=sets)
    crawl(sim, crash_ticks=[], kind="kill")
    rows = sim.store.all("SELECT url, outcome, kind FROM pages")
    got = {url: outcome for url, outcome, kind in rows if kind != "m"}
    wanted = reachable(world, [seed.url for seed in sim.seeds], sitemaps=True)
    without = reachable(world, [seed.url for seed in sim.seeds])
    assert got == {url: one.outcome for url, one in wanted.items()}
    return len(wanted) - len(without)


def test_a_small_window_finds_all_that_a_large_one_finds() -> None:
    check_world(7, sites=10, sets=(*HASTY, "agent.window=10"))


def test_fewer_contexts_than_sites_leave_nobody_out() -> None:
    check_world(8, sites=20, sets=(*HASTY, "agent.contexts=3"))


def test_again_visits_every_known_page_once_more_and_finds_it_unchanged() -> None:
    assert sum(unmodified_again(seed) for seed in range(4)) > 0, "some servers answer 304"


def unmodified_again(seed: int) -> int:
    """Crawls twice; how many pages the servers said to be unchanged."""
    sim, world = simulation(seed, sites=10)
    crawl(sim, crash_ticks=[], kind="kill")
    first = dict(sim.store.all("SELECT url, visits FROM pages"))
    sim.begin(again=True)
    assert sim.advance(until=sim.now + 5 * 86_400)
    sim.finish()
    rows = sim.store.all("SELECT url, visits, changes, outcome, code FROM pages")
    wanted = reachable(world, [seed.url for seed in sim.seeds])
    for url, visits, changes, outcome, code in rows:
        assert changes == 0, url
        if outcome in (Outcome.OK, Outcome.SAME):
            assert visits > first[url], url
        if outcome == Outcome.SAME:
            assert (wanted[url].outcome, code) == ("OK", 304), url
        elif outcome != Outcome.GONE:
            assert outcome == wanted[url].outcome, url
    assert {url for url, *_ in rows} == set(wanted)
    assert faults(sim, world, again=True) == []
    return sum(row[3] == Outcome.SAME for row in rows)


@pytest.mark.parametrize("sets", [HASTY, tuple(text for text in HASTY if "seen" not in text)])
def test_a_notice_passes_the_seen_filter_whoever_holds_the_site(sets: tuple[str, ...]) -> None:
    sim, world = simulation(6, sites=4, sets=sets)
    seed = sim.seeds[0].url

    def visits() -> int:
        row = sim.store.one("SELECT visits FROM pages WHERE url = ?", (seed,))
        return int(row[0]) if row else 0

    def notice(url: str) -> Wanted:
        return Wanted(url=url, site=site_of(url), reason=Reason.NOTICE, weight=9.0)

    sim.begin()
    sim.advance(until=sim.now + 4)
    assert visits() == 1
    want(sim.store, [notice(seed), notice(seed)])  # the site is held: its holder drains the inbox
    assert sim.advance(until=sim.now + 86_400)
    sim.finish()
    assert visits() == 2
    want(sim.store, [notice(seed)])  # nobody holds it: the coordinator delivers
    sim.begin()
    assert sim.advance(until=sim.now + 86_400)
    sim.finish()
    assert visits() == 3
    assert set(dict(sim.store.all("SELECT url, 1 FROM pages"))) == set(
        reachable(world, [one.url for one in sim.seeds])
    )


def test_a_crawl_of_many_agents_and_few_sites_ends() -> None:
    sim, world = simulation(9, sites=2, agents=5)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    assert faults(sim, world) == []
