"""Packages: a ZIP file written entry by entry as WACZ 1.1.1 asks for it, with their digests. Shell.

Equal entries and an equal time give equal bytes. Until finish() has returned there is no file of
that name: what is under way has `.part` behind it.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import gmtime
from typing import Any

from geomi.archive.files import Lock
from geomi.errors import OperatorError, ResourceError

WACZ_VERSION = "1.1.1"
PART = ".part"

_BLOCK_LINES = 1024  # of an index, in one gzip member; as archiveweb.page has it
_LARGE_BYTES = 1 << 31
_OLDEST = (1980, 1, 1, 0, 0, 0)  # that ZIP can say


class Package:
    """Entries in the order they are given. Memory: the list of entries."""

    def __init__(self, zip_file: zipfile.ZipFile, *, created: float) -> None:
        self._zip = zip_file
        moment = tuple(gmtime(created)[:6])
        self._moment = max(moment, _OLDEST)
        self.resources: list[dict[str, Any]] = []

    def store(self, path: str, chunks: Iterable[bytes], *, size: int = _LARGE_BYTES) -> int:
        """An entry that is not compressed again; `size` is what is expected. Its length."""
        return self._write(path, chunks, zipfile.ZIP_STORED, size)

    def deflate(self, path: str, chunks: Iterable[bytes]) -> int:
        return self._write(path, chunks, zipfile.ZIP_DEFLATED, _LARGE_BYTES)

    def _write(self, path: str, chunks: Iterable[bytes], how: int, size: int) -> int:
        entry = zipfile.ZipInfo(path, self._moment)  # type: ignore[arg-type]  # six numbers
        entry.compress_type = how
        entry.external_attr = 0o644 << 16
        entry.create_system = 3  # as on every Linux, whatever runs this
        digest, length = sha256(), 0
        with self._zip.open(entry, "w", force_zip64=size >= _LARGE_BYTES) as out:
            for chunk in chunks:
                out.write(chunk)
                digest.update(chunk)
                length += len(chunk)
        self.resources.append({
            "name": path.rpartition("/")[2].lower(), "path": path,
            "hash": f"sha256:{digest.hexdigest()}", "bytes": length,
        })  # fmt: skip
        return length

    def index(self, lines: Iterable[bytes], scratch: str) -> None:
        """`indexes/index.cdx.gz` and its `.idx`, from sorted lines."""
        above = os.path.join(scratch, "index.idx")
        with open(above, "wb") as out:
            self.store("indexes/index.cdx.gz", _blocks(lines, out.write))
        with open(above, "rb") as done:
            self.deflate("indexes/index.idx", iter(lambda: done.read(1 << 16), b""))

    def describe(self, facts: Mapping[str, Any]) -> None:
        """The manifest and its digest: the last entries."""
        manifest = json.dumps(
            {"profile": "data-package", "wacz_version": WACZ_VERSION, **facts,
             "resources": self.resources},
            indent=2, ensure_ascii=False,
        ).encode()  # fmt: skip
        digest = {"path": "datapackage.json", "hash": f"sha256:{sha256(manifest).hexdigest()}"}
        self.deflate("datapackage.json", [manifest])
        self.deflate("datapackage-digest.json", [json.dumps(digest, indent=2).encode()])


def _blocks(lines: Iterable[bytes], above: Any) -> Iterator[bytes]:
    """Gzip members of so many lines; the first line of each goes into the index above."""
    above(b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n')
    block: list[bytes] = []
    offset = 0

    def done() -> bytes:
        packed = zlib.compress(b"".join(block), 9, wbits=31)
        key = b" ".join(block[0].split(b" ", 2)[:2])
        fact = {"offset": offset, "length": len(packed),
                "digest": f"sha256:{sha256(packed).hexdigest()}"}  # fmt: skip
        above(key + b" " + json.dumps(fact).encode() + b"\n")
        return packed

    for line in lines:
        block.append(line)
        if len(block) == _BLOCK_LINES:
            packed = done()
            yield packed
            offset += len(packed)
            block.clear()
    if block:
        yield done()


@contextmanager
def packing(path: Path, *, created: float, replace: bool = False) -> Iterator[Package]:
    """A new package at `path`, whole when the block ends well and not there when it does not."""
    if path.suffix != ".wacz":
        raise OperatorError(f"{path}: wanted a name that ends with .wacz")
    if path.exists() and not replace:
        raise OperatorError(
            f"{path}: there is a file already; --replace writes another in its place"
        )
    part = str(path) + PART
    try:
        lock = Lock(part)
        if not lock.take():
            raise OperatorError(f"{path}: somebody else writes this package")
    except OSError as error:
        raise OperatorError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        with open(part, "r+b") as file:
            file.truncate()
            with zipfile.ZipFile(file, "w", allowZip64=True) as zip_file:
                yield Package(zip_file, created=created)
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, path)
        _sync_directory(path.absolute().parent)
    except OSError as error:
        _drop(part)
        raise ResourceError(f"{path}: {error.strerror or error}") from error
    except BaseException:
        _drop(part)
        raise
    finally:
        lock.release()


def _drop(part: str) -> None:
    with suppress(OSError):
        os.unlink(part)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
