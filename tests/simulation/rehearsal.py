"""Runs crawls in the simulator, with crashes, and says what is wrong afterwards."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from geomi import config
from geomi.cluster.simstore import COMMIT
from geomi.cluster.simulate import SimCrash, Simulation
from geomi.cluster.simweb import WorldWeb
from geomi.cluster.verify import BytesDisk, verify
from geomi.errors import ResourceError
from geomi.history.past import Past
from geomi.seeds.lists import Seed
from geomi.states import TRANSIENT
from geomi.store.postgres import PostgresStore
from geomi.world import Params, World, reachable
from geomi.world.changes import EPOCH_S

#: What can happen at any operation: see `crawl`.
KINDS = ("power", "kill", "agent", "full", "date")

_NO_FILE = Path("no-such-directory/geomi.toml")
REST_S = 0.5
#: A small world in which the disk is busy: short batches, small files, hasty manners.
HASTY = (
    "crawl.seen=exact", f"manners.rest_s={REST_S}", "manners.rest_factor=0",
    "agent.batch_visits=20", "archive.file_bytes=200000", "manners.address_rest_s=0.05",
    "retry.gap_s=5",
)  # fmt: skip


class OnPostgres(PostgresStore):
    """A real PostgreSQL; each transaction is a crash point before, and one after its commit."""

    def __init__(self, address: str, tick: Callable[[str], None]) -> None:
        super().__init__(address)
        self._tick = tick

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._inside:
            yield
            return
        self._tick("begin")
        with super().transaction():
            yield
            self._tick(COMMIT)
        self._tick("after the commit")


def simulation(
    seed: int, *, sites: int = 6, pages: int = 12, agents: int = 2,
    sets: tuple[str, ...] = HASTY, forgets_sync: bool = False,
    shares: Mapping[str, float] | None = None, trap_steps: int = 0, address: str = "",
) -> tuple[Simulation, World]:  # fmt: skip
    """`shares`: of the world; with them every name a site has is a seed. `address`: of a store."""
    world = World(
        Params(seed=seed, sites=sites, pages=pages, shares=shares or {}, trap_steps=trap_steps)
    )
    settings = config.load(_NO_FILE, list(sets))
    seeds = [Seed(url=url, source="test") for url in world.seeds(sites, copies=shares is not None)]
    sim = Simulation(
        WorldWeb(world, seed=seed), settings, seeds=seeds, agents=agents, seed=seed,
        forgets_sync=forgets_sync, start=EPOCH_S,
        store=partial(OnPostgres, address) if address else None,
    )  # fmt: skip
    return sim, world


def crawl(
    sim: Simulation, *, crash_ticks: list[int], kind: str, days: float = 5.0, again: bool = False
) -> list[str]:
    """A crawl with a crash at each of these operations (counted from the one before).

    `kind`: power (the machine), kill (all processes), agent (the one at work; another goes on),
    full (the disk, for half a minute), date (set by up to a day; a crawl that begins later takes
    it as it is), mixed (any of them). `again`: of all that is known; what is left of it after a
    crash goes on as it is.

    Returns what was acknowledged as visited and is not there after a crash.
    """
    lost: list[str] = []
    rng = random.Random(f"kinds {crash_ticks}")
    points = iter([(step, rng.choice(KINDS) if kind == "mixed" else kind) for step in crash_ticks])
    what = ""
    has_begun = False
    runs = sim.store.all("SELECT run FROM runs")

    def arm() -> None:
        nonlocal what
        step, what = next(points, (None, ""))
        sim.crash_at = None if step is None else sim.ticks + step
        sim.mishap = mishap if what in ("full", "date") else None

    def mishap() -> None:
        if what == "date":
            sim.set_date(rng.choice((-1, 1)) * rng.choice((2.0, 3_600.0, 86_400.0)))
        elif has_begun:
            sim.fill_disk(30.0)
        arm()

    deadline = sim.now + days * 86_400
    while True:
        arm()
        try:
            if not has_begun:
                sim.begin(again=again and sim.store.all("SELECT run FROM runs") == runs)
                has_begun = True
            if sim.advance(until=deadline):
                sim.finish()
                return lost
            lost.append("the crawl did not end")
            return lost
        except ResourceError:  # the disk was full at the end: the next crawl mends what is open
            sim.kill_all()
            has_begun = False
        except SimCrash:
            vouched = acknowledged(sim)
            if what == "agent" and has_begun and sim.working is not None:
                sim.replace(sim.working)
            else:
                has_begun = False
                if what == "power":
                    sim.power_cut()
                else:
                    sim.kill_all()
            missing = vouched - acknowledged(sim)
            lost += [f"visit {visit} was acknowledged and is lost" for visit in missing]


def acknowledged(sim: Simulation) -> set[int]:
    """Visits by number, wherever they are; one that is in two places is none."""
    past = Past.of(sim.store, lambda name: sim.files.readable(f"/sim/{name}"))
    here = [row[0] for row in sim.store.all("SELECT visit FROM visits")]
    moved = [row[0] for row in past.by_visit("visit")]
    numbers = Counter([*here, *moved])
    return {visit for visit, number in numbers.items() if number == 1}


def faults(sim: Simulation, world: World, *, again: bool = False, traps: bool = False) -> list[str]:
    """What is wrong with a finished crawl; empty: nothing.

    `again`: every page may be `same`; `traps`: the world has some, and they end.
    """
    wrong = []
    got = dict(sim.store.all("SELECT url, outcome FROM pages"))
    wanted = reachable(world, [seed.url for seed in sim.seeds], traps=traps)
    wrong += [f"missing: {url}" for url in wanted.keys() - got.keys()]
    wrong += [f"not reachable: {url}" for url in got.keys() - wanted.keys()]
    wrong += [
        f"{url}: {got[url]}, wanted {wanted[url].outcome}"
        for url in got.keys() & wanted.keys()
        if got[url] != wanted[url].outcome and not (again and got[url] == "same")
    ]
    final = [str(state) for state in TRANSIENT]
    marks = ",".join("?" * len(final))
    for url, number in sim.store.all(
        f"SELECT p.url, count(*) FROM visits v JOIN pages p ON p.page = v.page"
        f" WHERE v.page > 0 AND v.outcome NOT IN ({marks}) AND v.code < 500 AND v.code <> 429"
        " GROUP BY p.url, v.page, v.run HAVING count(*) > 1",
        final,
    ):
        wrong.append(f"{url}: committed {number} times")
    last: dict[str, float] = {}  # when each host was asked
    for seen in sorted(sim.log, key=lambda seen: seen.start):
        # (From start to start: a request whose asker died may end while the next one rests.)
        if seen.start - last.get(seen.host, -math.inf) < REST_S - 1e-6:
            wrong.append(f"{seen.url}: asked {seen.start - last[seen.host]:.3f} s after another")
        last[seen.host] = seen.start
    report = verify(
        sim.store, disk=BytesDisk(sim.files.data), where=lambda directory: f"/sim/{directory}"
    )
    wrong += [f"verify: {one.what} ({one.where})" for one in report.problems]
    return wrong


def rehearse(
    seed: int, *, crashes: int, kind: str, forgets_sync: bool = False, most_ticks: int = 400
) -> tuple[int, list[str]]:
    """(crash points visited, faults) of one crawl with so many crashes at random operations."""
    rng = random.Random(f"crash {kind} {seed}")
    sim, world = simulation(seed, forgets_sync=forgets_sync)
    ticks = [rng.randint(1, most_ticks) for _ in range(crashes)]
    wrong = crawl(sim, crash_ticks=ticks, kind=kind)
    return sim.crashes, [f"seed {seed}: {text}" for text in wrong + faults(sim, world)]
