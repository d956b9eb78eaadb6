"""Records that were chosen, copied into new WARC files with what belongs to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple

from geomi.archive import cdxj
from geomi.archive.cdxj import CdxLine
from geomi.archive.reader import Member, members
from geomi.archive.sorted import Runs
from geomi.archive.unfold import as_response
from geomi.cluster.index import Index
from geomi.cluster.outside import Place, is_revisit
from geomi.errors import RemoteError

MISSING_LISTED = 100  # of those that could not be had; all are counted
_COMPANIONS = frozenset({"request", "metadata"})
_PIECE_BYTES = 1 << 18


class Missing(NamedTuple):
    """A revisit that stays one, since its original could not be had."""

    name: str
    offset: int
    what: str


class Chosen:
    """Copies records in the order of files and offsets.

    `places` are lines of Place, `rest` the index line; `unfold` those of revisits that become
    responses, `rest` the key of the original. Index lines of what was written go to `lines`.
    """

    def __init__(
        self,
        places: Iterator[bytes],
        unfold: Iterator[bytes],
        index: Index,
        opened: Callable[[str], BinaryIO],
        lines: Runs,
    ) -> None:
        self._places = places
        self._unfold = unfold
        self._index = index
        self._opened = opened
        self._lines = lines
        self._next = next(places, b"")
        self._next_unfold = next(unfold, b"")
        self.done = 0
        self.unfolded = 0
        self.missing: list[Missing] = []
        self.missing_number = 0

    @property
    def goes_on(self) -> bool:
        return bool(self._next)

    def chunks(self, name: str, first: bytes, file_bytes: int) -> Iterator[bytes]:
        """The bytes of one file; it ends behind the capture with which it is long enough."""
        at = len(first)
        yield first
        while self._next and at < file_bytes:
            place = Place.of(self._next)
            found = cdxj.parse_line(place.rest.encode())
            length = 0
            original = self._original(place)
            if original is None:
                for piece in _copied(self._opened(place.name), place.offset, found.length):
                    length += len(piece)
                    yield piece
            else:
                for piece in original[1]:
                    length += len(piece)
                    yield piece
                self.unfolded += 1
            self._lines.add(_line(found, original and original[0], name, at, length))
            at += length
            for piece in self._companions(place):
                at += len(piece)
                yield piece
            self.done += 1
            self._next = next(self._places, b"")

    def _companions(self, place: Place) -> Iterator[bytes]:
        """Request and metadata that follow the record and name it."""
        file = self._opened(place.name)
        file.seek(place.offset)
        following = members(file, place.offset)
        record_id = next(following).record_id
        extents = []
        for member in following:
            links = [one.strip("<>") for one in member.headers.get_all("WARC-Concurrent-To")]
            if member.type not in _COMPANIONS or record_id not in links:
                break
            extents.append((member.offset, member.length))
        for offset, length in extents:
            yield from _copied(file, offset, length)

    def _original(self, place: Place) -> tuple[CdxLine, Iterator[bytes]] | None:
        """Where the payload of a revisit is that is to become a response; None: copy it."""
        mark = f"{place.name}\t{place.offset:020d}\t".encode()
        if not self._next_unfold.startswith(mark):
            return None
        key = Place.of(self._next_unfold).rest.encode()
        self._next_unfold = next(self._unfold, b"")
        why = "its original"
        for line in self._index.lines([(key, key + b"\xff")]):
            found = cdxj.parse_line(line)
            if is_revisit(line) or self._index.file_of(found.filename) is None:
                continue
            pieces = as_response(self._read(place.name, place.offset), self._reader(found))
            try:  # its payload is judged before the first piece comes
                first = next(pieces)
            except RemoteError as error:
                why = str(error)
                continue
            return found, chain([first], pieces)
        self.missing_number += 1
        if len(self.missing) < MISSING_LISTED:
            self.missing.append(Missing(place.name, place.offset, why))
        return None

    def _reader(self, found: CdxLine) -> Callable[[], Member]:
        return lambda: self._read(found.filename, found.offset)

    def _read(self, name: str, offset: int) -> Member:
        file = self._opened(name)
        file.seek(offset)
        member = next(members(file, offset), None)
        if member is None:
            raise RemoteError(f"{name} at {offset}: the file ends, wanted a record")
        return member


def _line(found: CdxLine, original: CdxLine | None, name: str, at: int, length: int) -> bytes:
    return cdxj.line(
        found.surt,
        found.timestamp14,
        url=found.url,
        mime=original.mime if original else found.mime,
        status=original.status if original else found.status,
        digest=found.digest,
        length=length,
        offset=at,
        filename=name,
    )


def _copied(file: BinaryIO, offset: int, length: int) -> Iterator[bytes]:
    file.seek(offset)
    while length > 0:
        piece = file.read(min(length, _PIECE_BYTES))
        if not piece:
            raise RemoteError(f"{file.name} at {offset}: the file ends, wanted {length} bytes more")
        length -= len(piece)
        yield piece
