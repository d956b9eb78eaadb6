"""With a depth limit a level ends before the next one begins: so depths are exact.

Across all sites where the limit is for all, else within the site.
"""

from __future__ import annotations

from geomi.cluster.commands import Command, Level
from geomi.cluster.context import Context
from geomi.cluster.filling import Filling
from geomi.cluster.flights import Flights
from geomi.cluster.held import Held

_LOOK_S = 0.1  # between looks whether a level has ended everywhere


class Levels:
    """No page of a greater rank than the level starts; contexts wait for it to rise."""

    def __init__(
        self, *, is_for_all: bool, held: Held, flights: Flights, filling: Filling,
        out: list[Command],
    ) -> None:  # fmt: skip
        self._is_for_all = is_for_all
        self._held = held
        self._flights = flights
        self._filling = filling
        self._out = out
        self._level = -(1 << 40)
        self._too_deep: dict[int, Context] = {}
        self._is_asking = False
        self._ask_at = 0.0

    @property
    def next_ask(self) -> float | None:
        return self._ask_at if self._too_deep and not self._is_asking else None

    def may_begin(self, ctx: Context, rank: int, now: float) -> bool:
        """False: the context gets a turn when the level has risen."""
        if self._is_for_all:
            if rank <= self._level:
                return True
            self._too_deep[ctx.site_id] = ctx
            self.ask(now)
            return False
        if rank > ctx.level:
            if ctx.flying:
                return False  # the last that ends gives the turn
            if self._filling.is_unwritten(ctx):
                self._filling.write()
                self._held.schedule(ctx, now + 0.02)
                return False
            ctx.level = rank
        return True

    def ask(self, now: float) -> None:
        if self._too_deep and not self._is_asking and now >= self._ask_at:
            if not self._flights:  # what is found and unwritten may be of this level
                self._filling.write()
            self._is_asking = True
            self._out.append(Level())

    def came(self, rank: int, *, now: float) -> None:
        """Nothing of a lesser rank waits in the store, nor is under way."""
        self._is_asking = False
        if rank > self._level:
            self._level = rank
            waiting, self._too_deep = self._too_deep, {}
            for ctx in waiting.values():
                self._held.schedule(ctx, now)
        else:
            self._ask_at = now + _LOOK_S

    def forget(self, ctx: Context) -> None:
        if self._too_deep.get(ctx.site_id) is ctx:
            del self._too_deep[ctx.site_id]
