"""Which WARC file a capture goes to, and where in it. Decides only; the shell appends.

A file belongs to one incarnation of one agent. Sites are spread over the archive directories; a
file is closed once it is larger than `file_bytes`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from msgspec import Struct

from geomi.archive.names import Ids, warc_date
from geomi.archive.record import SpoolPart


class FileWrite(Struct, kw_only=True):
    """What one batch appends to one file. Made by: Writer.   Taken by: the shell."""

    file: int
    root: int
    directory: str
    name: str  # below the directory, without .open
    create: bool = False
    close: bool = False
    start: int = 0  # committed length before
    parts: list[bytes | SpoolPart] = []

    @property
    def size(self) -> int:
        """Bytes known so far; spooled parts get their length when they are appended."""
        return sum(len(part) for part in self.parts if isinstance(part, bytes))


class _Open(Struct):
    file: int
    name: str
    warcinfo_id: str
    length: int  # as far as known: spooled parts are counted when they were appended


class Writer:
    """Open files of one agent, one a directory at most."""

    def __init__(
        self,
        *,
        directories: tuple[str, ...],
        prefix: str,
        file_bytes: int,
        ids: Ids,
        next_file: Callable[[], int],
        warcinfo: Callable[[str, str, str], bytes],
    ) -> None:
        self._directories = directories
        self._prefix = prefix
        self._file_bytes = file_bytes
        self._ids = ids
        self._next_file = next_file
        self._warcinfo = warcinfo  # (filename, date, record id) -> member
        self._serial = 0
        self._open: list[_Open | None] = [None] * len(directories)
        # Filled by add(), emptied by take().
        self._writes: list[FileWrite | None] = [None] * len(directories)

    def root_of(self, site: str) -> int:
        """The directory a site's captures go to."""
        return zlib.crc32(site.encode()) % len(self._directories)

    def warcinfo_id(self, root: int, now: float) -> str:
        """The id of the warcinfo record of the file that the next capture of `root` goes to."""
        return self._ready(root, now).warcinfo_id

    def _ready(self, root: int, now: float) -> _Open:
        current = self._open[root]
        if current is not None:
            return current
        self._serial += 1
        date = warc_date(now)
        name = f"{date[:7]}/{self._prefix}-{self._serial:05d}.warc.gz"
        current = _Open(self._next_file(), name, self._ids.next(), 0)
        self._open[root] = current
        write = self._write(root, current)
        write.create = True
        first = self._warcinfo(name.rpartition("/")[2], date, current.warcinfo_id)
        write.parts.append(first)
        current.length += len(first)
        return current

    def _write(self, root: int, current: _Open) -> FileWrite:
        write = self._writes[root]
        if write is None:
            write = self._writes[root] = FileWrite(
                file=current.file,
                root=root,
                directory=self._directories[root],
                name=current.name,
                start=current.length,
            )
        return write

    def add(
        self, root: int, parts: list[bytes | SpoolPart], *, now: float
    ) -> tuple[int, int, int, int, int]:
        """(file, offset, length, extent, index of the first part).

        Length is that of the first part, extent that of all. What lies behind a spooled part is
        moved by `Batch.grown` once its length is known.
        """
        current = self._ready(root, now)
        write = self._write(root, current)
        offset = current.length
        index = len(write.parts)
        write.parts.extend(parts)
        first = parts[0]
        length = 0 if isinstance(first, SpoolPart) else len(first)
        extent = 0
        for part in parts:
            if not isinstance(part, SpoolPart):
                extent += len(part)
        current.length += extent
        return current.file, offset, length, extent, index

    def take(self) -> list[FileWrite]:
        """What is to be appended now. Files that are full are closed with it."""
        writes = [write for write in self._writes if write is not None]
        for root, current in enumerate(self._open):
            write = self._writes[root]
            if current is not None and write is not None and current.length >= self._file_bytes:
                write.close = True
                self._open[root] = None
            self._writes[root] = None
        return writes

    def grew(self, file: int, by: int) -> None:
        """A spooled part was appended: the file is longer than was known."""
        for root, current in enumerate(self._open):
            if current is not None and current.file == file:
                current.length += by
                write = self._writes[root]
                if write is not None:
                    write.start += by

    def close_all(self) -> list[FileWrite]:
        """The last writes: every open file is closed with them."""
        for root, current in enumerate(self._open):
            if current is not None:
                self._write(root, current).close = True
                self._open[root] = None
        writes = [write for write in self._writes if write is not None]
        self._writes = [None] * len(self._directories)
        return writes
