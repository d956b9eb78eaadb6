"""Parts of the time at one server: disjoint, never lost, and a gap apart whatever clocks say."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.frontier.politeness import Gaps
from geomi.frontier.slots import (
    ALWAYS,
    CLOCK_ERROR_S,
    Slot,
    common,
    free,
    length_s,
    opens_at,
    starts_a_part,
    widened,
    without,
)

NOW = 1_700_000_000.0


@given(st.lists(st.tuples(st.sampled_from("tdr"), st.integers(0, 99)), max_size=60))
def test_slots_are_disjoint_and_all_the_time_is_somebodys(
    steps: list[tuple[str, int]],
) -> None:
    held: list[Slot] = [ALWAYS]
    for what, number in steps:
        if what == "t" and (found := free(held, limit=16)) is not None:
            held.append(found)
        elif what == "d" and held:  # it shares: somebody takes the other half at once
            one = held[number % len(held)]
            if one.of < 16:
                keep, other = one.halves()
                held[number % len(held)] = keep
                held.append(other)
        elif what == "r" and len(held) > 1:  # it goes; those that can be wider are
            held.pop(number % len(held))
            for place, one in enumerate(held):
                held[place] = widened(one, held[:place] + held[place + 1 :])
        assert not any(one.meets(other) for one, other in combinations(held, 2))
        left = [free(held, limit=16)]
        assert sum(1 / one.of for one in held) == 1.0 or left != [None]
        assert len({one.slot for one in held}) == len(held)  # each has a row of its own


def test_who_comes_gets_the_largest_that_is_free() -> None:
    assert free([], limit=1) == ALWAYS
    assert free([ALWAYS], limit=16) is None
    assert free([Slot(0, 2)], limit=16) == Slot(1, 2)
    assert free([Slot(0, 4), Slot(1, 2)], limit=16) == Slot(2, 4)
    assert free([Slot(0, 4), Slot(1, 2)], limit=2) is None
    assert free([Slot(0, 2)], limit=16, within=Slot(0, 2)) is None
    assert free([Slot(0, 4)], limit=16, within=Slot(0, 2)) == Slot(2, 4)


def test_what_is_common_to_slots_is_the_smallest_or_nothing() -> None:
    assert common([]) == ALWAYS
    assert common([Slot(1, 2), ALWAYS, Slot(3, 4)]) == Slot(3, 4)
    assert common([Slot(1, 2), Slot(2, 4)]) is None
    assert without(Slot(0, 1), Slot(3, 4)) == [Slot(0, 2), Slot(1, 4)]
    assert without(Slot(1, 2), Slot(1, 2)) == []


@given(
    st.floats(NOW, NOW + 1e6), st.sampled_from([0.05, 0.25, 1.0, 10.0]),
    st.sampled_from([1, 2, 4, 8, 16]), st.integers(0, 15),
)  # fmt: skip
def test_a_slot_opens_within_its_parts_a_tenth_from_their_ends(
    at: float, gap_s: float, of: int, number: int
) -> None:
    slot, part_s = Slot(number % of, of), length_s(gap_s)
    opens = opens_at(slot, part_s, at=at)
    assert at <= opens <= at + of * part_s
    assert opens_at(slot, part_s, at=opens) == opens
    if of > 1:
        place = opens % (of * part_s) / part_s - slot.slot
        assert 0.1 - 1e-5 <= place <= 0.9 + 1e-5


@given(
    st.lists(st.floats(-CLOCK_ERROR_S, CLOCK_ERROR_S), min_size=2, max_size=8),
    st.sampled_from([0.05, 0.25, 1.0]), st.integers(0, 10**6),
)  # fmt: skip
def test_gaps_hold_over_agents_whose_clocks_are_wrong(
    errors: list[float], gap_s: float, seed: int
) -> None:
    """Each starts whenever it may, by its own clock; what the server sees is judged."""
    rng = random.Random(seed)
    slots = [ALWAYS]
    while len(slots) < len(errors):
        slots.sort(key=lambda slot: slot.of)
        slots[:1] = slots[0].halves()
    seen = []
    for slot, error_s in zip(slots, errors, strict=False):
        gaps = Gaps(part_s=length_s(gap_s))
        gaps.take_slot("a", slot)
        now = NOW + rng.random()
        while now < NOW + 60 * gap_s:
            at = gaps.earliest(("a",), gap_s, now=now)
            if at > now:
                now = at + (rng.random() * gap_s if rng.random() < 0.2 else 0.0)
                continue
            gaps.started(("a",), gap_s, now=now)
            seen.append(now + error_s)
    assert seen
    assert all(b - a >= gap_s - 1e-6 for a, b in pairwise(sorted(seen)))


@pytest.mark.parametrize("gap_s", [0.25, 1.0, 5.0])
def test_slots_cost_less_than_a_fifth_of_what_the_gap_allows(gap_s: float) -> None:
    assert starts_a_part(gap_s) / length_s(gap_s) >= 0.8 / gap_s


def test_one_whose_clock_may_be_too_wrong_starts_nothing_in_a_slot() -> None:
    gaps = Gaps(part_s=length_s(0.25))
    gaps.heard(CLOCK_ERROR_S * 2, 0.0, now=NOW)
    assert not gaps.is_sure(NOW)
    assert gaps.earliest(("a",), 0.25, now=NOW) <= NOW  # alone there it needs no clock
    gaps.take_slot("a", Slot(0, 2))
    for n in range(100):
        assert gaps.earliest(("a",), 0.25, now=NOW + n / 10) > NOW + n / 10
    gaps.heard(0.001, 0.0002, now=NOW + 10)  # an answer of the store: sure again, for a while
    assert gaps.is_sure(NOW + 60)
    assert not gaps.is_sure(NOW + 600)


def test_places_in_line_lie_in_our_parts_and_a_hold_outlasts_a_change_of_slot() -> None:
    gaps = Gaps(part_s=length_s(0.25))
    assert gaps.take_slot("a", Slot(1, 2))
    assert not gaps.take_slot("a", Slot(1, 2))
    places = [gaps.reserve(("a",), 0.25, now=NOW) for _ in range(40)]
    assert all(b - a >= 0.25 for a, b in pairwise(places))
    assert all(opens_at(Slot(1, 2), length_s(0.25), at=at) == at for at in places)
    gaps.hold("a", NOW + 100)
    assert gaps.take_slot("a", ALWAYS)
    assert gaps.reserve(("a",), 0.25, now=NOW) == NOW + 100


def test_slots_that_do_not_meet_start_nothing_together() -> None:
    gaps = Gaps(part_s=length_s(0.25))
    gaps.take_slot("a", Slot(0, 2))
    gaps.take_slot("group:g", Slot(1, 2))
    assert gaps.earliest(("a", "group:g"), 0.25, now=NOW) > NOW
    gaps.take_slot("a", Slot(3, 4))
    at = gaps.earliest(("a", "group:g"), 0.25, now=NOW)
    assert opens_at(Slot(3, 4), length_s(0.25), at=at) == at
