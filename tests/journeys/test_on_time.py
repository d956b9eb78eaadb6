"""Agents that are late, by the time at which requests arrive: no gap is too short by it.

A busy machine is made by stopping the processes for moments, wherever they are.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from journeys.crawling import agents_of, end, geomi, must_be_sound, outcomes, settings, start
from journeys.stamped import Stamped, stamped

GAP_S, REST_S = 0.03, 0.1
TINY = 0.0005  # what the kernel's clock and way over loopback differ by

_MANNERS = (
    f"manners.rest_s={REST_S}", "manners.rest_factor=0", f"manners.address_rest_s={GAP_S}",
    "retry.gap_s=0.05", "agent.batch_s=0.1", "agent.batch_visits=10", "crawl.seen=exact",
)  # fmt: skip


def words(web: Stamped, collection: Path, *more: str) -> list[object]:
    return ["crawl", collection, *web.seeds, *web.options, *settings(*_MANNERS, *more), "--json"]


def must_have_been_polite(web: Stamped, gap_s: float = GAP_S) -> None:
    assert min(web.gaps().values()) >= gap_s - TINY, web.gaps()
    assert min(web.rests().values()) >= REST_S - TINY, web.rests()


def must_be_whole(web: Stamped, collection: Path) -> None:
    assert outcomes(collection) == dict.fromkeys(web.urls, "OK")
    asked = [(one.host, one.target) for one in web.log]
    assert set(asked) >= {(url.split("/")[2], "/" + url.split("/")[3]) for url in web.urls}
    must_be_sound(collection)
    assert geomi("verify", collection, "--politeness", "--json").facts["ok"]


def with_pauses(
    process: subprocess.Popen[str], whom: Callable[[], list[int]], rng: random.Random, *,
    most_s: float, every_s: float,
) -> int:  # fmt: skip
    """Stops them for moments until the crawl has ended; how often."""
    number = 0
    while process.poll() is None:
        time.sleep(rng.uniform(0, every_s))
        stopped = [one for one in whom() if rng.random() < 0.7]
        for signals, pause_s in ((signal.SIGSTOP, rng.uniform(0, most_s)), (signal.SIGCONT, 0.0)):
            for one in stopped:
                with suppress(ProcessLookupError):
                    os.kill(one, signals)
            time.sleep(pause_s)
        number += 1
    return number


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 21))]
)
def test_agents_that_are_stopped_for_moments_keep_every_gap(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    with stamped(hosts=16, pages=10) as web:
        process = start(*words(web, tmp_path / "c", "manners.address_slots=1"), "--agents", "2")
        pauses = with_pauses(process, lambda: agents_of(process.pid), rng, most_s=0.1, every_s=0.1)
        assert end(process).code == 0
        assert pauses > 10
        must_have_been_polite(web)
        must_be_whole(web, tmp_path / "c")
