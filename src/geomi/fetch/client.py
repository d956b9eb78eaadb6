"""libcurl on an asyncio loop: one request in, one `Capture` out. The only file that names pycurl.

Constant options are set once a handle; what one page costs is the target, one add, one remove.
"""

from __future__ import annotations

import ssl
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pycurl

from geomi.errors import OperatorError
from geomi.fetch import access as special
from geomi.fetch.access import Access
from geomi.fetch.alarm import Alarm
from geomi.fetch.leave import Leave
from geomi.fetch.limits import Limits
from geomi.fetch.raw import Raw
from geomi.fetch.reply import Reply, Room
from geomi.fetch.request import Fetch, block, bracketed, is_askable, merged, opening, own_lines
from geomi.fetch.slot import Key, Slot
from geomi.fetch.sockets import Sockets
from geomi.fetch.verdict import Failure
from geomi.records import Capture
from geomi.states import Outcome

__all__ = ["Client", "Fetch", "ca_bundle"]

_ODD_PAGES = 10_000  # remembered; 200 bytes each
_RAW_BYTES = 64 * 1024
#: libcurl looks for dead connections once a second. It takes an answer that ends inside its header
#: for a whole one, so that connection, though closed, is among those it would use again.
_BROKEN_S = 3.0
#: A sweep that comes so late tells of a loop that stood still, not of servers that do.
_LATE_S = 0.02


