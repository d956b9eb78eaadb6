"""A crawl on a real Ray cluster: agents are actors on its nodes, and nodes may die."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from geomi.world import Params, Running, reachable, serve
from geomi.world.features import PROMPT
from journeys.crawling import (
    ENVIRONMENT,
    agents_of,
    end,
    geomi,
    must_be_sound,
    outcomes,
    settings,
    start,
    to_world,
)
from rays import Nodes, cluster

_SLOWLY = (
    "manners.rest_s=0.04", "manners.rest_factor=0", "manners.address_rest_s=0",
    "retry.gap_s=0.05", "fetch.connect_s=2", "agent.batch_s=0.1", "agent.batch_visits=10",
    "crawl.seen=exact",
)  # fmt: skip


@pytest.fixture(scope="module")
def web() -> Iterator[Running]:
    with serve(Params(seed=71, sites=10, pages=24, shares=PROMPT)) as running:
        yield running


@pytest.fixture(scope="module")
def calm() -> Iterator[Nodes]:
    """For tests that kill none."""
    with cluster() as running:
        yield running


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with cluster() as running:
        yield running


def words(web: Running, collection: Path, nodes: Nodes) -> list[object]:
    return ["crawl", collection, *web.seeds(), *to_world(web), *settings(*_SLOWLY), "--agents", "3",
            "--engine", "ray", "--address", nodes.address, "--json"]  # fmt: skip


def must_be_whole(web: Running, collection: Path) -> None:
    wanted = {url: one.outcome for url, one in reachable(web.world, web.seeds()).items()}
    assert outcomes(collection) == wanted
    must_be_sound(collection)


def test_a_crawl_on_ray_finds_what_is_reachable(tmp_path: Path, web: Running, calm: Nodes) -> None:
    found = geomi("cluster", "status", "--address", calm.address, "--json").facts["nodes"]
    assert [node["is_alive"] for node in found] == [True, True]
    ended = geomi(*words(web, tmp_path / "c", calm), timeout_s=120).facts
    assert (ended["ended"], ended["restarts"]) == ("by itself", 0)
    must_be_whole(web, tmp_path / "c")


def test_a_node_that_dies_costs_nothing_but_time(
    tmp_path: Path, web: Running, nodes: Nodes
) -> None:
    collection = tmp_path / "c"
    process = start(*words(web, collection, nodes))
    wait_for_visits(collection)
    nodes.kill(1)
    done = end(process, timeout_s=180)
    assert done.code == 0, done
    must_be_whole(web, collection)


def test_agents_end_with_their_coordinator_and_the_next_crawl_goes_on(
    tmp_path: Path, web: Running, nodes: Nodes
) -> None:
    collection = tmp_path / "c"
    process = start(*words(web, collection, nodes))
    wait_for_visits(collection)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert agents_of(process.pid) == []
    ended = geomi(*words(web, collection, nodes), timeout_s=120).facts
    assert ended["ended"] == "by itself"
    must_be_whole(web, collection)


def wait_for_visits(collection: Path) -> None:
    """Until some pages are in: the agents work."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if (collection / "geomi.db").exists():
            status = geomi("status", collection, "--json", code=None)
            if status.code == 0 and status.facts["visits"] > 20:
                return
        time.sleep(0.2)
    raise AssertionError("no agent has visited anything")


def test_a_cluster_of_another_ray_is_one_clear_sentence_and_nothing_is_made(
    tmp_path: Path, calm: Nodes
) -> None:
    program = "import ray; ray.__version__ = '0.0.1'; from geomi.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "crawl", tmp_path / "c", "http://example.org/",
         "--engine", "ray", "--address", calm.address],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("geomi: ")]
    assert f"the Ray cluster at {calm.address} is another Ray" in said
    assert "0.0.1" in said and ray.__version__ in said
    assert not (tmp_path / "c").exists()


def test_no_cluster_is_one_clear_sentence_and_nothing_is_made(tmp_path: Path) -> None:
    done = geomi("crawl", tmp_path / "c", "http://example.org/", "--engine", "ray",
                 "--address", "127.0.0.2:9", code=2, timeout_s=120)  # fmt: skip
    assert "no Ray cluster at 127.0.0.2:9" in done.err
    assert not (tmp_path / "c").exists()
