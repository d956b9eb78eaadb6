"""When the coordinator looks again."""

from __future__ import annotations

import pytest

from geomi.cluster.rounds import FULL, LEAST_S, MOST_S, Rounds


@pytest.mark.parametrize(
    ("age", "done", "pause"),
    [
        (0.0, 0, LEAST_S), (1.0, 0, LEAST_S), (10.0, 0, 0.2), (60.0, 0, MOST_S), (9e9, 0, MOST_S),
        (0.0, 1, 0.0), (1.0, 1, 0.01), (20.0, 7, 0.2), (9e9, FULL - 1, MOST_S),
        (9e9, FULL, 0.0), (0.0, FULL, 0.0),
        (-5.0, 0, LEAST_S),
    ],
)  # fmt: skip
def test_rounds_get_rarer_with_the_age_of_a_crawl(age: float, done: int, pause: float) -> None:
    assert Rounds(100.0).pause(100.0 + age, done=done) == pytest.approx(pause)


def test_what_is_noticed_late_is_late_by_a_small_share_of_the_crawl() -> None:
    rounds = Rounds(0.0)
    for age in (5.0, 7.5, 20.0, 3600.0):
        assert rounds.pause(age, done=0) <= age * 0.02 + 1e-9
