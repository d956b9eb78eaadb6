"""Page ids: unique without talk, because an agent takes ranges of them from the store."""

from __future__ import annotations

from geomi.cluster.commands import Command, TakeIds
from geomi.errors import InternalError

ID_RANGE = 1 << 18  # page ids taken at once; more than one page's links
_LOW = 1 << 17
_ONE_PAGE = 110_000  # more than the links of one page


class PageIds:
    """Two ranges, so that one can be fetched while the other is used."""

    def __init__(self, first: int, *, out: list[Command]) -> None:
        self._next, self._end = first, first + ID_RANGE
        self._spare: int | None = None
        self._is_asked = False
        self._out = out

    def take(self) -> int:
        if self._next >= self._end:
            if self._spare is None:
                raise InternalError("page ids ran out; is_low() should have held pages back")
            self._next, self._end = self._spare, self._spare + ID_RANGE
            self._spare = None
        page = self._next
        self._next += 1
        return page

    def is_low(self) -> bool:
        """True when a page with very many links could use up all ids; asks for more early."""
        left = self._end - self._next
        if left > _LOW or self._spare is not None:
            return False
        if not self._is_asked:
            self._is_asked = True
            self._out.append(TakeIds(ID_RANGE))
        return left < _ONE_PAGE

    def came(self, first: int) -> None:
        """The range that was asked for."""
        self._is_asked = False
        if self._next >= self._end:
            self._next, self._end = first, first + ID_RANGE
        else:
            self._spare = first
