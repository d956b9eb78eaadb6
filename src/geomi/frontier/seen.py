"""Which URLs of a site were met before. The only file that names rbloom."""

from __future__ import annotations

from collections.abc import Sequence

from rbloom import Bloom

#: The first slice; each next is four times as large, so a site of 10 million URLs has ten slices.
FIRST_SLICE = 1_000
GROWTH = 4


class SeenFilter:
    """A Bloom filter in growing slices: "no" is certain, "maybe" is wrong with at most `error`.

    Memory is bounded by 43 bits a URL at an error of 1e-9, plus the slack of the newest slice.
    The error is shared over slices as 1/2, 1/4, … so that their sum stays below it.
    """

    def __init__(self, *, expected: int = 0, error: float = 1e-9) -> None:
        self._error = error
        self._slices: list[Bloom] = []
        self._size = FIRST_SLICE
        self._room = 0
        self.count = 0
        if expected > FIRST_SLICE:
            self._size = int(expected * 1.25)
        self._grow()

    def _grow(self) -> None:
        share = self._error / 2.0 ** (len(self._slices) + 1)
        self._slices.append(Bloom(self._size, share))
        self._room = self._size
        self._size *= GROWTH

    def add(self, url_hash: int) -> bool:
        """Remembers a URL. True if it was certainly new."""
        for one in self._slices:
            if url_hash in one:
                return False
        if self._room == 0:
            self._grow()
        self._slices[-1].add(url_hash)
        self._room -= 1
        self.count += 1
        return True

    def update(self, hashes: Sequence[int]) -> None:
        """Remembers many: 0.2 us each where the newest slice has room for all of them."""
        if len(self._slices) == 1 and len(hashes) <= self._room:
            self._slices[0].update(hashes)
            self._room -= len(hashes)
            self.count += len(hashes)
            return
        for url_hash in hashes:
            self.add(url_hash)

    def __contains__(self, url_hash: int) -> bool:
        return any(url_hash in one for one in self._slices)

    @property
    def size_bytes(self) -> int:
        return sum(one.size_in_bits for one in self._slices) // 8

    def expected_loss(self) -> float:
        """URLs that were probably taken for seen though they were new, over the filter's life."""
        return self.count * self._error
