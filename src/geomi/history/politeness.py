"""What each server saw of the robot, from the stored visits: gaps, rates, and broken rules.

A rest runs from the end of a visit to the start of the next one on the same host; the gap of an
address or group runs from start to start. Robots, redirects and retries are visits like others.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Any, NamedTuple

from geomi.history.past import Past
from geomi.store import Store

#: Times are stored to the microsecond and compared after subtractions: less is no difference.
TOLERANCE_S = 0.001
#: The rate is the greatest number of starts within any so many seconds.
WINDOWS_S = (1, 10, 60)
_SWEEP_S = 600.0


class Asked(NamedTuple):
    """One request that reached a server."""

    started: float
    ended: float
    host: str
    address: str
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What holds for one host. Made by: the settings (cluster.verify).   Taken by: measure."""

    rest_s: float = 2.0
    rest_factor: float = 10.0
    rest_factor_max_s: float = 300.0
    address_rest_s: float = 0.25
    connections: int = 1
    is_own: bool = False  # exempt, but listed
    groups: tuple[str, ...] = ()
    crawl_delay_s: float = 0.0
    crawl_delay_since: float = 0.0  # when the robots.txt that says so was fetched

    def rest_after(self, asked: Asked) -> float:
        """The least time from the end of this visit to the next start."""
        if self.is_own:
            return 0.0
        rest = max(
            self.rest_s,
            min(self.rest_factor * (asked.ended - asked.started), self.rest_factor_max_s),
        )
        if self.crawl_delay_s > rest and asked.ended > self.crawl_delay_since:
            return self.crawl_delay_s
        return rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What one host, address or group saw. `smallest_gap_s` is None where there was one visit."""

    kind: str  # host, address, group
    name: str
    requests: int
    smallest_gap_s: float | None  # host: end to start, negative where visits overlapped
    most: tuple[int, ...]  # requests in the busiest of each of WINDOWS_S
    is_own: bool  # all its visits were to hosts of the operator
    violations: int
    # The gap that fell furthest below its rule: what was wanted, what was seen, when.
    wanted_s: float
    seen_s: float
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Politeness:
    """The whole collection's. `ok` means that no rule was broken."""

    ok: bool
    requests: int
    servers: dict[str, int]  # kind -> number
    violations: int
    worst: tuple[Server, ...]  # violators first, then the busiest for their rule
    smallest: dict[str, Server]  # kind -> the one with the smallest gap, own hosts aside
    busiest: dict[int, Server]  # seconds of the window -> the one with most requests in it


def _rows(store: Store, past: Past) -> Iterator[tuple[Any, ...]]:
    """Visits in the order of their numbers, from Parquet and store; the columns are below."""
    columns = "visit, started, ended, host, address, run, committed"
    here = store.each(
        "SELECT v.visit, v.started, v.ended, v.host, v.address, v.run, b.committed FROM visits v"
        " JOIN batches b ON b.batch = v.batch ORDER BY v.visit"
    )
    return merge(past.by_visit(columns), here)


def in_order(store: Store, past: Past) -> Iterator[Asked]:
    """All requests that reached a server, by start.

    Rows come by commit; a heap puts them right. It holds what starts within the longest time that
    ever lay between a start and its commit, whatever the size of the collection.
    """
    latest, spread_s = 0.0, 0.0
    for _, started, _, _, _, _, committed in _rows(store, past):
        latest = max(latest, committed)
        spread_s = max(spread_s, latest - started)
    waiting: list[Asked] = []
    latest = 0.0
    for _, started, ended, host, address, run, committed in _rows(store, past):
        if not address:
            continue
        latest = max(latest, committed)
        while waiting and waiting[0].started < latest - spread_s:
            yield heapq.heappop(waiting)
        heapq.heappush(waiting, Asked(started, ended, host, address, run))
    while waiting:
        yield heapq.heappop(waiting)


def measure(
    asked: Iterable[Asked], rule_of: Callable[[str, int], Rule], *, worst: int = 20
) -> Politeness:
    """Judges requests in order of start. `rule_of` takes a host and the run it was asked in."""
    seen: dict[tuple[str, str], _Seen] = {}
    active: set[_Seen] = set()
    sweep_at = 0.0
    requests = 0

    def at(kind: str, name: str) -> _Seen:
        found = seen.get((kind, name))
        if found is None:
            found = seen[kind, name] = _Seen(kind, name)
        active.add(found)
        return found

    for one in asked:
        requests += 1
        rule = rule_of(one.host, one.run)
        at("host", one.host).visit(one, rule)
        at("address", one.address).start(one.started, rule)
        for group in rule.groups:
            at("group", group).start(one.started, rule)
        if one.started > sweep_at:
            sweep_at = one.started + _SWEEP_S
            active -= {server for server in active if server.forget(one.started)}
    return _result(seen.values(), requests, worst)


