"""When a document appears, changes and vanishes: scripted processes, drawn as far as asked."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from geomi.world.chance import stream

DAY_S = 86_400.0
#: The world starts on a Thursday, 2026-01-01 00:00 UTC.
EPOCH_S = 1_767_225_600.0
_FIRST_WEEKDAY = 3
#: Mean weight of the office-hours rhythm over a week, see _busy().
_MEAN_BUSY = (5 * 9 * 1.0 + (168 - 45) * 0.1) / 168
_SPREAD = 1.5

Event = tuple[float, str]  # (seconds since the world's start, A, M or D)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """When one document is there, and how often it changes."""

    born_s: float = 0.0  # 0: from the start
    died_s: float = float("inf")
    back_s: float = float("inf")  # appears again
    per_day: float = 0.0
    rhythm: str = "poisson"  # poisson, week or burst

    def is_alive(self, at: float) -> bool:
        return self.born_s <= at < self.died_s or at >= self.back_s

    @property
    def fleeting(self) -> bool:
        """True if it is not there all the time."""
        return self.born_s > 0 or self.died_s < float("inf")


def life(seed: int, n: int, i: int, *, per_day: float, horizon_s: float) -> Life:
    """The life of page `i` of site `n`. A front page is always there."""
    rng = stream(seed, "life", n, i)
    rate = 0.0
    if rng.random() > 0.35:
        rate = per_day * rng.lognormvariate(-_SPREAD * _SPREAD / 2, _SPREAD)
    rhythm = rng.choice(("poisson", "poisson", "week", "burst"))
    draw, one, two = rng.random(), rng.random() * horizon_s, rng.random() * horizon_s
    if i == 0 or draw > 0.15:
        return Life(per_day=rate, rhythm=rhythm)
    if draw < 0.08:
        return Life(per_day=rate, rhythm=rhythm, born_s=one)
    if draw < 0.12:
        return Life(per_day=rate, rhythm=rhythm, died_s=one)
    return Life(per_day=rate, rhythm=rhythm, died_s=min(one, two), back_s=max(one, two))


class History:
    """The events of one document, drawn in order from one stream, so that asking is repeatable."""

    def __init__(self, life: Life, rng: Random) -> None:
        self._life = life
        self._rng = rng
        self._drawn_s = 0.0
        self._times: list[float] = []  # of changes, sorted; filled by _extend()
        self._draws = {"poisson": self._poisson, "week": self._week, "burst": self._burst}

    def until(self, at: float) -> list[Event]:
        """All events up to and including `at`."""
        self._extend(at)
        life = self._life
        events = [(t, "M") for t in self._times if t <= at and life.is_alive(t)]
        for time, letter in ((life.born_s, "A"), (life.died_s, "D"), (life.back_s, "A")):
            if 0.0 < time <= at:
                events.append((time, letter))
        events.sort()
        return events

    def _extend(self, at: float) -> None:
        per_s = self._life.per_day / DAY_S
        while per_s > 0 and self._drawn_s <= at:
            self._draws[self._life.rhythm](per_s)

    def _poisson(self, per_s: float) -> None:
        self._drawn_s += self._rng.expovariate(per_s)
        self._times.append(self._drawn_s)

    def _week(self, per_s: float) -> None:
        self._drawn_s += self._rng.expovariate(per_s / _MEAN_BUSY)
        if self._rng.random() < _busy(self._drawn_s):
            self._times.append(self._drawn_s)

    def _burst(self, per_s: float) -> None:
        self._drawn_s += self._rng.expovariate(per_s / 5)
        self._times.append(self._drawn_s)
        while self._rng.random() < 0.8:
            self._drawn_s += self._rng.expovariate(1 / 600)
            self._times.append(self._drawn_s)


def _busy(at: float) -> float:
    """Office hours in Korea (UTC+9): most changes come on weekdays from 9 to 18."""
    local_h = at / 3600 + 9
    weekday = (_FIRST_WEEKDAY + int(local_h // 24)) % 7
    return 1.0 if weekday < 5 and 9 <= local_h % 24 < 18 else 0.1
