"""Answers that libcurl gives up on: the bytes as they came -> header, body, and what is wrong.

Pure. Line ends may be CRLF or LF; nothing is decoded, so a chunked body stays chunked.
"""

from __future__ import annotations

import re

_BLANK = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01][ \t]+([1-9]\d\d)(?!\d)", re.IGNORECASE)
_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*(.*?)[ \t]*\r?$")
_CODING = re.compile(rb"(?im)^transfer-encoding[ \t]*:[ \t]*(.*?)[ \t]*\r?$")
_LAST_CHUNK = b"\r\n0\r\n\r\n"


def split(raw: bytes) -> tuple[bytes, bytes]:
    """(header with its blank line, what follows). Interim answers before another one are cut.

    A header without end is all header; what does not begin like a status line is all body.
    """
    begin = raw[:5].upper()
    if begin != b"HTTP/"[: len(begin)]:
        return b"", raw
    start = 0
    while True:
        blank = _BLANK.search(raw, start)
        if blank is None:
            return raw[start:], b""
        status = _STATUS_LINE.match(raw, start)
        if status is None or not status[1].startswith(b"1") or status[1] == b"101":
            return raw[start : blank.end()], raw[blank.end() :]
        if blank.end() == len(raw):  # nothing but interim answers
            return raw[start:], b""
        start = blank.end()


def length_of(head: bytes) -> int | None:
    """The Content-Length, if all that are there say one and the same number."""
    found = set(_LENGTH.findall(head))
    value = found.pop() if len(found) == 1 else b""
    return int(value) if value.isdigit() and len(value) < 20 else None


def is_all(head: bytes, body: bytes) -> bool:
    """True if the header says that no more comes. False: unknown, or more."""
    if _CODING.search(head):
        return body.endswith(_LAST_CHUNK) or body == _LAST_CHUNK[2:]
    length = length_of(head)
    return length is not None and len(body) >= length


def flaw(head: bytes) -> str:
    """What makes a header no HTTP header; empty if it is one."""
    if not _STATUS_LINE.match(head):
        return "no status line"
    if not _BLANK.search(head):
        return "header without end"
    if b"\0" in head:
        return "NUL in header"
    for number, line in enumerate(head.splitlines()[1:]):
        if line and b":" not in line and not (number and line[:1] in b" \t"):
            return "header line without colon"
    lengths = _LENGTH.findall(head)
    if lengths and length_of(head) is None:
        return "Content-Length is no number" if len(set(lengths)) == 1 else "two Content-Lengths"
    if any(coding.lower() not in (b"chunked", b"identity") for coding in _CODING.findall(head)):
        return "transfer encoding not asked for"
    return ""


class Raw:
    """An answer that is read as it comes, up to `limit` bytes of it, its header in `head_limit`."""

    __slots__ = ("_begun", "_chunked", "_data", "_head_limit", "_limit", "_whole", "fd")

    def __init__(self, limit: int, *, head_limit: int) -> None:
        self._data = bytearray()
        self._limit = limit
        self._head_limit = head_limit
        self._begun = False  # the body has, or there is no header
        self._chunked = False
        self._whole = limit  # so many bytes are all
        self.fd = -1  # where it comes from; -1: nothing was asked yet

    @property
    def size(self) -> int:
        return len(self._data)

    @property
    def is_cut(self) -> bool:
        return self.size >= self._limit or (not self._begun and self.size >= self._head_limit)

    def taken(self) -> bytes:
        return bytes(self._data[: self._limit])

    def take(self, data: bytes) -> bool:
        """True if that is enough: the limit is reached, or the header says that it is all."""
        self._data += data
        if not self._begun:
            head, body = split(bytes(self._data))
            self._begun = not head or bool(_BLANK.search(head))
            if head and self._begun:
                self._chunked = bool(_CODING.search(head))
                length = None if self._chunked else length_of(head)
                if length is not None:
                    self._whole = min(self._limit, self.size - len(body) + length)
        if self._chunked and self._data.endswith(_LAST_CHUNK):
            return True
        return self.size >= self._whole or self.is_cut
