"""Crawls in virtual time: made-up webs of any size, files that are only counted, a log that judges.

The agents, the coordinator and the store are those that ship; the web and the disk are made up.
"""

from __future__ import annotations

import random
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from geomi import config
from geomi.cluster.commands import Command
from geomi.cluster.simulate import SimAgent, Simulation
from geomi.cluster.simweb import Reply, Seen
from geomi.fetch.request import Fetch
from geomi.records import Page, Target
from geomi.seeds.lists import Seed
from geomi.states import Outcome

TINY = 1e-6
_DRIVE_S = 0.1  # between two rounds of the real drive
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
_NO_RULES = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\n"


class Lot:
    """Sites `s0.lot.test` … of some ten to hundreds of pages; three in ten share an address."""

    def __init__(self, sites: int, *, mean_pages: int, least: int = 2, crowd: int = 10) -> None:
        self.sites = sites
        self._mean = mean_pages
        self._least = least
        self._crowd = crowd  # sites on each shared address

    mean_seconds = 0.02 + 0.1 / 3  # of an answer

    def pages(self, number: int) -> int:
        """Besides the front page: most sites are small, some have several times the mean."""
        share = random.Random(number).expovariate(1.0)
        return self._least + round(share * max(0, self._mean - self._least))

    def resolve(self, name: str) -> tuple[Sequence[str], float]:
        number = number_of(name)
        at = number
        if number % 10 >= 7:
            at = 2_000_000 + number * 2_654_435_761 % max(1, self.sites * 3 // 10 // self._crowd)
        return [f"127.{64 + (at >> 16)}.{at >> 8 & 255}.{at & 255}"], 86_400.0

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        if fetch.target == "/robots.txt":
            return Reply(outcome=Outcome.CODE, code=404, head=_NO_RULES, seconds=0.03)
        seconds = 0.02 + 0.1 * (hash_of(fetch.url) % 1000 / 1000.0) ** 2
        body = fetch.url.encode()
        return Reply(outcome=Outcome.OK, code=200, head=_HEAD, body=body, seconds=seconds)


class Links:
    """In the extractor's place: a front page links to all pages of its site.

    `across`: so many links to pages of other sites on each page."""

    def __init__(self, lot: Lot, *, across: float = 0.0) -> None:
        self._lot = lot
        self._across = across

    def page(self, url: str, head: object, body: bytes) -> Page:
        page = Page(mime="text/html")
        site = url.split("/", 3)[2]
        if url.endswith("/"):
            number = number_of(site)
            page.links = [("a", Target(f"{url}{n}", site)) for n in range(self._lot.pages(number))]
        chance = random.Random(url) if self._across else None
        if chance is not None and chance.random() < self._across:
            other = chance.randrange(self._lot.sites)
            name = f"s{other}.lot.test"
            page.links.append(("a", Target(f"http://{name}/{chance.randrange(4)}", name)))
        return page


def number_of(host: str) -> int:
    return int(host[1:].partition(".")[0])


def hash_of(text: str) -> int:
    """The same in every process."""
    from zlib import crc32

    return crc32(text.encode())


class CountedFiles:
    """In the place of files: lengths alone, so that a million pages need no memory."""

    def __init__(self) -> None:
        self._length: dict[str, int] = {}
        self.bytes = 0

    def create(self, path: str) -> None:
        self._length[path] = 0

    def append(self, path: str, parts: Iterable[bytes]) -> int:
        more = sum(map(len, parts))
        self._length[path] += more
        self.bytes += more
        return self._length[path]

    def sync(self, path: str) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        pass

    def truncate(self, path: str, length: int) -> None:
        self._length[path] = length

    def rename(self, old: str, new: str) -> None:
        self._length[new] = self._length.pop(old)

    def remove(self, path: str) -> None:
        self._length.pop(path, None)

    def size(self, path: str) -> int | None:
        return self._length.get(path)

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        self._length[path] = sum(map(len, chunks))

    def close(self) -> None:
        pass


class Judge(list[Seen]):
    """In the place of the servers' log: judges every gap as it comes, and keeps only sums."""

    def __init__(self, *, rest_s: float, address_rest_s: float, second_s: float) -> None:
        super().__init__()
        self._rest_s = rest_s
        self._address_rest_s = address_rest_s
        self._began = 0.0
        self._second_s = second_s  # length of one entry of `series`
        self._host_ended: dict[str, float] = {}
        self._address_started: dict[str, float] = {}
        self.requests = 0
        self.broken = 0  # gaps shorter than the rules allow
        self.least_host_gap_s = self.least_address_gap_s = float("inf")
        self.by_agent: Counter[str] = Counter()
        self.by_host: Counter[str] = Counter()
        self.series: defaultdict[int, int] = defaultdict(int)

    def begin(self, at: float) -> None:
        self._began = at

    def append(self, seen: Seen) -> None:
        self.requests += 1
        ended = self._host_ended.get(seen.host)
        if ended is not None:
            gap = seen.start - ended
            self.least_host_gap_s = min(self.least_host_gap_s, gap)
            self.broken += gap < self._rest_s - TINY
        self._host_ended[seen.host] = seen.end
        started = self._address_started.get(seen.address)
        if started is not None:
            gap = seen.start - started
            self.least_address_gap_s = min(self.least_address_gap_s, gap)
            self.broken += gap < self._address_rest_s - TINY
        self._address_started[seen.address] = seen.start
        self.by_agent[seen.agent] += 1
        self.by_host[seen.host] += 1
        self.series[int((seen.start - self._began) / self._second_s)] += 1


class Rehearsal(Simulation):
    """A simulation whose coordinator works as often as the real one, and is timed."""

    def prepare(self, judge: Judge) -> None:
        """Before it begins."""
        self.files = CountedFiles()  # type: ignore[assignment]
        self.log = judge
        judge.begin(self.began)
        self.rounds = 0
        self.coordinator_s = 0.0  # CPU in rounds
        self.longest_round_s = 0.0
        self.letters = 0  # delivered
        self.jobs: Counter[str] = Counter()  # of the agents' store threads
        self.jobs_s: defaultdict[str, list[float]] = defaultdict(list)  # how long each took
        self.write_cpu_s = 0.0
        self.command = ""
        self._is_finished = False

    def _carry_out(self, agent: SimAgent, command: Command) -> None:
        self.command = type(command).__name__
        super()._carry_out(agent, command)

    def _store_job(
        self, agent: SimAgent, work: Callable[[], Any], then: Callable[[Any], None]
    ) -> None:
        name = self.command

        def timed() -> Any:
            began, cpu = time.perf_counter(), time.process_time()
            result = work()
            self.jobs[name] += 1
            self.jobs_s[name].append(time.perf_counter() - began)
            if name == "Write":
                self.write_cpu_s += time.process_time() - cpu
            return result

        super()._store_job(agent, timed, then)

    def _round(self) -> None:
        began = time.process_time()
        busy = self.coordinator.step(run=self.run, now=self.now)
        self.letters += busy
        self._is_finished = not busy and self.coordinator.is_over(now=self.now)
        took = time.process_time() - began
        self.rounds += 1
        self.coordinator_s += took
        self.longest_round_s = max(self.longest_round_s, took)
        self._at(self.now + _DRIVE_S, self._round)

    def is_over(self) -> bool:
        return self._is_finished


def rehearse(
    lot: Any, *, sets: Sequence[str], agents: int, seeds: Iterator[Seed], extractor: Any,
    rest_s: float, address_rest_s: float, store: Any = None, second_s: float = 1.0,
) -> tuple[Rehearsal, Judge]:  # fmt: skip
    """A crawl that has begun. `advance` runs it."""
    settings = config.load(Path("no-such-directory/geomi.toml"), [
        f"manners.rest_s={rest_s:g}", "manners.rest_factor=0",
        f"manners.address_rest_s={address_rest_s:g}", *sets,
    ])  # fmt: skip
    sim = Rehearsal(lot, settings, seeds=seeds, agents=agents, extractor=extractor, store=store)
    judge = Judge(rest_s=rest_s, address_rest_s=address_rest_s, second_s=second_s)
    sim.prepare(judge)
    sim.begin()
    sim.seeds = []
    return sim, judge


def resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
