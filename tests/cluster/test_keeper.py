"""The keeper: agents that end are started again, with gaps that grow; the engine may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from geomi.cluster.engine import Keeper, Orders
from geomi.errors import OperatorError, ResourceError


class Placed:
    def __init__(self) -> None:
        self.code: int | None = None
        self.said: list[str] = []
        self.obeys = True

    def ended(self) -> int | None:
        return self.code

    def ask_to_stop(self) -> None:
        self.said.append("stop")
        if self.obeys:
            self.code = 0

    def kill(self) -> None:
        self.said.append("kill")
        self.code = -9

    def wait(self, timeout_s: float) -> bool:
        return self.code is not None


class Engine:
    """Keeps what it placed, by name; loses so many calls first."""

    def __init__(self, *, loses: int = 0) -> None:
        self.loses = loses
        self.placed: dict[str, list[Placed]] = {}

    def place(self, orders: Orders) -> Placed:
        if self.loses:
            self.loses -= 1
            raise ResourceError("the call was lost")
        self.placed.setdefault(orders.agent, []).append(Placed())
        return self.placed[orders.agent][-1]

    def run_tasks(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return iter(())

    def close(self) -> None: ...


def keeper(engine: Engine, *names: str) -> Keeper:
    return Keeper(
        engine, names or ("a0",), lambda name: Orders(collection="", settings={}, agent=name, run=1)
    )


def test_every_agent_is_started_once() -> None:
    engine = Engine()
    kept = keeper(engine, "a0", "a1")
    assert [kept.look(now) for now in (0.0, 1.0, 2.0)] == [[], [], []]
    assert {name: len(each) for name, each in engine.placed.items()} == {"a0": 1, "a1": 1}


def test_an_agent_that_dies_again_and_again_is_started_after_growing_gaps() -> None:
    engine = Engine()
    kept = keeper(engine)
    now, gaps = 0.0, []
    for _ in range(9):
        kept.look(now)
        engine.placed["a0"][-1].code = 4
        (death,) = kept.look(now)
        assert (death.agent, death.code) == ("a0", 4)
        gaps.append(death.again_in_s)
        assert kept.look(now + death.again_in_s - 0.01) == []
        assert len(engine.placed["a0"]) == len(gaps)
        now += death.again_in_s
    assert gaps == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert kept.restarts == 9


def test_who_lived_a_while_begins_with_the_shortest_gap_again() -> None:
    engine = Engine()
    kept = keeper(engine)
    gaps = []
    for lived in (1.0, 1.0, 100.0):
        kept.look(1000.0 * len(gaps))
        engine.placed["a0"][-1].code = 4
        gaps.append(kept.look(1000.0 * len(gaps) + lived)[0].again_in_s)
    assert gaps == [0.5, 1.0, 0.5]


def test_an_agent_that_says_settings_are_wrong_ends_the_crawl() -> None:
    engine = Engine()
    kept = keeper(engine)
    kept.look(0.0)
    engine.placed["a0"][0].code = 2
    with pytest.raises(OperatorError, match="a0 could not start"):
        kept.look(1.0)


def test_a_call_that_the_engine_loses_is_made_again() -> None:
    engine = Engine(loses=2)
    kept = keeper(engine, "a0", "a1")
    for now in (0.0, 1.0):
        with pytest.raises(ResourceError):
            kept.look(now)
    kept.look(2.0)
    assert {name: len(each) for name, each in engine.placed.items()} == {"a0": 1, "a1": 1}


def test_who_does_not_stop_when_asked_is_killed() -> None:
    engine = Engine()
    kept = keeper(engine, "a0", "a1")
    kept.look(0.0)
    engine.placed["a1"][0].obeys = False
    kept.stop(30.0, lambda: 0.0)
    assert engine.placed["a0"][0].said == ["stop"]
    assert engine.placed["a1"][0].said == ["stop", "kill"]
