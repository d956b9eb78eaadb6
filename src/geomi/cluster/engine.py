"""Engines: what places agents, and the keeping of them, which is the same for all engines.

An engine may lose a call or repeat it: leases make both harmless. What it starts is always the
same program, `python -m geomi.cluster`, told by its Orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from geomi.errors import OperatorError

Item = TypeVar("Item")
Result = TypeVar("Result")

_BACKOFF_S = 0.5
_BACKOFF_MAX_S = 30.0
_HEALTHY_S = 60.0  # who lived so long begins again with the shortest gap


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent process is told. Made by: drive.   Taken by: the process, on its stdin."""

    collection: str  # absolute path
    settings: Mapping[str, Any]  # Settings.dump
    agent: str
    run: int


class Placed(Protocol):
    """One agent that an engine started."""

    def ended(self) -> int | None:
        """Its exit code; None while it runs, as far as the engine knows."""

    def ask_to_stop(self) -> None:
        """It starts nothing more, writes what it has, and ends. May be said twice."""

    def kill(self) -> None:
        """At once. Nothing committed is lost."""

    def wait(self, timeout_s: float) -> bool:
        """True once it has ended."""


class Engine(Protocol):
    """Where agents run, and the heavy steps of other stages."""

    def place(self, orders: Orders) -> Placed:
        """Starts an agent. ResourceError: not now."""

    def run_tasks(
        self, work: Callable[[Item], Result], items: Iterable[Item], *, at: str = ""
    ) -> Iterator[tuple[Item, Result]]:
        """Does `work` (a function of a module) for each item, as they get done, in any order.

        `at`: on the node of this name alone. ResourceError: there is no such node.

        A worker that dies is replaced and its item done again, so work must bear repetition.
        Errors of the work itself are raised here.
        """

    def close(self) -> None:
        """Lets go of workers; agents are stopped before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """An agent ended that should not have."""

    agent: str
    code: int
    again_in_s: float


class Keeper:
    """Keeps agents alive: one that ends is started again, after gaps that grow."""

    def __init__(self, engine: Engine, names: Iterable[str], orders: Callable[[str], Orders]):
        self._engine = engine
        self._orders = orders
        self._kept = [_Kept(name) for name in names]
        self.restarts = 0

    def look(self, now: float) -> list[Death]:
        """Starts who is due; tells who ended. OperatorError: an agent says that settings are wrong.

        After ResourceError look again later: who could not be started is still due.
        """
        deaths = []
        for one in self._kept:
            if one.placed is None:
                if now >= one.start_at:
                    one.placed = self._engine.place(self._orders(one.name))
                    one.started = now
                continue
            code = one.placed.ended()
            if code is None:
                continue
            one.placed = None
            if code == 2:
                raise OperatorError(f"agent {one.name} could not start; see its message above")
            one.deaths = 1 if now - one.started > _HEALTHY_S else one.deaths + 1
            self.restarts += 1
            wait_s = min(_BACKOFF_S * 2.0 ** (one.deaths - 1), _BACKOFF_MAX_S)
            one.start_at = now + wait_s
            deaths.append(Death(agent=one.name, code=code, again_in_s=wait_s))
        return deaths

    def stop(self, grace_s: float, clock: Callable[[], float]) -> None:
        """Asks all to stop; who has not ended after the grace is killed."""
        running = [one.placed for one in self._kept if one.placed is not None]
        for placed in running:
            placed.ask_to_stop()
        deadline = clock() + grace_s
        for placed in running:
            if not placed.wait(max(0.1, deadline - clock())):
                placed.kill()
                placed.wait(grace_s)
        for one in self._kept:
            one.placed = None

    def kill(self) -> None:
        """All at once."""
        for one in self._kept:
            if one.placed is not None:
                one.placed.kill()


class _Kept:
    """What the keeper knows of one agent."""

    __slots__ = ("deaths", "name", "placed", "start_at", "started")

    def __init__(self, name: str) -> None:
        self.name = name
        self.placed: Placed | None = None
        self.deaths = 0
        self.start_at = 0.0
        self.started = 0.0
