"""When the coordinator looks again. Decides only.

A round without anything to do costs the same whether a crawl is young or old, and nobody waits for
it but who watches its end. So rounds get rarer with the age of the crawl.
"""

from __future__ import annotations

LEAST_S = 0.1
MOST_S = 0.5
_SHARE = 0.02  # of a crawl's age: so much later than it could its end is noticed, at most
_BUSY_SHARE = 0.01  # what comes a little at a time is gathered so long, and done together
FULL = 1_000  # where so much was done in a round, more waits


class Rounds:
    """The pauses of one crawl, which began at `began`."""

    def __init__(self, began: float) -> None:
        self._began = began

    def pause(self, now: float, *, done: int) -> float:
        """Seconds until the next round, after one that did so much."""
        if done >= FULL:
            return 0.0
        age = max(0.0, now - self._began)
        pause = min(MOST_S, max(LEAST_S, age * _SHARE))
        return min(pause, age * _BUSY_SHARE) if done else pause