def ca_bundle() -> str:
    """The system's certificate bundle. The wheel's libcurl knows no path of this system."""
    paths = ssl.get_default_verify_paths()
    for path in (paths.cafile, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/cert.pem"):
        if path and Path(path).is_file():
            return path
    return ""


class Client:
    """Fetches. `done` gets one Capture for every ticket that is neither aborted nor held back."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        *,
        limits: Limits,
        user_agent: str,
        spool_dir: str,
        done: Callable[[Capture], None],
        contact: str = "",
        connections: int = 256,
        ca_file: str = "",
        clock: Callable[[], float] = time.time,
        leave: Leave | None = None,
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._done = done
        self._clock = clock
        self._leave = leave or Leave()
        self._connections = connections
        self._ca_file = ca_file or ca_bundle()
        if ca_file and not Path(ca_file).is_file():
            raise OperatorError(f"ca_file: {ca_file} is not a file of certificates")
        self._room = Room(limits, spool_dir)
        self._own = own_lines(user_agent=user_agent, contact=contact)
        self._own_bytes = merged(self._own, ())
        self._tail = block(self._own_bytes)
        # Free slots by what they are set to. Filled by _settle, emptied by _slot.
        self._free: dict[Key | None, list[Slot]] = {}
        self._slots: dict[Any, Slot] = {}  # every slot by its easy handle
        self._busy: dict[int, Slot] = {}  # by ticket
        # What libcurl gave up on and dropped: read as it comes when it is asked for again.
        self._odd: dict[tuple[str, str, int, str], None] = {}
        # Where an answer ended inside its header, until when a fresh connection is taken there.
        # Filled by _settle, emptied by _is_safe.
        self._broken: dict[Key | None, float] = {}
        self._waiting: deque[Fetch] = deque()  # started while all connections were busy
        self._alarm = Alarm(loop, self._pump)
        self._sweeper: TimerHandle | None = None
        self._sweep_at = 0.0
        self._closed = False
        self._tick_s = min(1.0, limits.idle_s / 4, limits.total_s / 4, limits.connect_s / 4)

    def __enter__(self) -> Self:
        self._multi = pycurl.CurlMulti()
        self._sockets = Sockets(self._loop, act=self._multi.socket_action, then=self._pump)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._alarm.set)
        self._multi.setopt(pycurl.M_MAXCONNECTS, self._connections)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def active(self) -> int:
        """Fetches under way or waiting for a connection."""
        return len(self._busy) + len(self._waiting)

    @property
    def held_bytes(self) -> int:
        """Bytes of bodies in memory, of all fetches under way."""
        return self._room.held_bytes

    def start(self, fetch: Fetch) -> None:
        """Begin; returns at once. The Capture comes through `done`, never from inside this call."""
        if len(self._busy) >= self._connections:
            self._waiting.append(fetch)
            return
        if not is_askable(fetch):
            self._loop.call_soon(self._refuse, fetch, Outcome.BAD, "no URL that can be asked for")
            return
        if fetch.access is not None and not special.is_reachable(fetch.access):
            self._loop.call_soon(self._refuse, fetch, Outcome.C_ERR, "the proxy has no address")
            return
        slot = self._slot(fetch)
        slot.curl.setopt(pycurl.REQUEST_TARGET, fetch.target)
        tail = self._tail
        if fetch.headers or fetch.access is not None or slot.custom:
            lines = self._lines(fetch)
            slot.curl.setopt(pycurl.HTTPHEADER, lines)
            slot.custom = bool(fetch.headers) or fetch.access is not None
            tail = block(lines if fetch.access is None else special.withheld(lines, fetch.access))
        slot.request = b"GET %b HTTP/1.1\r\n%b%b" % (fetch.target.encode(), slot.host_line, tail)
        if self._odd and _page(fetch) in self._odd:
            slot.raw = Raw(self._limits.spool_bytes, head_limit=self._limits.head_bytes)
            slot.curl.setopt(pycurl.CONNECT_ONLY, 1)
        if slot.raw is not None or (self._broken and not self._is_safe(slot.key)):
            slot.is_fresh = True
            slot.curl.setopt(pycurl.FRESH_CONNECT, 1)
        slot.fetch = fetch
        slot.reply.most = fetch.limit_bytes
        slot.asked = slot.again = slot.overdue = slot.is_odd = slot.is_held_back = False
        slot.refused = ""
        slot.started = self._clock()
        slot.since = slot.seen = self._loop.time()
        slot.progress = -1
        self._busy[fetch.ticket] = slot
        self._multi.add_handle(slot.curl)
        if self._sweeper is None:
            self._sweep_later(self._tick_s)

    def abort(self, ticket: int) -> None:
        """Forget a fetch: its connection is closed, no Capture comes. Unknown: ignored."""
        slot = self._busy.get(ticket)
        if slot is not None:
            self._release(slot)
            slot.reply.begin()
            self._next()
            return
        self._waiting = deque(fetch for fetch in self._waiting if fetch.ticket != ticket)

    def close(self) -> None:
        """Abort all, close all connections. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._waiting.clear()
        for ticket in list(self._busy):
            self.abort(ticket)
        self._alarm.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for curl in self._slots:
            curl.close()
        self._slots.clear()
        self._free.clear()
        self._multi.close()
        self._sockets.close()

    def _lines(self, fetch: Fetch) -> list[bytes]:
        extra = special.lines(fetch.access) if fetch.access is not None else ()
        return merged(self._own, (*fetch.headers, *extra))

    def _slot(self, fetch: Fetch) -> Slot:
        """A free handle, if possible one that is already set to this origin and address."""
        key = (fetch.scheme, fetch.host, fetch.port, fetch.address, fetch.access)
        same = self._free.get(key)
        if same:
            slot = same.pop()
            if not same:
                del self._free[key]
            return slot
        if len(self._slots) < self._connections:
            slot = self._new_slot(fetch.access)
        else:
            other = next(iter(self._free))  # longest unused kind first
            slots = self._free[other]
            slot = slots.pop()
            if not slots:
                del self._free[other]
            if slot.access != fetch.access:
                slot.curl.reset()
                self._prepare(slot, fetch.access)
        slot.aim(key)
        slot.curl.setopt(pycurl.URL, f"{fetch.scheme}://{bracketed(fetch.host)}:{fetch.port}/")
        # libcurl reuses a connection only for the same host, port *and* connect-to address.
        slot.curl.setopt(pycurl.CONNECT_TO, [f"::{bracketed(fetch.address)}:{fetch.port}"])
        return slot

    def _new_slot(self, access: Access | None) -> Slot:
        curl = pycurl.Curl()
        slot = Slot(curl, Reply(self._room), self._sockets, self._leave.take)
        self._prepare(slot, access)
        self._slots[curl] = slot
        return slot

    def _prepare(self, slot: Slot, access: Access | None) -> None:
        options = [*slot.constants(self._limits, self._ca_file), *special.options(access)]
        for name, value in options:
            slot.curl.setopt(getattr(pycurl, name), value)
        slot.curl.setopt(pycurl.HTTPHEADER, self._own_bytes)
        slot.custom = False

    def _pump(self) -> None:
        """Settle what ended; let libcurl begin what that started."""
        multi, slots = self._multi, self._slots
        self._alarm.is_heard = True
        try:
            while not self._closed:
                self._leave.tell()
                left, fine, failed = multi.info_read()
                # `done` may abort, and start anew with the same handle: look at the fetch as well.
                ended = [(slot, slot.fetch, 0, "") for slot in map(slots.__getitem__, fine)]
                for curl, error, said in failed:
                    ended.append((slots[curl], slots[curl].fetch, error, said))
                for slot, fetch, error, said in ended:
                    if fetch is None or slot.fetch is not fetch:
                        continue
                    if slot.raw is not None and not error:
                        self._ask_raw(slot)
                    else:
                        self._settle(slot, error, said)
                if left or self._closed:
                    continue
                if not self._alarm.take():
                    return
                multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        finally:
            self._alarm.is_heard = False

    def _sweep(self) -> None:
        """Ends what does not connect in connect_s, what brought nothing for idle_s, and what takes
        longer than total_s.

        Once a tick over all that is under way: costs the single page nothing. libcurl's own
        time-outs would also count the time in which nobody read what the server had sent.
        """
        self._sweeper = None
        limits, now = self._limits, self._loop.time()
        late_s = now - self._sweep_at
        if late_s > _LATE_S:
            for slot in self._busy.values():
                slot.since += late_s + self._tick_s
                slot.seen += late_s + self._tick_s
            self._sweep_later(_LATE_S / 2)  # after the sockets were read
            return
        for slot in list(self._busy.values()):
            progress = slot.arrived()
            if progress != slot.progress:
                slot.progress, slot.seen = progress, now
            elif not slot.asked:
                if now - slot.since >= limits.connect_s:
                    self._settle(slot, Failure.TIMED_OUT, "no connection in time")
                    continue
                slot.seen = now
            elif now - slot.seen >= limits.idle_s + slot.held_back_s:
                self._settle(slot, Failure.TIMED_OUT, "no data in time")
                continue
            if now - slot.since >= limits.total_s:
                slot.overdue = True
                self._settle(slot, Failure.TIMED_OUT, "total time is over")
        if self._busy and self._sweeper is None:
            self._sweep_later(self._tick_s)

    def _sweep_later(self, wait_s: float) -> None:
        self._sweep_at = self._loop.time() + wait_s
        self._sweeper = self._loop.call_at(self._sweep_at, self._sweep)

    def _settle(self, slot: Slot, error: int, said: str) -> None:
        """A fetch has ended, well or badly: hand its Capture over, take the next that waits."""
        fetch = slot.fetch
        if fetch is None:
            return
        if slot.is_held_back:
            self._release(slot)
            slot.reply.begin()
            self._next()
            self._leave.held_back(fetch.ticket)
            return
        certificate = slot.curl.getinfo(pycurl.SSL_VERIFYRESULT) if error else 0
        capture = slot.capture(fetch, error, said, certificate=certificate, now=self._clock())
        if slot.is_odd:
            self._odd[_page(fetch)] = None
            if len(self._odd) > _ODD_PAGES:
                del self._odd[next(iter(self._odd))]
        elif slot.raw is not None and capture.outcome is not Outcome.H_NPR:
            self._odd.pop(_page(fetch), None)
        if not error and slot.raw is None and not slot.reply.whole:
            self._broken[slot.key] = self._loop.time() + _BROKEN_S
        self._release(slot)
        slot.reply.begin()
        self._next()
        self._done(capture)

    def _is_safe(self, key: Key | None) -> bool:
        """False while libcurl may hold a connection to there that it does not know to be dead."""
        now = self._loop.time()
        self._broken = {key: until for key, until in self._broken.items() if until > now}
        return key not in self._broken

    def _ask_raw(self, slot: Slot) -> None:
        """Connected, and libcurl does no more than TLS: send the request, read what comes."""
        fetch, raw = slot.fetch, slot.raw
        assert fetch is not None and raw is not None
        request = opening(fetch) + block([*self._lines(fetch), b"Connection: close"])
        if not self._leave.take(fetch.ticket):
            slot.is_held_back = True
            self._settle(slot, Failure.SEND, "")
            return
        slot.asked = True
        try:
            written = slot.curl.send(request)
            self._leave.tell()
            if written != len(request):
                raise BlockingIOError
        except (BlockingIOError, pycurl.error):
            self._settle(slot, Failure.SEND, "the request could not be sent")
            return
        raw.fd = slot.curl.getinfo(pycurl.ACTIVESOCKET)
        self._loop.add_reader(raw.fd, self._on_raw, slot, raw)

    def _on_raw(self, slot: Slot, raw: Raw) -> None:
        while slot.raw is raw:
            try:
                data = slot.curl.recv(_RAW_BYTES)
            except BlockingIOError:
                return
            except pycurl.error as error:
                self._settle(slot, *error.args)
                return
            if not data or raw.take(data):
                self._settle(slot, Failure.NONE, "")

    def _release(self, slot: Slot) -> None:
        """Out of libcurl, back among the free. What was not whole loses its connection."""
        assert slot.fetch is not None
        raw = slot.raw
        if raw is not None and raw.fd >= 0:
            self._loop.remove_reader(raw.fd)
        self._multi.remove_handle(slot.curl)
        if raw is not None:
            slot.raw = None
            slot.curl.setopt(pycurl.CONNECT_ONLY, 0)
        if slot.is_fresh:
            slot.is_fresh = False
            slot.curl.setopt(pycurl.FRESH_CONNECT, 0)
        del self._busy[slot.fetch.ticket]
        slot.fetch = None
        same = self._free.get(slot.key)
        if same is None:
            self._free[slot.key] = [slot]
        else:
            same.append(slot)

    def _next(self) -> None:
        if self._waiting and len(self._busy) < self._connections:
            self.start(self._waiting.popleft())

    def _refuse(self, fetch: Fetch, outcome: Outcome, why: str) -> None:
        if self._closed:
            return
        now = self._clock()
        self._done(
            Capture(
                ticket=fetch.ticket, url=fetch.url, address="", started=now, ended=now,
                outcome=outcome, detail=why,
            )
        )  # fmt: skip


def _page(fetch: Fetch) -> tuple[str, str, int, str]:
    return fetch.scheme, fetch.host, fetch.port, fetch.target
