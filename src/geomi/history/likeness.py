"""How alike two texts are: what differs at every visit is masked, the rest becomes 64 bits.

SimHash (Charikar): texts that share most of their word triples differ in few bits. Decides only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

import xxhash

#: Of a longer text the beginning is enough to say what it is like.
_FINGERPRINT_WORDS = 2_000
_MOST_WORDS = 50_000
_SHINGLE = 3  # words that count as one feature
BITS = 64
_ALL = (1 << BITS) - 1
#: Distances up to this are found by parts: of four, one must be equal.
MOST_DISTANCE = 3
_PARTS = 4
_PART_BITS = BITS // _PARTS

MASK = "#"
_MASKED = (MASK,)
#: No word is so long; it is data.
_LONGEST = 100
#: Addresses and names of files: an error page tells which one it did not find.
_ADDRESS = re.compile(
    r"https?://|/|[^/]*\.(?:html?|php\d?|jsp|aspx?|do|cgi|pl|action)(?:\?.*)?$", re.IGNORECASE
)
_HEX = re.compile(r"[0-9a-f-]{8,}", re.IGNORECASE)
#: Keys of sessions. Without a digit only what changes its case as no language does: names in
#: programs change it between words.
_KEY = re.compile(r"[A-Za-z0-9+/=_-]{16,}")
_CHANGES = re.compile(r"[a-z][A-Z]|[A-Z][a-z]")
_DIGITS = re.compile(r"\d(?:[\d.,:/+-]*+\d)?+")
_WORD = re.compile(rf"\w++|{MASK}")
_AROUND = "\"'`.,;:!?()[]{}<>|*«»“”‘’…"
#: Names of days and months, halves of a day, zones, units: beside a number they are a part of it.
_DATE_WORDS = (
    "mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday"
    " sunday jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june"
    " july august september october november december am pm utc gmt kst est edt pst pdt cet cest"
    " st nd rd th 오전 오후 년 월 화 수 목 금 토 일 시 분 초 월요일 화요일 수요일 목요일 금요일"
    " 토요일 일요일"
)
_OF_DATES = frozenset(_DATE_WORDS.split())


def words(text: str) -> list[str]:
    """The words of a text in lower case; what differs from visit to visit is `#`, once in a row.

    Numbers, dates, clocks, keys of sessions, addresses: a page says the same with one clock as with
    another. 60 ns for a word that was seen before, 2 us for another.
    """
    found = list(chain.from_iterable(map(_of_token, text.split()[:_MOST_WORDS])))
    return _without_dates(found) if MASK in found else found


@lru_cache(maxsize=20_000)
def _of_token(token: str) -> tuple[str, ...]:
    """The words of what stands between two blanks."""
    core = token.strip(_AROUND)
    if not core:
        return ()
    if core.isalpha() and len(core) < 20:
        return (core.lower(),)
    if len(core) > _LONGEST or _ADDRESS.match(core):
        return _MASKED
    has_digit = any(letter.isdigit() for letter in core)
    if has_digit and (_HEX.fullmatch(core) or _KEY.fullmatch(core)):
        return _MASKED
    if len(core) >= 20 and _KEY.fullmatch(core) and len(_CHANGES.findall(core)) * 4 >= len(core):
        return _MASKED
    return tuple(_WORD.findall(_DIGITS.sub(f" {MASK} ", core).lower()))


def _without_dates(found: list[str]) -> list[str]:
    """One mask for many in a row, and none of the words that are a part of a date."""
    kept: list[str] = []
    waiting: list[str] = []  # words that are part of a date if a mask stands beside them
    for word in found:
        if word == MASK:
            waiting.clear()
            if not kept or kept[-1] != MASK:
                kept.append(MASK)
        elif word in _OF_DATES:
            if not kept or kept[-1] != MASK or waiting:
                waiting.append(word)
        else:
            kept += waiting
            waiting.clear()
            kept.append(word)
    return kept + waiting


def fingerprint(text: list[str]) -> int:
    """SimHash of words as a signed 64-bit number, which is what both databases store; 0 for none.

    Bits are counted in C: all hashes as one string of binary digits, each 64th of which is one bit
    (0.5 us a word; a loop over bits took 6).
    """
    some = text[:_FINGERPRINT_WORDS]
    if not some:
        return 0
    features = {" ".join(some)} if len(some) < _SHINGLE else set(
        map(" ".join, zip(some, some[1:], some[2:], strict=False))
    )  # fmt: skip
    hashes = b"".join(
        xxhash.xxh3_64_digest(feature.encode("utf-8", "replace")) for feature in features
    )
    digits = f"{int.from_bytes(hashes, 'big'):0{len(hashes) * 8}b}"
    half = len(features) / 2
    found = 0
    for place in range(BITS):
        found = found << 1 | (digits[place::BITS].count("1") > half)
    return found - (1 << BITS) if found >> BITS - 1 else found


def same_text(text: Iterable[str]) -> str:
    """A name for the words of a masked text: equal texts, equal names."""
    return xxhash.xxh3_64_hexdigest(" ".join(text).encode("utf-8", "replace"))


def distance(one: int, other: int) -> int:
    """Bits in which two fingerprints differ."""
    return ((one ^ other) & _ALL).bit_count()


def parts(fingerprint: int) -> tuple[tuple[int, int], ...]:
    """(place, bits) of each quarter: two that differ in three bits at most have one in common."""
    value = fingerprint & _ALL
    return tuple(
        (place, value >> place * _PART_BITS & (1 << _PART_BITS) - 1) for place in range(_PARTS)
    )


class Near:
    """Fingerprints with a name each, found again by one that is near. 400 bytes each."""

    def __init__(self, most: int) -> None:
        """`most`: bits that may differ, at most MOST_DISTANCE."""
        self._most = min(most, MOST_DISTANCE)
        self._by_part: dict[tuple[int, int], list[tuple[int, str]]] = {}

    def add(self, fingerprint: int, name: str) -> None:
        for part in parts(fingerprint):
            self._by_part.setdefault(part, []).append((fingerprint, name))

    def find(self, fingerprint: int) -> str:
        """The name of the nearest; empty if none is near."""
        best, found = self._most + 1, ""
        for part in parts(fingerprint):
            for other, name in self._by_part.get(part, ()):
                away = distance(fingerprint, other)
                if away < best or (away == best and name < found):
                    best, found = away, name
        return found
