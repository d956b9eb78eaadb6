"""Answers on their way in: one with very many links is taken in piece by piece. Decides only.

A batch holds rows for every new link, so a page of a hundred thousand would cost 100 MiB at once,
and hold up all other sites while they are made. Its links are handed over first, a piece a batch;
the visit itself comes after the last, so a kill in between costs nothing but to visit it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from geomi.archive.record import outlink_lines
from geomi.cluster.context import Flight
from geomi.cluster.filling import Filling
from geomi.cluster.flights import Flights
from geomi.cluster.pageids import PageIds
from geomi.cluster.settle import Settler
from geomi.cluster.wishes import Wishes
from geomi.records import Capture, Page, Target

#: Links taken in at once: some 20 ms, 3 MiB of rows.
PIECE = 5_000

#: flight, capture, what it says if that was read, lines of its links if those are in already, now
Settle = Callable[[Flight, Capture, Page | None, bytearray | None, float], None]


class Gathered(Struct):
    """A page whose links are being taken in, and are forgotten once they are."""

    capture: Capture
    page: Page
    links: list[tuple[str, Target]]
    lines: bytearray  # what the archive keeps of those that were
    has_lines: bool = True  # of each piece; else they are all there


def gather(page: Page, links: list[tuple[str, Target]], capture: Capture) -> Gathered:
    """Takes the links out of the page; last ones first, so that they can go one by one."""
    one = Gathered(capture, page, links, bytearray())
    if links is not page.links:
        one.has_lines = False
        one.lines += outlink_lines(page.links)
    page.links = []
    links.reverse()
    return one


class Gathering:
    """Between the answer and its settlement. What waits here is still under way for its site."""

    def __init__(
        self, *, flights: Flights, filling: Filling, wishes: Wishes, settler: Settler,
        page_ids: PageIds, settle: Settle,
    ) -> None:  # fmt: skip
        self._flights = flights
        self._filling = filling
        self._wishes = wishes
        self._settler = settler
        self._page_ids = page_ids
        self._settle = settle
        # Answers that came while ids ran short, in order. Filled by came(), emptied by ids_came().
        self._held_back: deque[tuple[Capture, Page | None]] = deque()
        # Filled by came(), emptied by go_on(): the first one piece after each batch.
        self._gathered: deque[Gathered] = deque()

    @property
    def is_busy(self) -> bool:
        """True while a large page is being taken in: no other should be read."""
        return bool(self._gathered)

    def came(self, capture: Capture, page: Page | None, now: float) -> None:
        """An answer that somebody waits for. `page`: what it says, where that was read already."""
        if self._page_ids.is_low() or self._held_back:
            self._held_back.append((capture, page))
            return
        self._take(capture, page, now)

    def ids_came(self, now: float) -> None:
        held_back, self._held_back = self._held_back, deque()
        for capture, page in held_back:
            self._take(capture, page, now)
        self.go_on(now)

    def _take(self, capture: Capture, page: Page | None, now: float) -> None:
        flight = self._flights.get(capture.ticket)
        if flight is None:
            return
        known = flight.known
        if known is not None:
            page = page or self._settler.read(capture)
            if page is not None and len(page.links) > PIECE:
                links = self._wishes.chosen(flight.ctx, known, page, now=now)
                self._gathered.append(gather(page, links, capture))
                self.go_on(now)
                return
        self._settle(flight, capture, page, None, now)

    def go_on(self, now: float) -> None:
        """The next piece, unless the store is still at the one before, or ids are short."""
        while self._gathered and not self._filling.is_writing and not self._page_ids.is_low():
            one = self._gathered[0]
            flight = self._flights.get(one.capture.ticket)
            if flight is None or flight.known is None:  # the site was lost: it is wanted again
                self._gathered.popleft()
                if one.capture.spool is not None:
                    self._filling.batch.spools.append(one.capture.spool.path)
            elif one.links:
                piece = one.links[: -PIECE - 1 : -1]
                del one.links[-PIECE:]
                if one.has_lines:
                    one.lines += outlink_lines(piece)
                self._wishes.some(flight.ctx, flight.known, piece, now=now)
                self._filling.write()
            else:
                self._gathered.popleft()
                self._settle(flight, one.capture, one.page, one.lines, now)
