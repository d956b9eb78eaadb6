"""A server whose log has the kernel's time at which each request arrived, however late it is read.

So a gap in this log is one that a server saw: no loop or thread of the test had a part in it.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

_STAMPS = 35  # SO_TIMESTAMPNS of Linux, and the control message it brings
_TIMESPEC = struct.Struct("@ll")


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request. `answered` is before the first byte of the answer was sent."""

    at: float
    answered: float
    address: str
    host: str
    target: str


@dataclass(slots=True)
class Stamped:
    """Hosts h0, h1, … of example, some on each address; every front page links to all pages."""

    hosts: int
    pages: int
    addresses: list[str]
    port: int = 0
    log: list[Arrival] = field(default_factory=list)

    def address(self, number: int) -> str:
        return self.addresses[number % len(self.addresses)]

    @property
    def seeds(self) -> list[str]:
        return [f"http://h{number}.example:{self.port}/" for number in range(self.hosts)]

    @property
    def urls(self) -> set[str]:
        """Every page there is."""
        return {f"{seed}{page}" for seed in self.seeds for page in ("", *range(self.pages))}

    @property
    def options(self) -> list[str]:
        """With which a crawl reaches them."""
        names = ", ".join(
            f'"h{number}.example" = "{self.address(number)}"' for number in range(self.hosts)
        )
        return ["--set", f"dns.hosts={{{names}}}", "--allow-network", "127.0.0.0/8"]

    def answer(self, target: str) -> bytes:
        if target == "/robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        links = range(self.pages) if target == "/" else ()
        body = f"page {target}".encode() + b"".join(b'<a href="/%d">x</a>' % n for n in links)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def gaps(self) -> dict[str, float]:
        """The smallest from arrival to arrival, by address."""
        by: dict[str, list[float]] = defaultdict(list)
        for one in self.log:
            by[one.address].append(one.at)
        return {
            address: min(b - a for a, b in pairwise(sorted(times)))
            for address, times in by.items()
            if len(times) > 1
        }

    def rests(self) -> dict[str, float]:
        """The smallest from an answer to the next arrival, by host."""
        by: dict[str, list[Arrival]] = defaultdict(list)
        for one in sorted(self.log, key=lambda one: one.at):
            by[one.host].append(one)
        return {
            host: min(b.at - a.answered for a, b in pairwise(seen))
            for host, seen in by.items()
            if len(seen) > 1
        }


@contextmanager
def stamped(*, hosts: int = 12, pages: int = 10, addresses: int = 2) -> Iterator[Stamped]:
    if not hasattr(select, "epoll"):
        raise RuntimeError("the times of arrival are those of Linux")
    served = Stamped(hosts, pages, [f"127.90.0.{number + 1}" for number in range(addresses)])
    listening = []
    for address in served.addresses:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)  # who connects inherits it
        listener.bind((address, served.port))
        served.port = listener.getsockname()[1]
        listener.listen(1024)
        listening.append(listener)
    ends, end = socket.socketpair()
    thread = threading.Thread(target=_serve, args=(served, listening, ends))
    thread.start()
    try:
        yield served
    finally:
        end.close()
        thread.join()
        ends.close()


def _serve(served: Stamped, listening: list[socket.socket], ends: socket.socket) -> None:
    poll = select.epoll()
    listeners = {one.fileno(): one for one in listening}
    clients: dict[int, tuple[socket.socket, bytearray]] = {}
    for number in (*listeners, ends.fileno()):
        poll.register(number, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == ends.fileno():
                for client, _ in clients.values():
                    client.close()
                for one in listening:
                    one.close()
                poll.close()
                return
            if number in listeners:
                client, _ = listeners[number].accept()
                clients[client.fileno()] = (client, bytearray())
                poll.register(client.fileno(), select.EPOLLIN)
            elif not _read(served, *clients[number]):
                poll.unregister(number)
                clients.pop(number)[0].close()


def _read(served: Stamped, client: socket.socket, held: bytearray) -> bool:
    """Takes what came, and answers what is whole. False: the other side has gone."""
    try:
        data, control, _, _ = client.recvmsg(65_536, 256)
        at = time.time()
        for level, kind, text in control:
            if (level, kind) == (socket.SOL_SOCKET, _STAMPS):
                seconds, parts = _TIMESPEC.unpack(text[: _TIMESPEC.size])
                at = seconds + parts / 1e9
        held += data
        if held.endswith(b"\r\n\r\n"):
            lines = held.decode("latin-1").split("\r\n")
            held.clear()
            host = next(line[6:] for line in lines if line.lower().startswith("host: "))
            target = lines[0].split(" ")[1]
            address = client.getsockname()[0]
            served.log.append(Arrival(at, time.time(), address, host, target))
            client.sendall(served.answer(target))
        return bool(data)
    except OSError:
        return False
