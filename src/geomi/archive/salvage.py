"""What is whole in a damaged WARC file, written to a new one record by record. Shell.

The damaged file is only read. Behind a place where it breaks a rule the next record is looked for:
the next gzip member that begins with a WARC header, or the next line with a version.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from geomi.archive.digests import Digest
from geomi.archive.names import Ids, warc_date
from geomi.archive.reader import VERSIONS, Member, members
from geomi.archive.record import warcinfo
from geomi.archive.source import Broken, Bundled, Inflated, Window, inflated_start, zipped
from geomi.errors import OperatorError, RemoteError, ResourceError

_PIECE = 1 << 20
_STARTS = tuple(version.encode() for version in sorted(VERSIONS))
_MAGIC = b"\x1f\x8b\x08"
_PROBE_BYTES = 4096


class Extent(NamedTuple):
    """A whole record, as it lies in the file; a plain one without its two line ends."""

    offset: int
    length: int
    is_info: bool
    is_closed: bool
    is_plain: bool


class Gap(NamedTuple):
    """Bytes in which there is no whole record."""

    offset: int
    end: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """What came of it: `gaps` places were left out, `lost_bytes` of the damaged file in all."""

    path: str
    records: int
    gaps: int
    lost_bytes: int


def salvage(
    file: BinaryIO, size: int, target: Path, *, now: float, ids: Ids,
    tell: Callable[[int], None] = lambda _: None,
) -> Salvaged:  # fmt: skip
    """Writes the whole records of `file`, which can seek, to `target`, which does not exist yet.

    A plain file stays plain. If its first whole record is no warcinfo, one is put before it.
    """
    if target.exists():
        raise OperatorError(f"{target}: is there already; salvage writes to a new file")
    beside = target.with_name(target.name + ".salvaging")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "wb") as out:
            work = _Salvage(file, size, out, target.name, now=now, ids=ids, tell=tell)
            work.run()
            out.flush()
            os.fsync(out.fileno())
        os.rename(beside, target)
    except OSError as error:
        raise ResourceError(f"{target}: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)
    return Salvaged(
        path=str(target), records=work.records, gaps=work.gaps, lost_bytes=work.lost_bytes
    )


def is_bundled(file: BinaryIO) -> bool:
    """True if the first gzip member of a file that can seek holds several records."""
    file.seek(0)
    try:
        _ = next(members(file)).length
    except Bundled:
        return True
    except (RemoteError, StopIteration):
        return False
    return False


def is_plain(file: BinaryIO) -> bool:
    """True if a file that can seek is not gzip."""
    file.seek(0)
    return file.read(len(_MAGIC) - 1) != _MAGIC[:-1]


def unbundled(file: BinaryIO) -> Iterator[Member]:
    """The records of such a file. Their offsets are those in the bytes that were zipped."""
    file.seek(0)
    return members(cast(BinaryIO, Inflated(file, str(getattr(file, "name", "stream")))))


def write_member(member: Member, out: BinaryIO, *, level: int = 1) -> int:
    """A record as one gzip member, header and block as they are; the bytes written. Of one that
    breaks nothing is left."""
    begun = out.tell()
    try:
        for data in zipped(member.head, member.pieces(), level=level):
            out.write(data)
        _ = member.length
    except RemoteError:
        out.truncate(begun)
        out.seek(begun)
        raise
    return out.tell() - begun


class _Salvage:
    def __init__(
        self, file: BinaryIO, size: int, out: BinaryIO, name: str, *, now: float, ids: Ids,
        tell: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._file = file
        self._size = size
        self._out = out
        self._name = name
        self._now = now
        self._ids = ids
        self._tell = tell
        self._is_plain = False  # as the first whole record is
        self.records = self.gaps = self.lost_bytes = 0

    def run(self) -> None:
        if is_bundled(self._file):
            try:
                for member in unbundled(self._file):
                    self._begin(is_info=member.type == "warcinfo", plain=False)
                    write_member(member, self._out)
                    self.records += 1
            except Broken:
                self.gaps += 1
            return
        for one in whole_records(self._file, self._size):
            if isinstance(one, Gap):
                self.gaps += 1
                self.lost_bytes += one.end - one.offset
                continue
            self._begin(is_info=one.is_info, plain=one.is_plain)
            self._copy(one)
            self.records += 1
            self._tell(one.offset)

    def _begin(self, *, is_info: bool, plain: bool) -> None:
        """Before the first record: a warcinfo, unless it is one."""
        if self.records:
            return
        self._is_plain = plain
        if is_info:
            return
        info = warcinfo(
            self._name, warc_date(self._now), record_id=self._ids.next(),
            fields={"software": "geomi", "description": "whole records of a damaged file"},
        )  # fmt: skip
        self._out.write(inflated_start(info, _PIECE) if plain else info)

    def _copy(self, one: Extent) -> None:
        """As it lies, if that is how this file is written."""
        if one.is_plain != self._is_plain or not (one.is_plain or one.is_closed):
            self._file.seek(one.offset)
            member = next(members(self._file, one.offset))
            if not self._is_plain:
                write_member(member, self._out)
                return
            self._out.write(member.head)
            for piece in member.pieces():
                self._out.write(piece)
        else:
            self._raw(one)
        if self._is_plain:
            self._out.write(b"\r\n\r\n")

    def _raw(self, one: Extent) -> None:
        self._file.seek(one.offset)
        left = one.length
        while left:
            piece = self._file.read(min(left, _PIECE))
            if not piece:
                name = getattr(self._file, "name", "file")
                raise ResourceError(f"{name}: became shorter while it was read")
            self._out.write(piece)
            left -= len(piece)


def whole_records(file: BinaryIO, size: int) -> Iterator[Extent | Gap]:
    """Each whole record or gap of a file that can seek, in order."""
    at = 0
    name = str(getattr(file, "name", "stream"))
    while at < size:
        own = cast(BinaryIO, Window(file, 0, size, name))
        try:
            for member in members(own, at):
                if member.is_plain and member.offset + member.content_length > size:
                    # Now, not after the rest of the file was read for it.
                    what = f"Content-Length says {member.content_length}, the file has {size} bytes"
                    raise Broken(member.file, member.offset, what)
                what = _wrong_in(member)
                end = member.offset + member.length
                yield (
                    Gap(member.offset, end, what) if what
                    else Extent(member.offset, member.length, member.type == "warcinfo",
                                member.is_closed, member.is_plain)
                )  # fmt: skip
                at = end
            return
        except Broken as error:
            start, at = at, _next_start(file, max(at, error.offset) + 1, size)
            yield Gap(start, at, error.what)


def _wrong_in(member: Member) -> str:
    """Reads the block; what is wrong if it is not what its header says."""
    block = Digest(member.headers.get("WARC-Block-Digest"))
    for piece in member.pieces():
        if block.is_counted:
            block.update(piece)
    what = block.problem() if block.is_counted else ""
    return f"block digest {what}" if what else ""


def _next_start(file: BinaryIO, at: int, size: int) -> int:
    """Where the next record may begin; the size of the file if none does."""
    overlap = max(map(len, _STARTS)) + 1
    while at < size:
        file.seek(at - 1)  # a version stands behind a line end
        data = file.read(_PIECE)
        place = 0
        while (place := _candidate(data, place + 1)) > 0:
            if data[place] != _MAGIC[0] or _begins_record(file, at - 1 + place):
                return at - 1 + place
        at += max(len(data) - overlap, 1)
    return size


def _candidate(data: bytes, start: int) -> int:
    """The next place that looks like a gzip member, or like a version behind a line end; or -1."""
    found = [data.find(_MAGIC, start)]
    for version in _STARTS:
        place = data.find(b"\n" + version, start - 1)
        found.append(place + 1 if place >= 0 else -1)
    return min((place for place in found if place >= 0), default=-1)


def _begins_record(file: BinaryIO, offset: int) -> bool:
    file.seek(offset)
    return inflated_start(file.read(_PROBE_BYTES), 16).startswith(_STARTS)
