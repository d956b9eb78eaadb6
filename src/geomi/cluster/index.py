"""One sorted view over the indexes of all WARC files of a collection, closed and open. Shell.

A closed file has its index beside it and is looked up by halving. Of an open file the store knows
the captures: they are written to sorted files in a scratch directory, each time those that came
since.
Nothing grows with the archive but some 300 bytes a file.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from heapq import merge
from typing import NamedTuple

from geomi.archive import tables
from geomi.archive.query import Range
from geomi.archive.sorted import Runs, ends_of, lines_between
from geomi.cluster.collection import Collection
from geomi.cluster.ledger import OPEN, line_of
from geomi.cluster.node import here
from geomi.errors import ResourceError
from geomi.store import Store

ALL: Range = (b"", b"\xff")
_PARTS_MOST = 8  # sorted files that the captures of one open file are spread over
_FRESH_S = 1.0  # the store is asked for news at most so often


class Archived(NamedTuple):
    """A WARC file, as far as it is committed."""

    file: int
    name: str  # as index lines have it, without directory
    path: str  # where it lies on this machine
    committed: int
    is_open: bool
    cdxj: str  # path of the index of a closed file

    @property
    def paths(self) -> tuple[str, ...]:
        """Where its bytes may be found: a file that is open now is closed one day."""
        return (self.path, self.path.removesuffix(OPEN)) if self.is_open else (self.path,)


class _Growing:
    """Captures of an open file, in sorted files; filled by news(), gone with the scratch."""

    def __init__(self, folder: str, file: int) -> None:
        self._folder = folder
        self._file = file
        self._visit = 0  # the newest that was taken in
        self._parts = 0
        self.runs = Runs(folder, f"open-{file}")

    def news(self, store: Store, name: str) -> None:
        for visit, *row in tables.captures_since(store, self._file, self._visit):
            self.runs.add(line_of(name, *row))
            self._visit = max(self._visit, visit)


class Index:
    """Looks up lines in the order of their keys. One object belongs to one thread at a time."""

    def __init__(self, collection: Collection, store: Store, scratch: str) -> None:
        self._collection = collection
        self._store = store
        self._scratch = scratch
        self._fresh_until = 0.0
        self._files: dict[int, Archived] = {}
        self._names: dict[str, int] = {}
        self._growing: dict[int, _Growing] = {}
        self.elsewhere: list[str] = []  # files that lie on other nodes
        # path -> (inode, first line, last line): most files have nothing in most ranges.
        self._ends: dict[str, tuple[int, bytes, bytes]] = {}

    def refresh(self, *, at_once: bool = False) -> None:
        """Takes in what was committed, closed, moved or rewritten since."""
        now = time.monotonic()
        if now < self._fresh_until and not at_once:
            return
        self._fresh_until = now + _FRESH_S
        files: dict[int, Archived] = {}
        self.elsewhere = []
        with self._store.image():
            for file, directory, name, committed, state, node, base in tables.all_files(
                self._store
            ):
                if not committed:
                    continue
                found = self._found(directory, name, base, is_open=state == "open")
                if found is None and node not in ("", here()):
                    self.elsewhere.append(name)
                    continue
                path = found or os.path.join(self._collection.archive_path(directory), name)
                is_open = state == "open"
                files[file] = Archived(
                    file, os.path.basename(name), path, committed, is_open, _index_path(path)
                )
                if is_open:
                    growing = self._growing.setdefault(file, _Growing(self._scratch, file))
                    growing.news(self._store, os.path.basename(name))
        for file in [file for file in self._growing if not (file in files and files[file].is_open)]:
            for path in self._growing.pop(file).runs.parts(most=_PARTS_MOST):
                os.unlink(path)
        self._files = files
        self._names = {one.name: file for file, one in files.items()}

    def _found(self, directory: str, name: str, base: str, *, is_open: bool) -> str | None:
        """Where a file lies here: in the collection, or where this node's agents keep theirs."""
        for folder in (self._collection.archive_path(directory), base):
            path = os.path.join(folder, name)
            for one in (path + OPEN, path) if is_open else (path,):
                if folder and os.path.exists(one):
                    return one
        return None

    def files(self) -> list[Archived]:
        """All files that lie here, by number."""
        return [self._files[file] for file in sorted(self._files)]

    def file_of(self, name: str) -> Archived | None:
        """The file that an index line names; None if this collection has no such file."""
        file = self._names.get(name)
        return None if file is None else self._files[file]

    def lines(self, ranges: Iterable[Range]) -> Iterator[bytes]:
        """Lines within the ranges, sorted; ranges in order, none within another."""
        for start, end in ranges:
            yield from merge(*self._sources(start, end))

    def sources(self, *, most: int = 0) -> list[str]:
        """Paths of sorted files that together hold every line; more than `most` become one."""
        paths = self._paths()
        for path in paths:
            self._must_be(path)
        if most and len(paths) > most:
            merged = os.path.join(self._scratch, "merged.cdxj")
            with open(merged, "wb") as file:
                file.writelines(self.lines([ALL]))
            return [merged]
        return paths

    def _paths(self) -> list[str]:
        closed = [one.cdxj for one in self._files.values() if not one.is_open]
        return closed + [
            path for one in self._growing.values() for path in one.runs.parts(most=_PARTS_MOST)
        ]

    def _sources(self, start: bytes, end: bytes) -> Iterator[Iterator[bytes]]:
        for path in self._paths():
            first, last = self._bounds(path)
            if first and first < end and last + b"\n" >= start:
                yield lines_between(path, start, end)

    def _bounds(self, path: str) -> tuple[bytes, bytes]:
        inode = self._must_be(path)
        known = self._ends.get(path)
        if known is None or known[0] != inode:
            known = self._ends[path] = (inode, *ends_of(path))
        return known[1], known[2]

    def _must_be(self, path: str) -> int:
        try:
            return os.stat(path).st_ino
        except OSError as error:
            raise ResourceError(
                f"{path}: no index of this file; geomi verify tells more"
            ) from error


def _index_path(path: str) -> str:
    return path.removesuffix(".warc.gz") + ".cdxj"


@contextmanager
def indexed(collection: Collection, store: Store) -> Iterator[Index]:
    """The view of a collection as it stands; its scratch is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="geomi-index-") as scratch:
        index = Index(collection, store, scratch)
        index.refresh(at_once=True)
        yield index
