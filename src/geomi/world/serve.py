"""The world on loopback: one process, one listening socket for each address, and a log.

Faults are shown here, from one table; everything else comes from `World.answer`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TextIO, cast

from geomi.states import Outcome
from geomi.world.dns import NameServer
from geomi.world.evil_serve import EvilServer
from geomi.world.listen import Listening, listen
from geomi.world.model import FLAKY, Answer, World
from geomi.world.tls import Certificates

_CACHE_BYTES = 128 * 2**20
_FLUSH_S = 0.2
_CHUNK_BYTES = 4_000
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class LogRow(NamedTuple):
    """One request as the server saw it. Times are those of the server's clock."""

    started_s: float  # the request was whole
    ended_s: float  # the last byte was given to the kernel, or the connection ended
    address: str
    host: str
    method: str
    target: str
    status: int  # 0 when no status line was sent
    size_bytes: int  # of the body; of all that was sent where the host is evil
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.target}"

    @classmethod
    def parse(cls, line: str) -> LogRow:
        """The reverse of what is written to the log file."""
        a, b, *words = line.rstrip("\n").split("\t")
        address, host, method, target, status, size, scheme = words
        return cls(
            float(a), float(b), address, host, method, target, int(status), int(size), scheme
        )


class _Wire(NamedTuple):
    """What goes out for an answer, and what happens to the connection then."""

    data: bytes
    status: int
    size_bytes: int
    then: str = ""  # close, stall; empty: keep


def wire(answer: Answer, *, head_only: bool = False) -> _Wire:
    """The bytes of an answer, with its fault if it has one."""
    body = b"" if head_only else answer.body
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Other')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    if answer.status == 304:
        body = b""
    elif answer.chunked and not answer.fault:
        lines.append("Transfer-Encoding: chunked")
        body = b"" if head_only else _chunks(body)
    else:
        lines.append(f"Content-Length: {len(answer.body)}")
    lines.append("Server: geomi-world\r\n\r\n")
    head = "\r\n".join(lines).encode("latin-1")
    if answer.fault:
        return _FAULTS[answer.fault](head, body)
    return _Wire(head + body, answer.status, 0 if head_only else len(answer.body))


