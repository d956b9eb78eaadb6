"""A server in a process of its own that answers at once, or late: it waits on all connections.

Every page links to others below `/new/` and to known ones, the same for each host. (nginx keeps a
file open for each page: 20,000 are more than a process may have.)
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """What is known of the running server. `open_now` counts connections with a request."""

    port: int
    open_now: Synchronized[int]
    most_open: Synchronized[int]
    answered: Synchronized[int]


_LINKED = 100  # known pages of a host that are linked to
_CHANCE = random.Random(0)
_TEXTS = [" ".join(f"word{_CHANCE.randrange(10_000)}" for _ in range(300)) for _ in range(64)]


def page(number: int, *, new: int, known: int) -> bytes:
    """Page `number` of `new`: the next ones of a tree, random ones, and ten known ones."""
    chance = random.Random(number)
    links = [f"/new/{n}.html" for n in range(number * 4 + 1, number * 4 + 5) if n < new]
    links += [f"/new/{chance.randrange(new)}.html" for _ in range(16)]
    if known:
        # As many different ones however many are known: new links cost more than links met before.
        step = max(1, known // _LINKED)
        links += [f"/known/{step * chance.randrange(min(known, _LINKED))}.html" for _ in range(10)]
    words = _TEXTS[number % len(_TEXTS)]
    anchors = "\n".join(f'<p><a href="{link}">{link}</a> {words[:40]}</p>' for link in links)
    return f"<html><head><title>Page {number}</title></head><body>{anchors}{words}</body>".encode()


def address_of(number: int) -> str:
    """The address of host `number`, where each has its own."""
    return f"127.64.{number // 250}.{number % 250 + 1}"


@contextmanager
def answering(*, delay_s: float, new: int, known: int, addresses: int = 0) -> Iterator[Answering]:
    """The server while the context lasts. `new`, `known`: pages a host.

    It listens on 127.0.0.1, and on so many addresses besides (`address_of`), all on one port.
    """
    context = get_context("spawn")
    with ExitStack() as held:
        port = 0
        listening = []
        for address in ("127.0.0.1", *map(address_of, range(addresses))):
            one = held.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((address, port))
            one.listen(4096)
            port = one.getsockname()[1]
            listening.append(one)
        numbers = [context.Value("q", 0) for _ in range(3)]
        process = context.Process(
            target=_serve, args=(listening, delay_s, new, known, *numbers), daemon=True
        )
        process.start()
        try:
            yield Answering(
                port=port, open_now=numbers[0], most_open=numbers[1],
                answered=numbers[2],
            )  # fmt: skip
        finally:
            process.terminate()
            process.join(10)


def _serve(
    listening: list[socket.socket], delay_s: float, new: int, known: int, open_now: Any,
    most_open: Any, answered: Any,
) -> None:  # fmt: skip
    bodies: dict[str, bytes] = {}

    def body(path: str) -> bytes:
        found = bodies.get(path)
        if found is None:
            name = path.rpartition("/")[2].removesuffix(".html")
            data = page(int(name), new=new, known=known) if name.isdigit() else b""
            status = "200 OK" if data else "404 Not Found"
            found = bodies[path] = (
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                f"Content-Length: {len(data)}\r\n\r\n".encode()
                + data
            )
        return found

    class Answerer(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            self.data = b""

        def data_received(self, data: bytes) -> None:
            self.data += data
            if b"\r\n\r\n" in self.data:
                path = self.data.split(b" ", 2)[1].decode()
                self.data = b""
                open_now.value += 1
                most_open.value = max(most_open.value, open_now.value)
                if delay_s:
                    asyncio.get_running_loop().call_later(delay_s, self.answer, body(path))
                else:
                    self.answer(body(path))

        def answer(self, data: bytes) -> None:
            open_now.value -= 1
            answered.value += 1
            if not self.transport.is_closing():
                self.transport.write(data)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        servers = [await loop.create_server(Answerer, sock=one) for one in listening]
        await asyncio.gather(*(server.serve_forever() for server in servers))

    import uvloop

    uvloop.run(serve())