class _Seen:
    """One server while requests stream by. What is recent is dropped once the server is idle."""

    __slots__ = (
        "at", "bound_start", "deficit_s", "ends", "is_own", "kind", "last_end", "last_start",
        "most", "name", "requests", "rests", "seen_s", "smallest", "starts", "violations",
        "wanted_s",
    )  # fmt: skip

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        self.requests = 0
        self.smallest: float | None = None
        self.most = [0] * len(WINDOWS_S)
        self.is_own = True
        self.violations = 0
        self.deficit_s = 0.0
        self.wanted_s = 0.0
        self.seen_s = 0.0
        self.at = 0.0
        self.last_end: float | None = None
        self.last_start: float | None = None
        self.bound_start: float | None = None  # last start that the rule of addresses counts
        # Starts within each window; (end, rest after it) of visits that no later one was judged by.
        self.starts: tuple[deque[float], ...] | None = None
        self.ends: list[tuple[float, float]] | None = None

    def _count(self, started: float) -> None:
        self.requests += 1
        if self.starts is None:
            self.starts = tuple(deque() for _ in WINDOWS_S)
        for place, (window_s, starts) in enumerate(zip(WINDOWS_S, self.starts, strict=True)):
            starts.append(started)
            while starts[0] <= started - window_s:
                starts.popleft()
            self.most[place] = max(self.most[place], len(starts))

    def visit(self, one: Asked, rule: Rule) -> None:
        """A visit to this host."""
        started = one.started
        self._count(started)
        if self.last_end is not None:
            self._gap(started - self.last_end)
        self.last_end = one.ended if self.last_end is None else max(self.last_end, one.ended)
        if rule.is_own:
            return
        self.is_own = False
        unrested = [pair for pair in self.ends or () if pair[0] + pair[1] > started + TOLERANCE_S]
        flying = [pair for pair in unrested if pair[0] > started]
        ended = [pair for pair in unrested if pair[0] <= started]
        if len(flying) >= rule.connections:
            end, rest = max(flying)
            self._broken(rest, started - end, started)
        elif ended:
            end, rest = max(ended, key=sum)
            self._broken(rest, started - end, started)
        # What ended was judged by this visit; the next one is judged by this one.
        self.ends = [*flying, (one.ended, rule.rest_after(one))]

    def start(self, started: float, rule: Rule) -> None:
        """A request to this address or group."""
        self._count(started)
        if self.last_start is not None:
            self._gap(started - self.last_start)
        self.last_start = started
        if rule.is_own:
            return
        self.is_own = False
        if self.bound_start is not None:
            gap = started - self.bound_start
            if gap < rule.address_rest_s - TOLERANCE_S:
                self._broken(rule.address_rest_s, gap, started)
        self.bound_start = started

    def _gap(self, gap: float) -> None:
        if self.smallest is None or gap < self.smallest:
            self.smallest = gap

    def _broken(self, wanted_s: float, seen_s: float, at: float) -> None:
        self.violations += 1
        if wanted_s - seen_s > self.deficit_s:
            self.deficit_s = wanted_s - seen_s
            self.wanted_s, self.seen_s, self.at = wanted_s, seen_s, at

    def forget(self, now: float) -> bool:
        """True if nothing recent is left to keep."""
        if self.starts is not None and self.starts[-1][-1] > now - WINDOWS_S[-1]:
            return False
        self.starts = None
        if self.ends:
            self.ends = [pair for pair in self.ends if sum(pair) > now]
        self.ends = self.ends or None
        return self.ends is None

    def result(self) -> Server:
        return Server(
            kind=self.kind, name=self.name, requests=self.requests, smallest_gap_s=self.smallest,
            most=tuple(self.most), is_own=self.is_own, violations=self.violations,
            wanted_s=self.wanted_s, seen_s=self.seen_s, at=self.at,
        )  # fmt: skip


def _result(seen: Iterable[_Seen], requests: int, worst: int) -> Politeness:
    servers: dict[str, int] = {}
    violations = 0
    smallest: dict[str, _Seen] = {}
    busiest: list[_Seen | None] = [None] * len(WINDOWS_S)

    def each() -> Iterator[_Seen]:
        nonlocal violations
        for one in seen:
            servers[one.kind] = servers.get(one.kind, 0) + 1
            violations += one.violations
            if one.smallest is not None and not one.is_own:
                least = smallest.get(one.kind)
                if least is None or one.smallest < (least.smallest or 0.0):
                    smallest[one.kind] = one
            for place, most in enumerate(busiest):
                if most is None or one.most[place] > most.most[place]:
                    busiest[place] = one
            yield one

    first = heapq.nsmallest(
        worst, each(),
        key=lambda one: (
            -one.violations, one.is_own, one.smallest if one.smallest is not None else 1e18,
            one.kind, one.name,
        ),
    )  # fmt: skip
    return Politeness(
        ok=violations == 0,
        requests=requests,
        servers=servers,
        violations=violations,
        worst=tuple(one.result() for one in first),
        smallest={kind: one.result() for kind, one in smallest.items()},
        busiest={
            window_s: one.result()
            for window_s, one in zip(WINDOWS_S, busiest, strict=True)
            if one is not None
        },
    )
