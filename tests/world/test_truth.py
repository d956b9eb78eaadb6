from __future__ import annotations

import pytest

from geomi.world import Params, World, reachable
from geomi.world.features import PLAIN

from .naive import Naive


def outcomes(found):
    return {url: expected.outcome for url, expected in found.items()}


@pytest.mark.parametrize("seed", range(10))
def test_the_truth_is_what_a_plain_crawler_finds(seed):
    world = World(Params(seed=seed, sites=25, pages=20, port=8100 if seed % 2 else 80))
    seeds = world.seeds()
    assert outcomes(reachable(world, seeds)) == Naive(world).crawl(seeds)


@pytest.mark.parametrize("scope", ["site", "prefix", "domain"])
@pytest.mark.parametrize("sitemaps", [False, True])
def test_every_scope_and_sitemaps_agree_with_a_plain_crawler(scope, sitemaps):
    world = World(Params(seed=21, sites=40, pages=20, shares={"habit.child": 0.4}))
    seeds = world.seeds()[::2]
    seeds += [url for site in world.sites[:20] for url in world.urls(site)[5:6]]
    truth = reachable(world, seeds, scope=scope, sitemaps=sitemaps)
    assert outcomes(truth) == Naive(world, scope=scope, sitemaps=sitemaps).crawl(seeds)


def test_robots_requisites_and_agents_are_obeyed_as_asked():
    world = World(Params(seed=5, sites=30, pages=15))
    seeds = world.seeds()
    for robots in (True, False):
        for requisites in (True, False):
            for agent in ("geomi", "other"):
                truth = reachable(world, seeds, robots=robots, requisites=requisites, agent=agent)
                naive = Naive(world, robots=robots, requisites=requisites, agent=agent)
                assert outcomes(truth) == naive.crawl(seeds)


def test_a_changing_world_agrees_at_any_time():
    world = World(Params(seed=3, sites=15, pages=20, changes=True, changes_per_day=1.0))
    sizes = set()
    for day in (0, 10, 40, 70):
        at = day * 86_400.0
        truth = reachable(world, world.seeds(), at=at)
        assert outcomes(truth) == Naive(world, at=at).crawl(world.seeds())
        sizes.add(sum(e.outcome == "OK" for e in truth.values()))
    assert len(sizes) > 1


def test_a_seed_that_moved_brings_the_other_site_in_under_both_names():
    world = World(Params(seed=1, sites=40, pages=5, shares={**PLAIN, "moved": 0.2, "www": 0.3}))
    moved = next(site for site in world.sites if site.kind.name == "moved")
    found = reachable(world, [moved.seed])
    assert found[moved.seed].outcome == "code"
    other = {url.split("/")[2] for url in found} - {moved.host}
    assert len(other) == 1
    www = next(site for site in world.sites if site.kind.name == "www")
    assert {url.split("/")[2] for url in reachable(world, [www.seed])} >= {www.host, www.bare}


def test_depth_is_the_least_and_bounds_the_result():
    world = World(Params(seed=9, sites=10, pages=40))
    whole = reachable(world, world.seeds())
    for limit in (0, 1, 2):
        part = reachable(world, world.seeds(), max_depth=limit)
        assert {url: e.depth for url, e in part.items()} == {
            url: e.depth for url, e in whole.items() if e.depth <= limit
        }


def test_every_outcome_and_every_kind_occurs():
    world = World(Params(seed=7, sites=200, pages=30))
    found = reachable(world, world.seeds(), sitemaps=True)
    assert {e.outcome for e in found.values()} == {
        "OK", "code", "deny", "noIP", "cErr", "hErr", "hTim", "hSht", "hNpr", "dErr", "dTim"
    }  # fmt: skip
    assert {e.kind for e in found.values()} == set("safhem")


def test_orphans_are_only_found_through_sitemaps():
    shares = {**PLAIN, "orphan": 0.1, "robots.none": 0.0, "robots.all": 1.0}
    world = World(Params(seed=2, sites=20, pages=30, shares=shares))
    without = reachable(world, world.seeds())
    assert without.keys() < reachable(world, world.seeds(), sitemaps=True).keys()
