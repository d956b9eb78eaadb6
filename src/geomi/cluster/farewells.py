"""How a site leaves its agent: given back once its last rows are written, lost, or given up."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from geomi.cluster.claims import Claims
from geomi.cluster.commands import Command, Release
from geomi.cluster.context import Context
from geomi.cluster.filling import Filling
from geomi.cluster.flights import Flights
from geomi.cluster.held import Held
from geomi.cluster.levels import Levels
from geomi.frontier.politeness import Gaps
from geomi.frontier.slots import ALWAYS
from geomi.states import Outcome


class Farewells:
    """A context that left is gone: no event finds it any more."""

    def __init__(
        self, *, held: Held, flights: Flights, filling: Filling, levels: Levels, claims: Claims,
        gaps: Gaps, freed: Callable[[float], None], out: list[Command],
    ) -> None:  # fmt: skip
        self._held = held
        self._flights = flights
        self._filling = filling
        self._levels = levels
        self._claims = claims
        self._gaps = gaps
        self._freed = freed  # there is room for another site
        self._out = out
        # Leaving, once the batch with their last rows is written.
        self._crowd: list[Context] = []

    def lose(self, ctx: Context, now: float) -> None:
        """The site is another's from now on: abort, and let the store refuse what is unwritten."""
        self._flights.abort(ctx, now)
        self._filling.batch.counts["leases.lost"] += 1
        self._filling.lost += 1
        self._drop(ctx, now)
        if self._filling.holds(ctx):
            self._filling.write()

    def give_up(
        self, ctx: Context, outcome: Outcome, why: str, now: float, *, authority: str = ""
    ) -> None:
        """All that waits at the site, or at one authority of it, takes this state for this run."""
        prefix = f"{authority}/" if authority else ""
        self._filling.touch(ctx).given_up.append((ctx.site_id, str(outcome), why, prefix))
        self._filling.batch.site_facts[ctx.site_id] = (ctx.address, 0)
        self._flights.abort(ctx, now)
        self.leave(ctx, now)

    def leave(self, ctx: Context, now: float, *, go_to: str = "") -> None:
        """Gives the site back as soon as its last rows are written."""
        ctx.is_leaving = True
        ctx.go_to = go_to or ctx.go_to
        if ctx.is_gone or ctx.flying:
            return
        filling = self._filling
        if filling.is_unwritten(ctx):
            if ctx not in self._crowd:
                self._crowd.append(ctx)
            if not filling.is_writing:
                filling.write()
            return
        self._say_goodbye(ctx, now)

    def hand_over(self, meant: Iterable[tuple[int, str]], now: float) -> None:
        """Sites that others should have, who have none; or the coordinator, who names nobody."""
        for site_id, holder in meant:
            ctx = self._held.by_id.get(site_id)
            if ctx is not None and ctx.is_loaded and not ctx.is_leaving:
                self.leave(ctx, now, go_to=holder)

    def written(self, now: float) -> None:
        """A batch is in the store: those who waited for it can go."""
        crowd, self._crowd = self._crowd, []
        for ctx in crowd:
            if not ctx.is_gone:
                self.leave(ctx, now)

    def _say_goodbye(self, ctx: Context, now: float) -> None:
        free = [(key, self._rests_until(ctx, key)) for key in self._drop(ctx, now)]
        self._out.append(Release(
            site_id=ctx.site_id, epoch=ctx.epoch, rest_until=ctx.host.rest_until,
            rest_s=ctx.host.rest_s, failures=ctx.failures, is_closed=ctx.is_closed,
            go_to=ctx.go_to, unclaim=tuple(free),
        ))  # fmt: skip
        self._freed(now)

    def _rests_until(self, ctx: Context, key: str) -> float:
        """When another agent may start at an address or group that this one lets go of."""
        until = self._gaps.rests_until(key, ctx.gap_s)
        host = ctx.elsewhere.get(key)
        return until if host is None else max(until, host.rest_until)

    def _drop(self, ctx: Context, now: float) -> tuple[str, ...]:
        """Forgets a context; returns the claims nobody else here needs."""
        self._held.drop(ctx)
        self._levels.forget(ctx)
        free = self._claims.free(ctx)
        for key in free:
            self._gaps.take_slot(key, ALWAYS)
            self._gaps.line_up(key)
        for key in ctx.keys if ctx.is_slotted else ():
            if self._gaps.left(key):
                self._held.line_up(key, self._gaps, now)
        return free
