"""Which capture is a page's copy, and which visits say how it changes. Decides only.

A wall that stands before a page for a day is no new version of it. So a capture that means nothing
(void: its digest is confirmed as meaningless; or hidden) takes the place of a good one only after
three in a row, a day apart; and it never tells how often the page changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

IN_A_ROW = 3
APART_S = 86_400.0


class Seen(Struct, frozen=True, kw_only=True):
    """One visit that came to a content. Visits that failed are none: they neither count nor break.

    Made by: whoever reads the history.   Taken by: kept, observations.
    """

    visit: int
    started: float  # UTC seconds
    digest: str
    means_nothing: bool  # void, or hidden
    is_stored: bool = True  # with a record of its own that can be the page's copy


class Row(Struct, frozen=True, kw_only=True):
    """Captures without meaning in a row since the last good one. Begins empty."""

    number: int = 0  # those a day apart
    counted: float = 0.0  # start of the last that counted

    def after(self, started: float, *, means_nothing: bool) -> Row:
        """The row with one visit more; a good one ends it."""
        if not means_nothing:
            return Row()
        if self.number and started - self.counted < APART_S:
            return self
        return Row(number=self.number + 1, counted=started)

    @property
    def replaces_good(self) -> bool:
        """True if the newest of them is the page's copy from now on."""
        return self.number >= IN_A_ROW


def kept(visits: Iterable[Seen]) -> Seen | None:
    """The page's copy after these visits, oldest first; None: nothing of it is stored."""
    copy: Seen | None = None
    row = Row()
    for one in visits:
        row = row.after(one.started, means_nothing=one.means_nothing)
        if not one.is_stored:
            continue
        if not one.means_nothing or copy is None or copy.means_nothing or row.replaces_good:
            copy = one
    return copy


def observations(visits: Sequence[Seen]) -> Iterator[tuple[float, bool | None]]:
    """(start, changed) of the visits that tell how a page changes, oldest first.

    A change is against the visit that counted before, so going behind a wall and coming back is
    none. None: there is nothing to compare with.
    """
    before = ""
    for one in visits:
        if one.means_nothing:
            continue
        yield one.started, (one.digest != before) if before else None
        before = one.digest
