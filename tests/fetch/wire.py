"""A raw server on loopback that sends exactly what a test says, and keeps what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop
from msgspec.structs import replace

from geomi.fetch.client import Client
from geomi.fetch.limits import Limits
from geomi.fetch.request import Fetch
from geomi.records import Capture

CERTIFICATE = str(Path(__file__).with_name("a.example.pem"))  # for a.example, until 2126

#: Ends of a script: what the server does after its bytes.
CLOSE, KEEP, HANG, RESET, DRIP = "close", "keep", "hang", "reset", "drip"

OK = b"HTTP/1.1 200 OK\r\n"
ABC = OK + b"Content-Length: 3\r\n\r\nabc"

Script = Iterable[bytes | str]


@dataclass(frozen=True)
class Endless:
    """A script that begins with one thing and goes on with another for ever."""

    start: bytes
    then: bytes

    def __iter__(self) -> Iterator[bytes | str]:
        yield self.start
        while True:
            yield self.then


@dataclass
class Wire:
    """What a server saw. `requests` holds whole heads, `connections` their number."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    scheme: str = "http"
    address: str = "127.0.0.1"

    def fetch(self, target: str = "/", *, host: str = "a.example", **changes: Any) -> Fetch:
        fetch = Fetch(
            ticket=1,
            url=f"{self.scheme}://{host}:{self.port}{target}",
            scheme=self.scheme,
            host=host,
            port=self.port,
            target=target,
            address=self.address,
        )
        return replace(fetch, **changes)


@asynccontextmanager
async def serving(
    *scripts: Script, tls: bool | str = False, address: str = "127.0.0.1", client_ca: str = ""
) -> AsyncIterator[Wire]:
    """Answers the n-th request with the n-th script; the last one serves all that follow."""
    wire = Wire(port=0, scheme="https" if tls else "http", address=address)
    talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks[task] = writer
        wire.connections += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                script = scripts[min(len(wire.requests), len(scripts) - 1)]
                wire.requests.append(request)
                end = await play(script, writer)
                if end == KEEP:
                    continue
                if end == HANG:
                    await reader.read()
                while end == DRIP and not reader.at_eof():
                    writer.write(b"a")
                    await asyncio.sleep(0.02)
                if end == RESET:
                    writer.transport.abort()
                break
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def play(script: Script, writer: asyncio.StreamWriter) -> str:
        for step in script:
            if isinstance(step, str):
                return step
            writer.write(step)
            await writer.drain()
        return CLOSE

    context = None
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE if tls is True else tls)
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_ca)
    server = await asyncio.start_server(talk, address, 0, ssl=context)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        for writer in talks.values():
            writer.transport.abort()
        await asyncio.gather(*talks)
        await server.wait_closed()


QUICK = Limits(connect_s=2.0, idle_s=0.2, total_s=5.0)


class Robot:
    """A client whose captures can be awaited. To be used in `with`."""

    def __init__(self, spool_dir: object, limits: Limits = QUICK, **options: Any) -> None:
        self.captures: list[Capture] = []
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.on_done: Callable[[Capture], None] = lambda capture: None
        self.client = Client(
            asyncio.get_running_loop(),
            limits=limits,
            user_agent="geomi/test",
            spool_dir=str(spool_dir),
            done=self._done,
            **options,
        )

    def __enter__(self) -> Robot:
        self.client.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def _done(self, capture: Capture) -> None:
        self.captures.append(capture)
        self.on_done(capture)
        for count, future in self._waiting:
            if len(self.captures) >= count and not future.done():
                future.set_result(None)

    async def until(self, count: int) -> list[Capture]:
        """The captures, as soon as there are so many."""
        if len(self.captures) < count:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((count, future))
            await asyncio.wait_for(future, 20)
        return self.captures

    async def get(self, fetch: Fetch) -> Capture:
        before = len(self.captures)
        self.client.start(fetch)
        return (await self.until(before + 1))[before]


def run(main: Coroutine[Any, Any, Any], loops: Callable[[], Any] = uvloop.new_event_loop) -> Any:
    with asyncio.Runner(loop_factory=loops) as runner:
        return runner.run(main)


def once(tmp_path: Path, *script: bytes | str, limits: Limits = QUICK, **fetch: Any) -> Capture:
    """The capture of one fetch from a server that plays `script`."""

    async def main() -> Capture:
        async with serving(script) as wire:
            with Robot(tmp_path, limits) as robot:
                return await robot.get(wire.fetch(**fetch))

    capture: Capture = run(main())
    return capture
