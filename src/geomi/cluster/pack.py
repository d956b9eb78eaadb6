"""A collection, or a part of it, as one WACZ file: `geomi archive pack`. Shell.

Everything is packed as it lies, or records are chosen by their index lines and copied byte for byte
with the request and metadata that belong to them. Sorting is done in a scratch directory, so memory
does not grow with the archive.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from geomi import __version__
from geomi.archive import cdxj
from geomi.archive.names import Ids, warc_date
from geomi.archive.package import Package, packing
from geomi.archive.record import warcinfo
from geomi.archive.selection import Selection
from geomi.archive.sorted import Runs
from geomi.cluster.chosen import MISSING_LISTED, Chosen, Missing
from geomi.cluster.index import Archived, Index
from geomi.cluster.outside import Place, is_revisit, outside
from geomi.cluster.packed_pages import Pages
from geomi.errors import OperatorError, ResourceError
from geomi.store import Store

_PIECE_BYTES = 1 << 18
#: done bytes, all bytes, what is done
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is wanted. Made by: the command line.   Taken by: pack."""

    selection: Selection
    created: float
    title: str
    self_contained: bool = False
    text: bool = False
    replace: bool = False
    file_bytes: int = 1_000_000_000  # a WARC file of chosen records ends beyond it


@dataclass(slots=True, kw_only=True)
class Packed:
    """What came of it."""

    path: str
    bytes: int = 0
    files: int = 0
    captures: int = 0
    pages: int = 0
    unfolded: int = 0  # revisits that became responses
    outside: int = 0  # revisits that refer to what is not in the package
    requires: list[dict[str, Any]] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)  # their original is nowhere, or broken
    missing_number: int = 0


