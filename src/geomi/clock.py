"""Where time comes from. What decides gets `now` as an argument; only shells hold a clock."""

from __future__ import annotations

import time
from typing import Protocol

# CLOCK_BOOTTIME goes on while the machine sleeps, so a lease cannot outlive a closed lid.
_COUNTING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Seconds since 1970, UTC. The operator may set it back: for dates, not for waiting."""
    return time.time()


def boottime() -> float:
    """Seconds since the machine started, sleep included. Never goes back; no date."""
    return time.clock_gettime(_COUNTING)


class Clock(Protocol):
    """What a shell needs to know about time."""

    def now(self) -> float: ...

    def boottime(self) -> float: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return now()

    def boottime(self) -> float:
        return boottime()


class JumpingClock:
    """A clock that moves only when told to: for tests and the simulator."""

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self._now = start
        self._booted = 0.0

    def now(self) -> float:
        return self._now

    def boottime(self) -> float:
        return self._booted

    def advance(self, seconds: float) -> None:
        """Time passes, on both clocks."""
        if seconds < 0:
            raise ValueError(f"time cannot pass backwards: {seconds} s; use step()")
        self._now += seconds
        self._booted += seconds

    def step(self, seconds: float) -> None:
        """Somebody sets the date, forwards or back; counting goes on undisturbed."""
        self._now += seconds
