"""Whether the hints of a site are worth their place in line. Decides only.

Links of kind h are what scripts, handlers and relations name. Some sites name pages so, others
mostly what is no page at all; there hints wait until nothing else is left.
"""

from __future__ import annotations

from geomi.states import Outcome

#: So many are tried before they are judged.
_ENOUGH = 10
#: What was tried counts for less once there is more of it, so that a site may change.
_MEMORY = 200

_PAGES = frozenset({Outcome.OK, Outcome.CUT, Outcome.SAME})
_NO_PAGES = frozenset({Outcome.GONE, Outcome.BAD})


class Hints:
    """Of one site. Filled by visits to pages of kind h."""

    __slots__ = ("failed", "tried")

    def __init__(self, *, tried: int = 0, failed: int = 0) -> None:
        self.tried = tried
        self.failed = failed

    def came(self, outcome: Outcome, code: int) -> None:
        """What a visit to one came to. Redirects and passing failures say nothing."""
        failed = outcome in _NO_PAGES or (outcome is Outcome.CODE and 400 <= code < 500)
        if not failed and outcome not in _PAGES:
            return
        if self.tried >= _MEMORY:
            self.tried //= 2
            self.failed //= 2
        self.tried += 1
        self.failed += failed

    @property
    def are_doubted(self) -> bool:
        """True if most of them led nowhere."""
        return self.tried >= _ENOUGH and 2 * self.failed > self.tried
