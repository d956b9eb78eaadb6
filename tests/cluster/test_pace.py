"""Looks that come now and then."""

from __future__ import annotations

from geomi.cluster.pace import Pace


def test_a_look_is_let_through_once_in_its_time() -> None:
    pace = Pace(2.0)
    assert [at for at in range(100, 107) if pace.is_time(float(at))] == [100, 102, 104, 106]


def test_a_look_may_be_asked_for_sooner_but_not_put_off() -> None:
    pace = Pace(2.0)
    assert pace.is_time(100.0)
    pace.come_again(101.0)
    pace.come_again(150.0)
    assert not pace.is_time(100.9)
    assert pace.is_time(101.0)


def test_a_clock_that_is_set_back_stops_no_look() -> None:
    pace = Pace(2.0)
    assert pace.is_time(1_000.0)
    assert pace.is_time(10.0)
