"""A crawl from beginning to end: the coordinator's rounds, and an engine that runs the agents."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from geomi.archive.files import RealFiles
from geomi.cluster.collection import Collection
from geomi.cluster.coordinator import Coordinator, must_have_seeds
from geomi.cluster.engine import Engine, Keeper, Orders
from geomi.cluster.indexes import Keeping
from geomi.cluster.learning import learn
from geomi.cluster.mover import Mover
from geomi.cluster.recover import recover
from geomi.cluster.rounds import Rounds
from geomi.cluster.standing import Standing
from geomi.config import Settings
from geomi.errors import ConflictError, ResourceError
from geomi.frontier.counters import counter
from geomi.seeds.lists import Seed
from geomi.store import Store

_PAUSE_S = 1.0  # between looks at a disk that was full
_MOVE_PAUSE_S = 60.0  # after old visits could not be moved
_STOP_S = 30.0  # agents that have not ended by then are killed; nothing committed is lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a crawl ended. `why` is empty when it ended by itself."""

    run: int
    why: str
    standing: Standing
    seconds: float
    restarts: int


class Drive:
    """Drives agents until the crawl is over, limited or interrupted."""

    def __init__(
        self,
        collection: Collection,
        settings: Settings,
        store: Store,
        *,
        engine: Engine,
        check: Callable[[], None] = lambda: None,
        told: Callable[[Callable[[], Standing]], None] = lambda _: None,
        warn: Callable[[str], None] = lambda text: print(f"geomi: {text}", file=sys.stderr),
    ) -> None:
        self._collection = collection
        self._settings = settings
        self._store = store
        self._check = check
        self._told = told
        self._warn = warn
        self._coordinator = Coordinator(store, settings)
        self._mover = Mover(
            store, RealFiles(), where=collection.archive_path, keep=settings.history
        )
        self._move_at = 0.0
        self._run = 0
        names = [f"a{number}" for number in range(settings.crawl.agents)]
        self._keeper = Keeper(engine, names, self._orders)
        self._interrupts = 0

    def _orders(self, agent: str) -> Orders:
        return Orders(
            collection=str(self._collection.path.absolute()),
            settings=self._settings.dump(),
            agent=agent,
            run=self._run,
        )

    def crawl(self, seeds: Iterable[Seed], *, again: bool, options: dict[str, object]) -> Ending:
        """A crawl from beginning to end. The caller holds the collection's lock."""
        coordinator, store = self._coordinator, self._store
        self._recover()
        Keeping(self._collection, self._settings, store).close()  # caught up before agents begin
        self._collection.set_out(store)
        if self._settings.archive.equivalents:
            learn(store, confidence=self._settings.archive.equivalent_confidence)
        run = self._run = coordinator.begin(again=again, options=options, now=store.now())
        coordinator.add_seeds(seeds, now=store.now())
        must_have_seeds(store)
        coordinator.widen(run=run, now=store.now())
        coordinator.set_quota(self._settings.crawl.max_visits)
        began = time.monotonic()
        before = {
            number: signal.signal(number, self._interrupt)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            # A terminal that closes stops the crawl in good order, unless nohup says otherwise.
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        }
        try:
            why = self._loop(run, began)
        finally:
            self._keeper.stop(_STOP_S, time.monotonic)
            for number, handler in before.items():
                signal.signal(number, handler)
        try:
            self._recover()
            while coordinator.step(run=run, now=store.now(), at_once=True):
                pass
            standing = coordinator.standing(now=store.now())
            state = "stopped" if why or standing.pending else "done"
            left = why or ("patience" if standing.pending else "")
            coordinator.end(run, state, left, now=store.now())
            if why != "interrupted":
                for _ in self._mover.finish(store.now()):
                    pass
        except ResourceError as error:  # the next crawl mends what is left open
            self._warn(str(error))
            why = why or "disk"
            standing = coordinator.standing(now=store.now())
        return Ending(
            run=run, why=why, standing=standing, seconds=time.monotonic() - began,
            restarts=self._keeper.restarts,
        )  # fmt: skip

    def _recover(self) -> None:
        recover(self._collection, self._store, self._settings)

    def _interrupt(self, _number: int, _frame: object) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            self._keeper.kill()

    def _loop(self, run: int, began: float) -> str:
        """Supervises until the end; returns what stopped it, empty for the natural end."""
        crawl = self._settings.crawl
        coordinator = self._coordinator
        visits, size = (counter(self._store, name) for name in ("visits", "bytes"))
        complaint = ""
        rounds = Rounds(began)
        while True:
            if self._interrupts:
                self._warn("stops; what is under way may end. Again: at once, and nothing is lost")
                return "interrupted"
            try:
                self._check()
                self._keep()
                now = self._store.now()
                busy = coordinator.step(run=run, now=now)
                is_over = not busy and coordinator.is_over(now=now)
                why = self._limit(visits, size)
                self._told(partial(coordinator.standing, now=now))  # asked for: it counts sites
                if not is_over:
                    self._ask_addresses()
            except ConflictError:
                continue
            except ResourceError as error:  # agents pause for the same reason; all go on together
                if str(error) != complaint:
                    complaint = str(error)
                    self._warn(f"pauses: {error}")
                time.sleep(_PAUSE_S)
                continue
            complaint = ""
            if is_over:
                return ""
            if crawl.max_time_s is not None and time.monotonic() - began >= crawl.max_time_s:
                return "max_time_s"
            if why:
                return why
            self._move_old_visits()
            time.sleep(rounds.pause(time.monotonic(), done=busy))

    def _move_old_visits(self) -> None:
        """A little a round, so that agents hardly wait for it. What hinders it stops nothing."""
        if time.monotonic() < self._move_at:
            return
        try:
            self._mover.step(self._store.now())
        except ResourceError as error:
            self._warn(f"old visits stay where they are for a minute: {error}")
            self._move_at = time.monotonic() + _MOVE_PAUSE_S

    def _limit(self, visits: int, size: int) -> str:
        """Which limit of the crawl is reached, counted from what it began with."""
        store, crawl = self._store, self._settings.crawl
        if crawl.max_bytes is not None and counter(store, "bytes") - size >= crawl.max_bytes:
            return "max_bytes"
        if crawl.max_visits is not None and counter(store, "visits") - visits >= crawl.max_visits:
            held = store.one("SELECT 1 FROM sites WHERE holder <> '' LIMIT 1")
            return "" if held else "max_visits"
        return ""

    def _keep(self) -> None:
        for death in self._keeper.look(time.monotonic()):
            self._recover()
            self._warn(
                f"agent {death.agent} ended with code {death.code};"
                f" starts again in {death.again_in_s:g} s"
            )

    def _ask_addresses(self) -> None:
        """Candidates whose address decides: asked here, a few at a time."""
        sites = self._coordinator.to_ask()
        if not sites:
            return
        from geomi.cluster.admit import rules_by_address

        for site, rule in rules_by_address(self._settings, sites):
            self._coordinator.answered(site, rule, now=self._store.now())
