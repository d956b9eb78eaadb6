"""Where a WARC reader's bytes come from: a plain file, or one gzip member after another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from isal import igzip_lib, isal_zlib

from geomi.errors import RemoteError, ResourceError

CHUNK_BYTES = 65536  # most that one pull gives
_READ_BYTES = 262144
# What follows a member's end is copied by every feed: small feeds, small copies (measured: 61 us
# a page of three members, 55 for bare inflate and SHA-1 of members cut before).
_FEED_BYTES = 8192
_PULL_BYTES = 16384
_GZIP = 31
_IsalError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # stub says OSError()


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

    def __init__(self, raw: Plain) -> None:
        self._raw = raw
        self.name = raw.name
        self.next_member()

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
                out = z.decompress(data, CHUNK_BYTES)
            except _IsalError as error:
                raise RemoteError(
                    f"{self.name} at {self.start}: broken gzip member ({error}), wanted a whole one"
                ) from error
            self._raw.take(len(data) - len(z.unused_data) - len(z.unconsumed_tail))
            if out:
                return out
            if not data:
                raise RemoteError(
                    f"{self.name} at {self.start}: gzip member ends early, "
                    f"{self._raw.offset - self.start} bytes seen, wanted a whole one"
                )
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
