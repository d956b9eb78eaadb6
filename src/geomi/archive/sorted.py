"""Files of sorted lines: looked up by halving, made of more lines than memory holds. Shell."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import merge
from itertools import count
from pathlib import Path
from typing import BinaryIO

from geomi.errors import RemoteError, ResourceError

#: A line of an index as long as this is none: URLs are cut at 65,536 characters.
LINE_MAX_BYTES = 1 << 20
_PIECE_BYTES = 16384
_NEAR_BYTES = 4096  # no more halving below this: one read holds what is left
_RUN_BYTES = 16 << 20  # lines sorted at once
_MOST_RUNS = 64  # files that are merged at once


def lines_between(path: str, start: bytes, end: bytes) -> Iterator[bytes]:
    """Lines from `start` on that come before `end`, with their line ends.

    Reads some twenty pieces of 4 KiB to find the first, whatever the size of the file. Between two
    pieces of 16 KiB the file is closed, so that any number of files can be read side by side.
    """
    with _opened(path) as file:
        at, inode = first_from(file, start), os.fstat(file.fileno()).st_ino
    rest = b""
    while True:
        with _opened(path) as file:
            if os.fstat(file.fileno()).st_ino != inode:
                raise ResourceError(f"{path}: was replaced while it was read; ask again")
            file.seek(at)
            data = file.read(_PIECE_BYTES)
        at += len(data)
        *whole, rest = (rest + data).split(b"\n")
        lines = [line + b"\n" for line in whole]
        if not data and rest:  # the last line has no end
            lines, rest = [rest + b"\n"], b""
        if len(rest) > LINE_MAX_BYTES:
            raise _too_long(path, at - len(rest))
        for line in lines:
            if line >= end:
                return
            if line >= start:
                yield line
        if not data:
            return


def first_from(file: BinaryIO, start: bytes) -> int:
    """Where a line begins before which all others come before `start`."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while high - low > _NEAR_BYTES:
        middle = (low + high) // 2
        file.seek(middle)
        _line(file)  # the rest of the line that lies there
        at = file.tell()
        line = _line(file) if at < high else b""
        if line and line < start:
            low = at
        else:
            high = middle
    return low


def ends_of(path: str) -> tuple[bytes, bytes]:
    """(first line, last line without its end); empty where there is none."""
    with _opened(path) as file:
        return _ends(file)


def _ends(file: BinaryIO) -> tuple[bytes, bytes]:
    first = _line(file)
    size = file.seek(0, os.SEEK_END)
    back = _NEAR_BYTES
    while True:
        file.seek(max(0, size - back))
        lines = file.read(back).rstrip(b"\n").split(b"\n")
        if len(lines) > 1 or back >= size:
            return first, lines[-1] if lines else b""
        back *= 4


def _line(file: BinaryIO) -> bytes:
    line = file.readline(LINE_MAX_BYTES)
    if len(line) == LINE_MAX_BYTES:
        raise _too_long(file.name, file.tell() - len(line))
    return line


def _too_long(path: str, at: int) -> RemoteError:
    return RemoteError(f"{path} at {at}: a line over {LINE_MAX_BYTES} bytes, wanted an index")


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise ResourceError(f"{path}: {error.strerror or error}") from error


class Runs:
    """Lines in any order go in, and come out sorted by bytes, as often as asked for.

    Memory: 16 MiB of lines, whatever their number; the rest lies in `folder`, which the caller
    makes and removes. Equal lines are kept.
    """

    def __init__(self, folder: str | Path, name: str, *, run_bytes: int = _RUN_BYTES) -> None:
        self._folder = str(folder)
        self._name = name
        self._run_bytes = run_bytes
        self._numbers = count()
        self._waiting: list[bytes] = []  # not sorted yet
        self._waiting_bytes = 0
        self._files: list[str] = []  # sorted each
        self.lines = 0

    def add(self, line: bytes) -> None:
        """One line, with its line end."""
        self._waiting.append(line)
        self._waiting_bytes += len(line) + 40
        self.lines += 1
        if self._waiting_bytes >= self._run_bytes:
            self._spill()

    def extend(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.add(line)

    def paths(self) -> list[str]:
        """All lines as one sorted file; none if there is no line."""
        return self.parts(most=1)

    def parts(self, *, most: int) -> list[str]:
        """All lines as sorted files; more than `most` are merged into one."""
        self._spill()
        if len(self._files) > most:
            self._files = [self._merged(self._files)]
        return list(self._files)

    def __iter__(self) -> Iterator[bytes]:
        """In order. Nothing may be added meanwhile."""
        if not self._files:
            yield from sorted(self._waiting)
            return
        for path in self.paths():
            yield from read_lines(path)

    def _spill(self) -> None:
        if not self._waiting:
            return
        self._files.append(self._written(sorted(self._waiting)))
        self._waiting, self._waiting_bytes = [], 0
        if len(self._files) >= _MOST_RUNS:
            self._files = [self._merged(self._files)]

    def _merged(self, paths: Sequence[str]) -> str:
        path = self._written(merge(*map(read_lines, paths)))
        for old in paths:
            os.unlink(old)
        return path

    def _written(self, lines: Iterable[bytes]) -> str:
        path = os.path.join(self._folder, f"{self._name}-{next(self._numbers):06d}")
        try:
            with open(path, "wb") as file:
                file.writelines(lines)
        except OSError as error:
            raise ResourceError(f"{path}: {error.strerror or error}") from error
        return path


def read_lines(path: str) -> Iterator[bytes]:
    """Lines of a file, with their line ends."""
    with _opened(path) as file:
        while line := _line(file):
            yield line
