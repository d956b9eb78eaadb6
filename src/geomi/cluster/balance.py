"""Which sites change hands when an agent has none and another has several. Decides only.

An agent runs dry at the end of a crawl, and begins dry when it comes late. Who has most is asked to
give some of its sites away; a site goes with all its visits written and its rests known, like any
that is given back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from geomi.frontier.slots import SITES

LOOK_S = 1.0  # between two looks; who is dry at both of them gets something
EVEN_S = 5.0  # between two looks at addresses and groups that several agents serve
LOOKED_AT = 2_000  # sites of the richest that are looked at in one round
_WORTH = 10  # waiting pages, below which a site is not worth the way


class Held(NamedTuple):
    """A site of the agent that has most."""

    site_id: int
    site: str
    address: str
    waiting: int


def crowded(addresses: Iterable[str]) -> list[str]:
    """Those with so many sites that two agents may serve them."""
    sites = Counter(address for address in addresses if address)
    return sorted(address for address, number in sites.items() if number >= 2 * SITES)


def even(
    sites: Iterable[tuple[int, str, Collection[str]]], slots: Mapping[str, Mapping[str, int]],
    room: Mapping[str, int],
) -> dict[int, str]:  # fmt: skip
    """Site -> who gets it, where several serve one address or group and some have too few sites.

    `sites`: (site, holder, its addresses and groups). `slots`: by address or group, what share of
    the time each holder has: one part in so many. `room`: how many sites more a holder can take.
    """
    left = dict(room)
    held: dict[str, dict[str, list[int]]] = {
        key: {holder: [] for holder in holders} for key, holders in slots.items()
    }
    for site_id, holder, keys in sites:
        for key in keys:
            if holder in held.get(key, ()):
                held[key][holder].append(site_id)
    found: dict[int, str] = {}
    for key, by_holder in sorted(held.items()):
        total = sum(map(len, by_holder.values()))
        over = {
            holder: len(some) - total / slots[key][holder] for holder, some in by_holder.items()
        }
        for taker in sorted(over, key=lambda one: (over[one], one)):
            giver = max(over, key=lambda one: (over[one], one))
            number = int(min(-over[taker], over[giver], left.get(taker, 0)))
            if number < SITES // 4:  # not worth the way
                continue
            for site_id in by_holder[giver][-number:]:
                found.setdefault(site_id, taker)
            del by_holder[giver][-number:]
            over[giver] -= number
            left[taker] -= number
    return found


class Balance:
    """Remembers who was dry at the last look."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._even_at = 0.0
        self._dry: frozenset[str] = frozenset()
        #: Dry agents that were promised sites: what is meant for them is kept for them.
        self.promised: frozenset[str] = frozenset()

    def is_time(self, now: float) -> bool:
        if now < self._look_at <= now + LOOK_S:
            return False
        self._look_at = now + LOOK_S
        return True

    def is_time_to_even(self, now: float) -> bool:
        if now < self._even_at <= now + EVEN_S:
            return False
        self._even_at = now + EVEN_S
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
        self, held: Iterable[Held], dry: Sequence[str], *, is_alone: Callable[[str], bool],
        divided: Collection[str] = (),
    ) -> dict[int, str]:  # fmt: skip
        """Site -> who gets it. Sites of one address go together, those that are `is_alone` do not
        share one; those of `divided` addresses go to all. The first share, which is the greatest,
        stays where it is."""
        takers = ["", *dry]
        groups: dict[str, list[Held]] = defaultdict(list)
        turn = count()
        for one in held:
            group = one.address if one.address and not is_alone(one.site) else f"site {one.site_id}"
            if group in divided:
                group += f" {next(turn) % len(takers)}"
            groups[group].append(one)
        worth = [group for group in groups.values() if sum(one.waiting for one in group) >= _WORTH]
        worth.sort(key=lambda group: (-sum(one.waiting for one in group), group[0].site_id))
        found = {
            one.site_id: taker
            for place, group in enumerate(worth)
            if (taker := takers[place % len(takers)])
            for one in group
        }
        self.promised |= frozenset(found.values())
        return found
