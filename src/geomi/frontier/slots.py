"""Slots: how several agents take turns at one server without a word. Decides only.

Time at a server is cut into parts of equal length, by the store's clock. An agent with slot `slot`
of `of` has every `of`-th part, and starts requests in the inner eight tenths of those alone. What
is kept clear at the ends of two neighbours is together one gap and what two clocks may be wrong, so
the gap holds across agents. A slot is divided into two, of which its holder keeps one; a half that
nobody has any more is taken back into its other half. So all the time is always somebody's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: An agent whose clock may be further from the store's than this starts nothing in a slot.
CLOCK_ERROR_S = 0.05
#: A part is so many gaps long: then a tenth at each of two ends is one gap.
_GAPS = 5
_CLEAR = 0.1  # of a part, at each end
#: Who holds fewer sites of an address keeps it alone: they lack no turns there, and no agent
#: lacks the room they take.
SITES = 32


class Slot(NamedTuple):
    """Every `of`-th part of the time, from `slot` on. `of` is a power of two."""

    slot: int
    of: int

    def meets(self, other: Slot) -> bool:
        """True if some part belongs to both."""
        least = min(self.of, other.of)
        return self.slot % least == other.slot % least

    def halves(self) -> tuple[Slot, Slot]:
        return Slot(self.slot, self.of * 2), Slot(self.slot + self.of, self.of * 2)

    def whole(self) -> Slot:
        """What this is a half of."""
        return Slot(self.slot % (self.of // 2), self.of // 2)


ALWAYS = Slot(0, 1)


def length_s(gap_s: float) -> float:
    """Of one part."""
    return _GAPS * (gap_s + 2 * CLOCK_ERROR_S)


def common(slots: Iterable[Slot]) -> Slot | None:
    """The parts that belong to all of these; None: there are none."""
    found = ALWAYS
    for slot in slots:
        if not slot.meets(found):
            return None
        if slot.of > found.of:
            found = slot
    return found


def free(held: Iterable[Slot], *, limit: int, within: Slot = ALWAYS) -> Slot | None:
    """The largest slot that nobody holds and that meets `within`, of at most `limit`."""
    held = list(held)
    of = 1
    while of <= limit:
        for number in range(of):
            slot = Slot(number, of)
            if slot.meets(within) and not any(slot.meets(other) for other in held):
                return slot
        of *= 2
    return None


def widened(mine: Slot, others: Iterable[Slot]) -> Slot:
    """`mine` with all that is nobody's of what it was once a half of."""
    others = list(others)
    while mine.of > 1 and not any(mine.whole().meets(other) for other in others):
        mine = mine.whole()
    return mine


def without(slot: Slot, taken: Slot) -> list[Slot]:
    """What is left of a slot of which `taken` is a part."""
    left = []
    while slot.of < taken.of:
        first, second = slot.halves()
        slot, other = (first, second) if first.meets(taken) else (second, first)
        left.append(other)
    return left


def opens_at(slot: Slot, part_s: float, *, at: float) -> float:
    """The first time from `at` on at which a request may start."""
    if slot.of == 1:
        return at
    every = slot.of * part_s
    start = at // every * every + slot.slot * part_s
    if at < start + _CLEAR * part_s:
        return start + _CLEAR * part_s
    if at <= start + (1 - _CLEAR) * part_s:
        return at
    return start + every + _CLEAR * part_s


def starts_a_part(gap_s: float, *, margin_s: float = 0.0) -> int:
    """How many requests an agent that keeps the gap may start in one of its parts."""
    return int((1 - 2 * _CLEAR) * length_s(gap_s) / (gap_s + margin_s) + 1e-9) + 1
