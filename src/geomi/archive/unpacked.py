"""Packages of archives (WACZ): what is in them, read in place, and held to what they say. Shell.

A package comes from anywhere. Names that lead out of it, entries that inflate without measure,
encryption and methods other than stored and deflated are refused before anything is read.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import msgspec

from geomi.archive.source import Broken, Inflated, Window
from geomi.errors import RemoteError, ResourceError

_PIECE = 1 << 20
_JSON_MAX_BYTES = 1 << 24
_RATIO_MAX = 200  # text zipped well reaches 20; a zip bomb 1,000 and more
_FREE_BYTES = 1 << 24  # an entry so small may have any ratio
_LOCAL_HEADER = struct.Struct("<4s22xHH")


class Package:
    """A WACZ that is open. Errors say the offset of the entry's header in the package."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        self._file: BinaryIO | None = None
        self.entries: dict[str, zipfile.ZipInfo] = {}

    def __enter__(self) -> Self:
        try:
            self._file = open(self.path, "rb")
        except OSError as error:
            raise ResourceError(f"{self.path}: cannot be opened ({error.strerror})") from error
        try:
            self._zip = zipfile.ZipFile(self._file)
            for info in self._zip.infolist():
                self._must_be_harmless(info)
                if not info.is_dir():
                    self.entries[info.filename] = info
            self._must_be_bounded()
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            self._file.close()
            raise Broken(str(self.path), 0, f"no package that can be read ({error})") from error
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        assert self._zip is not None and self._file is not None
        self._zip.close()
        self._file.close()

    def _error(self, info: zipfile.ZipInfo, what: str) -> Broken:
        return Broken(str(self.path), info.header_offset, f"{info.filename[:200]!r} {what}")

    def _must_be_harmless(self, info: zipfile.ZipInfo) -> None:
        name = info.filename
        parts = name.replace("\\", "/").split("/")
        if ".." in parts or not parts[0] or parts[0].endswith(":") or "\0" in info.orig_filename:
            raise self._error(info, "leads out of the package, wanted a path below it")
        if name in self.entries:
            raise self._error(info, "is in the package twice")
        if info.flag_bits & 1:
            raise self._error(info, "is encrypted, wanted plain entries")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._error(info, f"is packed by method {info.compress_type}, wanted 0 or 8")
        if info.file_size > max(_FREE_BYTES, _RATIO_MAX * info.compress_size):
            raise self._error(
                info, f"says it inflates {info.compress_size} bytes to {info.file_size},"
                f" wanted at most {_RATIO_MAX} times as much",
            )  # fmt: skip

    def _must_be_bounded(self) -> None:
        """Entries may share bytes: all of them together are not beyond measure either."""
        size = self.path.stat().st_size
        total = sum(info.file_size for info in self.entries.values())
        if total > max(_FREE_BYTES, _RATIO_MAX * size):
            raise Broken(str(self.path), 0,
                         f"{size} bytes say they inflate to {total}, wanted at most"
                         f" {_RATIO_MAX} times as much")  # fmt: skip

    def name_of(self, entry: str) -> str:
        """How messages call an entry."""
        return f"{self.path}!{entry}"

    @property
    def archives(self) -> list[str]:
        """Entries that are WARC files."""
        return sorted(
            name for name in self.entries
            if name.startswith("archive/") and name.endswith((".warc", ".warc.gz"))
        )  # fmt: skip

    @property
    def indexes(self) -> list[str]:
        return sorted(
            name for name in self.entries
            if name.startswith("indexes/")
            and name.endswith((".cdx", ".cdxj", ".cdx.gz", ".cdxj.gz"))
        )  # fmt: skip

    @contextmanager
    def opened(self, entry: str) -> Iterator[BinaryIO]:
        """An entry to read and to seek in. What is packed again is unpacked beside first."""
        info = self.entries[entry]
        assert self._file is not None
        if info.compress_type == zipfile.ZIP_STORED:
            self._file.seek(info.header_offset)
            head = self._file.read(_LOCAL_HEADER.size)
            if len(head) < _LOCAL_HEADER.size or head[:4] != b"PK\x03\x04":
                raise self._error(info, "has no header where the directory says")
            _, name, extra = _LOCAL_HEADER.unpack(head)
            start = info.header_offset + _LOCAL_HEADER.size + name + extra
            window = Window(self._file, start, info.file_size, self.name_of(entry))
            yield cast(BinaryIO, window)
            return
        with TemporaryFile(prefix="geomi-unpacked-") as beside:
            for piece in self.pieces(entry):
                beside.write(piece)
            beside.seek(0)
            yield cast(BinaryIO, Window(beside, 0, info.file_size, self.name_of(entry)))

    def pieces(self, entry: str) -> Iterator[bytes]:
        """An entry from beginning to end, its checksum judged; Broken where it is not whole."""
        assert self._zip is not None
        info = self.entries[entry]
        size = 0
        try:
            with self._zip.open(info) as file:
                while piece := file.read(_PIECE):
                    size += len(piece)
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            raise self._error(info, f"cannot be unpacked ({error})") from error
        if size != info.file_size:
            raise self._error(info, f"has {size} bytes, wanted {info.file_size}")

    def lines(self, entry: str) -> Iterator[bytes]:
        """The lines of an index, unzipped."""
        with self.opened(entry) as file:
            source: Any = file
            if entry.endswith(".gz"):
                source = Inflated(file, self.name_of(entry))
            rest = b""
            while data := source.read(_PIECE):
                *whole, rest = (rest + data).split(b"\n")
                yield from (line + b"\n" for line in whole)
            if rest:
                yield rest

    def check(self, add: Callable[[str, int, str], None]) -> None:
        """Each resource of datapackage.json has the bytes and the digest that it says."""
        info = self.entries.get("datapackage.json")
        if info is None:
            add(str(self.path), 0, "no datapackage.json, wanted one in a package")
            return
        where = self.name_of("datapackage.json")
        try:
            resources = _resources(self._json("datapackage.json"))
        except RemoteError as error:
            add(where, 0, str(error))
            return
        for path, size, digest in resources:
            there = self.entries.get(path)
            if there is None:
                add(where, 0, f"names {path[:200]!r}, which is not in the package")
                continue
            try:
                what = self._held(path, size, digest)
            except Broken as error:
                add(error.file, error.offset, error.what)
                continue
            if what:
                add(self.name_of(path), 0, what)

    def _held(self, path: str, size: int, digest: str) -> str:
        """What an entry does not hold of what was said; empty: nothing."""
        algorithm, _, value = digest.partition(":")
        if algorithm not in ("sha256", "md5", "sha512", "sha1"):
            return f"its digest is {digest[:80]!r}, wanted sha256:…"
        seen = hashlib.new(algorithm)
        for piece in self.pieces(path):
            seen.update(piece)
        if seen.hexdigest() != value.lower():
            return f"digest does not match {digest[:160]} of datapackage.json"
        if size not in (-1, self.entries[path].file_size):
            return f"{self.entries[path].file_size} bytes, datapackage.json says {size}"
        return ""

    def _json(self, entry: str) -> Any:
        data = b""
        for piece in self.pieces(entry):
            data += piece
            if len(data) > _JSON_MAX_BYTES:
                raise RemoteError(f"over {_JSON_MAX_BYTES} bytes")
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RemoteError(f"no JSON ({error})") from error


def _resources(facts: Any) -> list[tuple[str, int, str]]:
    """(path, bytes or -1, digest) of each."""
    resources = facts.get("resources") if isinstance(facts, dict) else None
    if not isinstance(resources, list):
        raise RemoteError("has no list of resources")
    found = []
    for one in resources:
        path = one.get("path") if isinstance(one, dict) else None
        if not isinstance(path, str):
            raise RemoteError("has a resource without a path")
        size = one.get("bytes", -1)
        found.append((path, size if isinstance(size, int) else -1, str(one.get("hash", ""))))
    return found
