"""Agents made ready before they are needed: children like any other, that know how to end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from geomi.cluster.forked import Forked
from geomi.cluster.local import LocalEngine


@pytest.fixture
def waiting() -> Iterator[Forked]:
    one = Forked()
    yield one
    one.send_signal(signal.SIGKILL)
    one.wait()
    one.stdin.close()


def test_who_gets_no_orders_waits_and_ends_well_with_its_pipe(waiting: Forked) -> None:
    assert waiting.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.05)
    waiting.stdin.close()
    assert waiting.wait(30) == 0
    assert waiting.poll() == 0


def test_a_signal_ends_it_and_a_later_one_reaches_nobody(waiting: Forked) -> None:
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(30) == -signal.SIGTERM
    waiting.send_signal(signal.SIGKILL)


def test_one_does_not_keep_the_pipe_of_another_open(waiting: Forked) -> None:
    later = Forked()
    waiting.stdin.close()
    assert waiting.wait(30) == 0
    later.stdin.close()
    assert later.wait(30) == 0


def test_an_engine_lets_go_of_those_that_were_not_needed() -> None:
    with closing(LocalEngine()) as engine:
        engine.ready(2)
        waiting = list(engine._waiting)
    assert [one.poll() for one in waiting] == [0, 0]
