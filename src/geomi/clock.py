"""Where time comes from. What decides gets `now` as an argument; only shells hold a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

# CLOCK_BOOTTIME goes on while the machine sleeps, so a lease cannot outlive a closed lid.
_COUNTING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Seconds since 1970, UTC. The operator may set it back: for dates, not for waiting."""
    return time.time()


def pause(seconds: float) -> None:
    """Lets time pass."""
    time.sleep(seconds)


def boottime() -> float:
    """Seconds since the machine started, sleep included. Never goes back; no date."""
    return time.clock_gettime(_COUNTING)


def boot() -> str:
    """Another one each time the machine starts, and so the counter anew; empty: it does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def counted_from(zero: float) -> Callable[[], float]:
    """A clock that shows the date at which the counter was zero, and what was counted since."""
    return lambda: zero + boottime()


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


class FollowingClock:
    """Shows another clock's time: goes at its own pace from a date that was heard, never jumps,
    never goes back, and comes nearer by at most a hundredth of the time that passes.

    For agents on many machines, whose store has the time that counts.
    """

    _PACE = 0.01
    _SOON_S = 10.0  # what it lags or leads is made up in this time, where the pace allows
    _SLOW_S = 0.5  # an answer that took longer says too little

    _DRIFT = 0.0002  # what two clocks part in a second at most: twice what quartz does

    def __init__(self, date: float, *, is_exact: bool = True) -> None:
        # (date and counter at the last correction, pace): replaced as a whole, for other threads.
        self._state = (date, boottime(), 1.0)
        # How far it may be from the other clock at that moment, and what a second adds: the same.
        self._error = (0.0, 0.0) if is_exact else (float("inf"), 0.0)

    def now(self) -> float:
        date, booted, pace = self._state
        return date + (boottime() - booted) * pace

    def heard(self, date: float, *, before: float) -> None:
        """The other clock answered a question asked at `before` (of boottime)."""
        after = boottime()
        if after - before > self._SLOW_S:
            return
        seen_date, booted, pace = self._state
        mine = seen_date + (after - booted) * pace
        lag = date + (after - before) / 2 - mine
        change = max(-self._PACE, min(self._PACE, lag / self._SOON_S))
        self._state = (mine, after, 1.0 + change)
        self._error = (abs(lag) + (after - before) / 2, abs(change) + self._DRIFT)

    def error(self) -> tuple[float, float]:
        """How far it may be from the other clock now, and how much each second may add to that.

        Half the way of the last answer, what was seen to be made up then, and drift since.
        """
        error_s, drift = self._error
        return error_s + drift * (boottime() - self._state[1]), drift


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
