"""Which sites change hands when an agent has none and another has several. Decides only.

An agent runs dry at the end of a crawl, and begins dry when it comes late. Who has most is asked to
give some of its sites away; a site goes with all its visits written and its rests known, like any
that is given back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

LOOK_S = 1.0  # between two looks; who is dry at both of them gets something
LOOKED_AT = 2_000  # sites of the richest that are looked at in one round
_WORTH = 10  # waiting pages, below which a site is not worth the way


class Held(NamedTuple):
    """A site of the agent that has most."""

    site_id: int
    site: str
    address: str
    waiting: int


class Balance:
    """Remembers who was dry at the last look."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._dry: frozenset[str] = frozenset()
        #: Dry agents that were promised sites: what is meant for them is kept for them.
        self.promised: frozenset[str] = frozenset()

    def is_time(self, now: float) -> bool:
        if now < self._look_at <= now + LOOK_S:
            return False
        self._look_at = now + LOOK_S
        return True

    def look(self, sites: Mapping[str, int], running: Collection[str]) -> tuple[str, list[str]]:
        """(who has most, who gets some of it). `sites`: how many each holder has."""
        dry = frozenset(one for one in running if not sites.get(one))
        again = sorted(dry & self._dry)
        self._dry = dry
        self.promised &= dry
        richest = max(running, key=lambda one: sites.get(one, 0), default="")
        if not again or sites.get(richest, 0) < 2:
            return "", []
        return richest, again

    def share(
        self, held: Iterable[Held], dry: Sequence[str], *, is_alone: Callable[[str], bool]
    ) -> dict[int, str]:
        """Site -> who gets it. Sites of one address go together, those that are `is_alone` do not
        share one. The first share, which is the greatest, stays where it is."""
        groups: dict[str, list[Held]] = defaultdict(list)
        for one in held:
            shares = one.address and not is_alone(one.site)
            groups[one.address if shares else f"site {one.site_id}"].append(one)
        worth = [group for group in groups.values() if sum(one.waiting for one in group) >= _WORTH]
        worth.sort(key=lambda group: (-sum(one.waiting for one in group), group[0].site_id))
        takers = ["", *dry]
        found = {
            one.site_id: taker
            for place, group in enumerate(worth)
            if (taker := takers[place % len(takers)])
            for one in group
        }
        self.promised |= frozenset(found.values())
        return found
