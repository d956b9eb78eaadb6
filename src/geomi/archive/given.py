"""WARC files that somebody names: files, folders, packages; and the indexes beside them. Shell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from geomi.archive.source import Broken
from geomi.archive.unpacked import Package
from geomi.errors import OperatorError, ResourceError

WARC_NAMES = (".warc", ".warc.gz", ".warc.open", ".warc.gz.open")
INDEX_NAMES = (".cdxj",)
_ZIP_MAGIC = b"PK\x03\x04"


def _same(uri: str) -> str:
    return uri


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One WARC file, wherever it is. Made by: given, cluster.checked.   Taken by: the checker."""

    name: str  # as messages say it
    key: str  # what an index calls it
    size: int
    opened: Callable[[], AbstractContextManager[BinaryIO]]  # it can seek
    committed: int | None = None  # None: all of it
    strict: bool = False  # geomi wrote it
    is_indexed: bool = False  # an index that is given has its captures
    left_out: tuple[tuple[int, int], ...] = ()
    uri_of: Callable[[str], str] = _same


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index of some of the parts."""

    name: str
    lines: Callable[[], Iterable[bytes]]
    relative_to: str = ""  # for names of files below a folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one word of the command line means."""

    parts: tuple[Part, ...]
    indexes: tuple[Index, ...] = ()
    package: Package | None = None


@contextmanager
def given(path: Path) -> Iterator[Given]:
    """A file, a folder with files, or a package, which stays open meanwhile."""
    if path.is_dir():
        yield _folder(path)
    elif not path.exists():
        raise OperatorError(f"{path}: no such file, folder or collection")
    elif is_package(path):
        with Package(path) as package:
            yield _package(package)
    else:
        index = index_path(path)
        is_indexed = index.is_file()
        yield Given(
            parts=(file_part(path, is_indexed=is_indexed),),
            indexes=(file_index(index),) if is_indexed else (),
        )


def is_package(path: Path) -> bool:
    """True for a ZIP, whatever its name."""
    try:
        with path.open("rb") as file:
            return file.read(4) == _ZIP_MAGIC or path.suffix == ".wacz"
    except OSError as error:
        raise ResourceError(f"{path}: cannot be opened ({error.strerror})") from error


def index_path(path: Path) -> Path:
    """Where the index of a WARC file stands: beside it."""
    name = path.name.removesuffix(".open").removesuffix(".gz").removesuffix(".warc")
    return path.with_name(name + ".cdxj")


def file_part(path: Path, **more: object) -> Part:
    return Part(
        name=str(path), key=path.name, size=path.stat().st_size, opened=lambda: opened(path),
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def file_index(path: Path) -> Index:
    return Index(name=str(path), lines=lambda: _lines(path), relative_to=str(path.parent))


def _lines(path: Path) -> Iterator[bytes]:
    with opened(path) as file:
        yield from file


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise ResourceError(f"{path}: cannot be opened ({error.strerror})") from error
    with file:
        yield file


def _folder(path: Path) -> Given:
    """All files below. An index is of the file beside it, or of all, if there is none such."""
    files, indexes = [], []
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if name.endswith(WARC_NAMES):
                files.append(Path(folder) / name)
            elif name.endswith(INDEX_NAMES):
                indexes.append(Path(folder) / name)
    if not files:
        raise OperatorError(f"{path}: no WARC file (.warc, .warc.gz) in this folder")
    own = {index_path(one) for one in files} & {*indexes}
    is_general = len(own) < len(indexes)
    return Given(
        parts=tuple(
            file_part(one, is_indexed=is_general or index_path(one) in own) for one in files
        ),
        indexes=tuple(map(file_index, indexes)),
    )


def _package(package: Package) -> Given:
    if not package.archives:
        raise Broken(str(package.path), 0, "no WARC file below archive/ in this package")
    return Given(
        parts=tuple(
            Part(
                name=package.name_of(entry), key=entry.removeprefix("archive/"),
                size=package.entries[entry].file_size, is_indexed=bool(package.indexes),
                opened=lambda entry=entry: package.opened(entry),  # type: ignore[misc]
            )
            for entry in package.archives
        ),
        indexes=tuple(
            Index(
                name=package.name_of(entry),
                lines=lambda entry=entry: package.lines(entry),  # type: ignore[misc]
            )
            for entry in package.indexes
        ),
        package=package,
    )  # fmt: skip
