"""The simulator: the same agents and coordinator in virtual time, on a web and a disk of memory.

A month of crawling takes seconds, every crash point can be visited, and politeness is judged by the
simulated servers' own log.
"""

from __future__ import annotations

import contextlib
import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from geomi.archive.names import Ids
from geomi.archive.record import warcinfo
from geomi.archive.writer import Writer
from geomi.cluster import dating, tables
from geomi.cluster.agent import Agent
from geomi.cluster.commands import Abort, Command, Resolve
from geomi.cluster.coordinator import Coordinator
from geomi.cluster.errands import Errands
from geomi.cluster.ledger import Ledger
from geomi.cluster.mover import Mover
from geomi.cluster.pageids import ID_RANGE
from geomi.cluster.plan import extractor_of, longest_gap_s, plan_of
from geomi.cluster.simagent import SimAgent
from geomi.cluster.simfiles import SimFiles
from geomi.cluster.simindex import SimIndex
from geomi.cluster.simstore import COMMIT, SimStore
from geomi.cluster.simweb import Seen, Web, captured, seen
from geomi.config import Settings
from geomi.errors import ResourceError
from geomi.fetch.guard import Guard
from geomi.fetch.request import Fetch
from geomi.frontier import counters
from geomi.records import Answer
from geomi.seeds.lists import Seed
from geomi.states import Outcome
from geomi.store import SqliteStore, Store
from geomi.store.migrate import migrate

_STORE_S = 0.002  # what a job of the store's thread takes in virtual time
_STEP_S = 0.25  # between rounds of the coordinator


class SimCrash(BaseException):
    """The process, or the machine, ends here and now. No handler may catch it."""


