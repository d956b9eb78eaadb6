from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.frontier.retry import OF_THE_SITE, Retry, rank
from geomi.states import TRANSIENT, Outcome


def again(
    retry: Retry, outcome: Outcome, *, code: int = 0, tries: int = 1, fails: int = 0
) -> float | None:
    return retry.again_at(outcome, code, tries=tries, fails_before=fails, now=1000.0)


@pytest.mark.parametrize("outcome", sorted(TRANSIENT))
def test_every_failure_of_the_network_is_tried_again(outcome: Outcome) -> None:
    assert again(Retry(), outcome) == 1010.0


@pytest.mark.parametrize(("code", "is_tried"), [
    (301, False), (403, False), (404, False), (410, False), (429, True), (500, True), (503, True),
])  # fmt: skip
def test_of_answers_only_overload_and_server_errors_are_tried_again(
    code: int, is_tried: bool
) -> None:
    assert (again(Retry(), Outcome.CODE, code=code) is not None) == is_tried


@pytest.mark.parametrize(
    "outcome", [Outcome.OK, Outcome.CUT, Outcome.SAME, Outcome.GONE, Outcome.DENY, Outcome.VOID]
)
def test_what_was_answered_is_not_tried_again(outcome: Outcome) -> None:
    assert again(Retry(), outcome, code=200) is None


def test_a_page_keeps_its_state_after_the_last_try_of_a_run() -> None:
    retry = Retry(attempts=3)
    assert again(retry, Outcome.H_TIM, tries=2) is not None
    assert again(retry, Outcome.H_TIM, tries=3) is None


def test_what_failed_in_many_runs_gets_one_try_a_run() -> None:
    retry = Retry(attempts=3)
    assert again(retry, Outcome.D_ERR, tries=1, fails=2) is not None
    assert again(retry, Outcome.D_ERR, tries=1, fails=3) is None


@given(st.integers(1, 10_000), st.floats(0.1, 1000), st.floats(1, 50), st.floats(1, 1e6))
def test_gaps_grow_up_to_their_greatest(
    tries: int, gap_s: float, factor: float, most_s: float
) -> None:
    retry = Retry(gap_s=gap_s, gap_factor=factor, gap_max_s=most_s)
    assert retry.gap(1) == min(gap_s, most_s)
    assert retry.gap(tries) <= retry.gap(tries + 1) <= most_s


def test_gaps_are_a_geometric_row() -> None:
    assert [Retry().gap(tries) for tries in (1, 2, 3)] == [10.0, 40.0, 160.0]


def test_only_failures_before_the_header_are_the_whole_sites() -> None:
    assert sorted(OF_THE_SITE) == ["cErr", "cTim", "noIP"]


def test_pages_come_breadth_first_the_often_failed_later_the_heavy_sooner() -> None:
    assert rank(0) < rank(1) < rank(2)
    assert rank(1) < rank(1, fails=1) < rank(1, fails=8) == rank(1, fails=100)
    assert rank(5, weight=10.0) < rank(0)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 20))
def test_a_rank_keeps_the_order_of_depths(depth: int, other: int, fails: int) -> None:
    assert (rank(depth, fails=fails) < rank(other, fails=fails)) == (depth < other)
