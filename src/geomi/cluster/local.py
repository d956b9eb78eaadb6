"""The local engine: agents, and workers for heavy steps, as processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context

import msgspec

from geomi.cluster import node
from geomi.cluster.engine import Item, Orders, Result
from geomi.cluster.forked import SUPERVISED, Forked
from geomi.errors import InternalError, ResourceError

_DEATHS = 2  # of workers that one item may outlive


class LocalEngine:
    """Starts agents here: `python -m geomi.cluster`, or one that was made ready before."""

    def __init__(self, *, workers: int | None = None) -> None:
        self._workers = workers or os.cpu_count() or 1
        # Forked and waiting for orders. Filled by ready(), emptied by place() and close().
        self._waiting: list[Forked] = []

    def ready(self, number: int) -> None:
        """Forks so many agents that wait for orders: they need not import anything again.

        Call it before the store is opened and a lock is taken: SQLite must not be carried through
        a fork, and a lock would outlive its taker. (0.2 s of CPU for each agent, measured.)
        """
        self._waiting += [Forked() for _ in range(number)]

    def place(self, orders: Orders) -> Process:
        return Process(self._waiting.pop(0) if self._waiting else spawned(), orders)

    def run_tasks(
        self, work: Callable[[Item], Result], items: Iterable[Item], *, at: str = ""
    ) -> Iterator[tuple[Item, Result]]:
        """At most twice as many items as workers are under way, so `items` may be endless."""
        if at and at != node.here():
            raise ResourceError(f"no node {at}: name the Ray cluster it belongs to")
        source = iter(items)
        # (item, deaths of workers it was under way at): one at a time, to find whose fault it is.
        suspects: list[tuple[Item, int]] = []
        while True:
            under_way: dict[Future[Result], tuple[Item, int]] = {}
            pool = ProcessPoolExecutor(self._workers, mp_context=get_context("spawn"))
            try:
                while True:
                    alone = suspects or any(deaths for _, deaths in under_way.values())
                    most = 1 if alone else 2 * self._workers
                    for item, deaths in _some(suspects, source, most - len(under_way)):
                        under_way[_submit(pool, work, item)] = (item, deaths)
                    if not under_way:
                        return
                    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                    for future in done:
                        result = future.result()
                        item, _ = under_way.pop(future)
                        yield item, result
            except BrokenProcessPool as error:
                suspects += [(item, deaths + 1) for item, deaths in under_way.values()]
                for item, deaths in suspects:
                    if deaths > _DEATHS:
                        raise InternalError(f"{work.__name__} of {item!r}: workers die") from error
            finally:
                pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """Who still waits for orders ends without any."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.stdin.close()
        for one in waiting:
            one.wait()


def _some(
    suspects: list[tuple[Item, int]], source: Iterator[Item], number: int
) -> list[tuple[Item, int]]:
    """The next items to work on: suspects first."""
    taken, suspects[:] = suspects[: max(number, 0)], suspects[max(number, 0) :]
    return taken or [(item, 0) for item in islice(source, max(number, 0))]


def _submit(
    pool: ProcessPoolExecutor, work: Callable[[Item], Result], item: Item
) -> Future[Result]:
    """The future, also where the pool broke this moment: it fails as those under way do."""
    try:
        return pool.submit(work, item)
    except BrokenProcessPool as error:
        broken: Future[Result] = Future()
        broken.set_exception(error)
        return broken


def spawned() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "geomi.cluster"],
        stdin=subprocess.PIPE,  # stays open: an agent whose supervisor is gone ends
        env=os.environ | SUPERVISED,
        start_new_session=True,  # Ctrl-C comes to the supervisor alone
    )


class Process:
    """One agent process."""

    def __init__(self, process: subprocess.Popen[bytes] | Forked, orders: Orders) -> None:
        self._process = process
        assert process.stdin is not None
        self._stdin = process.stdin
        try:
            self._stdin.write(msgspec.json.encode(orders) + b"\n")
            self._stdin.flush()
        except BrokenPipeError:
            pass  # it ended at once; ended() tells

    def ended(self) -> int | None:
        code = self._process.poll()
        if code is not None:
            self._close()
        return code

    def ask_to_stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)

    def wait(self, timeout_s: float | None) -> bool:
        """True once it has ended. None: until then."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._close()
        return True

    def _close(self) -> None:
        try:
            self._stdin.close()
        except BrokenPipeError:
            pass
