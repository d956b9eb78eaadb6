"""Where a WARC reader's bytes come from: a plain file, or one gzip member after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from isal import igzip_lib, isal_zlib

from geomi.errors import RemoteError, ResourceError

CHUNK_BYTES = 65536  # most that one read of a block gives
_READ_BYTES = 262144
_INFLATED_BYTES = 262144  # most that one pull gives
# What follows a member's end is copied by every feed; between 4 and 64 KiB that makes no difference
# (28-29 us a member of 7 KB, 33 KB inflated). Such a member comes in one pull.
_FEED_BYTES = 32768
_QUICK_BYTES = 8192  # most records of pages are no longer, and what is behind them is copied
_WHOLE_BYTES = 1 << 20
_PULL_BYTES = 65536
_GZIP = 31
_IsalError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # stub says OSError()


class Broken(RemoteError):
    """A file breaks a rule at one place: nothing behind it can be read in order."""

    def __init__(self, file: str, offset: int, what: str) -> None:
        super().__init__(f"{file} at {offset}: {what}")
        self.file = file
        self.offset = offset
        self.what = what


class Bundled(Broken):
    """Several records in one gzip member: whole, but only to be read from its beginning."""


class Plain:
    """Bytes of a file as they are, with the offset they came from."""

    def __init__(self, file: BinaryIO, name: str, offset: int) -> None:
        self._file = file
        self.name = name
        # What was read from the file; the first _used bytes of it are taken.
        self._data = memoryview(b"")
        self._used = 0
        self._data_offset = offset

    @property
    def offset(self) -> int:
        """Where the first byte that was not taken yet stands in the file."""
        return self._data_offset + self._used

    @property
    def start(self) -> int:
        return self.offset

    def peek(self, count: int) -> bytes:
        """The next `count` bytes without taking them; fewer only at the end of the file."""
        while len(self._data) - self._used < count and (more := self._more()):
            rest = bytes(self._data[self._used :])
            self._data_offset += self._used
            self._data, self._used = memoryview(rest + more), 0
        return bytes(self._data[self._used : self._used + count])

    def feed(self, most: int) -> memoryview:
        """Up to `most` bytes without taking them; empty at the end of the file."""
        if self._used >= len(self._data):
            self._data_offset += len(self._data)
            self._data, self._used = memoryview(self._more()), 0
        return self._data[self._used : self._used + most]

    def _more(self) -> bytes:
        try:
            return self._file.read(_READ_BYTES)
        except OSError as error:
            raise ResourceError(f"{self.name}: cannot be read ({error.strerror})") from error

    def take(self, count: int) -> None:
        self._used += count

    def pull(self) -> bytes:
        got = bytes(self.feed(_PULL_BYTES))
        self._used += len(got)
        return got

    def unread(self, count: int) -> None:
        """Gives back the last `count` bytes of the latest pull."""
        self._used -= count

    def next_member(self) -> bool:
        """False: a plain file has no members, so its end is the end."""
        return False


class Gzip:
    """Bytes of one gzip member; next_member() goes on to the one behind it."""

    def __init__(self, raw: Plain, *, begun: tuple[int, Any] | None = None) -> None:
        """`begun`: (start, decompressor) of a member of which some was pulled already."""
        self._raw = raw
        self.name = raw.name
        if begun is None:
            self.next_member()
        else:
            self.start, self._z = begun

    @property
    def offset(self) -> int:
        return self._raw.offset

    def next_member(self) -> bool:
        """False at the end of the file."""
        self.start = self._raw.offset
        self._z = isal_zlib.decompressobj(_GZIP)
        return bool(self._raw.feed(1))

    def pull(self) -> bytes:
        """The next bytes of this member; empty at its end, where its checksum has been judged."""
        z = self._z
        while not z.eof:
            data = self._raw.feed(_FEED_BYTES)
            try:
                out: bytes = z.decompress(data, _INFLATED_BYTES)
            except _IsalError as error:
                raise Broken(
                    self.name, self.start, f"broken gzip member ({error}), wanted a whole one"
                ) from error
            self._raw.take(len(data) - len(z.unused_data) - len(z.unconsumed_tail))
            if out:
                return out
            if not data:
                raise Broken(
                    self.name, self.start, "gzip member ends early, "
                    f"{self._raw.offset - self.start} bytes seen, wanted a whole one",
                )  # fmt: skip
        return b""


class Window:
    """A part of a file, as a file with a place of its own: others may read the file meanwhile."""

    def __init__(self, file: BinaryIO, start: int, size: int, name: str) -> None:
        self._file = file
        self._start = start
        self._size = size
        self._at = 0
        self.name = name

    def read(self, most: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        self._file.seek(self._start + self._at)
        got = self._file.read(left if most < 0 else min(most, left))
        self._at += len(got)
        return got

    def seek(self, offset: int) -> int:
        self._at = offset
        return offset


class Held:
    """The end of a record that is in memory as a whole."""

    def __init__(self, name: str, offset: int) -> None:
        self.name = name
        self.offset = self.start = offset

    def pull(self) -> bytes:
        return b""

    def next_member(self) -> bool:
        return False


class Inflated:
    """A gzip file as the plain bytes that are in it, whatever its members: for those in which one
    member holds many records. A file to read from, once."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self._gzip = Gzip(Plain(file, name, 0))

    def read(self, most: int) -> bytes:
        """Some bytes, at most 256 KiB whatever was asked for; empty at the end."""
        del most
        while not (got := self._gzip.pull()):
            if not self._gzip.next_member():
                return b""
        return got


