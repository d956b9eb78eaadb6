"""Requests under way: from the command that starts one until its capture is settled."""

from __future__ import annotations

from geomi import url as urls
from geomi.cluster.commands import Abort, Command
from geomi.cluster.context import Context, Flight, Server
from geomi.cluster.quota import Quota
from geomi.fetch.access import Access
from geomi.fetch.request import Fetch
from geomi.frontier.politeness import Gaps
from geomi.frontier.tables import Known


class Flights:
    """By ticket. What is aborted is not awaited any more."""

    def __init__(self, *, gaps: Gaps, quota: Quota, out: list[Command]) -> None:
        self._flights: dict[int, Flight] = {}
        self._ticket = 0
        self._gaps = gaps
        self._quota = quota
        self._out = out

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, ticket: int) -> bool:
        return ticket in self._flights

    def get(self, ticket: int) -> Flight | None:
        return self._flights.get(ticket)

    def start(
        self,
        ctx: Context,
        known: Known | None,
        parts: urls.Parts,
        address: str,
        now: float,
        *,
        headers: tuple[str, ...] = (),
        access: Access | None = None,
        authority: str = "",
        hops: int = 0,
        url: str = "",
        limit_bytes: int = 0,
        server: Server | None = None,
    ) -> None:
        """Without `known` it is for the robots.txt of `authority`, at `url`: maybe elsewhere."""
        self._ticket += 1
        ticket = self._ticket
        asked = server or ctx  # what rests, has an address and a place in line there
        self._flights[ticket] = Flight(
            ctx, known, now, asked.host, parts.site, authority=authority, hops=hops
        )
        ctx.flying.add(ticket)
        if known is not None:
            self._quota.left -= 1
        asked.host.started()
        asked.is_slotted = False
        self._gaps.started(asked.keys, asked.gap_s, now=now)
        self._out.append(Fetch(
            ticket=ticket, url=known.url if known else url, scheme=parts.scheme, host=parts.host,
            port=parts.port, target=parts.target, address=address, headers=headers, access=access,
            limit_bytes=limit_bytes,
        ))  # fmt: skip

    def landed(self, ticket: int) -> None:
        ctx = self._flights.pop(ticket).ctx
        ctx.flying.discard(ticket)

    def abort(self, ctx: Context, now: float) -> list[Flight]:
        """Ends all that is under way at a site; what was asked for is the caller's again.

        The servers were asked, so they rest.
        """
        ended = []
        for ticket in list(ctx.flying):
            flight = self._flights.pop(ticket, None)
            if flight is not None:
                flight.host.ended(now, now - flight.started)
                ended.append(flight)
            self._out.append(Abort(ticket))
        ctx.flying.clear()
        return ended

    def moved(self, ctx: Context, known: Known) -> None:
        """The store moved a page forward whose visit may be under way."""
        for ticket in ctx.flying:
            flight = self._flights[ticket]
            if flight.known is not None and flight.known.page == known.page:
                flight.known = flight.known._replace(rank=known.rank, depth=known.depth)
