"""Is a payload stored already? Keys of the index, and the filter before it.

Decides only. An entry of the index is a number made of digest, status and, of a redirect, its
target; so captures that differ in those never meet, and a name costs eight bytes.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

#: Status codes whose Location says what they mean.
REDIRECTS = frozenset({301, 302, 303, 307, 308})

_STATUS = re.compile(rb"^HTTP/(\d(?:\.\d)?) \d{3}[^\r\n]*")
_MODIFIED = re.compile(rb"\r?\nLast-Modified:[^\r\n]*", re.IGNORECASE)


class Original(Struct, kw_only=True):
    """A stored payload that a revisit refers to. Made by: cluster.digests.   Taken by: settle.

    `visit` of one that is not committed yet is filled in by the commit of its batch, which comes
    before that of any revisit that refers to it, or is refused together with it.
    """

    uri: str
    date: str  # its WARC-Date, to the letter
    record_id: str = ""  # empty: not known
    home: str = ""  # the collection that has it; empty: this one
    visit: int = 0
    file: int = 0  # where it lies in this collection; 0: it does not
    offset: int = 0
    length: int = 0


class Met(Struct, frozen=True, kw_only=True):
    """What is known of a payload before its visit is settled."""

    digest: str = ""  # empty: not taken; the archive takes it
    original: Original | None = None  # None: nothing to refer to is known
    is_void: bool = False  # its digest is one of a confirmed meaningless page


NOTHING_MET = Met()


def key_of(digest: str, *, code: int, location: str = "") -> int:
    """The name of a payload in the index: a signed number of 64 bits. 1.3 us.

    Two of ten million payloads share one with a chance of 3 in a million, and the digest that the
    collection's store has of the visit tells them apart.
    """
    where = location if code in REDIRECTS else ""
    name = f"{code} {digest} {where}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big", signed=True)


def paper_head(head: bytes) -> bytes:
    """A response's header lines as paper 004 keeps them with a duplicate: status 304, and without
    Last-Modified. Replay shows such a revisit as 304."""
    return _MODIFIED.sub(b"", _STATUS.sub(rb"HTTP/\1 304 Not Modified", head, count=1))


# -- the filter ------------------------------------------------------------------------------------

#: The first slice has 2^SMALLEST bits, each next one eight times as many, the last 2^LARGEST.
SMALLEST, LARGEST = 19, 27
_STEP = 3
#: Bits of a slice for each key it takes: with four looks 0.24 % of new keys seem known.
BITS_A_KEY = 16
_LOOKS = 4


class Cells(Protocol):
    """Bytes that can be changed one by one."""

    def __getitem__(self, at: int, /) -> int: ...
    def __setitem__(self, at: int, value: int, /) -> None: ...


def slices(size: int, offset: int = 0) -> list[tuple[int, int]]:
    """(first byte, bits less one) of the slices in a filter of `size` bytes behind `offset`."""
    found = []
    at, power = 0, SMALLEST
    while at < size:
        found.append((offset + at, (1 << power) - 1))
        at += 1 << (power - 3)
        power = min(power + _STEP, LARGEST)
    return found


def next_size(size: int) -> int:
    """Bytes of a filter with one slice more."""
    power = min(SMALLEST + _STEP * len(slices(size)), LARGEST)
    return size + (1 << (power - 3))


def capacity(size: int) -> int:
    """Keys that the last slice of a filter should take."""
    return (slices(size)[-1][1] + 1) // BITS_A_KEY


def may_have(bits: Cells, parts: list[tuple[int, int]], key: int) -> bool:
    """False: the key was never marked. About 1 us for a new one in each of four slices or less."""
    low, step = key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF | 1
    for start, mask in parts:
        bit = low & mask
        if bits[start + (bit >> 3)] >> (bit & 7) & 1:
            for look in range(1, _LOOKS):
                bit = (low + look * step) & mask
                if not bits[start + (bit >> 3)] >> (bit & 7) & 1:
                    break
            else:
                return True
    return False


def mark(bits: Cells, parts: list[tuple[int, int]], key: int) -> None:
    """A key is known from now on: four bits of the last slice."""
    start, mask = parts[-1]
    low, step = key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF | 1
    for look in range(_LOOKS):
        bit = (low + look * step) & mask
        bits[start + (bit >> 3)] |= 1 << (bit & 7)
