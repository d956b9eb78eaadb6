"""The sockets libcurl waits for, in an epoll of their own that is one reader of the loop."""

from __future__ import annotations

import select
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable

#: What libcurl asks for and what it is told: bits of its ABI (CURL_POLL_*, CURL_CSELECT_*).
IN, OUT, REMOVE, ERROR = 1, 2, 4, 4

_READABLE, _WRITABLE = select.EPOLLIN, select.EPOLLOUT
_BROKEN = select.EPOLLERR | select.EPOLLHUP
_PEEK = int(socket.MSG_PEEK)
_PEEK_BYTES = 16 * 1024  # as much as libcurl reads at a time


class Peek:
    """One connection, and the first bytes of the answer under way, seen before libcurl takes them.

    libcurl drops the bytes of a header that it refuses; from here they can still be had. 0.7 us a
    page.
    """

    __slots__ = ("buffer", "is_orderly", "port", "size", "sock", "view")

    def __init__(self, fd: int, family: int, *, room: int) -> None:
        # The number is libcurl's: this object must never close it.
        self.sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=fd)
        self.buffer = bytearray(room)
        self.view = memoryview(self.buffer)
        self.size = 0
        self.port = 0  # ours; known once something came
        # Since the request something came, or an end that is no reset: the other side read it, for
        # to close with bytes unread is to reset.
        self.is_orderly = False

    def begin(self) -> None:
        """A request goes out."""
        self.size = 0
        self.is_orderly = False

    def bytes(self) -> bytes:
        return bytes(self.view[: self.size])

    def look(self) -> None:
        try:
            rest = self.view[self.size :] if self.size else self.buffer
            self.size += self.sock.recv_into(rest, 0, _PEEK)
        except OSError:
            pass  # reset by the other side: libcurl will say so


class Sockets:
    """Registers, waits, says which are ready.

    A socket that libcurl lets go stays registered for reading: its connection rests and will most
    likely be used again, which saves two system calls a page. So its number alone says nothing:
    `opened` must be told of every socket that libcurl opens.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        *,
        act: Callable[[int, int], object],
        then: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._act = act  # (fd, bits): one socket is ready
        self._then = then  # after all that were ready
        self._epoll = select.epoll()
        self._registered: dict[int, int] = {}  # fd: bits it is registered for
        self._watched: set[int] = set()  # fds libcurl wants to hear of
        self._peeks: dict[int, Peek] = {}  # by fd, of connections whose bytes can be read
        self._fresh: socket.socket | None = None  # given to libcurl, which makes a duplicate
        self.by_port: dict[int, Peek] = {}  # the same by our port, once something came
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def close(self) -> None:
        """To be called when libcurl has closed all of them."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        for fd in list(self._peeks):
            self._unpeek(fd)

    def open(self, family: int, kind: int, protocol: int) -> socket.socket:
        """A socket for libcurl, which makes a duplicate and then calls `opened`."""
        self._fresh = socket.socket(family, kind, protocol)
        return self._fresh

    def opened(self, fd: int, *, peeks: bool = False) -> None:
        """`fd` is libcurl's. An older socket of this number is closed, and the kernel took it out
        of the epoll.

        `peeks`: its answers can be read here too (no TLS, no proxy before it).
        """
        family = int(self._fresh.family) if self._fresh is not None else socket.AF_INET
        if self._fresh is not None:
            self._fresh.close()
            self._fresh = None
        self._registered.pop(fd, None)
        self._watched.discard(fd)
        if fd in self._peeks:
            self._unpeek(fd)
        self._peeks[fd] = Peek(fd, family, room=_PEEK_BYTES if peeks else 0)

    def _unpeek(self, fd: int) -> None:
        peek = self._peeks.pop(fd)
        peek.sock.detach()
        if self.by_port.get(peek.port) is peek:
            del self.by_port[peek.port]

    def watch(self, bits: int, fd: int, _multi: object, _data: object) -> None:
        """libcurl's socket function."""
        before = self._registered.get(fd, 0)
        if bits == REMOVE:
            self._watched.discard(fd)
            if before & OUT:  # it would be ready for ever
                self._forget(fd)
            return
        self._watched.add(fd)
        if bits == before:
            return
        self._registered[fd] = bits
        mask = (_READABLE if bits & IN else 0) | (_WRITABLE if bits & OUT else 0)
        try:
            if before:
                self._epoll.modify(fd, mask)
            else:
                self._epoll.register(fd, mask)
        except FileExistsError:
            self._epoll.modify(fd, mask)
        except FileNotFoundError:
            self._epoll.register(fd, mask)

    def _place(self, peek: Peek) -> None:
        try:
            peek.port = peek.sock.getsockname()[1]
        except OSError:
            return
        self.by_port[peek.port] = peek

    def _forget(self, fd: int) -> None:
        self._registered.pop(fd, None)
        try:
            self._epoll.unregister(fd)
        except OSError:
            pass  # closed: the kernel has removed it

    def _on_ready(self) -> None:
        peeks, act = self._peeks, self._act
        for fd, event in self._epoll.poll(0, 256):
            if fd not in self._watched:
                self._forget(fd)  # a resting connection was closed by its server
                continue
            peek = peeks.get(fd)
            if peek is not None:
                if not peek.port:
                    self._place(peek)
                if not event & _BROKEN:
                    peek.is_orderly = True
                if peek.size < len(peek.buffer):
                    peek.look()
            if event == _READABLE:
                act(fd, IN)
                continue
            bits = (IN if event & _READABLE else 0) | (OUT if event & _WRITABLE else 0)
            act(fd, bits | (ERROR if event & _BROKEN else 0))
        self._then()
