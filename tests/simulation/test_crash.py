"""Crash points: nothing acknowledged is lost, nothing is committed twice, verify finds nothing."""

from __future__ import annotations

import pytest
from rehearsal import KINDS, crawl, faults, rehearse, simulation


def visit_points(kind: str, *, first_seed: int, points: int) -> None:
    visited, seed, wrong = 0, first_seed, []
    while visited < points:
        crashes, found = rehearse(seed, crashes=10, kind=kind)
        visited += crashes
        wrong += found
        seed += 1
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("kind", KINDS)
def test_fifty_crash_points_lose_nothing(kind: str) -> None:
    visit_points(kind, first_seed=0, points=50)


@pytest.mark.long
@pytest.mark.parametrize("kind", [*KINDS, "mixed"])
def test_five_hundred_crash_points_of_each_kind_lose_nothing(kind: str) -> None:
    visit_points(kind, first_seed=10_000, points=500)


def test_what_a_page_led_to_is_found_again_where_its_site_was_lost_before_it_was_written() -> None:
    """An agent that lost a site to a full disk skipped the links it had seen there before."""
    _, wrong = rehearse(10_085, crashes=10, kind="full")
    assert wrong == []


def test_a_crash_at_each_operation_of_a_small_crawl_loses_nothing() -> None:
    """Every single crash point of one crawl's middle, one after the other."""
    whole, _ = simulation(3, sites=2, pages=4)
    assert crawl(whole, crash_ticks=[], kind="kill") == []
    middle = whole.ticks // 2
    for tick in range(middle, middle + 40):
        sim, world = simulation(3, sites=2, pages=4)
        wrong = crawl(sim, crash_ticks=[tick], kind="power") + faults(sim, world)
        assert not wrong, (tick, sim.crash_what, wrong[:5])


def test_a_removed_sync_is_found() -> None:
    found = [
        text
        for seed in range(6)
        for text in rehearse(seed, crashes=8, kind="power", forgets_sync=True)[1]
    ]
    assert any("verify" in text for text in found)
