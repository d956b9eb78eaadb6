"""The sites an agent holds, and whose turn it is. Decides only."""

from __future__ import annotations

import heapq
from weakref import WeakValueDictionary

from geomi.cluster.context import Context
from geomi.frontier.politeness import Gaps, Host, Manners

SHORT_S = 60.0  # a site is held over rests up to this, however little patience there is


class Held:
    """Contexts by site and by id, in the order of their turns."""

    def __init__(self) -> None:
        # Filled by leases that were granted, emptied when a site is given back or lost.
        self.sites: dict[str, Context] = {}
        self.by_id: dict[int, Context] = {}
        # Hosts of sites held, and of those asked for the sake of another one: as long as somebody
        # remembers one, all mean the same.
        self._hosts: WeakValueDictionary[str, Host] = WeakValueDictionary()
        # (when, serial, context): the turn of a context is the entry with its serial.
        self._turns: list[tuple[float, int, Context]] = []
        self._serial = 0
        self.is_stopping = False  # nothing more is started

    def host(self, site: str, manners: Manners) -> Host:
        """The host of a site, whoever visits it."""
        host = self._hosts.get(site)
        if host is None:
            host = self._hosts[site] = Host(manners)
        return host

    def add(self, ctx: Context) -> None:
        self.by_id[ctx.site_id] = ctx
        self.sites[ctx.site] = ctx

    def drop(self, ctx: Context) -> None:
        """Forgets a context. It may have been replaced by a later lease on its site."""
        ctx.is_gone = True
        if self.by_id.get(ctx.site_id) is ctx:
            del self.by_id[ctx.site_id]
        if self.sites.get(ctx.site) is ctx:
            del self.sites[ctx.site]

    def facts(self) -> dict[str, int]:
        active = sum(1 for ctx in self.by_id.values() if ctx.flying)
        return {"sites": len(self.by_id), "active": active, "resting": len(self.by_id) - active}

    def schedule(self, ctx: Context, when: float) -> None:
        """The context gets a turn at `when`, unless it has one sooner."""
        if ctx.is_gone or (ctx.turn and ctx.turn_at <= when):
            return
        self._serial += 1
        ctx.turn, ctx.turn_at = self._serial, when
        heapq.heappush(self._turns, (when, self._serial, ctx))

    def after_rest(self, ctx: Context, now: float) -> None:
        """A turn once its host has rested. At once where that is long: it may have to leave."""
        until = ctx.host.rest_until
        self.schedule(ctx, until if now < until <= now + SHORT_S else now)

    def line_up(self, key: str, gaps: Gaps, now: float) -> None:
        """Who waits in line at an address or group takes a place anew, in the same order."""
        waiting = [ctx for ctx in self.by_id.values() if ctx.is_slotted and key in ctx.keys]
        for each in {key}.union(*(ctx.keys for ctx in waiting)):
            gaps.line_up(each)
        for ctx in sorted(waiting, key=lambda ctx: (ctx.turn_at, ctx.turn)):
            ctx.is_slotted = False
            self.schedule(ctx, now)

    @property
    def next_turn(self) -> float | None:
        """When the next turn comes; None: nobody has one."""
        return self._turns[0][0] if self._turns else None

    def take_turn(self, now: float) -> Context | None:
        """Whose turn it is now; None: nobody's."""
        turns = self._turns
        while turns and turns[0][0] <= now:
            _, serial, ctx = heapq.heappop(turns)
            if ctx.turn == serial and not ctx.is_gone:  # else an earlier turn took its place
                ctx.turn = 0
                return ctx
        return None
