"""Killed, interrupted, out of disk: the crawl goes on, and nothing is missing or there twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geomi.world import Params, Running, reachable, serve
from geomi.world.features import PROMPT
from journeys.crawling import (
    agents_of,
    end,
    geomi,
    kill,
    must_be_sound,
    outcomes,
    settings,
    start,
    to_world,
)

#: Slow enough that a random moment of some seconds falls into the crawl.
_SLOWLY = (
    "manners.rest_s=0.1", "manners.rest_factor=0", "manners.address_rest_s=0",
    "retry.gap_s=0.05", "fetch.connect_s=2", "agent.batch_s=0.1", "agent.batch_visits=10",
    "crawl.seen=exact",
)  # fmt: skip


@pytest.fixture(scope="module")
def slow() -> Iterator[Running]:
    with serve(Params(seed=70, sites=10, pages=24, shares=PROMPT)) as running:
        yield running


def words(running: Running, collection: Path, *more: str) -> list[object]:
    return ["crawl", collection, *running.seeds(), *to_world(running), *settings(*_SLOWLY),
            "--agents", "2", "--json", *more]  # fmt: skip


def until_visits(process: subprocess.Popen[str], collection: Path, number: int) -> None:
    """Waits until so many visits are in the store, while the crawl runs."""
    limit = time.monotonic() + 30.0
    while process.poll() is None and time.monotonic() < limit:
        try:
            with closing(sqlite3.connect(f"file:{collection}/geomi.db?mode=ro", uri=True)) as db:
                if db.execute("SELECT count(*) FROM visits").fetchone()[0] >= number:
                    return
        except sqlite3.OperationalError:  # not made yet
            pass
        time.sleep(0.02)
    raise AssertionError(f"no {number} visits; exit {process.poll()}")


def nothing_twice(collection: Path) -> None:
    """No page was fetched well twice in a run, unless it was wanted twice."""
    with sqlite3.connect(f"file:{collection}/geomi.db?mode=ro", uri=True) as db:
        twice = db.execute(
            "SELECT p.url, v.run, count(*) FROM visits v JOIN pages p ON p.page = v.page"
            " WHERE v.outcome = 'OK' GROUP BY v.page, v.run HAVING count(*) > 1"
        ).fetchall()
        places = db.execute(
            'SELECT file, "offset", count(*) FROM visits WHERE file > 0'
            ' GROUP BY file, "offset" HAVING count(*) > 1'
        ).fetchall()
    assert (twice, places) == ([], [])


def must_be_whole(running: Running, collection: Path) -> None:
    wanted = {url: one.outcome for url, one in reachable(running.world, running.seeds()).items()}
    assert outcomes(collection) == wanted
    nothing_twice(collection)
    must_be_sound(collection)


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 17))]
)
def test_killed_at_random_moments_nothing_is_missing_and_nothing_is_there_twice(
    tmp_path: Path, slow: Running, number: int
) -> None:
    """Three kills each: of an agent, of the supervisor, of all at once."""
    chance = random.Random(number)
    collection = tmp_path / "c"
    for whom in chance.sample(["agent", "supervisor", "all"], 3):
        process = start(*words(slow, collection))
        time.sleep(chance.uniform(0.4, 1.6))
        agents = agents_of(process.pid)
        if whom == "agent" and agents:
            kill(chance.choice(agents))
            time.sleep(chance.uniform(0.1, 1.0))  # the next agent starts meanwhile, or does not
            agents = agents_of(process.pid)
        kill(process.pid)
        if whom != "supervisor":
            for agent in agents:
                kill(agent)
        process.communicate(timeout=60)
    geomi(*words(slow, collection))
    must_be_whole(slow, collection)


def test_an_interrupted_crawl_exits_1_and_the_same_command_goes_on(
    tmp_path: Path, slow: Running, request: pytest.FixtureRequest
) -> None:
    collection = tmp_path / "c"
    # A test that itself runs under nohup would hand that on, and then the crawl rightly goes on.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(signal.SIGHUP, before))
    for visits, number in ((15, signal.SIGINT), (60, signal.SIGTERM), (100, signal.SIGHUP)):
        process = start(*words(slow, collection))
        until_visits(process, collection, visits)
        process.send_signal(number)
        done = end(process, timeout_s=30)
        assert done.code == 1, done
        assert done.facts["ended"] == "interrupted"
        assert done.facts["pages"]["pending"] > 0
        must_be_sound(collection)  # in between too
    assert geomi(*words(slow, collection)).facts["run"] == 1
    must_be_whole(slow, collection)


def test_a_second_interrupt_ends_at_once_and_loses_nothing(tmp_path: Path, slow: Running) -> None:
    collection = tmp_path / "c"
    process = start(*words(slow, collection))
    until_visits(process, collection, 15)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert end(process, timeout_s=30).code == 1
    geomi(*words(slow, collection))
    must_be_whole(slow, collection)


def test_while_one_crawls_a_second_is_refused_and_readers_are_not(
    tmp_path: Path, slow: Running
) -> None:
    collection = tmp_path / "c"
    process = start(*words(slow, collection))
    until_visits(process, collection, 1)
    second = geomi("crawl", collection, code=2)
    assert f"process {process.pid}" in second.err
    assert second.err.count("\n") == 1
    assert geomi("status", collection, "--json").facts["visits"] >= 0
    geomi("pages", collection, "--json")
    process.send_signal(signal.SIGINT)
    assert end(process).code == 1


def until_full(process: subprocess.Popen[str]) -> str:
    """The line that says so. A crawl that ends or says nothing for long fails the test."""
    assert process.stderr is not None
    watch = threading.Timer(40.0, process.kill)
    watch.start()
    for line in iter(process.stderr.readline, ""):
        if "the disk is full" in line:
            watch.cancel()
            return line
    watch.cancel()
    raise AssertionError(f"it never said that the disk is full; exit {process.wait()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 48 MiB of its own; SQLite's log alone may take 16."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs the right to mount a small disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk],
                      capture_output=True, check=False).returncode:  # fmt: skip
        pytest.skip("mounting is not permitted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_pauses_the_crawl_until_there_is_room(small_disk: Path, slow: Running) -> None:
    collection = small_disk / "c"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(47 * 2**20))
    process = start(*words(slow, collection, "--agents", "1"))
    said = until_full(process)
    ballast.unlink()
    done = end(process)
    assert done.code == 0, (done, said)
    assert "pauses" in said
    must_be_whole(slow, collection)


def test_a_crawl_on_a_disk_that_stays_full_can_be_stopped_and_goes_on_later(
    small_disk: Path, slow: Running
) -> None:
    collection = small_disk / "c"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(47 * 2**20))
    process = start(*words(slow, collection, "--agents", "1"))
    until_full(process)
    process.send_signal(signal.SIGINT)
    assert end(process, timeout_s=60).code == 1
    ballast.unlink()
    geomi(*words(slow, collection))
    must_be_whole(slow, collection)
