"""The local engine: agents as processes of this machine, supervised; and the crawl around them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from geomi.archive.files import Lock, RealFiles
from geomi.cluster import tables
from geomi.cluster.collection import Collection
from geomi.cluster.coordinator import Coordinator, must_have_seeds
from geomi.cluster.ledger import Ledger
from geomi.cluster.standing import Standing
from geomi.config import Settings
from geomi.errors import OperatorError, ResourceError
from geomi.seeds.lists import Seed
from geomi.store import Store

_STEP_S = 0.1
_PAUSE_S = 1.0  # between looks at a disk that was full
_STOP_S = 30.0  # agents that have not ended by then are killed; nothing committed is lost
_BACKOFF_MAX_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a crawl ended. `why` is empty when it ended by itself."""

    run: int
    why: str
    standing: Standing
    seconds: float
    restarts: int


class _Process:
    """One agent process, restarted with growing gaps when it dies."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: subprocess.Popen[bytes] | None = None
        self.deaths = 0
        self.start_at = 0.0
        self.started = 0.0

    def start(self, collection: Collection, settings: Settings, run: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "geomi.cluster"],
            stdin=subprocess.PIPE,
            env=os.environ | {"GEOMI_SUPERVISED": "1"},
            start_new_session=True,  # Ctrl-C comes to the supervisor alone
        )
        orders = {
            "collection": str(collection.path.absolute()),
            "settings": settings.dump(),
            "agent": self.name,
            "run": run,
        }
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(orders) + b"\n")
        self.process.stdin.flush()
        self.started = time.monotonic()


class LocalEngine:
    """Runs N agents and the coordinator until the crawl is over, limited or interrupted."""

    def __init__(
        self,
        collection: Collection,
        settings: Settings,
        store: Store,
        *,
        told: Callable[[Standing], None] = lambda _: None,
        warn: Callable[[str], None] = lambda text: print(f"geomi: {text}", file=sys.stderr),
    ) -> None:
        self._collection = collection
        self._settings = settings
        self._store = store
        self._told = told
        self._warn = warn
        self._coordinator = Coordinator(store, settings)
        self._processes = [_Process(f"a{number}") for number in range(settings.crawl.agents)]
        self._interrupts = 0
        self._restarts = 0

    def crawl(self, seeds: Iterable[Seed], *, again: bool, options: dict[str, object]) -> Ending:
        """A crawl from beginning to end. The caller holds the collection's lock."""
        coordinator, store = self._coordinator, self._store
        self.recover()
        run = coordinator.begin(again=again, options=options, now=time.time())
        coordinator.add_seeds(seeds, now=time.time())
        must_have_seeds(store)
        coordinator.widen(run=run, now=time.time())
        coordinator.set_quota(self._settings.crawl.max_visits)
        began = time.monotonic()
        before = {
            number: signal.signal(number, self._interrupt)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            why = self._loop(run, began)
        finally:
            self._stop_all()
            for number, handler in before.items():
                signal.signal(number, handler)
        try:
            self.recover()
            while coordinator.step(run=run, now=time.time()):
                pass
            standing = coordinator.standing(now=time.time())
            state = "stopped" if why or standing.pending else "done"
            left = why or ("patience" if standing.pending else "")
            coordinator.end(run, state, left, now=time.time())
        except ResourceError as error:  # the next crawl mends what is left open
            self._warn(str(error))
            why = why or "disk"
            standing = coordinator.standing(now=time.time())
        return Ending(
            run=run, why=why, standing=standing, seconds=time.monotonic() - began,
            restarts=self._restarts,
        )  # fmt: skip

    def recover(self) -> int:
        """Takes over what dead agents left: their files, leases and claims."""
        recovered = 0
        files = RealFiles()
        ledger = Ledger(
            store=self._store, files=files, where=self._collection.archive_path,
            level=self._settings.archive.level, now=time.time,
        )  # fmt: skip
        for agent, incarnation, _, _, _ in tables.running_agents(self._store):
            lock = Lock(self._collection.lock_path(f"{agent}-{incarnation}"))
            if not lock.take():
                continue
            try:
                ledger.recover(agent, incarnation)
                self._collection.clear_spool(agent, incarnation)
                recovered += 1
            finally:
                lock.release()
                os.unlink(lock.path)
        files.close()
        return recovered

    def _interrupt(self, _number: int, _frame: object) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            for one in self._processes:
                if one.process is not None and one.process.poll() is None:
                    one.process.kill()

    def _loop(self, run: int, began: float) -> str:
        """Supervises until the end; returns what stopped it, empty for the natural end."""
        crawl = self._settings.crawl
        coordinator = self._coordinator
        base = coordinator.standing(now=time.time())
        complaint = ""
        while True:
            if self._interrupts:
                return "interrupted"
            try:
                self._keep_alive(run)
                busy = coordinator.step(run=run, now=time.time())
                standing = coordinator.standing(now=time.time())
            except ResourceError as error:  # agents pause for the same reason; all go on together
                if str(error) != complaint:
                    complaint = str(error)
                    self._warn(f"pauses: {error}")
                time.sleep(_PAUSE_S)
                continue
            complaint = ""
            self._told(standing)
            if coordinator.is_over(standing) and not busy:
                return ""
            if crawl.max_time_s is not None and time.monotonic() - began >= crawl.max_time_s:
                return "max_time_s"
            if (
                crawl.max_bytes is not None
                and standing.size_bytes - base.size_bytes >= crawl.max_bytes
            ):
                return "max_bytes"
            if (
                crawl.max_visits is not None
                and not standing.held
                and standing.visits - base.visits >= crawl.max_visits
            ):
                return "max_visits"
            self._ask_addresses()
            if not busy:
                time.sleep(_STEP_S)

    def _keep_alive(self, run: int) -> None:
        now = time.monotonic()
        for one in self._processes:
            if one.process is None:
                if now >= one.start_at:
                    one.start(self._collection, self._settings, run)
                continue
            code = one.process.poll()
            if code is None:
                continue
            one.process = None
            if code == 2:
                raise OperatorError(f"agent {one.name} could not start; see its message above")
            if now - one.started > 60.0:
                one.deaths = 0
            one.deaths += 1
            self._restarts += 1
            wait = min(0.5 * 2.0 ** (one.deaths - 1), _BACKOFF_MAX_S)
            one.start_at = now + wait
            self.recover()
            self._warn(f"agent {one.name} ended with code {code}; starts again in {wait:g} s")

    def _ask_addresses(self) -> None:
        """Candidates whose address decides: asked here, a few at a time."""
        sites = self._coordinator.to_ask()
        if not sites:
            return
        from geomi.cluster.admit import rules_by_address

        for site, rule in rules_by_address(self._settings, sites):
            self._coordinator.answered(site, rule, now=time.time())

    def _stop_all(self) -> None:
        running = [one.process for one in self._processes if one.process is not None]
        for process in running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _STOP_S
        for process in running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()
