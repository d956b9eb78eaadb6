from __future__ import annotations

import pytest

from geomi import clock
from geomi.clock import Clock, JumpingClock, SystemClock


def test_a_jumping_clock_moves_only_when_told() -> None:
    clock = JumpingClock(start=100.0)
    assert (clock.now(), clock.boottime()) == (100.0, 0.0)
    clock.advance(3600)
    assert (clock.now(), clock.boottime()) == (3700.0, 3600.0)


def test_setting_the_date_leaves_counting_alone() -> None:
    clock = JumpingClock(start=100.0)
    clock.step(-50)
    assert (clock.now(), clock.boottime()) == (50.0, 0.0)


def test_time_does_not_pass_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        JumpingClock().advance(-1)


def test_the_systems_clock_counts_upwards() -> None:
    clock: Clock = SystemClock()
    before = clock.boottime()
    assert clock.boottime() >= before
    assert clock.now() > 1.7e9


def test_a_following_clock_knows_how_wrong_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = 100.0
    monkeypatch.setattr(clock, "boottime", lambda: counter)
    following = clock.FollowingClock(1000.0, is_exact=False)
    assert following.error()[0] == float("inf")  # it heard nothing yet
    counter = 100.02
    following.heard(1000.11, before=100.0)  # 0.1 ahead of it, half of 0.02 on the way
    error_s, drift = following.error()
    assert error_s == pytest.approx(0.11)
    counter = 101.02
    assert following.error()[0] == pytest.approx(0.11 + drift)
    counter = 110.0
    for _ in range(4_000):  # the store answers now and then
        counter += 0.25
        following.heard(counter + 900.1, before=counter)
    assert following.error()[0] < 0.001
    counter += 30.0
    assert 0.005 < following.error()[0] < 0.02  # nothing was heard for half a minute
    assert clock.FollowingClock(1000.0).error()[0] < 0.1  # all count on one clock
