"""libcurl's one timer, on an asyncio loop."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Handle, TimerHandle
from collections.abc import Callable


class Alarm:
    """When libcurl wants to be called: `ring` is called then, and `take` tells it why."""

    def __init__(self, loop: AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._timer: TimerHandle | None = None
        self._at = 0.0
        self._soon: Handle | None = None
        self._is_due = False
        self._is_closed = False
        #: True while the client is at work anyway and looks at `take` itself.
        self.is_heard = False

    def set(self, wait_ms: int) -> None:
        """libcurl wants to be called in so many ms (-1: not at all). Earlier does no harm."""
        if self._is_closed or wait_ms < 0:
            return
        if wait_ms == 0:
            if not self._is_due:
                self._is_due = True
                if self._soon is None and not self.is_heard:
                    self._soon = self._loop.call_soon(self._ring_soon)
            return
        at = self._loop.time() + wait_ms / 1000
        if self._timer is not None:
            if self._at <= at:
                return
            self._timer.cancel()
        self._at = at
        self._timer = self._loop.call_at(at, self._ring_now)

    def take(self) -> bool:
        """True if libcurl wants to look at its clock; asked once it is told so."""
        is_due, self._is_due = self._is_due, False
        return is_due

    def close(self) -> None:
        self._is_closed = True
        for handle in (self._timer, self._soon):
            if handle is not None:
                handle.cancel()

    def _ring_now(self) -> None:
        self._timer = None
        self._is_due = True
        self._ring()

    def _ring_soon(self) -> None:
        self._soon = None
        self._ring()
