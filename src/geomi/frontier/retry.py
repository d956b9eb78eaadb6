"""When a failed visit is tried again, and how the past predicts. Decides only.

Paper 000: the network state of a page is used to predict its next one. What failed long is asked
later (a lower rank in its queue) and less often (fewer tries a run).
"""

from __future__ import annotations

from msgspec import Struct

from geomi.states import TRANSIENT, Outcome

#: Failures of the server rather than of one page: the whole site waits.
OF_THE_SITE = frozenset({Outcome.NO_IP, Outcome.C_ERR, Outcome.C_TIM})


class Retry(Struct, frozen=True, kw_only=True):
    """How often, and after which gaps, a transient failure is tried again within a run."""

    attempts: int = 3  # visits in all, the first included
    gap_s: float = 10.0
    gap_factor: float = 4.0
    gap_max_s: float = 86_400.0

    def is_transient(self, outcome: Outcome, code: int) -> bool:
        return outcome in TRANSIENT or (outcome is Outcome.CODE and (code >= 500 or code == 429))

    def gap(self, tries: int) -> float:
        """Seconds to wait after the try with this number, the first being 1."""
        return float(min(self.gap_s * self.gap_factor ** min(tries - 1, 50), self.gap_max_s))

    def again_at(
        self, outcome: Outcome, code: int, *, tries: int, fails_before: int, now: float
    ) -> float | None:
        """When to try again; None: keep the state. `tries` counts this run's visits so far."""
        if not self.is_transient(outcome, code):
            return None
        allowed = self.attempts if fails_before < self.attempts else 1
        if tries >= allowed:
            return None
        return now + self.gap(tries)


def rank(depth: int, *, fails: int = 0, weight: float = 0.0) -> int:
    """The place of a page in its site's queue: breadth first, the often failed later.

    Weight moves a page forward by whole levels; notices carry enough to come first.
    """
    return depth + min(fails, 8) * 4 - int(weight)