class Reading:
    """WARC files by name, a few open at a time."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._name, self._file = "", None  # type: str, BinaryIO | None

    def open(self, name: str) -> BinaryIO:
        if name != self._name or self._file is None:
            self.close()
            found = self._index.file_of(name)
            if found is None:
                raise ResourceError(f"{name}: an index names this file, and it is not here")
            self._file, self._name = opened(found), name
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None


def opened(file: Archived) -> BinaryIO:
    for path in file.paths:
        try:
            return open(path, "rb")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ResourceError(f"{path}: {error.strerror or error}") from error
    raise ResourceError(f"{file.path}: no such file")


def pack(store: Store, index: Index, path: Path, order: Order, *, tell: Tell) -> Packed:
    """All or nothing. OperatorError: nothing is selected, or the name is taken."""
    with tempfile.TemporaryDirectory(prefix="geomi-pack-") as scratch:
        return _Packing(store, index, path, order, scratch, tell).run()


class _Packing:
    def __init__(
        self, store: Store, index: Index, path: Path, order: Order, scratch: str, tell: Tell
    ) -> None:
        self._index = index
        self._path = path
        self._order = order
        self._scratch = scratch
        self._tell = tell
        self._reading = Reading(index)
        self._packed = Packed(path=str(path))
        self._pages = Pages(store, scratch, with_text=order.text)
        self._done = self._all = 0

    def run(self) -> Packed:
        order, packed = self._order, self._packed
        if next(self._lines(), None) is None:
            raise OperatorError("nothing to pack: no capture is selected")
        try:
            with packing(self._path, created=order.created, replace=order.replace) as package:
                left = outside(self._lines, self._reading.open, self._scratch)
                if order.selection.is_everything and not (order.self_contained and left.lines):
                    lines = self._whole(package)
                else:
                    lines = self._chosen(package, left)
                package.index(map(as_wacz, lines()), self._scratch)
                for line in self._lines():
                    self._pages.see(line)
                self._pages.read(self._reading.open)
                packed.pages = self._pages.number
                package.deflate("pages/pages.jsonl", self._pages.lines())
                self._require(left)
                package.describe(self._facts())
        finally:
            self._reading.close()
        packed.bytes = self._path.stat().st_size
        return packed

    def _lines(self) -> Iterator[bytes]:
        selection = self._order.selection
        return filter(selection.has, self._index.lines(selection.ranges))

    # -- everything, as it lies --------------------------------------------------------------------

    def _whole(self, package: Package) -> Callable[[], Iterator[bytes]]:
        files = self._index.files()
        names = Counter(file.name for file in files)
        if twice := [name for name, number in names.items() if number > 1]:
            raise ResourceError(f"{twice[0]}: two WARC files have this name, wanted one")
        self._all = sum(file.committed for file in files)
        for file in files:
            package.store(f"archive/{file.name}", self._pieces(file), size=file.committed)
        self._packed.files = len(files)
        self._packed.captures = sum(1 for _ in self._lines())
        return self._lines

    def _pieces(self, file: Archived) -> Iterator[bytes]:
        left = file.committed
        with opened(file) as source:
            while left and (piece := source.read(min(left, _PIECE_BYTES))):
                left -= len(piece)
                self._done += len(piece)
                self._tell(self._done, self._all, file.name)
                yield piece
        if left:
            raise ResourceError(
                f"{file.path}: {file.committed - left} bytes, wanted {file.committed}"
            )

    # -- chosen records ----------------------------------------------------------------------------

    def _chosen(self, package: Package, left: Runs) -> Callable[[], Iterator[bytes]]:
        places = Runs(self._scratch, "places")
        for line in self._lines():
            places.add(_by_place(line))
        self._all = places.lines
        fold_out = iter(left) if self._order.self_contained else iter(())
        lines = Runs(self._scratch, "chosen")
        chosen = Chosen(iter(places), fold_out, self._index, self._reading.open, lines)
        ids = Ids(sha256(f"{self._path.name} {self._order.created}".encode()).digest()[:10])
        number = 0
        while chosen.goes_on:
            number += 1
            name = f"{self._path.stem}-{number:05d}.warc.gz"
            first = warcinfo(
                name, warc_date(self._order.created), record_id=ids.next(),
                fields={"software": f"geomi/{__version__}", "format": "WARC File Format 1.1",
                        "description": f"records chosen from {self._order.title}"},
            )  # fmt: skip
            package.store(f"archive/{name}", self._told(
                chosen.chunks(name, first, self._order.file_bytes), chosen, name))  # fmt: skip
        packed = self._packed
        packed.files, packed.captures, packed.unfolded = number, lines.lines, chosen.unfolded
        packed.missing, packed.missing_number = chosen.missing, chosen.missing_number
        return lambda: iter(lines)

    def _told(self, chunks: Iterator[bytes], chosen: Chosen, name: str) -> Iterator[bytes]:
        for chunk in chunks:
            self._tell(chosen.done, self._all, name)
            yield chunk

    # -- what the manifest says --------------------------------------------------------------------

    def _require(self, left: Runs) -> None:
        """Names the files outside that revisits refer to."""
        packed = self._packed
        if self._order.self_contained:
            packed.outside = packed.missing_number
            return
        packed.outside = left.lines
        needed: Counter[str] = Counter()
        for line in left:
            place = Place.of(line)
            key = place.rest.encode()
            found = [
                one for one in self._index.lines([(key, key + b"\xff")]) if not is_revisit(one)
            ]
            if found:
                needed[cdxj.parse_line(found[0]).filename] += 1
            else:
                packed.missing_number += 1
                if len(packed.missing) < MISSING_LISTED:
                    packed.missing.append(Missing(place.name, place.offset, "its original"))
        for name, number in sorted(needed.items()):
            file = self._index.file_of(name)
            assert file is not None  # it was just found
            digest, size = sha256(), 0
            for piece in self._pieces(file):
                digest.update(piece)
                size += len(piece)
            packed.requires.append({
                "filename": name, "hash": f"sha256:{digest.hexdigest()}", "size": size,
                "captures": number,
            })  # fmt: skip

    def _facts(self) -> dict[str, Any]:
        order = self._order
        created = warc_date(order.created)[:19] + "Z"
        facts: dict[str, Any] = {
            "title": order.title, "created": created, "software": f"geomi {__version__}",
        }  # fmt: skip
        if first := self._pages.first:
            facts["mainPageUrl"], facts["mainPageDate"] = first
        if self._packed.requires or self._packed.outside:
            facts["relation"] = {"requires": self._packed.requires}
            if self._packed.missing_number:
                facts["relation"]["missing"] = self._packed.missing_number
        return facts


def _by_place(line: bytes) -> bytes:
    found = cdxj.parse_line(line)
    return Place(found.filename, found.offset, line.decode().rstrip("\n")).line()


def as_wacz(line: bytes) -> bytes:
    """The digest with its algorithm, as the reference implementation of WACZ writes it."""
    at = line.find(b'"digest": "') + len(b'"digest": "')
    if (
        at > 10
        and (value := line[at : line.find(b'"', at)])
        and value != b"-"
        and b":" not in value
    ):
        return line[:at] + b"sha1:" + line[at:]
    return line
