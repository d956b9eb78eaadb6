from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from geomi.frontier.seen import FIRST_SLICE, GROWTH, SeenFilter

HASHES = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(HASHES, max_size=3000), st.integers(0, 5000))
def test_what_was_added_is_never_called_new(hashes: list[int], expected: int) -> None:
    seen = SeenFilter(expected=expected)
    seen.update(hashes)
    assert all(one in seen for one in hashes)
    assert not any(seen.add(one) for one in hashes)


@given(st.sets(HASHES, max_size=2000))
def test_add_says_once_that_a_url_is_new(hashes: set[int]) -> None:
    seen = SeenFilter()
    assert all(one not in seen for one in hashes)  # the chance of an error is one in 10⁹ each
    assert all(seen.add(one) for one in hashes)
    assert seen.count == len(hashes)


def test_errors_stay_below_the_bound_when_the_filter_has_grown_many_times() -> None:
    rng = random.Random(1)
    seen = SeenFilter(error=0.01)
    lost = sum(not seen.add(rng.getrandbits(64) - 2**63) for _ in range(60_000))
    asked = 60_000
    wrong = sum(rng.getrandbits(64) - 2**63 in seen for _ in range(asked))
    assert wrong / asked < 0.01
    assert lost <= 60_000 * 0.01
    assert lost <= seen.expected_loss() * 1.1


def test_the_default_error_loses_nothing_of_a_large_site() -> None:
    rng = random.Random(2)
    seen = SeenFilter()
    assert all(seen.add(rng.getrandbits(64) - 2**63) for _ in range(100_000))
    assert seen.expected_loss() < 0.001


def test_memory_grows_by_slices_with_the_party() -> None:
    rng = random.Random(3)
    seen = SeenFilter()
    small = seen.size_bytes
    assert small < 10_000  # thousands of small sites may be held at once
    seen.update([rng.getrandbits(63) for _ in range(FIRST_SLICE)])
    assert seen.size_bytes == small
    seen.add(-1)
    assert seen.size_bytes > small
    full = FIRST_SLICE * (1 + GROWTH + GROWTH**2)
    seen.update([rng.getrandbits(63) for _ in range(full - seen.count)])
    assert seen.size_bytes * 8 <= full * 50  # 43 bits a URL at 1e-9, and the shares of the slices


def test_a_filter_made_for_a_known_size_does_not_grow_before_it() -> None:
    rng = random.Random(4)
    seen = SeenFilter(expected=20_000)
    size = seen.size_bytes
    seen.update([rng.getrandbits(63) for _ in range(20_000)])
    assert seen.size_bytes == size


def test_equal_hashes_give_equal_filters() -> None:
    first, second = SeenFilter(), SeenFilter()
    for one in range(5000):
        assert first.add(one * 7919) == second.add(one * 7919)
