"""Chance that depends on the key alone: the same in every process, on every machine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

from xxhash import xxh3_64_intdigest

_SCALE = 2.0**-64
T = TypeVar("T")


def number(*key: object) -> int:
    """A number below 2**64 that only depends on the key."""
    return xxh3_64_intdigest("/".join(map(str, key)).encode())


def unit(*key: object) -> float:
    """A number in [0, 1) that only depends on the key."""
    return number(*key) * _SCALE


def stream(*key: object) -> Random:
    """A source of random numbers that only depends on the key."""
    return Random(number(*key))


class Choice(Generic[T]):
    """Picks entries by share. Shares of a sum below one leave the rest to the first entry."""

    def __init__(self, entries: Sequence[T], shares: Sequence[float]) -> None:
        total = sum(shares)
        if total < 1.0:
            shares = [shares[0] + 1.0 - total, *shares[1:]]
            total = 1.0
        self._entries = entries
        self._bounds = [bound / total for bound in accumulate(shares)]

    def pick(self, at: float) -> T:
        """The entry whose part of [0, 1) holds `at`."""
        return self._entries[min(bisect_right(self._bounds, at), len(self._entries) - 1)]