def _chunks(body: bytes) -> bytes:
    parts = [body[k : k + _CHUNK_BYTES] for k in range(0, len(body), _CHUNK_BYTES)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _half(head: bytes, body: bytes, then: str) -> _Wire:
    half = body[: len(body) // 2]
    return _Wire(head + half, 200, len(half), then)


_FAULTS: dict[str, Callable[[bytes, bytes], _Wire]] = {
    Outcome.C_ERR: lambda _head, _body: _Wire(b"", 0, 0, "close"),  # nobody should get here
    Outcome.H_ERR: lambda _head, _body: _Wire(b"", 0, 0, "close"),
    Outcome.H_TIM: lambda _head, _body: _Wire(b"", 0, 0, "stall"),
    Outcome.H_SHT: lambda _head, _body: _Wire(b"HTTP/1.1 200 OK\r\nServ", 0, 0, "close"),
    Outcome.H_NPR: lambda _head, _body: _Wire(b"SSH-2.0-OpenSSH_9.2\r\n", 0, 0, "close"),
    Outcome.D_ERR: lambda head, body: _half(head, body, "close"),
    Outcome.D_TIM: lambda head, body: _half(head, body, "stall"),
}


class _Connection(asyncio.Protocol):
    """One client. Requests are answered in order, also when they come in one piece."""

    def __init__(self, server: WorldServer, address: str, scheme: str) -> None:
        self._server = server
        self._address = address
        self._scheme = scheme
        self._buffer = b""
        self._busy = False  # an answer is under way; the buffer waits
        # What to write in the log when a stalled connection ends.
        self._stalled: Callable[[], None] | None = None
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.opened(self._address, self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.closed(self._address, self._transport)
        if self._stalled is not None:
            self._stalled()
            self._stalled = None

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        while not self._busy and (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            self._request(head.decode("latin-1"))
        if len(self._buffer) > 65_536:
            self._transport.close()

    def _request(self, head: str) -> None:
        started_s = self._server.clock()
        first, _, rest = head.partition("\r\n")
        words = first.split(" ")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in rest.split("\r\n"))
        }
        method, target = (words[0], words[1]) if len(words) == 3 else ("", "")
        last = headers.get("connection", "").lower() == "close" or words[-1] == "HTTP/1.0"
        host = headers.get("host", "")
        found = (
            self._server.find(host, target, headers, method=method, scheme=self._scheme)
            if method in ("GET", "HEAD")
            else (_NOT_ALLOWED, 0.0)
        )
        out, delay_s = found

        def log() -> None:
            self._server.note(
                LogRow(
                    started_s, self._server.clock(), self._address, host, method, target,
                    out.status, out.size_bytes, self._scheme,
                )
            )  # fmt: skip

        if delay_s > 0:
            self._busy = True
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._finish, out, log, last)
        else:
            self._send(out, log, last)

    def _finish(self, out: _Wire, log: Callable[[], None], last: bool) -> None:
        self._busy = False
        self._send(out, log, last)
        self._next()

    def _send(self, out: _Wire, log: Callable[[], None], last: bool) -> None:
        if out.data and not self._transport.is_closing():
            self._transport.write(out.data)
        if out.then == "stall" and not self._transport.is_closing():
            self._busy = True
            self._stalled = log
            return
        log()
        if last or out.then == "close":
            self._busy = True
            self._transport.close()


_NOT_ALLOWED = wire(Answer(status=405, headers=(), body=b"only GET and HEAD\n"))


class WorldServer:
    """Serves a world on its port at all its addresses, inside the running event loop.

    `port` 0 takes a free one: then `bind()` must come before the world is made, because the
    port is part of every URL.
    """

    def __init__(
        self,
        world: World,
        *,
        sockets: Listening | None = None,
        log: Path | None = None,
        clock: Callable[[], float] = time.time,
        at: Callable[[], float] = lambda: 0.0,
        dns_port: int = 0,
    ) -> None:
        """`at` gives seconds since the world's start; `dns_port` 0 takes a free one."""
        self._world = world
        self._sockets = sockets
        self._path = log
        self._file: TextIO | None = None
        self._at = at
        self.clock = clock
        self.dns_port = dns_port
        self.log: list[LogRow] = []  # empty while rows go to a file
        self.connections: Counter[str] = Counter()  # ever opened, by address
        self.most_open: Counter[str] = Counter()  # at one time, by address
        self._open: dict[str, set[asyncio.Transport]] = {}
        self._failed: Counter[tuple[str, str, str]] = Counter()  # flaky answers given, by URL
        # Answers of a world that stands still; filled by find(), cut from the old end.
        self._cache: OrderedDict[tuple[str, str, str], _Wire] = OrderedDict()
        self._cached_bytes = 0
        self._servers: list[asyncio.Server] = []
        self._evil = EvilServer(
            pause_s=world.params.pause_s, clock=self.clock, note=self._note_evil
        )
        #: PEM of the certificate authority of the world's https; empty if it has none.
        self.authority = ""
        self._names: asyncio.DatagramTransport | None = None
        self.name_server = NameServer(world)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        if self._path is not None:
            self._file = self._path.open("a", encoding="latin-1")
            loop.call_later(_FLUSH_S, self._flush_often, loop)
        sockets = self._sockets or listen(self._world)
        certificates = Certificates(self._world)
        self.authority = certificates.authority() if sockets.tls else ""
        for scheme, bound in (("http", sockets.plain), ("https", sockets.tls)):
            for sock in bound:
                address = sock.getsockname()[0]
                server = await loop.create_server(
                    partial(_Connection, self, address, scheme),
                    sock=sock,
                    backlog=1024,
                    ssl=certificates.context() if scheme == "https" else None,
                )
                self._servers.append(server)
        for sock in sockets.evil:
            self._servers.append(await asyncio.start_server(self._evil.serve, sock=sock))
        transport, _ = await loop.create_datagram_endpoint(
            lambda: self.name_server, local_addr=("127.0.0.1", self.dns_port)
        )
        self._names = transport
        self.dns_port = transport.get_extra_info("sockname")[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in self._servers:
            server.close()
        self._evil.close()
        for open_here in self._open.values():
            for transport in list(open_here):
                transport.abort()
        if self._names is not None:
            self._names.close()
        await asyncio.sleep(0)
        if self._file is not None:
            self._file.close()
            self._file = None

    def find(
        self, host: str, target: str, headers: dict[str, str], *, method: str = "GET",
        scheme: str = "http",
    ) -> tuple[_Wire, float]:  # fmt: skip
        """What to send, and after how many seconds."""
        key = (scheme, host, target)
        plain = method == "GET" and not (
            "if-none-match" in headers or "if-modified-since" in headers
        )
        if plain and (cached := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            return cached, 0.0
        answer = self._world.answer(
            host, target, scheme=scheme, at=self._at(), headers=headers, now_s=time.time()
        )
        delay_s = answer.delay_s
        if answer.flaky > self._failed[key]:
            self._failed[key] += 1
            answer = FLAKY
        elif not (self._world.params.changes or delay_s or _dated(answer)) and plain:
            out = wire(answer)
            self._cache[key] = out
            self._cached_bytes += len(out.data)
            while self._cached_bytes > _CACHE_BYTES:
                self._cached_bytes -= len(self._cache.popitem(last=False)[1].data)
            return out, 0.0
        return wire(answer, head_only=method == "HEAD"), delay_s

    def note(self, row: LogRow) -> None:
        """Called by connections: the answer is out."""
        if self._file is None:
            self.log.append(row)
        else:
            self._file.write("\t".join(map(str, row)) + "\n")

    def _note_evil(
        self, started_s: float, address: str, host: str, target: str, status: int, size: int
    ) -> None:
        host = f"{host}:{self._world.params.port}" if self._world.params.port != 80 else host
        self.note(LogRow(started_s, self.clock(), address, host, "GET", target, status, size))

    def opened(self, address: str, transport: asyncio.Transport) -> None:
        """Called by connections."""
        here = self._open.setdefault(address, set())
        here.add(transport)
        self.connections[address] += 1
        self.most_open[address] = max(self.most_open[address], len(here))

    def closed(self, address: str, transport: asyncio.Transport) -> None:
        """Called by connections."""
        self._open[address].discard(transport)

    def flush(self) -> None:
        """What was logged is in the file afterwards."""
        if self._file is not None:
            self._file.flush()

    def _flush_often(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._file is not None:
            self._file.flush()
            loop.call_later(_FLUSH_S, self._flush_often, loop)


def _dated(answer: Answer) -> bool:
    """True if the answer names a time, so that it cannot be kept."""
    return answer.status in (429, 503)
