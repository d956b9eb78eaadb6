"""Crash points while old visits move to Parquet: nothing is lost, nothing twice."""

from __future__ import annotations

import random
from copy import deepcopy

import pytest
from rehearsal import HASTY, acknowledged, crawl, faults, simulation

from geomi.cluster import mover
from geomi.cluster.mover import Mover
from geomi.cluster.simulate import SimCrash, Simulation
from geomi.history.past import parts_of
from geomi.settings import History
from postgres import Postgres

KINDS = ("power", "agent", "kill")
#: Little is kept, so that every run has something to move.
FORGETFUL = (*HASTY, "history.keep_visits=2", "history.keep_requests_s=0")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some rows, taken out some at a time, merged soon, also while agents are at work."""
    for name, value in (
        ("_TAKE_ROWS", 7), ("_FILE_ROWS", 20), ("_MERGED", 2), ("_LEAST_ROWS", 1), ("_REST_S", 0.5),
        ("_REPLACED_S", 60.0),
    ):  # fmt: skip
        monkeypatch.setattr(mover, name, value)


def rehearse(seed: int, *, crashes: int, kind: str, runs: int = 6, address: str = "") -> list[str]:
    """Runs over one small web, with so many crashes at random operations of the later ones."""
    rng = random.Random(f"history {kind} {seed}")
    sim, world = simulation(seed, sites=2, pages=4, sets=FORGETFUL, address=address)
    wrong = crawl(sim, crash_ticks=[], kind=kind)
    for run in range(runs):
        sim.now += 3 * 86_400  # over months, too
        ticks = [rng.randint(1, 120) for _ in range(crashes // runs)]
        wrong += crawl(sim, crash_ticks=ticks, kind=kind, again=True)
        wrong += [f"run {run}: {text}" for text in faults(sim, world, again=True)]
    assert parts_of(sim.store, "whole"), "nothing was moved"
    sim.store.close()
    return [f"seed {seed}: {text}" for text in wrong]


@pytest.mark.parametrize("kind", KINDS[:2])
def test_crashes_while_old_visits_move_lose_nothing(kind: str) -> None:
    wrong = rehearse(1, crashes=12, kind=kind, runs=4)
    assert not wrong, "\n".join(wrong[:20])


def test_crashes_with_postgresql_lose_nothing(postgres: Postgres) -> None:
    wrong = rehearse(1, crashes=9, kind="power", runs=3, address=postgres.schema())
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2, 20))
def test_five_hundred_crashes_while_old_visits_move_lose_nothing(seed: int, kind: str) -> None:
    wrong = rehearse(seed, crashes=30, kind=kind)
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("kind", ["power", pytest.param("kill", marks=pytest.mark.long)])
def test_a_crash_at_each_operation_of_a_move_loses_nothing(kind: str) -> None:
    sim, world = simulation(3, sites=1, pages=3, sets=(*HASTY, "history.keep_visits=1000"))
    for run in range(5):
        assert crawl(sim, crash_ticks=[], kind=kind, again=run > 0) == []
    before = sim.store._db.serialize(), deepcopy(sim.files.__dict__ | {"_tick": None})
    vouched = acknowledged(sim)
    points = 0
    while True:
        points += 1
        sim.store._db.deserialize(before[0])
        sim.files.__dict__.update(deepcopy(before[1]) | {"_tick": sim.files._tick})
        sim.crash_at = sim.ticks + points
        try:
            move(sim)
            break
        except SimCrash:
            (sim.power_cut if kind == "power" else sim.kill_all)()
        assert acknowledged(sim) == vouched, (points, sim.crash_what)
        move(sim)
        assert acknowledged(sim) == vouched, (points, sim.crash_what)
        wrong = [] if points % 6 else faults(sim, world, again=True)
        assert not wrong, (points, sim.crash_what, wrong[:5])
    sim.crash_at = None
    assert points > 30


def move(sim: Simulation) -> None:
    keep = History(keep_visits=2, keep_requests_s=0.0)
    for _ in Mover(sim.store, sim.files, where="/sim/{}".format, keep=keep).finish(sim.now):
        pass
