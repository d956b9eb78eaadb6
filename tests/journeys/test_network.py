"""The network between a crawl and its PostgreSQL is cut, and comes back."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomi.world import Running
from journeys.crawling import end, start
from journeys.test_postgres import must_be_whole, slow, wait_for_visits, words
from postgres import Postgres, server

__all__ = ["slow"]

_OURS, _THEIRS = "10.213.77.1", "10.213.77.2"


class Wire:
    """A cable between this network and another one, which can be cut."""

    def __init__(self) -> None:
        self.space = f"geomi-{os.getpid()}"
        self._end = f"gm{os.getpid()}"

    def lay(self) -> None:
        far = self._end + "p"
        _ip("netns", "add", self.space)
        _ip("link", "add", self._end, "type", "veth", "peer", "name", far, "netns", self.space)
        _ip("addr", "add", f"{_OURS}/30", "dev", self._end)
        _ip("link", "set", self._end, "up")
        _ip("-n", self.space, "addr", "add", f"{_THEIRS}/30", "dev", far)
        _ip("-n", self.space, "link", "set", "lo", "up")
        self.join()

    def cut(self) -> None:
        """Nothing arrives any more, and nobody is told."""
        _ip("-n", self.space, "link", "set", self._end + "p", "down")

    def join(self) -> None:
        _ip("-n", self.space, "link", "set", self._end + "p", "up")

    def remove(self) -> None:
        subprocess.run(["ip", "link", "del", self._end], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, check=True)


@pytest.fixture
def wire() -> Iterator[Wire]:
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("setpriv") is None:
        pytest.skip("needs the right to make a network namespace")
    made = Wire()
    try:
        try:
            made.lay()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespace here: {error.stderr.decode().strip()}")
        yield made
    finally:
        made.remove()


@pytest.fixture
def far(wire: Wire) -> Iterator[Postgres]:
    with server(space=wire.space, host=_THEIRS) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_a_cut_network_costs_nothing_but_time(
    tmp_path: Path, slow: Running, far: Postgres, wire: Wire, number: int
) -> None:
    """Cuts of some seconds up to more than a lease: the agents pause, and go on or begin anew."""
    chance = random.Random(number)
    collection, address = tmp_path / "c", far.schema()
    process = start(*words(slow, collection, address))
    wait_for_visits(collection)
    wire.cut()
    time.sleep(chance.choice([3.0, 12.0, 30.0, 75.0]))
    wire.join()
    done = end(process, timeout_s=240)
    assert done.code == 0, done
    must_be_whole(slow, collection, address)
