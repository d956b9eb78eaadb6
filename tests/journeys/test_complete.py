"""A crawl finds what is there: compared with the world and with the server's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomi.states import Outcome
from geomi.world import Params, Running, reachable, serve
from geomi.world.truth import Expected
from journeys.crawling import (
    FAST,
    geomi,
    must_be_sound,
    outcomes,
    pages,
    settings,
    to_world,
)

_NEVER_ASKED = {str(Outcome.DENY), str(Outcome.NO_IP), str(Outcome.C_ERR)}


def world_of(seed: int, *, sites: int = 20) -> Params:
    return Params(seed=seed, sites=sites, pages=20, crawl_delay_s=0.05)


def crawl(running: Running, collection: Path, *words: str, seeds: list[str]) -> None:
    geomi("crawl", collection, *seeds, *to_world(running), *settings(*FAST, "crawl.seen=exact"),
          "--agents", "2", "--json", *words)  # fmt: skip


def must_agree(running: Running, collection: Path, wanted: dict[str, Expected]) -> None:
    found = outcomes(collection)
    expected = {url: one.outcome for url, one in wanted.items()}
    assert found == expected, {
        url: (found.get(url), expected.get(url))
        for url in found.keys() | expected.keys()
        if found.get(url) != expected.get(url)
    }
    asked = {f"http://{row.host}{row.target}" for row in running.log()}
    robots = {url for url in asked if url.endswith("/robots.txt")}
    assert asked - robots == {
        url for url, outcome in expected.items() if outcome not in _NEVER_ASKED
    }


@pytest.mark.parametrize(
    "seed", [*range(1, 6), *(pytest.param(n, marks=pytest.mark.long) for n in range(6, 51))]
)
def test_what_is_visited_is_what_is_reachable(tmp_path: Path, seed: int) -> None:
    with serve(world_of(seed)) as running:
        seeds = running.seeds()
        crawl(running, tmp_path / "c", seeds=seeds)
        must_agree(running, tmp_path / "c", reachable(running.world, seeds))
    must_be_sound(tmp_path / "c")


@pytest.mark.parametrize("scope", ["site", "prefix", "domain"])
def test_the_scope_is_filled_and_never_left(tmp_path: Path, scope: str) -> None:
    with serve(world_of(60)) as running:
        seeds = running.seeds(6)
        if scope == "prefix":
            seeds = [
                max((row for row in reachable(running.world, [seed]) if "?" not in row),
                    key=lambda url: url.count("/"))
                for seed in seeds
            ]  # fmt: skip
        # What a page shows may lie outside its directory, so that a prefix is judged without.
        needs = scope != "prefix"
        words = ["--scope", scope, *([] if needs else ["--no-requisites"])]
        crawl(running, tmp_path / "c", *words, seeds=seeds)
        wanted = reachable(running.world, seeds, scope=scope, requisites=needs)
        must_agree(running, tmp_path / "c", wanted)


@pytest.mark.parametrize("depth", [0, 2, 3])
def test_a_depth_limit_is_exact_with_many_connections(tmp_path: Path, depth: int) -> None:
    with serve(world_of(61)) as running:
        seeds = running.seeds(12)
        crawl(running, tmp_path / "c", "--max-depth", str(depth), seeds=seeds)
        wanted = reachable(running.world, seeds, max_depth=depth)
        must_agree(running, tmp_path / "c", wanted)
        depths = {
            row["url"]: row["depth"] for row in pages(tmp_path / "c") if row["outcome"] != "skip"
        }
        assert depths == {url: one.depth for url, one in wanted.items()}


def test_without_requisites_no_picture_style_or_script_is_asked_for(tmp_path: Path) -> None:
    with serve(world_of(62)) as running:
        seeds = running.seeds(8)
        crawl(running, tmp_path / "c", "--no-requisites", seeds=seeds)
        must_agree(running, tmp_path / "c", reachable(running.world, seeds, requisites=False))
