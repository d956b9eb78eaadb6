"""Reads WARC 0.17 to 1.1, plain or one gzip member a record, in bounded memory.

Our own over isal: exact offsets and lengths of members (fastwarc gives no lengths), errors that say
where, any file object. Inflate and SHA-1 over a page of three members, 35 KB: 77 us, the bare calls
56, fastwarc 62 (bench/archive.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from geomi.archive.source import CHUNK_BYTES, Broken, Bundled, Gzip, Held, Plain, opened

VERSIONS = frozenset({"WARC/0.17", "WARC/0.18", "WARC/1.0", "WARC/1.1"})

_HEADER_MAX_BYTES = 1 << 20  # URLs of 100 kB occur; more than ten of them is no header
_TAIL_MAX_BYTES = 4096
_END = b"\r\n\r\n"
_ENDS = frozenset({_END, b"\n\n"})  # what closes a block; the second is sloppy, and harmless
_VERSION_START = b"WARC/"
_FOLD = re.compile(r"\r?\n[ \t]+(?=\S)")  # a value that goes on in the next line
_GZIP_MAGIC = b"\x1f\x8b"
#: What is wrong with a file that was zipped as a whole, and the cure.
SEVERAL = (
    "several records in one gzip member, wanted one each;"
    " `geomi archive check FILE --salvage DIRECTORY` writes it so, `geomi archive import` takes it"
)


class Headers:
    """Named lines of a WARC header; names compare without case, repeated ones are kept.

    Most readers want three names of twelve, in the usual case: those are cut out of the text
    (0.3 us each), and the whole is taken apart (4 us) only when that does not do.
    """

    __slots__ = ("_lower", "_parsed", "_text")

    def __init__(self, text: str) -> None:
        self._text = "\n" + text.replace("\r\n", "\n") + "\n"
        self._lower = ""
        self._parsed: list[tuple[str, str]] | None = None

    def get(self, name: str, default: str = "") -> str:
        """The first value of that name; one in the very same case goes before others."""
        text = self._text
        at = text.find(f"\n{name}: ")
        if at >= 0:
            return text[at + len(name) + 3 : text.find("\n", at + 1)].strip()
        if not self._lower:
            self._lower = text.lower()
        name = name.lower()
        if name in self._lower:
            for other, value in self.lines:
                if other.lower() == name:
                    return value
        return default

    @property
    def lines(self) -> list[tuple[str, str]]:
        """(name, value) of each line, in order."""
        if self._parsed is None:
            pairs = [line.partition(":") for line in self._text.split("\n")]
            self._parsed = [(name.strip(), value.strip()) for name, colon, value in pairs if colon]
        return self._parsed

    def get_all(self, name: str) -> list[str]:
        if not self._lower:
            self._lower = self._text.lower()
        name = name.lower()
        if name not in self._lower:
            return []
        return [value for other, value in self.lines if other.lower() == name]

    def __contains__(self, name: str) -> bool:
        return bool(self.get_all(name))


class Member:
    """One record. Its block is read once, in order, before the next member is asked for."""

    __slots__ = ("_ahead", "_at", "_left", "_length", "_source", "_start", "content_length",
                 "file", "headers", "is_closed", "offset", "version")  # fmt: skip

    def __init__(
        self,
        source: Plain | Gzip | Held,
        *,
        offset: int,
        version: str,
        headers: Headers,
        ahead: bytes,
        at: int,
    ) -> None:
        self.file = source.name
        self.offset = offset  # in the file as stored
        self.version = version
        self.headers = headers
        self._source = source
        # What was pulled last, given up to _at; may reach behind the block.
        self._ahead = ahead
        self._at = at
        self._start = (ahead, at)
        self._length = -1
        self.is_closed = False  # two line ends are behind the block; known with the length
        claim = headers.get("Content-Length")
        if not (claim.isascii() and claim.isdigit() and len(claim) <= 19):
            raise self._error(f"Content-Length is {claim[:40]!r}, wanted digits")
        self.content_length = int(claim)
        self._left = self.content_length

    @property
    def type(self) -> str:
        return self.headers.get("WARC-Type")

    @property
    def record_id(self) -> str:
        """Without angle brackets."""
        return _bare(self.headers.get("WARC-Record-ID"))

    @property
    def target_uri(self) -> str:
        """Without the angle brackets that wget writes."""
        return _bare(self.headers.get("WARC-Target-URI"))

    @property
    def date(self) -> str:
        return self.headers.get("WARC-Date")

    @property
    def head(self) -> bytes:
        """The WARC header as it is stored, with its blank line."""
        ahead, at = self._start
        return ahead[:at]

    @property
    def is_plain(self) -> bool:
        """Stored without gzip."""
        return isinstance(self._source, Plain)

    @property
    def length(self) -> int:
        """Bytes of the record as stored. Reads to its end: what is left of the block is gone.

        For a plain file without the two line ends behind the block, as warcio counts.
        """
        if self._length < 0:
            self._finish()
        return self._length

    def read(self, most: int = CHUNK_BYTES) -> bytes:
        """The next bytes of the block, at most 64 KiB; empty at its end."""
        if self._left <= 0:
            return b""
        if self._at >= len(self._ahead):
            self._pull()
        at = self._at
        got = self._ahead[at : at + min(most, self._left)]
        self._at = at + len(got)
        self._left -= len(got)
        return got

    def _pull(self) -> None:
        self._ahead, self._at = self._source.pull(), 0
        if not self._ahead:
            raise self._error(
                f"Content-Length says {self.content_length} bytes, "
                f"the record ends after {self.content_length - self._left}"
            )

    def pieces(self) -> Iterator[memoryview]:
        """What is left of the block as it comes, not copied: for hashing."""
        while self._left > 0:
            if self._at >= len(self._ahead):
                self._pull()
            at = self._at
            got = memoryview(self._ahead)[at : at + self._left]
            self._at = at + len(got)
            self._left -= len(got)
            yield got

    def chunks(self) -> Iterator[bytes]:
        """What is left of the block, piece by piece."""
        while got := self.read():
            yield got

    def read_all(self, most: int = 1 << 26) -> bytes:
        """What is left of the block; RemoteError if that is more than `most` bytes."""
        if self._left > most:
            raise self._error(f"block is {self._left} bytes, wanted at most {most}")
        return b"".join(self.chunks())

    def http_head(self, most: int = _HEADER_MAX_BYTES) -> bytes:
        """Status or request line and header lines with the blank line; read() then gives the body.

        The whole block, up to `most`, where no blank line comes.
        """
        at = self._at
        end = _blank_line(self._ahead, at)
        if 0 <= end - at <= min(self._left, most):  # nearly always
            self._at = end
            self._left -= end - at
            return self._ahead[at:end]
        head = b""
        while len(head) < most and (got := self.read()):
            seen = max(0, len(head) - 3)
            head += got
            if (end := _blank_line(head, seen)) >= 0:
                self._at -= len(head) - end
                self._left += len(head) - end
                return head[:end]
        return head

    def _finish(self) -> None:
        while self.read():
            pass
        tail, source = self._ahead[self._at :], self._source
        self._ahead, self._at = b"", 0
        if isinstance(source, Plain):
            source.unread(len(tail))
            self._length = source.offset - self.offset
            self.is_closed = source.peek(4).startswith((_END, b"\n\n"))
            return
        while len(tail) < _TAIL_MAX_BYTES and (got := source.pull()):
            tail += got
        rest = tail.lstrip(b"\r\n")
        if rest.startswith(b"WARC/"):
            raise Bundled(self.file, self.offset, SEVERAL)
        if rest or len(tail) >= _TAIL_MAX_BYTES:
            raise self._error(
                f"{len(tail)} bytes behind the block of {self.content_length} bytes, "
                "wanted two line ends"
            )
        self._length = source.offset - self.offset
        self.is_closed = tail in _ENDS

    def rewind(self, block: bytes) -> None:
        """Makes the block readable again, from memory. For read_at, once the length is known."""
        self._ahead, self._at, self._left = block, 0, len(block)

    def _error(self, what: str) -> Broken:
        return Broken(self.file, self.offset, what)


def members(source: str | Path | BinaryIO, start: int = 0) -> Iterator[Member]:
    """Each record from `start` (which is the offset of one) to the end of the file.

    A block that was not read is skipped. Raises RemoteError where the file breaks a rule: nothing
    behind that place can be trusted.
    """
    with opened(source) as (file, name):
        if start:
            file.seek(start)
        yield from members_of(Plain(file, name, start))


def members_of(raw: Plain) -> Iterator[Member]:
    """Each record from where `raw` stands."""
    magic = raw.peek(5)
    reader: Plain | Gzip
    if magic.startswith(_GZIP_MAGIC):
        reader = Gzip(raw)
    elif magic == b"WARC/" or not magic.strip(b"\r\n"):
        reader = raw
    else:
        raise Broken(raw.name, raw.offset, f"starts with {magic!r}, wanted gzip or WARC/")
    while (member := next_of(reader)) is not None:
        yield member
        _ = member.length


def read_at(
    source: str | Path | BinaryIO,
    offset: int,
    length: int | None = None,
    *,
    most_bytes: int = 1 << 28,
) -> Member:
    """The record at `offset`, its block in memory; with `length` it must be exactly that long.

    RemoteError if the block is greater than `most_bytes`: read those with members().
    """
    with opened(source) as (file, name):
        file.seek(offset)
        found = next(members(file, offset), None)
        if found is None:
            raise Broken(name, offset, "the file ends, wanted a record")
        block = found.read_all(most_bytes)
        if found.length != length and length is not None:
            raise Broken(name, offset, f"record is {found.length} bytes, wanted {length}")
        found.rewind(block)
        return found


def next_of(source: Plain | Gzip | Held, data: bytes = b"") -> Member | None:
    """Reads up to the end of the next WARC header; None at the end of the file. `data`: what was
    pulled already."""
    start = source.start
    while not data:
        start = source.start
        got = source.pull()
        if not got and not source.next_member():
            return None
        data = got.lstrip(b"\r\n")
        if isinstance(source, Plain):
            start += len(got) - len(data)
    seen = 0
    while (end := _blank_line(data, seen)) < 0:
        if len(data) > _HEADER_MAX_BYTES:
            raise Broken(
                source.name, start, f"WARC header over {_HEADER_MAX_BYTES} bytes, wanted its end"
            )
        if not _VERSION_START.startswith(data[:5]):
            break
        seen = max(0, len(data) - 3)
        more = source.pull()
        if not more:
            raise Broken(
                source.name, start,
                f"ends after {len(data)} bytes, wanted the blank line behind the WARC header",
            )  # fmt: skip
        data += more
    version, headers = _parse(data[: max(end, 0)] or data[:80])
    if version not in VERSIONS:
        raise Broken(
            source.name, start,
            f"record starts with {version[:40]!r}, wanted WARC/0.17, 0.18, 1.0 or 1.1",
        )  # fmt: skip
    return Member(source, offset=start, version=version, headers=headers, ahead=data, at=end)


def _blank_line(data: bytes, start: int = 0) -> int:
    """The index behind the first blank line from `start` on, or -1."""
    strict = data.find(_END, start)
    loose = data.find(b"\n\n", start, strict if strict >= 0 else len(data))
    if loose >= 0:
        return loose + 2
    return strict + 4 if strict >= 0 else -1


def _parse(head: bytes) -> tuple[str, Headers]:
    try:
        text = head.decode()
    except UnicodeDecodeError:
        text = head.decode("latin-1")
    if "\n " in text or "\n\t" in text:
        text = _FOLD.sub(" ", text)
    version, _, rest = text.partition("\n")
    return version.strip(), Headers(rest)


def _bare(value: str) -> str:
    return value[1:-1] if value[:1] == "<" and value[-1:] == ">" else value
