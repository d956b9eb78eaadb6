"""The pages of one site that wait, as far as they are in memory. Decides only.

The store holds all of them; a queue holds a window, so that ten million waiting pages cost no more
memory than a thousand.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from geomi.frontier.tables import Known

Key = tuple[int, int]  # (rank, page)
FIRST: Key = (-(1 << 40), 0)


class Queue:
    """Waiting pages of one site, least (rank, page) first.

    Invariant: every pending row of the site with a key up to `edge` is in `_due`, in `_hints`, in
    `_later` or busy (being visited, or settled and not yet committed); with `edge` None that is
    every row.
    """

    def __init__(self, *, window: int) -> None:
        self.window = window  # rows to load; about twice as many may be held
        #: Links of kind h are to come when nothing else is left: most of the site's lead nowhere.
        self.doubts_hints = False
        # What was put behind for that. Filled and emptied by next(); no more than a window.
        self._hints: list[tuple[int, int, Known]] = []
        self._due: list[tuple[int, int, Known]] = []
        self._later: list[tuple[float, int, int, Known]] = []
        # Taken by next(), given back by forget() when the batch that settles them is committed.
        self._busy: set[int] = set()
        self.edge: Key | None = FIRST  # nothing is known yet
        self.is_loading = False
        # Rows put while a load is under way: the load may or may not see them.
        self._meanwhile: list[Known] = []
        # Not-yet-due rows that were dropped for room: look again at the soonest of them.
        self._dropped_due: float | None = None

    def __len__(self) -> int:
        return len(self._due) + len(self._hints) + len(self._later)

    def resize(self, window: int) -> None:
        """From now on about so many rows are held; what is too much goes back to the store."""
        self.window = window
        if len(self._hints) > window:  # what is too much of them stands in line again
            self._due += self._hints
            self._hints.clear()
            heapq.heapify(self._due)
        if len(self._due) > 2 * window and not self.is_loading:
            self._shrink()

    def put(self, known: Known, *, now: float) -> None:
        """A row that is (or will be, with the next batch) in the store."""
        if self.is_loading:
            self._meanwhile.append(known)
        elif self.edge is None or (known.rank, known.page) <= self.edge:
            self._keep(known, now)
            if len(self._due) > 2 * self.window:
                self._shrink()

    def nearer(self, known: Known, *, now: float) -> bool:
        """A waiting page moved forward in the store. False: it is busy, and so not in line."""
        page = known.page
        if page in self._busy:
            return False
        self._due = [entry for entry in self._due if entry[1] != page]
        self._hints = [entry for entry in self._hints if entry[1] != page]
        self._later = [entry for entry in self._later if entry[2] != page]
        self._meanwhile = [one for one in self._meanwhile if one.page != page]
        heapq.heapify(self._due)
        heapq.heapify(self._hints)
        heapq.heapify(self._later)
        self.put(known, now=now)
        return True

    def _keep(self, known: Known, now: float) -> None:
        if known.not_before > now:
            if len(self._later) >= self.window:
                if self._dropped_due is None or known.not_before < self._dropped_due:
                    self._dropped_due = known.not_before
                return
            heapq.heappush(self._later, (known.not_before, known.rank, known.page, known))
        else:
            heapq.heappush(self._due, (known.rank, known.page, known))

    def _shrink(self) -> None:
        kept = heapq.nsmallest(self.window, self._due)
        self._due = kept  # a sorted list is a heap
        self.edge = kept[-1][:2]
        self._hints = [entry for entry in self._hints if entry[:2] <= self.edge]
        self._later = [entry for entry in self._later if (entry[1], entry[2]) <= self.edge]
        heapq.heapify(self._hints)
        heapq.heapify(self._later)

    def next(self, now: float) -> Known | None:
        """The next page that is due; it is busy from now on. None: nothing in memory is due."""
        while self._later and self._later[0][0] <= now:
            _, rank, page, known = heapq.heappop(self._later)
            heapq.heappush(self._due, (rank, page, known))
        while self._due:
            entry = heapq.heappop(self._due)
            if self._is_put_behind(entry[2]):
                heapq.heappush(self._hints, entry)
                continue
            self._busy.add(entry[1])
            return entry[2]
        if not self._hints or not self._is_known_whole:
            return None
        known = heapq.heappop(self._hints)[2]
        self._busy.add(known.page)
        return known

    def _is_put_behind(self, known: Known) -> bool:
        return self.doubts_hints and known.kind == "h" and len(self._hints) < self.window

    @property
    def _is_known_whole(self) -> bool:
        """True if nothing that the store has could come before what was put behind."""
        return self.edge is None and not self.is_loading

    def give_back(self, known: Known, *, now: float) -> None:
        """A page taken by next() that is to be visited later after all."""
        self._busy.discard(known.page)
        self.put(known, now=now)

    def is_busy(self, page: int) -> bool:
        return page in self._busy

    def forget(self, pages: Iterable[int]) -> None:
        """The batch that settles these is committed."""
        self._busy.difference_update(pages)

    def has_due(self, now: float) -> bool:
        if self._due or (self._later and self._later[0][0] <= now):
            return True
        return bool(self._hints) and self._is_known_whole

    def wants_load(self, now: float) -> bool:
        """True when the window runs dry and the store may have more that is due."""
        if self.is_loading or len(self._due) > self.window // 4:
            return False
        if self.edge is not None:
            return True
        return not self._due and self._dropped_due is not None and self._dropped_due <= now

    def load_begins(self) -> Key:
        """The key beyond which the store is to be read."""
        self.is_loading = True
        if self.edge is None:  # dropped rows have become due: from the start
            self._dropped_due = None
            self._due.clear()
            self._hints.clear()
            self._later.clear()
            self.edge = FIRST
        return self.edge

    def loaded(self, rows: list[Known], *, limit: int, now: float) -> None:
        """What the store had beyond load_begins(); fewer than `limit` rows means that is all."""
        self.is_loading = False
        is_all = len(rows) < limit
        self.edge = None if is_all else (rows[-1].rank, rows[-1].page)
        seen = set()
        for known in rows:
            seen.add(known.page)
            if known.page not in self._busy:
                self._keep(known, now)
        meanwhile, self._meanwhile = self._meanwhile, []
        for known in meanwhile:
            if known.page not in seen and known.page not in self._busy:
                self.put(known, now=now)

    def next_due(self) -> float | None:
        """When the soonest page that is not due yet becomes due; None if there is none in sight."""
        times = [self._later[0][0]] if self._later else []
        if self._dropped_due is not None:
            times.append(self._dropped_due)
        return min(times) if times else None

    @property
    def is_empty(self) -> bool:
        """Nothing waits in memory and the store has no more."""
        return (
            not (self._due or self._hints or self._later or self.is_loading)
            and self._dropped_due is None
            and self.edge is None
        )

    @property
    def busy(self) -> int:
        return len(self._busy)

    def check(self) -> None:
        """The invariant, for random walks in tests."""
        lines = (*self._due, *self._hints)
        pages = [entry[1] for entry in lines] + [entry[2] for entry in self._later]
        assert len(pages) == len(set(pages)), "a page waits twice"
        assert not self._busy.intersection(pages), "a page waits and is busy"
        if self.edge is not None and not self.is_loading:
            assert all(entry[:2] <= self.edge for entry in lines), "beyond the edge"
