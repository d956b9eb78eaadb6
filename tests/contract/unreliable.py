"""An engine that loses, delays and repeats calls. What it carries must not notice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator

from geomi.cluster.engine import Engine, Item, Orders, Placed, Result
from geomi.errors import ResourceError

_OFTEN = 0.3


class Late:
    """A placed agent whose calls are lost, or answered late."""

    def __init__(self, placed: Placed, chance: random.Random) -> None:
        self._placed = placed
        self._chance = chance

    def ended(self) -> int | None:
        code = self._placed.ended()
        return None if self._chance.random() < _OFTEN else code

    def ask_to_stop(self) -> None:
        for _ in range(self._chance.choice((1, 1, 2))):
            self._placed.ask_to_stop()

    def kill(self) -> None:
        self._placed.kill()
        self._placed.kill()

    def wait(self, timeout_s: float) -> bool:
        return self._placed.wait(timeout_s)


class Unreliable:
    """Around another engine."""

    def __init__(self, engine: Engine, *, seed: int = 0) -> None:
        self._engine = engine
        self._chance = random.Random(seed)
        self.lost = 0
        #: Started although nobody knows of them: the answer was lost, or the call was repeated.
        self.unheard: list[Placed] = []

    def place(self, orders: Orders) -> Placed:
        what = self._chance.random()
        if what < _OFTEN:  # the call is lost
            self.lost += 1
            raise ResourceError("the call was lost")
        placed = self._engine.place(orders)
        if what < 2 * _OFTEN:  # the answer is lost
            self.unheard.append(placed)
            raise ResourceError("the answer was lost")
        if what < 0.8:  # the call is repeated
            self.unheard.append(placed)
            placed = self._engine.place(orders)
        return Late(placed, self._chance)

    def run_tasks(
        self, work: Callable[[Item], Result], items: Iterable[Item], *, at: str = ""
    ) -> Iterator[tuple[Item, Result]]:
        """Some of the work is done twice."""
        for item, result in self._engine.run_tasks(work, items, at=at):
            if self._chance.random() < _OFTEN:
                ((item, result),) = self._engine.run_tasks(work, [item])
            yield item, result

    def close(self) -> None:
        for placed in self.unheard:
            placed.kill()
            placed.wait(30.0)
        self._engine.close()
