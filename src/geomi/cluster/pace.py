"""When something that is looked at now and then is looked at again. Decides only."""

from __future__ import annotations


class Pace:
    """Lets a look through once in so many seconds, or sooner where that was asked for."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._at = 0.0

    def is_time(self, now: float) -> bool:
        """True where a look is due; the next one is due `every_s` from now."""
        if now < self._at <= now + self._every_s:  # beyond that the clock was set back
            return False
        self._at = now + self._every_s
        return True

    def come_again(self, at: float) -> None:
        """The next look is at that time, if that is sooner."""
        self._at = min(self._at, at)
