"""The asyncio shell of an agent: libcurl, c-ares, files and the store, around the step machine.

One event loop runs the machine, the network and the parsing. One thread owns the store and the
files: its jobs run in the order they were given, so a read that follows a write sees it. Another
reads what known pages the seen-filters are made of, so that nothing waits for that.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from geomi import __version__, clock
from geomi.archive.files import Lock, RealFiles
from geomi.archive.names import Ids
from geomi.archive.record import warcinfo
from geomi.archive.writer import Writer
from geomi.cluster import node, tables
from geomi.cluster.agent import Agent
from geomi.cluster.asking import Answers, Asking
from geomi.cluster.collection import Collection
from geomi.cluster.commands import Abort, Command, Rebuild, Resolve
from geomi.cluster.errands import Errand, Errands
from geomi.cluster.given import hosts_of
from geomi.cluster.indexes import Keeping
from geomi.cluster.ledger import Ledger
from geomi.cluster.pageids import ID_RANGE
from geomi.cluster.plan import extractor_of, limits_of, plan_of
from geomi.cluster.reading import Reading
from geomi.cluster.recover import recover
from geomi.cluster.vault import read_vault
from geomi.config import Settings
from geomi.errors import ConflictError, OperatorError, ResourceError
from geomi.fetch.client import Client
from geomi.fetch.dns import Resolver
from geomi.fetch.guard import Guard
from geomi.fetch.leave import Leave
from geomi.fetch.request import Fetch
from geomi.frontier import counters
from geomi.history.meaningless_tables import in_state
from geomi.store import SQLITE, Store

_RETRY_S = 5.0  # between tries of a batch while the disk is full or the store away
_GRACE_S = 3.0  # what requests under way get when the agent is told to stop
_FACTS_S = 1.0
FILES_A_LIFE = 100_000

Jobs = asyncio.Queue[Errand]


class Shell:
    """Carries out the commands of one agent until it is told to stop."""

    def __init__(self, collection: Collection, settings: Settings, *, agent: str, run: int) -> None:
        self._collection = collection
        self._settings = settings
        self._name = agent
        self._run = run
        self._stop_asked = False
        self._stopped_at = 0.0
        self._woken: asyncio.TimerHandle | None = None
        self._wake_at = 0.0
        self._done: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_drain = False
        self._finishing = False
        self._told = ""  # the complaint that stands
        self._reader: Store | None = None  # of the thread that reads beside

    # -- life --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs to the end. Raises what broke it."""
        import uvloop

        self._store = self._collection.open_store(self._settings, patient=True)
        recover(self._collection, self._store, self._settings)  # what died on this machine
        incarnation = self._incarnation = tables.next_incarnation(self._store)
        lock = Lock(self._collection.lock_path(f"{self._name}-{incarnation}"))
        if not lock.take():
            raise OperatorError(f"{lock.path}: held by another process")
        lock.note(f"process {os.getpid()} on {node.here()}")
        tables.begin_agent(
            self._store, self._name, node.here(), os.getpid(),
            self._store.now(), incarnation=incarnation,
        )  # fmt: skip
        self._plan = plan_of(
            self._settings, self._store, agent=self._name, incarnation=incarnation, run=self._run,
            vault=read_vault(self._settings, str(self._collection.path)),
        )  # fmt: skip
        # A date for the start, and a counter from there: waiting is immune to the date being set.
        self._clock = clock.FollowingClock(
            self._store.now(), is_exact=self._store.dialect == SQLITE
        )
        self._keeping = Keeping(self._collection, self._settings, self._store)
        self._files = RealFiles()
        self._ledger = Ledger(
            store=self._store, files=self._files, where=self._collection.kept_path,
            level=self._plan.level, now=self._now, node=node.here(), stored=self._keeping.stored,
        )  # fmt: skip
        with (
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="store") as self._thread,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="known") as self._beside,
        ):
            uvloop.run(self._live())
        self._keeping.close()
        self._files.close()
        if self._failure is not None:
            raise self._failure
        self._ledger.recover(self._name, incarnation)  # nothing is left open; marks the agent ended
        self._collection.clear_spool(self._name, incarnation)
        self._store.close()
        lock.release()

    async def _live(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        settings, plan = self._settings, self._plan
        spool = self._collection.spool_path(self._name, self._incarnation)
        os.makedirs(spool, exist_ok=True)
        ids = Ids(os.urandom(10))
        with self._store.transaction():
            first_file = counters.take_ids(self._store, "file", FILES_A_LIFE)
            first_page = counters.take_ids(self._store, "page", ID_RANGE)
        counter = iter(range(first_file, first_file + FILES_A_LIFE))
        writer = Writer(
            directories=tuple(settings.archive.directories),
            prefix=f"geomi-{self._name}-{self._incarnation:05d}",
            file_bytes=settings.archive.file_bytes,
            ids=ids,
            next_file=lambda: next(counter),
            warcinfo=self._warcinfo,
        )
        self._writer = writer
        self._agent = Agent(
            plan,
            extractor=extractor_of(settings),
            guard=Guard(settings.guard.allow_networks),
            ids=ids,
            writer=writer,
            first_page_id=first_page,
            payloads=(answers := Answers()),
        )
        self._errands = Errands(
            agent=self._agent, plan=plan, store=self._store, ledger=self._ledger, now=self._now,
            date=self._date, reading=self._reading, error=self._clock.error,
        )  # fmt: skip
        self._jobs: Jobs = asyncio.Queue()
        self._rebuilds: Jobs = asyncio.Queue()
        self._spawn(self._do_jobs(self._jobs, self._thread))
        self._spawn(self._do_jobs(self._rebuilds, self._beside))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask_to_stop)
        self._watch_parent()
        facts = loop.create_task(self._tell_facts())
        resolver = Resolver(
            loop, hosts=hosts_of(settings), servers=tuple(settings.dns.servers),
            timeout_s=settings.dns.timeout_s,
        )  # fmt: skip
        self._documents = Reading(
            loop, settings, agent=self._agent, now=self._now, step=self._step, failed=self._fail
        )
        asking = Asking(
            loop, plan, agent=self._agent, answers=answers, index=self._keeping.opener,
            voids=lambda store: in_state(store, "confirmed"), then=self._documents.came,
            failed=self._fail,
        )  # fmt: skip
        client = Client(
            loop,
            limits=limits_of(settings),
            user_agent=settings.user_agent,
            spool_dir=spool,
            done=asking.came,
            contact=settings.agent.contact if "@" in settings.agent.contact else "",
            connections=plan.connections,
            ca_file=settings.fetch.ca_file,
            clock=self._now,
            leave=Leave(
                may_send=lambda ticket: self._agent.may_send(ticket, now=self._now()),
                sent=lambda ticket: self._agent.sent(ticket, now=self._now()),
                held_back=lambda ticket: self._step(
                    lambda: self._agent.held_back(ticket, now=self._now())
                ),
            ),
        )
        async with resolver as self._resolver:
            with client as self._client:
                self._wake()
                await self._done.wait()
        asking.close()
        self._documents.close()
        facts.cancel()
        for task in list(self._tasks):
            task.cancel()

    def _now(self) -> float:
        return self._clock.now()

    def _date(self) -> float:
        """In the store's thread: its time, which ours follows where others share it."""
        before = clock.boottime()
        date = self._store.now()
        if self._store.dialect != SQLITE:
            self._clock.heard(date, before=before)
        return date

    def _warcinfo(self, filename: str, date: str, record_id: str) -> bytes:
        settings = self._settings
        fields = {
            "software": f"geomi/{__version__}",
            "format": "WARC File Format 1.1",
            "conformsTo":
                "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "robots": "classic" if settings.robots.obey else "ignore",
            "http-header-user-agent": settings.user_agent,
        }  # fmt: skip
        if settings.agent.contact:
            fields["operator"] = settings.agent.contact
        return warcinfo(filename, date, record_id=record_id, fields=fields)

    def _watch_parent(self) -> None:
        """An agent does not outlive its supervisor: its standard input is a pipe from there."""
        if os.environ.get("GEOMI_SUPERVISED") != "1":
            return

        def gone() -> None:
            if not os.read(0, 1):
                self._loop.remove_reader(0)
                self._ask_to_stop()

        self._loop.add_reader(0, gone)

    def _ask_to_stop(self) -> None:
        if self._stop_asked:
            return
        self._stop_asked = True
        self._stopped_at = self._now()
        self._agent.stop(now=self._now())
        self._loop.call_later(_GRACE_S, self._abort)
        self._drain()

    def _abort(self) -> None:
        if self._agent.is_stopping:
            self._agent.stop(now=self._now(), abort=True)
            self._drain()

    def _fail(self, error: BaseException) -> None:
        """Our bug, or an impossible store: the process ends, the supervisor starts another."""
        self._failure = self._failure or error
        if self._done is not None:
            self._done.set()

    # -- the machine -------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._woken = None
        self._step(lambda: self._agent.wake(self._now()))

    def _step(self, event: Callable[[], None]) -> None:
        try:
            event()
            self._drain()
        except Exception as error:
            self._fail(error)

    def _drain(self) -> None:
        """Carries out what the machine asked for, and sees to its next waking."""
        if self._in_drain:
            return
        self._in_drain = True
        try:
            while commands := self._agent.take():
                for command in commands:
                    self._carry_out(command)
        finally:
            self._in_drain = False
        self._documents.go_on()
        if self._agent.is_stopping and self._agent.is_done:
            self._finish()
            return
        at = self._agent.next_wake()
        if at is None:
            return
        if self._woken is not None:
            if self._wake_at <= at + 0.0005:
                return
            self._woken.cancel()
        self._wake_at = at
        self._woken = self._loop.call_later(max(0.0, at - self._now()), self._wake)

    def _carry_out(self, command: Command) -> None:
        match command:
            case Fetch():
                self._client.start(command)
            case Abort(ticket):
                self._client.abort(ticket)
            case Resolve(host):
                self._spawn(self._resolve(host))
            case Rebuild():
                self._rebuilds.put_nowait(self._errands.of(command))
            case _:
                self._job(*self._errands.of(command))

    def _job(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Work for the store's thread; `then` is the event, back in the loop."""
        self._jobs.put_nowait((work, then))

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        """A connection for what is read beside; it is kept while more is to be read."""
        store, self._reader = self._reader, None
        if store is None:
            store = self._collection.read_store(self._settings, patient=True)
        try:
            yield store
            if not self._rebuilds.empty():
                self._reader = store
        finally:
            if self._reader is None:
                store.close()

    async def _do_jobs(self, jobs: Jobs, thread: ThreadPoolExecutor) -> None:
        """One job after the other, in order. One that the disk or the store refuses is repeated:
        what comes after it must not overtake it."""
        while True:
            work, then = await jobs.get()
            while True:
                try:
                    result = await self._loop.run_in_executor(thread, work)
                    break
                except ConflictError:  # no two of us twice at the same moments
                    await asyncio.sleep(random.uniform(0.005, 0.05))
                except ResourceError as error:
                    self._complain(error)
                    if self._stop_asked:  # what is not written is wanted again by the next crawl
                        self._fail(error)
                        return
                    await asyncio.sleep(_RETRY_S)
            self._told = ""
            self._step(partial(then, result))

    async def _resolve(self, host: str) -> None:
        answer = await self._resolver.resolve(host)
        self._step(lambda: self._agent.resolved(answer, now=self._now()))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _complain(self, error: ResourceError) -> None:
        """Once a cause: the agent pauses, and goes on by itself when it can."""
        text = str(error)
        if text != self._told:
            self._told = text
            print(f"geomi: {self._name} pauses: {text}", file=sys.stderr, flush=True)

    def _finish(self) -> None:
        if self._finishing:
            return
        self._finishing = True
        done = self._done
        assert done is not None
        last = self._agent.close_files()
        if last is None:
            done.set()
        else:
            self._job(partial(self._ledger.write, last), lambda _: done.set())

    async def _tell_facts(self) -> None:
        """What `status` and the progress line show of this agent."""
        told = b""
        put = partial(tables.put_facts, self._store, self._name, self._incarnation)
        while True:
            await asyncio.sleep(_FACTS_S)
            facts = msgspec.json.encode(self._agent.facts | {"paused": bool(self._told)})
            if facts != told:
                try:
                    await self._loop.run_in_executor(self._thread, put, facts.decode())
                    told = facts
                except ResourceError:
                    pass  # who writes batches says so; what we told is told again
