"""Which revisits of a selection refer to what is not in it. Memory does not grow with either."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from geomi.archive import cdxj
from geomi.archive.names import date14
from geomi.archive.reader import Member, members
from geomi.archive.sorted import Runs

#: The key of what is not said.
NOWHERE = b"- - "
_REVISIT = b'"mime": "warc/revisit"'


class Place(NamedTuple):
    """Where a record lies. As a line: sorted by file and offset."""

    name: str
    offset: int
    rest: str = ""

    def line(self) -> bytes:
        return f"{self.name}\t{self.offset:020d}\t{self.rest}\n".encode()

    @classmethod
    def of(cls, line: bytes) -> Place:
        name, offset, rest = line.decode().rstrip("\n").split("\t", 2)
        return cls(name, int(offset), rest)


def is_revisit(line: bytes) -> bool:
    return _REVISIT in line


def key_of(line: bytes) -> bytes:
    """`SURT timestamp ` of an index line: what a revisit refers to."""
    parts = line.split(b" ", 2)
    return b" ".join(parts[:2]) + b" "


def referred(member: Member) -> bytes:
    """The same of what a revisit refers to; NOWHERE if it does not say."""
    uri = member.headers.get("WARC-Refers-To-Target-URI").strip("<>")
    date = member.headers.get("WARC-Refers-To-Date")
    return f"{cdxj.key_of(uri)} {date14(date)} ".encode() if uri and date else NOWHERE


def outside(
    lines: Callable[[], Iterable[bytes]], opened: Callable[[str], BinaryIO], scratch: str
) -> Runs:
    """Places of revisits, `rest` the key of what they refer to, that refer to no response among
    the lines. `lines` gives the selection, sorted, each time it is called."""
    places = Runs(scratch, "revisits")
    for line in lines():
        if is_revisit(line):
            found = cdxj.parse_line(line)
            places.add(Place(found.filename, found.offset, found.digest).line())
    refers = Runs(scratch, "refers")
    for line in places:
        place = Place.of(line)
        member = next(members(opened(place.name), place.offset), None)
        key = referred(member) if member is not None else NOWHERE
        refers.add(key + place.line())
    left = Runs(scratch, "outside")
    for key, place in _unmatched(iter(refers), iter(lines())):
        left.add(place._replace(rest=key.decode()).line())
    return left


def _unmatched(refers: Iterator[bytes], lines: Iterator[bytes]) -> Iterator[tuple[bytes, Place]]:
    """Both are sorted by key: each is walked once."""
    here: list[bytes] = []  # the lines of the key we are at
    line = next(lines, b"")
    at = b""
    for refer in refers:
        key = key_of(refer)
        place = Place.of(refer[len(key) :])
        while key > at:
            here, at = [], key_of(line) if line else b"\xff"
            while line and key_of(line) == at:
                if not is_revisit(line):
                    here.append(line)
                line = next(lines, b"")
        if not (key == at and any(_same(one, place.rest) for one in here)):
            yield key, place


def _same(line: bytes, digest: str) -> bool:
    theirs = cdxj.parse_line(line).digest
    return digest in ("", "-") or theirs in ("", "-") or theirs == digest
