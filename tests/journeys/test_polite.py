"""Politeness of the whole program, judged by the servers' own log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from itertools import pairwise
from pathlib import Path

import pytest

from geomi import url as urls
from geomi.world import Params, Running, reachable, serve
from geomi.world.features import PROMPT
from geomi.world.server import LogRow
from journeys.crawling import geomi, outcomes, settings, to_world

REST_S, ADDRESS_REST_S, CRAWL_DELAY_S = 0.12, 0.05, 0.3
#: What the server may come late to its clock on a busy machine, where a thread waits for its turn.
SLACK_S = 0.02


@pytest.fixture(scope="module")
def crowded() -> Iterator[Running]:
    """Many names on few addresses; some robots.txt ask for a delay."""
    shares = {**PROMPT, "robots.delay": 0.3, "robots.none": 0.2, "habit.shared": 0.9}
    with serve(
        Params(seed=90, sites=24, pages=8, addresses=3, crawl_delay_s=CRAWL_DELAY_S, shares=shares)
    ) as running:
        yield running


def by(log: list[LogRow], key: Callable[[LogRow], str]) -> dict[str, list[LogRow]]:
    found: dict[str, list[LogRow]] = defaultdict(list)
    for row in sorted(log, key=lambda row: row.started_s):
        found[key(row)].append(row)
    return found


def once(running: Running, found: Iterable[str]) -> None:
    """Each page is made once, so that none keeps the server from looking at its clock later."""
    connection = HTTPConnection("127.64.0.1", running.port, timeout=30)
    for url in [*found, *(f"{seed}robots.txt" for seed in running.seeds())]:
        parts = urls.split(url)
        if parts.scheme == "http" and running.world.resolve(parts.host)[0]:
            with suppress(OSError, HTTPException):
                connection.request("GET", parts.target, headers={"Host": parts.site})
                connection.getresponse().read()
    connection.close()


def test_no_server_sees_a_gap_below_its_rule(tmp_path: Path, crowded: Running) -> None:
    texts = (
        f"manners.rest_s={REST_S}", "manners.rest_factor=0", "crawl.seen=exact",
        f"manners.address_rest_s={ADDRESS_REST_S}", "retry.gap_s=0.1", "fetch.connect_s=2",
    )  # fmt: skip
    wanted = {u: one.outcome for u, one in reachable(crowded.world, crowded.seeds()).items()}
    once(crowded, wanted)
    began = len(crowded.log())
    geomi("crawl", tmp_path / "c", *crowded.seeds(), *to_world(crowded), *settings(*texts),
          "--agents", "2", "--json")  # fmt: skip
    log = crowded.log()[began:]
    assert outcomes(tmp_path / "c") == wanted
    delayed = {site.base.partition("://")[2] for site in crowded.world.sites if site.robots.delay}
    assert delayed
    for host, rows in by(log, lambda row: row.host).items():
        rest_s = CRAWL_DELAY_S if host in delayed else REST_S
        for before, after in pairwise(rows):
            assert after.started_s - before.ended_s >= rest_s - SLACK_S, (before, after)
    for address, rows in by(log, lambda row: row.address).items():
        for before, after in pairwise(rows):
            assert after.started_s - before.started_s >= ADDRESS_REST_S - SLACK_S, address
    judged = geomi("verify", tmp_path / "c", "--politeness", "--json").facts
    assert judged["ok"]


def test_a_server_that_says_retry_after_is_left_alone_so_long(tmp_path: Path) -> None:
    shares = {**PROMPT, "e503": 0.3}
    with serve(Params(seed=91, sites=2, pages=12, retry_after_s=1, shares=shares)) as running:
        texts = ("manners.rest_s=0", "manners.rest_factor=0", "manners.address_rest_s=0",
                 "retry.gap_s=0.01", "retry.attempts=2")  # fmt: skip
        geomi("crawl", tmp_path / "c", *running.seeds(1), *to_world(running), *settings(*texts))
        rows = sorted(running.log(), key=lambda row: row.started_s)
    busy = [(before, after) for before, after in pairwise(rows) if before.status == 503]
    assert busy
    for before, after in busy:
        assert after.started_s - before.ended_s >= 1.0 - SLACK_S