class Simulation:
    """Agents, coordinator, web, store and disk, in one queue of events."""

    networks: Sequence[str] = ("0.0.0.0/0", "::/0")  # what the guard lets through besides

    def __init__(
        self,
        web: Web,
        settings: Settings,
        *,
        seeds: Iterable[Seed],
        agents: int = 1,
        seed: int = 0,
        start: float = 1_700_000_000.0,
        forgets_sync: bool = False,
        extractor: Callable[[], Any] | None = None,
        store: Callable[[Callable[[str], None]], Store] | None = None,  # default: SimStore
    ) -> None:
        self.web = web
        self.settings = settings
        self.now = self.began = start
        self.rng = random.Random(seed)
        self.log: list[Seen] = []
        self.ticks = self.run = self.crashes = 0
        self.crash_at: int | None = None  # the tick at which the next crash comes
        self.crash_what = ""
        self.late_s: Callable[[], float] = lambda: 0.0  # from the start of a request to its writing
        self.asks = True  # whether it may still be written; False to see what comes of that
        self.mishap: Callable[[], None] | None = None  # what happens in the place of that crash
        # How far somebody has set the date since the crawl set out, and before: nothing else of the
        # simulated world knows of it.
        self.date_off_s = 0.0
        self.dated_s = 0.0
        self.working: SimAgent | None = None  # whose store thread is at work
        self.seeds = list(seeds)
        self._count = agents
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self._extractor = extractor or (lambda: extractor_of(settings))
        self.files = SimFiles(tick=self._tick, forgets_sync=forgets_sync)
        self.store: Store = (store or SimStore)(self._tick)
        self._is_full = False  # the disk: no transaction can be committed
        migrate(self.store, tables.MIGRATIONS, where="simulation")
        self.index = SimIndex(self.store, self.files, settings, tick=self._tick)
        self.coordinator = Coordinator(self.store, settings)
        self.agents: list[SimAgent] = []

    def _tick(self, what: str) -> None:
        self.ticks += 1
        if self.crash_at is not None and self.ticks >= self.crash_at:
            self.crash_at = None
            self.crash_what = what
            if self.mishap is None:
                raise SimCrash(what)
            self.mishap()
        if self._is_full and what == COMMIT:
            raise ResourceError("the store: the disk is full")

    # -- mishaps -----------------------------------------------------------------------------------

    def fill_disk(self, seconds: float) -> None:
        """The disk is full for so long: files take a little more, the store nothing."""
        self.files.room = self.rng.randrange(2_000)
        self._is_full = True
        self.crashes += 1
        self._at(self.now + seconds, self._make_room)

    def set_date(self, by_s: float) -> None:
        """Somebody sets the machine's date, forwards or back. A crawl under way does not care."""
        self.date_off_s += by_s
        self.crashes += 1

    def _set_out(self) -> None:
        """What Collection.set_out does: a crawl that begins takes the date as it is."""
        if not isinstance(self.store, SqliteStore):
            return  # it has a clock of its own
        true, date = self.now - self.dated_s, self.now + self.date_off_s
        self.now = true + dating.set_out(self.store, date=date, counter=true, boot="simulation")
        self.dated_s, self.date_off_s = self.now - true, 0.0
        self.store.clock = lambda: self.now

    def _make_room(self) -> None:
        self.files.room = None
        self._is_full = False

    # -- life --------------------------------------------------------------------------------------

    def begin(self, *, again: bool = False) -> None:
        """The first start, or the one after a power cut: recovery first, then agents."""
        self.recover()
        self._set_out()
        keep = self.settings.history
        # A new one: what it has in memory does not outlive its process.
        self.mover = Mover(self.store, self.files, where="/sim/{}".format, keep=keep)
        self.run = self.coordinator.begin(again=again, options={}, now=self.now)
        self.coordinator.add_seeds(self.seeds, now=self.now)
        self.coordinator.widen(run=self.run, now=self.now)
        self.coordinator.set_quota(self.settings.crawl.max_visits)
        for number in range(self._count):
            self.start_agent(f"a{number}")
        self._at(self.now, self._round)

    def recover(self) -> None:
        """What the engine does: files, leases and claims of agents that are dead."""
        alive = {(a.name, a.incarnation) for a in self.agents if not (a.is_dead or a.is_done)}
        ledger = self._ledger()
        for name, incarnation, _, _, _ in tables.running_agents(self.store):
            if (name, incarnation) not in alive:
                ledger.recover(name, incarnation)
        self.index.catch_up()

    def _ledger(self) -> Ledger:
        return Ledger(
            store=self.store, files=self.files, where="/sim/{}".format, stored=self.index.stored,
            level=1, now=lambda: self.now, rest_s=longest_gap_s(self.settings),
        )  # fmt: skip

    def start_agent(self, name: str) -> SimAgent:
        incarnation = tables.begin_agent(self.store, name, "sim", 0, self.now)
        plan = plan_of(self.settings, self.store, agent=name, incarnation=incarnation, run=self.run)
        plan = replace(plan, address_margin_s=0.0)  # no way to the server that could eat of a gap
        ids = Ids(self.rng.randbytes(10))
        with self.store.transaction():
            first_file = counters.take_ids(self.store, "file", 10_000)
            first_page = counters.take_ids(self.store, "page", ID_RANGE)
        counter = iter(range(first_file, first_file + 10_000))
        writer = Writer(
            directories=tuple(self.settings.archive.directories),
            prefix=f"sim-{name}-{incarnation:05d}",
            file_bytes=self.settings.archive.file_bytes,
            ids=ids,
            next_file=lambda: next(counter),
            warcinfo=lambda filename, date, record_id: warcinfo(
                filename, date, record_id=record_id, fields={"software": "geomi/simulation"}
            ),
        )
        machine = Agent(
            plan, extractor=self._extractor(), guard=Guard(self.networks), ids=ids,
            writer=writer, first_page_id=first_page, payloads=self.index.payloads(plan),
        )  # fmt: skip
        ledger = self._ledger()
        errands = Errands(
            agent=machine, plan=plan, store=self.store, ledger=ledger, now=lambda: self.now,
            date=lambda: self.now, reading=lambda: contextlib.nullcontext(self.store),
        )  # fmt: skip
        agent = SimAgent(name, incarnation, machine, ledger, errands)
        self.agents.append(agent)
        self._event(agent, lambda: machine.wake(self.now))
        return agent

    def replace(self, agent: SimAgent) -> None:
        """kill -9 of one agent; the engine takes over what it left and starts another."""
        agent.is_dead = True
        self.crashes += 1
        self.working = None
        self.agents.remove(agent)
        self._make_room()  # else it would be tried again until there is room
        self.recover()
        self.start_agent(agent.name)

    def stop(self, agent: SimAgent, seconds: float) -> None:  # as SIGSTOP, and SIGCONT later
        agent.stopped_until = self.now + seconds

    def kill_all(self) -> None:
        """kill -9 of every process: what was written stays, synced or not."""
        for agent in self.agents:
            agent.is_dead = True
        self.agents.clear()
        self.working = None
        self._events.clear()
        self._make_room()
        self.crashes += 1

    def power_cut(self) -> None:
        """The machine goes dark: all agents die, unsynced bytes are lost or torn."""
        self.kill_all()
        self.files.power_cut(self.rng)
        self.index.power_cut(self.rng)

    # -- events ------------------------------------------------------------------------------------

    def _at(self, when: float, what: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (when, self._serial, what))

    def _event(self, agent: SimAgent, event: Callable[[], None]) -> None:
        """An event of an agent, and what follows from it."""
        if agent.is_dead or agent.is_done:
            return
        if agent.stopped_until > self.now:
            # Sockets that are ready come first, then what waited for its time.
            self._at(agent.stopped_until + 1e-6, partial(self._event, agent, event))
            return
        event()
        while commands := agent.machine.take():
            for command in commands:
                self._carry_out(agent, command)
        if agent.machine.is_stopping and agent.machine.is_done and not agent.is_closing:
            agent.is_closing = True
            last = agent.machine.close_files()
            if last is None:
                self._end(agent)
            else:
                self._store_job(agent, lambda: agent.ledger.write(last), lambda _: self._end(agent))
            return
        at = agent.machine.next_wake()
        if at is not None and at < agent.wake_at:
            agent.wake_at = max(at, self.now)
            self._at(agent.wake_at, partial(self._wake, agent, agent.wake_at))

    def _wake(self, agent: SimAgent, at: float) -> None:
        if agent.wake_at == at:
            agent.wake_at = float("inf")
        self._event(agent, lambda: agent.machine.wake(self.now))

    def _end(self, agent: SimAgent) -> None:
        agent.ledger.recover(agent.name, agent.incarnation)
        agent.is_done = True

    def _store_job(
        self, agent: SimAgent, work: Callable[[], Any], then: Callable[[Any], None]
    ) -> None:
        """Jobs of one agent's store thread come one after the other."""
        agent.store_free = max(agent.store_free, self.now) + _STORE_S

        def job() -> None:
            if agent.is_dead or agent.is_done:
                return
            if agent.stopped_until > self.now:
                self._at(agent.stopped_until, job)
                return
            try:
                self.working = agent
                result = work()
                self.working = None
            except ResourceError:
                self.working = None
                agent.store_free = max(agent.store_free, self.now) + 5.0
                self._at(self.now + 5.0, job)
                return
            self._event(agent, lambda: then(result))

        self._at(agent.store_free, job)

    def _carry_out(self, agent: SimAgent, command: Command) -> None:
        match command:
            case Fetch():
                self._fetch(agent, command)
            case Abort(ticket):
                agent.aborted.add(ticket)
            case Resolve(host):
                addresses, ttl = self.web.resolve(host)
                answer = Answer(
                    host=host, addresses=tuple(addresses), ttl_s=ttl, server="sim",
                    error="" if addresses else "NXDOMAIN",
                )  # fmt: skip
                self._at(self.now + 0.01, lambda: self._event(
                    agent, lambda: agent.machine.resolved(answer, now=self.now)))  # fmt: skip
            case _:
                self._store_job(agent, *agent.errands.of(command))

    def _fetch(self, agent: SimAgent, fetch: Fetch) -> None:
        late_s = self.late_s()
        if late_s > 0.0:
            self._at(self.now + late_s, partial(self._send, agent, fetch, self.now))
        else:
            self._send(agent, fetch, self.now)

    def _send(self, agent: SimAgent, fetch: Fetch, started: float) -> None:
        """Connected: the request is written, if it still may be."""
        if agent.is_dead or agent.is_done:
            return
        if agent.stopped_until > self.now:
            self._at(agent.stopped_until, partial(self._send, agent, fetch, started))
            return
        if fetch.ticket in agent.aborted:
            agent.aborted.discard(fetch.ticket)
            return
        if self.asks and not agent.machine.may_send(fetch.ticket, now=self.now):
            self._event(agent, lambda: agent.machine.held_back(fetch.ticket, now=self.now))
            return
        agent.machine.sent(fetch.ticket, now=self.now)
        true = self.now - self.dated_s
        reply = self.web.ask(fetch, at=true - self.began)
        if reply.outcome not in (Outcome.C_ERR, Outcome.C_TIM):
            self.log.append(seen(fetch, agent.name, start=true, end=true + reply.seconds))
        end = self.now + reply.seconds
        capture = captured(fetch, reply, started=started, ended=end)

        def came() -> None:
            if fetch.ticket in agent.aborted:
                agent.aborted.discard(fetch.ticket)
                return
            self._event(agent, lambda: agent.machine.fetched(capture, now=self.now))

        self._at(end, came)

    def _round(self) -> None:
        with contextlib.suppress(ResourceError):  # the drive waits and comes again
            self.coordinator.step(run=self.run, now=self.now)
            self.mover.step(self.now)
        self._at(self.now + _STEP_S, self._round)

    # -- running -----------------------------------------------------------------------------------

    def is_over(self) -> bool:
        return self.coordinator.is_over(now=self.now)

    def advance(self, *, until: float | None = None, events: int | None = None) -> bool:
        """Runs until the crawl is over (True), or the time or number of events is reached."""
        done = 0
        checked = self.now
        while self._events:
            when, _, what = self._events[0]
            if until is not None and when > until:
                self.now = until
                return False
            heapq.heappop(self._events)
            self.now = max(self.now, when)
            what()
            done += 1
            if events is not None and done >= events:
                return False
            if self.now >= checked + 1.0:
                checked = self.now
                if self.is_over():
                    return True
        return True

    def finish(self) -> None:
        """Stops the agents and lets them say goodbye; the coordinator numbers what is left."""
        for agent in list(self.agents):
            self._event(agent, partial(agent.machine.stop, now=self.now))
        limit = self.now + 3600.0
        while self._events and any(not (a.is_done or a.is_dead) for a in self.agents):
            when, _, what = heapq.heappop(self._events)
            self.now = max(self.now, when)
            if self.now > limit:
                break
            what()
        self.recover()
        while self.coordinator.step(run=self.run, now=self.now, at_once=True):
            pass
        self.coordinator.end(self.run, "done", "", now=self.now)
        for _ in self.mover.finish(self.now):
            pass
