"""Requests under way: from the command that starts one until its capture is settled."""

from __future__ import annotations

from math import inf

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

    def __init__(
        self, *, gaps: Gaps, quota: Quota, quiet_s: float, out: list[Command]
    ) -> None:  # fmt: skip
        self._flights: dict[int, Flight] = {}
        self._ticket = 0
        self._gaps = gaps
        self._quota = quota
        self._quiet_s = quiet_s  # nothing is sent in this last part of a lease
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
            ctx,
            known,
            now,
            asked.host,
            parts.site,
            authority=authority,
            hops=hops,
            keys=asked.keys,
            gap_s=asked.gap_s,
        )
        ctx.flying.add(ticket)
        if known is not None:
            self._quota.left -= 1
        asked.host.started()
        asked.is_slotted = False
        self._gaps.started(asked.keys, asked.gap_s, now=now)
        if asked.gap_s > 0.0:
            self._gaps.begun(asked.keys, now=now)
        self._out.append(Fetch(
            ticket=ticket, url=known.url if known else url, scheme=parts.scheme, host=parts.host,
            port=parts.port, target=parts.target, address=address, headers=headers, access=access,
            limit_bytes=limit_bytes,
        ))  # fmt: skip

    def landed(self, ticket: int, *, started: float, now: float) -> None:
        """`started`: when the shell began with it, which is later than was meant."""
        flight = self._flights.pop(ticket)
        flight.ctx.flying.discard(ticket)
        self._no_longer(flight, tried=started, now=now)

    def _no_longer(self, flight: Flight, *, tried: float, now: float) -> None:
        """On its way to the wire, whatever came of it. Without a request the server saw a try."""
        if flight.is_sending:
            if flight.sent_at is None:
                self._gaps.sent(flight.keys, flight.gap_s, now=now)
        else:
            self._gaps.ended(flight.keys, flight.gap_s, now=tried)

    def may_send(self, ticket: int, *, now: float) -> bool:
        """The moment before a request is written: whether what was right at its start still is.

        Between the two lie a connection and a loop that may be busy, or a process that was stopped.
        True: it is being sent, and `sent` follows.
        """
        flight = self._flights.get(ticket)
        if flight is None or now > flight.ctx.until - self._quiet_s:
            return False  # nobody wants it any more, or the site may be another's soon
        # libcurl sends again where a resting connection was closed before that was read.
        own = (flight.sent_at or inf) if flight.is_sending else None
        if not self._gaps.may_send(flight.keys, flight.gap_s, now=now, own=own):
            return False
        self._gaps.sending(flight.keys, flight.gap_s)
        flight.is_sending, flight.sent_at = True, None
        return True

    def sent(self, ticket: int, *, now: float) -> None:
        """It was written by now, maybe a while ago: gaps run from here, so none is too short."""
        flight = self._flights.get(ticket)
        if flight is not None:
            self._gaps.sent(flight.keys, flight.gap_s, now=now)
            flight.sent_at = now

    def take_back(self, ticket: int) -> Flight | None:
        """One that was not sent: the server has seen nothing that it would have to rest from."""
        flight = self._flights.pop(ticket, None)
        if flight is not None:
            flight.ctx.flying.discard(ticket)
            flight.host.flying -= 1
            self._gaps.ended(flight.keys, flight.gap_s)
            if flight.known is not None:
                self._quota.left += 1
        return flight

    def abort(self, ctx: Context, now: float) -> list[Flight]:
        """Ends all that is under way at a site; what was asked for is the caller's again.

        The servers were asked, so they rest.
        """
        ended = []
        for ticket in list(ctx.flying):
            flight = self._flights.pop(ticket, None)
            if flight is not None:
                flight.host.ended(now, now - flight.started)
                self._no_longer(flight, tried=flight.started, now=now)
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
