from __future__ import annotations

import pytest

from geomi.frontier.hints import Hints
from geomi.states import Outcome


def test_hints_are_doubted_once_most_of_enough_led_nowhere() -> None:
    hints = Hints()
    for _ in range(9):
        hints.came(Outcome.CODE, 404)
    assert not hints.are_doubted
    hints.came(Outcome.CODE, 404)
    assert hints.are_doubted
    for _ in range(10):
        hints.came(Outcome.OK, 200)
    assert not hints.are_doubted  # half of them


@pytest.mark.parametrize(
    ("outcome", "code", "tried", "failed"),
    [
        (Outcome.OK, 200, 1, 0), (Outcome.SAME, 304, 1, 0), (Outcome.CUT, 200, 1, 0),
        (Outcome.CODE, 404, 1, 1), (Outcome.CODE, 400, 1, 1), (Outcome.GONE, 410, 1, 1),
        (Outcome.BAD, 0, 1, 1), (Outcome.CODE, 302, 0, 0), (Outcome.CODE, 503, 0, 0),
        (Outcome.H_TIM, 0, 0, 0), (Outcome.DENY, 0, 0, 0), (Outcome.NO_IP, 0, 0, 0),
    ],
)  # fmt: skip
def test_only_what_says_something_about_the_hint_counts(
    outcome: Outcome, code: int, tried: int, failed: int
) -> None:
    hints = Hints()
    hints.came(outcome, code)
    assert (hints.tried, hints.failed) == (tried, failed)


def test_a_site_that_became_better_is_believed_again() -> None:
    hints = Hints(tried=1000, failed=1000)
    for _ in range(250):
        hints.came(Outcome.OK, 200)
    assert not hints.are_doubted
    assert hints.tried <= 200
