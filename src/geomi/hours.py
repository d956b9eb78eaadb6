"""Hours of the week, as `Sat-Sun 00:00-24:00` in a time zone: open now, or when.

Decides only: `now` is an argument. Clocks on the wall count, so that a change to summer time moves
the hours with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = "|".join(_DAYS)
_DAYS_OF = re.compile(rf"(?:{_DAY})(?:-(?:{_DAY}))?", re.IGNORECASE)
_TIMES = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-4]):([0-5]\d)", re.ASCII)
_MINUTES_A_DAY = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One entry: the days on which it begins, and minutes after midnight of such a day."""

    days: frozenset[int]  # 0: Monday
    begins: int
    ends: int  # behind `begins`; beyond 24 hours it lies in the next day


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """When something may happen: within any one of its spans."""

    spans: tuple[Span, ...]
    zone: tzinfo

    def is_open(self, now: float) -> bool:
        local = datetime.fromtimestamp(now, self.zone)
        today = local.weekday()
        minute = local.hour * 60 + local.minute
        return any(
            (today in span.days and span.begins <= minute < span.ends)
            or ((today - 1) % 7 in span.days and minute + _MINUTES_A_DAY < span.ends)
            for span in self.spans
        )

    def opens_at(self, now: float) -> float:
        """`now` while open, else the first later time at which it is.

        An hour that a change of the clocks leaves out does not open; a week later one does.
        """
        if self.is_open(now):
            return now
        midnight = datetime.fromtimestamp(now, self.zone).replace(
            hour=0, minute=0, second=0, microsecond=0, tzinfo=None
        )
        starts = {
            (midnight + timedelta(days=day, minutes=span.begins))
            .replace(tzinfo=self.zone, fold=fold)
            .timestamp()
            for day in range(15)
            for span in self.spans
            for fold in (0, 1)
        }
        return next(at for at in sorted(starts) if at > now and self.is_open(at))


def parse(texts: Iterable[str], zone: str) -> Hours | None:
    """None if there are no texts: always open. ValueError if one is not understood."""
    spans = tuple(map(span, texts))
    return Hours(spans=spans, zone=zone_of(zone)) if spans else None


@lru_cache(maxsize=1000)
def span(text: str) -> Span:
    """One entry; ValueError if it is none."""
    *days, times = text.split()
    found = _TIMES.fullmatch(times)
    if found is None or len(days) > 1:
        raise ValueError(text)
    begins, ends = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    if begins == ends or ends > _MINUTES_A_DAY:
        raise ValueError(text)
    if ends < begins:
        ends += _MINUTES_A_DAY
    return Span(days=_days(days[0]) if days else frozenset(range(7)), begins=begins, ends=ends)


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        if not _DAYS_OF.fullmatch(part):
            raise ValueError(text)
        first, _, last = part.lower().partition("-")
        day, end = _DAYS.index(first), _DAYS.index(last or first)
        found.add(day)
        while day != end:
            day = (day + 1) % 7
            found.add(day)
    return frozenset(found)


@lru_cache(maxsize=1000)
def zone_of(name: str) -> tzinfo:
    """ValueError if there is no such time zone."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        raise ValueError(name) from error
