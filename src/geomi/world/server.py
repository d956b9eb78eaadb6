"""The world on loopback: one process, one listening socket for each address, and a log.

Faults are shown here, from one table; everything else comes from `World.answer`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, cast

from geomi.world import evil
from geomi.world.dns import NameServer
from geomi.world.evil_words import STALL, Say
from geomi.world.model import FLAKY, Answer, Params, World
from geomi.world.tls import Certificates
from geomi.world.wire import LogRow, Wire, wire

_CACHE_BYTES = 128 * 2**20
_FLUSH_S = 0.2
_DATED = (429, 503)  # these may name a time, so they are not cached
#: Fields of a request on which an answer depends beside its URL.
_DECIDING = frozenset({"if-none-match", "if-modified-since", "cookie", "authorization"})
#: A script that is never read to its end must not fill memory: writing waits above this.
_HIGH_BYTES = 262_144


class _Connection(asyncio.Protocol):
    """One client. Requests are answered in order, also when they come in one piece."""

    def __init__(self, server: WorldServer, address: str, scheme: str) -> None:
        self._server = server
        self._address = address
        self._scheme = scheme
        self._buffer = b""
        self._busy = False  # an answer is under way; the buffer waits
        # What to write in the log when a stalled connection ends.
        self._stalled: Callable[[float], None] | None = None
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.opened(self._address, self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.closed(self._address, self._transport)
        if self._stalled is not None:
            self._stalled(self._server.clock())
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

        def log(ended_s: float) -> None:
            self._server.note(
                LogRow(
                    started_s, ended_s, self._address, host, method, target, out.status,
                    out.size_bytes, self._scheme,
                )
            )  # fmt: skip

        if delay_s > 0:
            self._busy = True
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._finish, out, log, last)
        else:
            self._send(out, log, last)

    def _finish(self, out: Wire, log: Callable[[float], None], last: bool) -> None:
        self._busy = False
        self._send(out, log, last)
        self._next()

    def _send(self, out: Wire, log: Callable[[float], None], last: bool) -> None:
        # Before it is sent: the visitor may have it, and rest, before we come to look at the clock.
        ended_s = self._server.clock()
        if out.data and not self._transport.is_closing():
            self._transport.write(out.data)
        if out.then == "stall" and not self._transport.is_closing():
            self._busy = True
            self._stalled = log
            return
        log(ended_s)
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
        self._cache: OrderedDict[tuple[str, str, str], Wire] = OrderedDict()
        self._cached_bytes = 0
        self._servers: list[asyncio.Server] = []
        self._evil = _EvilServer(self, world.params)
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
                    ssl=_context(certificates) if scheme == "https" else None,
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
    ) -> tuple[Wire, float]:  # fmt: skip
        """What to send, and after how many seconds."""
        key = (scheme, host, target)
        plain = method == "GET" and _DECIDING.isdisjoint(headers)
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
        elif not (self._world.params.changes or delay_s or answer.status in _DATED) and plain:
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


class _EvilServer:
    """One connection handler for all evil hosts; the address says which host it is."""

    def __init__(self, server: WorldServer, params: Params) -> None:
        self._server = server
        self._pause_s = params.pause_s
        self._port = "" if params.port == 80 else f":{params.port}"
        self._by_address = {evil.address(entry): entry for entry in evil.EVILS}
        # One a connection, removed when it ends; close() waits for none.
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; one request, as most of these servers leave nothing to go on with."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            writer.transport.set_write_buffer_limits(high=_HIGH_BYTES)
            head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the visitor left, which is what it should do
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        started_s, sent = self._server.clock(), 0
        address = writer.get_extra_info("sockname")[0]
        entry = self._by_address[address]
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        target = words[1] if len(words) == 3 else ""
        asked = Say(target=target, page=entry.target, pause_s=self._pause_s)
        gone = asyncio.ensure_future(reader.read())  # ends when the visitor closes
        try:
            for step in evil.script(entry, asked):
                if isinstance(step, bytes):
                    writer.write(step)
                    sent += len(step)
                    await writer.drain()
                    await asyncio.sleep(0)  # a fast reader never makes drain() wait
                    if gone.done() or writer.is_closing():
                        return
                    continue
                await asyncio.wait((gone,), timeout=None if step == STALL else step)
                if gone.done():
                    return
        finally:
            gone.cancel()
            ended_s, host = self._server.clock(), entry.host + self._port
            self._server.note(LogRow(started_s, ended_s, address, host, "GET", target, 0, sent))

    def close(self) -> None:
        """Ends all connections."""
        for task in list(self._tasks):
            task.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Sockets bound for a world."""

    plain: list[socket.socket]
    tls: list[socket.socket]
    evil: list[socket.socket]


def listen(world: World) -> Listening:
    """Sockets at the world's addresses; a port of 0 becomes one that is free on all of
    them, and so does 443 for https."""
    params = world.params
    wicked = [evil.address(entry) for entry in evil.EVILS] if params.evil else []
    addresses = world.addresses()
    bound = bind([*addresses, *wicked], params.port)
    tls: list[socket.socket] = []
    try:
        if secure := world.tls_addresses():
            tls = bind(secure, 0 if params.tls_port == 443 else params.tls_port)
    except OSError:
        for sock in bound:
            sock.close()
        raise
    return Listening(plain=bound[: len(addresses)], tls=tls, evil=bound[len(addresses) :])


def bind(addresses: list[str], port: int) -> list[socket.socket]:
    """One listening socket for each address, all on one port; 0 finds a port free on all."""
    for attempt in range(20):
        sockets: list[socket.socket] = []
        chosen = port
        try:
            for address in addresses:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                sock = socket.socket(family, socket.SOCK_STREAM)
                sockets.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((address, chosen))
                chosen = sock.getsockname()[1]
        except OSError:
            for sock in sockets:
                sock.close()
            if port or attempt == 19:
                raise
        else:
            return sockets
    raise AssertionError("the loop returns or raises")


def _context(certificates: Certificates) -> ssl.SSLContext:
    """What a socket for https needs: it chooses a certificate by the name that the client says."""

    @lru_cache(maxsize=2_000)
    def named(host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The standard library reads certificates from files alone.
        with tempfile.TemporaryDirectory(prefix="geomi-world-") as folder:
            path = Path(folder, "server.pem")
            path.write_text(certificates.server(host), encoding="ascii")
            context.load_cert_chain(path)
        return context

    def choose(sock: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        sock.context = named(name or "")

    context = named("")
    context.sni_callback = choose
    return context
