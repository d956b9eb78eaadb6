"""What was started but not sent: its moment had passed when the connection was there."""

from __future__ import annotations

from geomi.cluster.context import Context
from geomi.cluster.farewells import Farewells
from geomi.cluster.filling import Filling
from geomi.cluster.flights import Flights
from geomi.cluster.held import Held


class Sending:
    """A request that may not be sent any more (Flights.may_send) goes back into its queue."""

    def __init__(
        self, *, held: Held, flights: Flights, filling: Filling, farewells: Farewells
    ) -> None:  # fmt: skip
        self._held = held
        self._flights = flights
        self._filling = filling
        self._farewells = farewells

    def held_back(self, ticket: int, *, now: float) -> None:
        """Event: `may_send` said no. Nothing went out, and the connection is closed."""
        flight = self._flights.take_back(ticket)
        if flight is None:
            return
        ctx = flight.ctx
        if flight.known is not None:
            ctx.queue.give_back(flight.known, now=now)
        elif (state := ctx.robots.get(flight.authority)) is not None:
            state.is_fetching = False
        self._filling.touch(ctx).counts["requests.held_back"] += 1
        self._turn(ctx, now)

    def _turn(self, ctx: Context, now: float) -> None:
        if not (ctx.is_leaving or self._held.is_stopping):
            self._held.schedule(ctx, now)
        elif not ctx.flying:
            self._farewells.leave(ctx, now)
