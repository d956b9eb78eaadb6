"""One answer while it comes in: header lines, body, limits; large bodies go to a file.

Knows no library: `Reply.line` and `Reply.add` are what any HTTP client may call.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from typing import BinaryIO

from geomi.fetch.limits import Limits
from geomi.fetch.raw import is_all, split
from geomi.records import Spool

#: Returned to the HTTP client: stop here, close the connection.
STOP = 0

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d\d\d)(?!\d)", re.IGNORECASE)
_TRANSFER = re.compile(rb"(?im)^transfer-encoding(?=[ \t]*:)")
_TYPE = re.compile(rb"(?im)^content-type:[ \t]*([^\s;,]*)")
_RENAMED = b"X-Geomi-Transfer-Encoding"


def status_of(head: bytes) -> int:
    """The code of a status line; 0 if the line is none."""
    if head.startswith(b"HTTP/1.1 200 "):
        return 200
    found = _STATUS.match(head)
    return int(found[1]) if found else 0


def mime_of(head: bytes) -> str:
    """The type the header names, lower case, no parameters; empty if none."""
    found = _TYPE.search(head)
    return found[1].decode("latin-1").lower() if found else ""


def tidy(lines: list[bytes]) -> tuple[bytes, bool]:
    """Header lines as received -> (head, whether it is whole).

    1xx blocks before the final answer and trailers after it are cut. Transfer-encoding is undone
    by the client, so its line is renamed (docs/design/spine.md, "Chunked bodies").
    """
    start, whole = 0, False
    usual = lines[-1] == b"\r\n" and lines[0].startswith(b"HTTP/1.1 200 ")
    if usual and lines.index(b"\r\n") == len(lines) - 1:  # 0.4 us sooner
        return _renamed(b"".join(lines)), True
    for at, line in enumerate(lines):
        if line != b"\r\n" and line != b"\n":
            continue
        code = status_of(lines[start])
        if 100 <= code < 200 and code != 101:
            start = at + 1
            continue
        lines = lines[start : at + 1]
        whole = True
        break
    else:
        # A 1xx block and nothing after it: what came is kept, but it is no whole answer.
        lines = lines[start:] if start < len(lines) else lines
    return _renamed(b"".join(lines)), whole


def _renamed(head: bytes) -> bytes:
    if b"\ntransfer-encoding" in head.lower():
        return _TRANSFER.sub(_RENAMED, head)
    return head


@dataclass(slots=True)
class Room:
    """What all replies of one client share."""

    limits: Limits
    spool_dir: str
    held_bytes: int = 0  # of bodies in memory, over all replies under way


class Reply:
    """Collects one answer. `begin()` makes it ready for the next one."""

    __slots__ = (
        "_block", "_file", "_held", "_limit", "_parts", "_path", "_payload", "_room", "_soft",
        "all_came", "detail", "got", "head", "head_cut", "line", "lines", "most",
        "truncated", "whole",
    )  # fmt: skip

    def __init__(self, room: Room) -> None:
        self._room = room
        self.lines: list[bytes] = []  # filled through `line`, emptied by begin()
        self.line = self.lines.append
        self._parts: list[bytes] = []  # the body in memory; its first part only, once it spools
        self._file: BinaryIO | None = None
        self._held = 0
        self.begin()

    def begin(self) -> None:
        """Forget the last answer. A spool that nobody took is removed."""
        self.lines.clear()
        self._parts.clear()
        self.head = b""  # set with the first body byte, or by end()
        self.whole = False
        self.head_cut = False  # it was longer than the limit
        self.all_came = False  # of what take_raw() was given, by its own word
        self.got = 0  # bytes of body kept
        self.most = 0  # bytes of body that are of use, set before it comes; 0: by its type
        self.truncated = ""
        self.detail = ""
        self._soft = 0  # add() does more than append beyond this; 0: at the first byte
        self._limit = 0
        if self._held:
            self._room.held_bytes -= self._held
            self._held = 0
        if self._file is not None:
            self._file.close()
            self._file = None
            os.unlink(self._path)

    def add(self, chunk: bytes) -> int | None:
        """One piece of body. None: go on; STOP: nothing more is wanted."""
        size = len(chunk)
        room = self._room
        self._parts.append(chunk)
        self.got += size
        self._held += size
        room.held_bytes += size
        if self.got <= self._soft and room.held_bytes <= room.limits.in_flight_bytes:
            return None
        return self._weigh(size)

    def end(self) -> tuple[bytes, Spool | None]:
        """The body and, if it was too large for memory, where it is. The spool is the caller's."""
        if not self.head:
            self._behead()
        if self._file is None:
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            return body, None
        try:
            self._file.close()
        except OSError as error:
            self._spoilt(error)
            return b"".join(self._parts), None
        self._file = None
        spool = Spool(
            path=self._path,
            size=self.got,
            payload_sha1=self._payload.digest(),
            block_sha1=self._block.digest(),
        )
        return b"".join(self._parts), spool

    def take_raw(self, raw: bytes) -> None:
        """All that came, in place of the lines: an answer that is not HTTP, or not wholly."""
        limit = self._room.limits.head_bytes
        head, body = split(raw)
        if len(head) > limit:
            head, body = head[:limit], b""
            self.truncated = "length"
        self.lines.clear()
        self.head, self.whole = head, False
        self._parts = [body] if body else []
        self.got = len(body)
        self._count(self.got - self._held)
        self.all_came = is_all(head, body)

    def _behead(self) -> None:
        if self.lines:
            self.head, self.whole = tidy(self.lines)
        if len(self.head) > self._room.limits.head_bytes:
            self.head = self.head[: self._room.limits.head_bytes]
            self.whole = False
            self.head_cut = True
            self.detail = f"header over {self._room.limits.head_bytes} bytes"

    def _weigh(self, size: int) -> int | None:
        """Slow path of add(): the first piece, a body over a limit, a body that spools."""
        limits = self._room.limits
        if not self._limit:
            self._behead()
            if not self.whole or not status_of(self.head):
                self.truncated = "unspecified"  # not HTTP: the first piece is enough to say so
                return STOP
            self._limit = limits.body_bytes(mime_of(self.head))
            if self.most:
                self._limit = min(self._limit, self.most)
            self._soft = min(self._limit, limits.spool_bytes)
        over = self.got - self._limit
        if over > 0:
            self._parts[-1] = self._parts[-1][:-over] if over < size else b""
            self.got -= over
            self._count(-over)
            self.truncated = "length"
            self.detail = f"body cut at {self._limit} bytes"
        try:
            if self._file is not None:
                self._spill(self._parts.pop())
            elif self.got > limits.spool_bytes:
                self._spool()
            elif self._room.held_bytes > limits.in_flight_bytes and self._held > limits.sniff_bytes:
                self.detail = self.detail or "spooled early: bodies in memory reached the limit"
                self._spool()
        except OSError as error:
            self._spoilt(error)
            return STOP
        return STOP if over > 0 else None

    def _count(self, size: int) -> None:
        self._held += size
        self._room.held_bytes += size

    def _spool(self) -> None:
        """From memory to a file; the first part stays, for sniffing."""
        body = b"".join(self._parts)
        self._parts.clear()
        handle, self._path = tempfile.mkstemp(prefix="body-", dir=self._room.spool_dir)
        self._file = os.fdopen(handle, "wb", 256 * 1024)
        self._payload = hashlib.sha1(usedforsecurity=False)
        self._block = hashlib.sha1(self.head, usedforsecurity=False)
        first = body[: self._room.limits.sniff_bytes]
        self._spill(body)
        self._parts.append(first)
        self._count(len(first))
        self._soft = 0

    def _spill(self, chunk: bytes) -> None:
        assert self._file is not None
        self._count(-len(chunk))
        self._payload.update(chunk)
        self._block.update(chunk)
        self._file.write(chunk)

    def _spoilt(self, error: OSError) -> None:
        """The disk refused: keep what is in memory, lose the file, say so."""
        self.truncated = "unspecified"
        self.detail = f"spool: {error.strerror}"
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError:
                pass  # the same refusal once more: the buffer could not be written
            os.unlink(self._path)
        self.got = sum(map(len, self._parts))
