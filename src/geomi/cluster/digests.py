"""The index of payloads as one collection sees it: looked into, kept up, made anew.

An entry names a collection and a visit; what a revisit says of its original comes from that
collection's store, and where that says otherwise, or cannot be asked, there is no revisit. The
index may be behind the stores, never ahead of them: entries follow the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from geomi.archive import duplicates_tables as tables
from geomi.archive.bits import Bits
from geomi.archive.duplicates import REDIRECTS, Original, key_of
from geomi.archive.duplicates_tables import Batches, Kept
from geomi.errors import OperatorError, ResourceError
from geomi.history.past import Past
from geomi.store import SQLITE, Store

_ROWS = 5_000  # entries written at once
_KEYS = 20_000  # read at once for a filter
_TOGETHER = 500  # batches
#: No transaction lasts so long: what was committed before is all there is of a time before.
_OVER_S = 3600.0
_ALL = ("", 0)  # in the place of a life: of all of them the batches up to one are in


class Asked(NamedTuple):
    """One payload somebody wants to know about."""

    key: int
    digest: str
    code: int


class Neighbour(NamedTuple):
    """The store of a collection that shares the index, and its visits that moved."""

    store: Store
    past: Callable[[], Past]


class Index:
    """One object belongs to one thread. `here` is the collection's own store.

    `others` opens the store of another collection by its folder and address; what it raises means
    that nothing of that collection is known.
    """

    def __init__(
        self,
        store: Store,
        here: Store,
        *,
        home: int,
        name: str,
        past: Callable[[], Past],
        others: Callable[[str, str], Neighbour],
        least_bytes: int,
        bits: Bits | None = None,
    ) -> None:
        self.store = store
        self.here = here
        self.home = home
        self.name = name
        self.bits = bits
        self.own = Neighbour(here, past)
        self.open_other = others
        self._least = least_bytes
        # By number: opened when first asked for. None: it could not be opened.
        self._others: dict[int, tuple[str, Neighbour | None]] = {}

    # -- looked into -----------------------------------------------------------------------------

    def find(self, asked: Sequence[Asked]) -> dict[int, Original]:
        """Originals by key, of the payloads that are stored already."""
        places = tables.keys(self.store, [one.key for one in asked])
        by_home: dict[int, list[int]] = {}
        for home, visit in places.values():
            by_home.setdefault(home, []).append(visit)
        known = {home: self._kept(home, visits) for home, visits in by_home.items()}
        found: dict[int, Original] = {}
        for one in asked:
            home, visit = places.get(one.key, (0, 0))
            kept = known.get(home, {}).get(visit)
            if kept is None or (kept.digest, kept.code) != (one.digest, one.code):
                continue
            is_here = home == self.home
            found[one.key] = Original(
                uri=kept.url, date=kept.date, record_id=kept.record_id,
                home="" if is_here else self._others[home][0], visit=visit,
                file=kept.file if is_here else 0, offset=kept.offset if is_here else 0,
                length=kept.length if is_here else 0,
            )  # fmt: skip
        return found

    def _kept(self, home: int, visits: Sequence[int]) -> dict[int, Kept]:
        one = self._neighbour(home)
        if one is None:
            return {}
        try:
            found = tables.kept(one.store, visits)
            if missing := [visit for visit in visits if visit not in found]:
                found |= moved(one.past(), missing)
        except (OperatorError, ResourceError):
            if home == self.home:
                raise
            self._others.pop(home, None)  # perhaps it is back the next time
            return {}
        return found

    def _neighbour(self, home: int) -> Neighbour | None:
        if home == self.home:
            return self.own
        if home not in self._others:
            self._others[home] = ("", None)
            for number, name, folder, address in tables.homes(self.store):
                if number == home:
                    try:
                        self._others[home] = (name, self.open_other(folder, address))
                    except (OperatorError, ResourceError):
                        self._others[home] = (name, None)
        return self._others[home][1]

    # -- kept up ---------------------------------------------------------------------------------

    def add(
        self,
        agent: str,
        incarnation: int,
        *,
        locations: Mapping[tuple[int, int], str] | None = None,
    ) -> int:
        """What a life of an agent stored since it was last looked at; the number of payloads.

        `locations`: where redirects lead, by the place of their record; of a redirect without
        one nothing is noted, so it is stored again when it is met again.
        """
        done = tables.reflected(self.store, self.home).get((agent, incarnation), 0)
        batches = tables.batches_of(self.here, agent, incarnation, done)
        return self._follow(batches, locations or {})

    def catch_up(self, tell: Callable[[int], None] = lambda _: None) -> int:
        """What all lives stored that the index does not reflect; the number of payloads."""
        done = tables.reflected(self.store, self.home)
        floor = sure = done.get(_ALL, 0)
        old = self.here.now() - _OVER_S
        missing: list[Batches] = []
        number = 0
        for *batch, committed in tables.batches_beyond(self.here, floor):
            one = Batches(*batch)
            if committed < old:
                sure = one.batch
            if one.batch > done.get((one.agent, one.incarnation), 0):
                missing.append(one)
            if len(missing) >= _TOGETHER:
                number += self._follow(missing, {})
                tell(number)
                missing = []
        number += self._follow(missing, {})
        if sure > floor:
            with self.store.transaction():
                tables.reflect(self.store, self.home, [(*_ALL, sure)])
        return number

    def _follow(self, batches: Sequence[Batches], locations: Mapping[tuple[int, int], str]) -> int:
        entries: list[tuple[int, int]] = []
        reached: dict[tuple[str, int], int] = {}
        number = 0
        for one in batches:
            for row in self._stored(one):
                visit, digest, code, size, file, offset = row
                location = locations.get((file, offset), "")
                if size < self._least or (code in REDIRECTS and not location):
                    continue
                entries.append((key_of(digest, code=code, location=location), visit))
            reached[one.agent, one.incarnation] = one.batch
            if len(entries) >= _ROWS:
                number += self._put(reached, entries)
                entries = []
        return number + self._put(reached, entries)

    def _stored(self, one: Batches) -> Iterator[Any]:
        yield from tables.stored_by(self.here, one.batch, one.first, one.last)
        if one.moved:
            yield from self.own.past().chosen(
                'visit, digest, code, size, file, "offset"',
                f"batch = ? AND {tables.MOVED_ELIGIBLE}", (one.batch,),
            )  # fmt: skip

    def _put(self, reached: Mapping[tuple[str, int], int], entries: list[tuple[int, int]]) -> int:
        if reached:
            with self.store.transaction():
                tables.put(self.store, self.home, entries)
                tables.reflect(
                    self.store, self.home, [(*life, batch) for life, batch in reached.items()]
                )
            if self.bits is not None:
                self.bits.add(key for key, _ in entries)
        return len(entries)

    # -- made anew -------------------------------------------------------------------------------

    def fill_bits(self) -> None:
        """Brings a filter that was lost, or is new, to what the index has."""
        if self.bits is not None and not self.bits.is_whole:
            store = self.store
            self.bits.fill(lambda last: tables.all_keys(store, after=last, limit=_KEYS))

    def renew(self, tell: Callable[[int], None] = lambda _: None) -> int:
        """Forgets this collection, then takes in all it has; how many it has now. May be
        repeated after a crash: what was not reached is caught up."""
        last = tables.last_batch(self.here, self.here.now() - _OVER_S)
        with self.store.transaction():
            tables.empty(self.store, self.home)
        number = 0
        entries: list[tuple[int, int]] = []
        for visit, digest, code, size in self._all():
            if size < self._least or code in REDIRECTS:
                continue
            entries.append((key_of(digest, code=code), visit))
            if len(entries) >= _ROWS:
                number += self._take(entries)
                tell(number)
                entries = []
        self._take(entries)
        with self.store.transaction():
            tables.reflect(self.store, self.home, [(*_ALL, last)])
        self.catch_up()  # the last hour is not vouched for: its batches are looked at once more
        return tables.count(self.store, self.home)

    def _all(self) -> Iterator[Any]:
        """Oldest first, so that the first copy is the original."""
        past = self.own.past()
        yield from past.chosen(
            "visit, digest, code, size", f"{tables.MOVED_ELIGIBLE} ORDER BY visit"
        )
        yield from tables.stored_at_all(self.here)

    def _take(self, entries: list[tuple[int, int]]) -> int:
        with self.store.transaction():
            tables.put(self.store, self.home, entries)
        if self.bits is not None:
            self.bits.add(key for key, _ in entries if not self.bits.may_have(key))
        return len(entries)

    def close(self) -> None:
        """The index and what it opened; the collection's own store is the caller's."""
        for _, other in self._others.values():
            if other is not None:
                other.store.close()
        if self.store is not self.here:
            self.store.close()
        if self.bits is not None:
            self.bits.close()

    @property
    def is_shared(self) -> bool:
        """True where agents of other machines write into it too: no filter of this one knows."""
        return self.store.dialect != SQLITE


def moved(past: Past, visits: Sequence[int]) -> dict[int, Kept]:
    """What Parquet has of visits that may be referred to, by number."""
    if not past.parts:
        return {}
    marks = ", ".join("?" * len(visits))
    return {
        row[0]: Kept(*row)
        for row in past.chosen(
            tables.MOVED, f"visit IN ({marks}) AND {tables.MOVED_ELIGIBLE}", visits
        )
    }
