"""The sockets libcurl waits for, in an epoll of their own that is one reader of the loop."""

from __future__ import annotations

import select
from asyncio import AbstractEventLoop
from collections.abc import Callable

#: What libcurl asks for and what it is told: bits of its ABI (CURL_POLL_*, CURL_CSELECT_*).
IN, OUT, REMOVE, ERROR = 1, 2, 4, 4


class Sockets:
    """Registers, waits, says which are ready.

    A socket that libcurl lets go stays registered for reading: its connection rests and will most
    likely be used again, which saves two system calls a page. So its number alone says nothing:
    `is_new` must be told of every socket that libcurl opens.
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
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def close(self) -> None:
        """To be called when libcurl has closed all of them."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def is_new(self, fd: int) -> None:
        """An older socket of this number is closed, and the kernel took it out of the epoll."""
        self._registered.pop(fd, None)
        self._watched.discard(fd)

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
        mask = (select.EPOLLIN if bits & IN else 0) | (select.EPOLLOUT if bits & OUT else 0)
        try:
            if before:
                self._epoll.modify(fd, mask)
            else:
                self._epoll.register(fd, mask)
        except FileExistsError:
            self._epoll.modify(fd, mask)
        except FileNotFoundError:
            self._epoll.register(fd, mask)

    def _forget(self, fd: int) -> None:
        self._registered.pop(fd, None)
        try:
            self._epoll.unregister(fd)
        except OSError:
            pass  # closed: the kernel has removed it

    def _on_ready(self) -> None:
        for fd, event in self._epoll.poll(0, 256):
            if fd not in self._watched:
                self._forget(fd)  # a resting connection was closed by its server
                continue
            bits = (IN if event & select.EPOLLIN else 0) | (OUT if event & select.EPOLLOUT else 0)
            self._act(fd, bits | (ERROR if event & (select.EPOLLERR | select.EPOLLHUP) else 0))
        self._then()
