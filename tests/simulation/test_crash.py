"""Crash points: nothing acknowledged is lost, nothing is committed twice, verify finds nothing."""

from __future__ import annotations

import pytest
from rehearsal import crawl, faults, rehearse, simulation

KINDS = ("power", "kill", "agent")


def visit_points(kind: str, *, first_seed: int, points: int) -> None:
    visited, seed, wrong = 0, first_seed, []
    while visited < points:
        crashes, found = rehearse(seed, crashes=10, kind=kind)
        visited += crashes
        wrong += found
        seed += 1
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("kind", KINDS)
def test_seventy_crash_points_lose_nothing(kind: str) -> None:
    visit_points(kind, first_seed=0, points=70)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_crash_points_lose_nothing(kind: str) -> None:
    visit_points(kind, first_seed=10_000, points=1_000)


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
