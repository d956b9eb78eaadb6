"""Documents on their way from the client to the machine; large ones are read for links here.

In a thread beside the loop, so that no other site waits for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from geomi.cluster.agent import Agent
from geomi.cluster.plan import extractor_of
from geomi.config import Settings
from geomi.extract import Extractor, mime_of, parse_head
from geomi.records import Capture, Page, Spool
from geomi.states import Outcome

#: What is smaller is read in the loop: at the worst, all links, in 0.1 s.
_LARGE_BYTES = 1 << 18
_LINKED = frozenset({"text/html", "application/xhtml+xml", "text/css", ""})
#: After a page with more links the extractor is made anew, so that none of them is kept.
_MANY_LINKS = 10_000


class Reading:
    """One large document at a time, so that only one of them, and what it says, is in memory."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: Settings,
        *,
        agent: Agent,
        now: Callable[[], float],
        step: Callable[[Callable[[], None]], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._agent = agent
        self._now = now
        self._step = step
        self._failed = failed
        self._waiting: deque[Capture] = deque()
        self._is_reading = False
        self._had_many = False  # the one that was read last
        self._extractor: Extractor | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reading")

    def came(self, capture: Capture) -> None:
        """An answer. It is the machine's at once, or when it was read."""
        agent = self._agent
        if not agent.awaits(capture.ticket):
            _forget(capture)
            return
        needs_body = agent.needs_body(capture.ticket)
        if not needs_body and _is_large(capture):
            self._waiting.append(capture)
            self.go_on()
            return
        try:
            if capture.spool is not None:
                capture = self._with_body(capture, capture.spool, is_needed=needs_body)
        except OSError as error:
            self._failed(error)
            return
        self._step(lambda: agent.fetched(capture, now=self._now()))

    def go_on(self) -> None:
        """Begins the next document, if the last one was taken in."""
        if self._is_reading or self._agent.is_gathering:
            return
        if self._had_many:
            self._had_many = False
            _give_back()
        if self._waiting:
            self._is_reading = True
            capture = self._waiting.popleft()
            work = self._loop.run_in_executor(self._thread, self._read, capture)
            work.add_done_callback(lambda done: self._ended(capture, done))

    def close(self) -> None:
        self._waiting.clear()
        self._thread.shutdown(wait=True)

    def _ended(self, capture: Capture, work: asyncio.Future[Page]) -> None:
        self._is_reading = False
        if work.cancelled():
            return
        error = work.exception()
        if error is not None:
            self._failed(error)
        elif self._agent.awaits(capture.ticket):
            page = work.result()
            self._step(lambda: self._agent.fetched(capture, now=self._now(), page=page))
        else:
            _forget(capture)
            self.go_on()

    def _read(self, capture: Capture) -> Page:
        body = capture.body
        if capture.spool is not None:
            body = self._from_disk(capture.spool)
        extractor = self._extractor or extractor_of(self._settings)
        page = extractor.page(capture.url, parse_head(capture.head), body)
        self._had_many = len(page.links) > _MANY_LINKS
        self._extractor = None if self._had_many else extractor
        return page

    def _with_body(self, capture: Capture, spool: Spool, *, is_needed: bool) -> Capture:
        """A spooled body that is to be read comes back into memory, up to a bound."""
        if is_needed or mime_of(parse_head(capture.head)) in _LINKED:
            return replace(capture, body=self._from_disk(spool))
        return capture

    def _from_disk(self, spool: Spool) -> bytes:
        with open(spool.path, "rb") as file:
            return file.read(self._settings.fetch.html_bytes)


def _is_large(capture: Capture) -> bool:
    """True of a document with links that takes long to read."""
    size = capture.spool.size if capture.spool is not None else len(capture.body)
    return (
        size > _LARGE_BYTES
        and capture.outcome in (Outcome.OK, Outcome.CUT)
        and mime_of(parse_head(capture.head)) in _LINKED
    )


def _forget(capture: Capture) -> None:
    """Nobody wants it any more."""
    if capture.spool is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(capture.spool.path)


def _give_back() -> None:
    """Memory that was freed goes back to the system; glibc would keep it for the next time."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
