"""The filter of an index as a file beside it, mapped into every agent of the machine.

What it says of a new payload costs no look at the disk. It is a hint: bits that a power cut or two
writers of one byte lose mean that a payload is stored once more, never a wrong revisit.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable, Iterable, Sequence

from geomi.archive.duplicates import capacity, mark, may_have, next_size, slices
from geomi.errors import ResourceError

_MAGIC = b"geomi-1\n"
#: Magic; 1 once all keys of the index are in; keys in the last slice.
_HEAD = 32
_WHOLE = 8
_COUNT = slice(16, 24)


class Bits:
    """Open from the start; `fill` before it is of use. One object a process."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ResourceError(f"{path}: {error.strerror or error}") from error
        self._locked(self._begin)
        self._map()

    def _begin(self) -> None:
        size = os.fstat(self._fd).st_size
        if size > _HEAD and os.pread(self._fd, len(_MAGIC), 0) == _MAGIC:
            return
        os.ftruncate(self._fd, 0)
        os.ftruncate(self._fd, _HEAD + next_size(0))
        os.pwrite(self._fd, _MAGIC, 0)

    def _map(self) -> None:
        size = os.fstat(self._fd).st_size
        self._bits = mmap.mmap(self._fd, size)
        self._parts = slices(size - _HEAD, _HEAD)

    def _locked(self, work: Callable[[], None]) -> None:
        """Others of this machine wait meanwhile."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            try:
                work()
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        except OSError as error:
            raise ResourceError(f"{self.path}: {error.strerror or error}") from error

    @property
    def is_whole(self) -> bool:
        """False: what it does not have may be in the index all the same."""
        return self._bits[_WHOLE] == 1

    def may_have(self, key: int) -> bool:
        """False: the index does not have the key."""
        return may_have(self._bits, self._parts, key) or not self.is_whole

    def add(self, keys: Iterable[int]) -> None:
        """Marks keys, and makes room for more."""
        if os.fstat(self._fd).st_size != len(self._bits):
            self._map()  # another process made room
        self._mark(keys, lambda: self._locked(self._grow))

    def _mark(self, keys: Iterable[int], grow: Callable[[], None]) -> None:
        count = int.from_bytes(self._bits[_COUNT], "little")
        room = capacity(len(self._bits) - _HEAD)
        for key in keys:
            if count >= room:
                grow()
                count = int.from_bytes(self._bits[_COUNT], "little")
                room = capacity(len(self._bits) - _HEAD)
            mark(self._bits, self._parts, key)
            count += 1
        self._bits[_COUNT] = count.to_bytes(8, "little")

    def _grow(self) -> None:
        size = os.fstat(self._fd).st_size
        if size == len(self._bits):
            os.ftruncate(self._fd, _HEAD + next_size(size - _HEAD))
            self._bits[_COUNT] = bytes(8)
        self._map()

    def fill(self, keys: Callable[[int | None], Sequence[int]]) -> None:
        """Marks all there are, unless that was done; `keys` gives some beyond one, in order."""

        def work() -> None:
            last: int | None = None
            while not self.is_whole:
                some = keys(last)
                bits, parts = self._bits, self._parts
                self._mark([key for key in some if not may_have(bits, parts, key)], self._grow)
                if not some:
                    self._bits[_WHOLE] = 1
                else:
                    last = some[-1]

        self._locked(work)

    def close(self) -> None:
        self._bits.close()
        os.close(self._fd)
