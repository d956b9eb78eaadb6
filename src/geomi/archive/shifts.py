"""Where the records of a file lie in its next generation, and where they lay. Decides only."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    COPY = "copy"  # as it was
    REVISIT = "revisit"
    POINT = "point"
    RESPONSE = "response"
    GONE = "gone"


class Moved(NamedTuple):
    """The new place of a record. `kind`: what became of it; GONE: there is none."""

    offset: int
    length: int
    kind: Kind


_KINDS = tuple(Kind)


class Shifts:
    """Filled by the proof of a generation, in the order of the file: 25 bytes an edit or record."""

    def __init__(self) -> None:
        # Start of a piece in the old file and in the new one; -1: nowhere.
        self._old = array("q")
        self._new = array("q")
        self._length = array("q")  # of its one record; -1: records of the length they had
        self._kind = array("b")
        self.end = 0  # of the old file

    def __len__(self) -> int:
        return len(self._old)

    def add(self, old: int, new: int, length: int, kind: Kind) -> None:
        self._old.append(old)
        self._new.append(new)
        self._length.append(length)
        self._kind.append(_KINDS.index(kind))

    def place(self, offset: int, length: int) -> Moved | None:
        """Where the record that lay there is. None: no record began there."""
        index = bisect_right(self._old, offset) - 1
        if index < 0:
            return None
        kind = _KINDS[self._kind[index]]
        within = offset - self._old[index]
        if self._length[index] < 0:
            return Moved(self._new[index] + within, length, kind)
        if within and kind is not Kind.GONE:
            return None
        return Moved(self._new[index], self._length[index], kind)

    def back(self, offset: int, length: int) -> Moved | None:
        """Where the record lay that is at `offset` now. None: none of the old file is there."""
        index = bisect_right(self._new, offset, key=abs) - 1
        while index >= 0 and self._new[index] < 0:
            index -= 1
        if index < 0:
            return None
        within = offset - self._new[index]
        kind = _KINDS[self._kind[index]]
        if self._length[index] < 0:
            return Moved(self._old[index] + within, length, kind)
        if within:
            return None
        after = self._old[index + 1] if index + 1 < len(self._old) else self.end
        return Moved(self._old[index], after - self._old[index], kind)
