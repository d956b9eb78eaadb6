"""libcurl on an asyncio loop: one request in, one `Capture` out. The only file that names pycurl.

Constant options are set once a handle; what one page costs is the target, one add, one remove.
"""

from __future__ import annotations

import socket
import ssl
import time
from asyncio import AbstractEventLoop, Handle, TimerHandle
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pycurl

from geomi.errors import OperatorError
from geomi.fetch.limits import Limits
from geomi.fetch.reply import Reply, Room, status_of
from geomi.fetch.request import Fetch, block, bracketed, is_askable, merged, opening, own_lines
from geomi.fetch.sockets import Sockets
from geomi.fetch.verdict import Failure, Verdict, judge
from geomi.records import Capture
from geomi.states import Outcome

__all__ = ["Client", "Fetch", "ca_bundle"]

_FINE = Verdict(outcome=Outcome.OK)


def ca_bundle() -> str:
    """The system's certificate bundle. The wheel's libcurl knows no path of this system."""
    paths = ssl.get_default_verify_paths()
    for path in (paths.cafile, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/cert.pem"):
        if path and Path(path).is_file():
            return path
    return ""


class _Slot:
    """One easy handle, used again and again, and the reply it is filling."""

    __slots__ = (
        "address", "curl", "custom", "fetch", "fresh", "key", "overdue", "progress", "refused",
        "reply", "request", "seen", "since", "sockets", "started",
    )  # fmt: skip

    def __init__(self, curl: Any, reply: Reply, sockets: Sockets) -> None:
        self.curl = curl
        self.sockets = sockets
        self.fresh: socket.socket | None = None  # given to libcurl, which makes a duplicate
        self.reply = reply
        self.key: tuple[str, str, int, str] | None = None  # what URL and CONNECT_TO are set to
        self.address = ""
        self.custom = False  # HTTPHEADER differs from the client's own lines
        self.fetch: Fetch | None = None  # None: free
        self.request = b""
        self.refused = ""
        self.overdue = False  # total_s is over
        self.started = 0.0  # UTC
        self.since = 0.0  # loop time
        self.seen = 0.0  # loop time at which the sweep last saw something new
        self.progress = -1

    def open_socket(self, _purpose: int, peer: Any) -> Any:
        """libcurl asks for a socket: only one to the checked address is given."""
        address = peer.addr[0]
        if isinstance(address, bytes):
            address = address.decode("ascii", "replace")
        if address != self.address:
            self.refused = f"socket to {address} refused: {self.address} was checked"
            return pycurl.SOCKET_BAD
        self.fresh = socket.socket(peer.family, peer.socktype, peer.protocol)
        return self.fresh

    def on_socket(self, fd: int, _purpose: int) -> int:
        """libcurl has its duplicate."""
        if self.fresh is not None:
            self.fresh.close()
            self.fresh = None
        self.sockets.is_new(fd)
        return int(pycurl.SOCKOPT_OK)


class Client:
    """Fetches. `done` gets one Capture for every started ticket that is not aborted."""

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
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._done = done
        self._clock = clock
        self._connections = connections
        self._ca_file = ca_file or ca_bundle()
        if ca_file and not Path(ca_file).is_file():
            raise OperatorError(f"ca_file: {ca_file} is not a file of certificates")
        self._room = Room(limits, spool_dir)
        self._own = own_lines(user_agent=user_agent, contact=contact)
        self._own_bytes = merged(self._own, ())
        self._tail = block(self._own_bytes)
        # Free slots by what they are set to. Filled by _settle, emptied by _slot.
        self._free: dict[tuple[str, str, int, str] | None, list[_Slot]] = {}
        self._slots: dict[Any, _Slot] = {}  # every slot by its easy handle
        self._busy: dict[int, _Slot] = {}  # by ticket
        self._waiting: deque[Fetch] = deque()  # started while all connections were busy
        self._timer: TimerHandle | None = None
        self._timer_at = 0.0
        self._sweeper: TimerHandle | None = None
        self._soon: Handle | None = None
        self._due = False  # libcurl wants to be called at once
        self._pumping = False
        self._closed = False
        self._tick_s = min(1.0, limits.idle_s / 4, limits.total_s / 4)

    def __enter__(self) -> Self:
        self._multi = pycurl.CurlMulti()
        self._sockets = Sockets(self._loop, act=self._multi.socket_action, then=self._pump)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
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
            self._loop.call_soon(self._refuse, fetch, "no URL that can be asked for")
            return
        slot = self._slot(fetch)
        slot.curl.setopt(pycurl.REQUEST_TARGET, fetch.target)
        tail = self._tail
        if fetch.headers or slot.custom:
            lines = merged(self._own, fetch.headers)
            slot.curl.setopt(pycurl.HTTPHEADER, lines)
            slot.custom = bool(fetch.headers)
            tail = block(lines)
        slot.request = opening(fetch) + tail
        slot.fetch = fetch
        slot.refused = ""
        slot.overdue = False
        slot.started = self._clock()
        slot.since = slot.seen = self._loop.time()
        slot.progress = -1
        self._busy[fetch.ticket] = slot
        self._multi.add_handle(slot.curl)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(self._tick_s, self._sweep)

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
        for handle in (self._timer, self._sweeper, self._soon):
            if handle is not None:
                handle.cancel()
        for curl in self._slots:
            curl.close()
        self._slots.clear()
        self._free.clear()
        self._multi.close()
        self._sockets.close()

    def _slot(self, fetch: Fetch) -> _Slot:
        """A free handle, if possible one that is already set to this origin and address."""
        key = (fetch.scheme, fetch.host, fetch.port, fetch.address)
        same = self._free.get(key)
        if same:
            slot = same.pop()
            if not same:
                del self._free[key]
            return slot
        if len(self._slots) < self._connections:
            slot = self._new_slot()
        else:
            other = next(iter(self._free))  # longest unused kind first
            slots = self._free[other]
            slot = slots.pop()
            if not slots:
                del self._free[other]
        slot.key = key
        slot.address = fetch.address
        slot.curl.setopt(pycurl.URL, f"{fetch.scheme}://{bracketed(fetch.host)}:{fetch.port}/")
        # libcurl reuses a connection only for the same host, port *and* connect-to address.
        slot.curl.setopt(pycurl.CONNECT_TO, [f"::{bracketed(fetch.address)}:{fetch.port}"])
        return slot

    def _new_slot(self) -> _Slot:
        curl = pycurl.Curl()
        reply = Reply(self._room)
        slot = _Slot(curl, reply, self._sockets)
        options: list[tuple[int, Any]] = [
            (pycurl.HEADERFUNCTION, reply.line),
            (pycurl.WRITEFUNCTION, reply.add),
            (pycurl.OPENSOCKETFUNCTION, slot.open_socket),
            (pycurl.SOCKOPTFUNCTION, slot.on_socket),
            (pycurl.HTTPHEADER, self._own_bytes),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
            (pycurl.HTTP09_ALLOWED, 1),  # so that what is not HTTP is seen, and kept
            (pycurl.HTTP_CONTENT_DECODING, 0),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PROXY, ""),
            (pycurl.NOPROXY, "*"),
            (pycurl.NETRC, 0),
            (pycurl.NOSIGNAL, 1),
            (pycurl.TCP_NODELAY, 1),
            (pycurl.CONNECTTIMEOUT_MS, int(self._limits.connect_s * 1000)),
            (pycurl.SSL_VERIFYPEER, 1),
            (pycurl.SSL_VERIFYHOST, 2),
        ]
        if self._ca_file:
            options.append((pycurl.CAINFO, self._ca_file))
        for option, value in options:
            curl.setopt(option, value)
        self._slots[curl] = slot
        return slot

    def _on_timer(self, wait_ms: int) -> None:
        """libcurl wants to be called in so many ms (-1: not at all). Earlier does no harm."""
        if wait_ms == 0 and not self._closed:
            if not self._due:
                self._due = True
                if self._soon is None and not self._pumping:
                    self._soon = self._loop.call_soon(self._on_soon)
            return
        if wait_ms < 0 or self._closed:
            return
        at = self._loop.time() + wait_ms / 1000
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._due = True
        self._pump()

    def _on_soon(self) -> None:
        self._soon = None
        self._pump()

    def _pump(self) -> None:
        """Settle what ended; let libcurl begin what that started."""
        multi = self._multi
        self._pumping = True
        try:
            while not self._closed:
                left, fine, failed = multi.info_read()
                # `done` may abort, and start anew with the same handle: look at the fetch as well.
                ended = [(self._slots[curl], 0, "") for curl in fine]
                ended += [(self._slots[curl], error, said) for curl, error, said in failed]
                for slot, fetch, error, said in [(s, s.fetch, e, said) for s, e, said in ended]:
                    if fetch is not None and slot.fetch is fetch:
                        self._settle(slot, error, said)
                if left or self._closed:
                    continue
                if not self._due:
                    return
                self._due = False
                multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        finally:
            self._pumping = False

    def _sweep(self) -> None:
        """Ends what brought nothing for idle_s, and what takes longer than total_s.

        Once a tick over all that is under way: costs the single page nothing.
        """
        self._sweeper = None
        now = self._loop.time()
        for slot in list(self._busy.values()):
            reply = slot.reply
            progress = len(reply.lines) + reply.got
            if progress != slot.progress:
                slot.progress, slot.seen = progress, now
            elif now - slot.seen >= self._limits.idle_s:
                if not slot.curl.getinfo(pycurl.REQUEST_SIZE):
                    slot.seen = now  # still connecting: libcurl ends that after connect_s
                else:
                    self._settle(slot, Failure.TIMED_OUT, "no data in time")
                    continue
            if now - slot.since >= self._limits.total_s:
                slot.overdue = True
                self._settle(slot, Failure.TIMED_OUT, "total time is over")
        if self._busy and self._sweeper is None:
            self._sweeper = self._loop.call_later(self._tick_s, self._sweep)

    def _settle(self, slot: _Slot, error: int, message: str) -> None:
        """A fetch has ended, well or badly: hand its Capture over, take the next that waits."""
        fetch, reply = slot.fetch, slot.reply
        if fetch is None:
            return
        body, spool = reply.end()
        head, request = reply.head, slot.request
        code = status_of(head)
        if not error and code == 200 and reply.whole and not reply.truncated:
            verdict, detail = _FINE, reply.detail
        else:
            asked = bool(slot.curl.getinfo(pycurl.REQUEST_SIZE))
            if not asked:
                request = b""  # never connected, so never sent
            verdict = judge(
                reply, code, error=error, said=slot.refused or message,
                asked=asked, overdue=slot.overdue,
            )  # fmt: skip
            detail = verdict.detail
        started = slot.started
        self._release(slot)
        reply.begin()
        self._next()
        self._done(
            Capture(
                ticket=fetch.ticket,
                url=fetch.url,
                address=fetch.address,
                started=started,
                ended=self._clock(),
                outcome=verdict.outcome,
                code=code,
                request=request,
                head=head,
                body=body,
                spool=spool,
                truncated=verdict.truncated,
                detail=detail,
            )
        )

    def _release(self, slot: _Slot) -> None:
        """Out of libcurl, back among the free. What was not whole loses its connection."""
        assert slot.fetch is not None
        self._multi.remove_handle(slot.curl)
        del self._busy[slot.fetch.ticket]
        slot.fetch = None
        self._free.setdefault(slot.key, []).append(slot)

    def _next(self) -> None:
        if self._waiting and len(self._busy) < self._connections:
            self.start(self._waiting.popleft())

    def _refuse(self, fetch: Fetch, why: str) -> None:
        if self._closed:
            return
        now = self._clock()
        self._done(
            Capture(
                ticket=fetch.ticket, url=fetch.url, address="", started=now, ended=now,
                outcome=Outcome.BAD, detail=why,
            )
        )  # fmt: skip