def zipped(head: bytes, pieces: Iterable[bytes | memoryview], *, level: int = 1) -> Iterator[bytes]:
    """One gzip member of a WARC header, the pieces of its block and what closes it."""
    z = isal_zlib.compressobj(level, isal_zlib.DEFLATED, _GZIP)
    yield z.compress(head)
    for piece in pieces:
        if out := z.compress(piece):
            yield out
    yield z.compress(b"\r\n\r\n")
    yield z.flush()


def whole_members(raw: Plain) -> Iterator[tuple[int, int, list[bytes], Any]]:
    """Each gzip member at once: (start, length, pieces, decompressor). Length 0: it is larger than
    1 MiB, or is cut off; whoever takes it goes on with the decompressor, to its end.

    The hot path of reading an archive: written out, 0.8 us a member less than by calls of Plain.
    """
    most, quick, inflater = _INFLATED_BYTES, _QUICK_BYTES, isal_zlib.decompressobj
    while True:
        view = raw._data[raw._used : raw._used + quick]
        if not view and not (view := raw.feed(quick)):
            return
        start = raw._data_offset + raw._used
        z = inflater(_GZIP)
        try:
            pieces = [z.decompress(view, most)]
            if z.eof:
                length = len(view) - len(z.unused_data)
                raw._used += length
                yield start, length, pieces, z
                continue
            raw.take(len(view) - len(z.unconsumed_tail))
            _go_on(raw, z, pieces)
        except _IsalError as error:
            raise Broken(
                raw.name, start, f"broken gzip member ({error}), wanted a whole one"
            ) from error
        yield start, raw.offset - start if z.eof else 0, pieces, z


def _go_on(raw: Plain, z: Any, pieces: list[bytes]) -> None:
    """Pulls what is left of a member, up to a bound."""
    size = len(pieces[0])
    while not z.eof and size <= _WHOLE_BYTES and (view := raw.feed(_FEED_BYTES)):
        out = z.decompress(view, _INFLATED_BYTES)
        raw.take(len(view) - len(z.unused_data) - len(z.unconsumed_tail))
        size += len(out)
        pieces.append(out)


def inflated_start(data: bytes, most: int) -> bytes:
    """The first bytes of a gzip member that begins with `data`; empty if that is none."""
    try:
        return bytes(isal_zlib.decompressobj(_GZIP).decompress(data, most))
    except _IsalError:
        return b""


@contextmanager
def opened(source: str | Path | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    if not isinstance(source, str | Path):
        yield source, str(getattr(source, "name", "stream"))
        return
    try:
        file = open(source, "rb")  # noqa: SIM115  closed by the next with
    except OSError as error:
        raise ResourceError(f"{source}: cannot be opened ({error.strerror})") from error
    with file:
        yield file, str(source)
