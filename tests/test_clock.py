from __future__ import annotations

import pytest

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
