"""Answers on their way from the client to the machine: the index is asked what it knows of each.

A new payload costs its digest, which the archive needs anyway, and a look into the filter. What may
be known is asked for in a thread, all that wait together, and handed on with the answer; so the
loop waits for no disk and no server.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from geomi.archive.duplicates import NOTHING_MET, Met, Original
from geomi.archive.names import sha1_b32, sha1_name
from geomi.cluster.context import Plan
from geomi.cluster.digests import Asked, Index
from geomi.cluster.payloads import key_of_capture, may_refer
from geomi.errors import OperatorError, ResourceError
from geomi.records import Capture
from geomi.store import Store

#: Asked at once; the first of them waits for the answers to all.
_TOGETHER = 250
_VOIDS_S = 30.0  # between two looks at the list of meaningless pages


class Machine(Protocol):
    """What is asked of the agent."""

    def awaits(self, ticket: int) -> bool: ...
    def own_digest(self, ticket: int) -> str: ...


def digest_of(capture: Capture) -> str:
    """Of the payload; empty: there is none that the archive would keep."""
    if not capture.head:
        return ""
    if capture.spool is not None:
        return sha1_name(capture.spool.payload_sha1)
    return sha1_b32(capture.body)


class Answers:
    """What was found out of payloads, by ticket, until the machine asks. cluster.payloads.Payloads.

    Filled by Asking, emptied by the machine.
    """

    def __init__(self) -> None:
        self._met: dict[int, Met] = {}

    def put(self, ticket: int, met: Met) -> None:
        self._met[ticket] = met

    def drop(self, ticket: int) -> None:
        self._met.pop(ticket, None)

    def met(self, capture: Capture) -> Met:
        return self._met.pop(capture.ticket, NOTHING_MET)


class Asking:
    """`then` takes each answer on, once `answers` has what is known of it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        plan: Plan,
        *,
        agent: Machine,
        answers: Answers,
        index: Callable[[], Index] | None,  # in the thread; with a store of its own
        voids: Callable[[Store], Iterable[str]] = lambda store: (),
        then: Callable[[Capture], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._plan = plan
        self._agent = agent
        self._answers = answers
        self._open = index
        self._index: Index | None = None
        self._read_voids = voids  # in the thread: digests of confirmed meaningless pages
        self._voids: frozenset[str] = frozenset()
        self._again: asyncio.TimerHandle | None = None
        self._then = then
        self._failed = failed
        self._may_know: Callable[[int], bool] = lambda key: True  # until a filter says more
        self._waiting: list[tuple[Capture, Asked]] = []
        self._is_asking = False
        self._told = ""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="digests")
        if index is not None:
            self._begin()

    def _begin(self) -> None:
        """Opens the index, and makes its filter whole; payloads that come meanwhile are asked
        for one by one."""
        self._is_asking = True
        work = self._loop.run_in_executor(self._thread, self._opened)
        work.add_done_callback(self._began)

    def _opened(self) -> Callable[[int], bool]:
        assert self._open is not None
        index = self._index = self._open()
        self._voids = frozenset(self._read_voids(index.here))
        if index.bits is None:
            return lambda key: True
        index.fill_bits()
        return index.bits.may_have

    def _began(self, work: asyncio.Future[Callable[[int], bool]]) -> None:
        self._is_asking = False
        if work.cancelled():
            return
        if (error := work.exception()) is not None:
            self._complain(error)
        else:
            self._may_know = work.result()
            self._again = self._loop.call_later(_VOIDS_S, self._look_again)
        self._go_on()

    def _look_again(self) -> None:
        """The list of meaningless pages may have grown: people confirm while a crawl runs."""
        self._again = self._loop.call_later(_VOIDS_S, self._look_again)
        self._loop.run_in_executor(self._thread, self._renew_voids)

    def _renew_voids(self) -> None:
        with contextlib.suppress(ResourceError):  # the store is away: the list stands
            if self._index is not None:
                self._voids = frozenset(self._read_voids(self._index.here))

    def came(self, capture: Capture) -> None:
        """An answer. It goes on at once, or when the index was asked."""
        agent = self._agent
        if not agent.awaits(capture.ticket):
            self._then(capture)
            return
        digest = digest_of(capture)
        if (
            digest
            and self._open is not None
            and may_refer(capture, self._plan)
            and digest != agent.own_digest(capture.ticket)
        ):
            key = key_of_capture(capture, digest)
            if self._may_know(key):
                self._waiting.append((capture, Asked(key, digest, capture.code)))
                self._go_on()
                return
        self._hand_on(capture, digest, None)

    def _hand_on(self, capture: Capture, digest: str, original: Original | None) -> None:
        if digest:
            is_void = digest in self._voids
            met = Met(digest=digest, original=original, is_void=is_void)
            self._answers.put(capture.ticket, met)
        self._then(capture)
        if not self._agent.awaits(capture.ticket):
            self._answers.drop(capture.ticket)

    def _go_on(self) -> None:
        if self._is_asking or not self._waiting:
            return
        self._is_asking = True
        some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
        work = self._loop.run_in_executor(self._thread, self._find, [one for _, one in some])
        work.add_done_callback(lambda done: self._found(some, done))

    def _find(self, asked: list[Asked]) -> dict[int, Original]:
        if self._index is None:
            assert self._open is not None
            self._index = self._open()
        return self._index.find(asked)

    def _found(
        self, some: list[tuple[Capture, Asked]], work: asyncio.Future[dict[int, Original]]
    ) -> None:
        self._is_asking = False
        if work.cancelled():
            return
        error = work.exception()
        if error is not None:
            self._complain(error)
        found = {} if error is not None else work.result()
        for capture, asked in some:
            self._hand_on(capture, asked.digest, found.get(asked.key))
        self._go_on()

    def _complain(self, error: BaseException) -> None:
        """Without the index payloads are stored: nothing is lost, and the crawl goes on."""
        if not isinstance(error, (ResourceError, OperatorError)):
            self._failed(error)
        elif str(error) != self._told:
            self._told = str(error)
            print(f"geomi: payloads are not compared: {error}", file=sys.stderr, flush=True)

    def close(self) -> None:
        self._waiting.clear()
        if self._again is not None:
            self._again.cancel()
        self._thread.submit(self._close)
        self._thread.shutdown(wait=True)

    def _close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index.here.close()
