"""The whole program against every evil server of the small world: outcomes, memory, neighbours."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from geomi.states import Outcome
from geomi.url import canonical
from geomi.world import Params, Running, serve
from geomi.world.evil import EVILS, Evil
from geomi.world.features import PLAIN
from journeys.crawling import agents_of, end, geomi, must_be_sound, pages, settings, start

#: What is slow on purpose never says a second byte; everything else is given time.
HASTE = (
    "manners.rest_s=0.1", "manners.rest_factor=0", "manners.address_rest_s=0", "retry.gap_s=0.1",
    "retry.attempts=2", "fetch.idle_s=1.5", "fetch.total_s=20", "fetch.connect_s=3",
)  # fmt: skip
MIB = 1024
#: Grown by at most so much, for one case (docs/design/wild-web.md).
MOST_MIB = 50


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    params = Params(seed=1, sites=4, pages=25, shares=PLAIN, evil=True, pause_s=3600.0)
    with serve(params) as running:
        yield running


@dataclass
class Watch:
    """Most memory that an agent of a crawl ever held, in KiB."""

    peak: int = 0
    began: float = field(default_factory=time.time)

    def follow(self, supervisor: int, until: threading.Event) -> None:
        while not until.wait(0.05):
            for agent in agents_of(supervisor):
                try:
                    status = Path(f"/proc/{agent}/status").read_text()
                except OSError:
                    continue
                if "VmHWM:" in status:
                    high = int(status.partition("VmHWM:")[2].split()[0])
                    self.peak = max(self.peak, high)


def crawl(running: Running, collection: Path, seeds: list[str]) -> Watch:
    """A crawl in which loopback proper is no public network."""
    listed = collection.with_suffix(".txt")
    listed.write_text("".join(f"{url}\n" for url in seeds))
    process = start(
        "crawl", collection, "--seeds", listed, "--allow-network", "127.64.0.0/10",
        *settings(*HASTE, f'dns.servers=["127.0.0.1:{running.dns_port}"]'),
    )  # fmt: skip
    watch, over = Watch(), threading.Event()
    thread = threading.Thread(target=watch.follow, args=(process.pid, over))
    thread.start()
    try:
        done = end(process, timeout_s=180)
    finally:
        over.set()
        thread.join()
    assert done.code == 0, done.err
    return watch


def wrong(collection: Path, evils: list[tuple[Evil, str]]) -> dict[str, object]:
    """Entries whose page did not come to what it should."""
    found = {row["url"]: row for row in pages(collection)}
    came = {entry.name: found.get(canonical(url) or "") for entry, url in evils}
    return {
        entry.name: (came[entry.name], entry.expect)
        for entry, _ in evils
        if (row := came[entry.name]) is None or row["outcome"] not in entry.expect
    }


def test_every_evil_server_has_its_outcome_and_no_neighbour_suffers(
    tmp_path: Path, running: Running
) -> None:
    collection = tmp_path / "c"
    before = len(running.log())
    crawl(running, collection, [url for _, url in running.evils()] + running.seeds())
    assert wrong(collection, running.evils()) == {}
    rows = pages(collection)
    good = [row for row in rows if row["url"].startswith(tuple(running.seeds()))]
    assert len(good) > 50
    assert {row["outcome"] for row in good} == {"OK"}
    asked = running.log()[before:]
    # Nothing but what listens in the world's networks was asked, and no robots.txt without end.
    assert all(row.address.startswith(("127.64.", "127.65.", "127.126.255.")) for row in asked)
    sizes: dict[str, int] = defaultdict(int)
    for row in asked:
        if row.target == "/robots.txt" and row.host.startswith("robots-endless"):
            sizes[row.host] += row.size_bytes
    assert 0 < max(sizes.values()) < 16 * 2**20
    skipped = {row["why"] for row in rows if row["outcome"] == Outcome.SKIP}
    assert {"guard:loopback", "guard:private", "guard:link-local", "url_length"} <= skipped
    count = geomi("status", collection, "--json").facts["counters"]
    assert count["links.cut"] > 500_000
    for name in (
        "guard.refused", "links.bad", "redirects.bad", "refused.guard", "refused.robots",
        "robots.cut", "truncated.length", "truncated.disconnect", "truncated.time",
    ):  # fmt: skip
        assert count[name] > 0, name
    must_be_sound(collection)


#: Those that cost a careless agent memory or time, and for comparison one that does not.
HEAVY = ("million-links", "nested", "nested-tables", "endless-body", "endless-header", "one-tag",
         "attributes", "unclosed-comments", "gzip-bomb", "gzip-thrice", "long-links", "cookies",
         "redirect-long", "robots-huge", "robots-endless", "flood-1xx", "big-page")  # fmt: skip


@pytest.fixture(scope="module")
def usual_kib(tmp_path_factory: pytest.TempPathFactory, running: Running) -> int:
    """What an agent holds that meets nobody evil."""
    return crawl(running, tmp_path_factory.mktemp("usual") / "c", running.seeds()).peak


@pytest.mark.long
@pytest.mark.parametrize("name", HEAVY)
def test_no_evil_server_costs_an_agent_much_memory_or_its_neighbours_time(
    tmp_path: Path, running: Running, usual_kib: int, name: str
) -> None:
    evils = [(entry, url) for entry, url in running.evils() if entry.name == name]
    before = len(running.log())
    seen = crawl(running, tmp_path / "c", [url for _, url in evils] + running.seeds())
    assert wrong(tmp_path / "c", evils) == {}
    assert seen.peak - usual_kib < MOST_MIB * MIB, (seen.peak // MIB, usual_kib // MIB)
    times: dict[str, list[float]] = defaultdict(list)
    for row in running.log()[before:]:
        if "evil" not in row.host:
            times[row.host].append(row.started_s)
    gaps = [later - sooner for one in times.values() for sooner, later in pairwise(sorted(one))]
    assert len(times) == len(running.seeds())
    assert max(gaps) < 1.5  # the rest is 0.1 s; the slack is for a busy machine


def test_the_table_of_heavy_ones_names_entries() -> None:
    assert set(HEAVY) <= {entry.name for entry in EVILS}
