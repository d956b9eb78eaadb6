"""What scripts of evil servers are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

#: Bytes to send, or seconds to wait; STALL ends a script and leaves the connection open.
Step = bytes | float
STALL = float("inf")
HTML = b"text/html"
_BLOCK_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A request, as a script needs it."""

    target: str
    page: str  # the target that the entry is about
    pause_s: float


def say(_asked: Say, body: bytes, mime: bytes = HTML) -> Iterator[Step]:
    """An honest answer."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (mime, len(body))
    for at in range(0, len(body), _BLOCK_BYTES):
        yield body[at : at + _BLOCK_BYTES]
