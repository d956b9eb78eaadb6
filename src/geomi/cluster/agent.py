"""The agent: decides which page comes next among the sites it holds. A step machine.

Events come in as method calls with `now`; commands are taken out with `take()`. No socket, file,
clock, database or random source in here: the shell has those, and the simulator is another shell.
"""

from __future__ import annotations

from collections.abc import Iterable

from geomi import url as urls
from geomi.archive.names import Ids
from geomi.archive.writer import Writer
from geomi.cluster.addresses import Addresses
from geomi.cluster.arrivals import Arrivals
from geomi.cluster.batch import Batch, Committed
from geomi.cluster.claims import Claims
from geomi.cluster.commands import Claimed, Command, Drain, Leased, Letter, Loaded, Renew
from geomi.cluster.context import Context, Flight, Plan
from geomi.cluster.failures import Failures
from geomi.cluster.farewells import Farewells
from geomi.cluster.filling import Filling
from geomi.cluster.flights import Flights
from geomi.cluster.gate import Gate
from geomi.cluster.gathering import Gathering
from geomi.cluster.guise import tls_counter
from geomi.cluster.held import Held
from geomi.cluster.levels import Levels
from geomi.cluster.names import Names
from geomi.cluster.pageids import PageIds
from geomi.cluster.payloads import Judge, Payloads, Unasked, own_digest
from geomi.cluster.quota import Quota
from geomi.cluster.sending import Sending
from geomi.cluster.settle import Extract, Settler
from geomi.cluster.starts import Starts
from geomi.cluster.wishes import SITEMAP, Wishes
from geomi.fetch.guard import Guard
from geomi.fetch.verdict import certificate_fault
from geomi.frontier.politeness import Gaps
from geomi.frontier.retry import OF_THE_SITE
from geomi.frontier.slots import Slot, length_s
from geomi.frontier.tables import Known
from geomi.records import Answer, Capture, Page
from geomi.states import TRANSIENT

_RENEW_SHARE = 0.25  # of a lease's time between renewals
_DRAIN_S = 1.0  # between two looks into the inbox


class Agent:
    """One agent. Which command is answered by which event: see cluster.commands."""

    def __init__(
        self, plan: Plan, *, extractor: Extract, guard: Guard, ids: Ids, writer: Writer,
        first_page_id: int, payloads: Payloads | None = None,
    ) -> None:  # fmt: skip
        self._plan = plan
        # Shared by all parts of the agent, which append; emptied by take().
        out = self._out = list[Command]()
        held = self._held = Held()
        gaps = Gaps(margin_s=plan.address_margin_s, part_s=length_s(plan.gap_s))
        self.heard = gaps.heard  # how wrong `now` may be
        quota = self._quota = Quota(is_limited=plan.has_quota, out=out)
        page_ids = self._page_ids = PageIds(first_page_id, out=out)
        flights = self._flights = Flights(gaps=gaps, quota=quota, quiet_s=plan.quiet_s, out=out)
        filling = self._filling = Filling(plan, writer=writer, out=out)
        wishes = self._wishes = Wishes(
            plan, filling=filling, sites=held.sites, next_page=page_ids.take
        )
        settler = self._settler = Settler(
            plan, filling=filling, wishes=wishes, extractor=extractor, writer=writer, ids=ids,
            judge=Judge(plan, payloads or Unasked(), number=lambda: filling.number),
        )  # fmt: skip
        levels = self._levels = Levels(
            is_for_all=plan.has_depth_limit, held=held, flights=flights, filling=filling, out=out
        )
        claims = Claims(out=out)
        farewells = self._farewells = Farewells(
            held=held, flights=flights, filling=filling, levels=levels, claims=claims,
            gaps=gaps, out=out,
            freed=lambda now: self._arrivals.freed(now),  # noqa: PLW0108 - made below
        )  # fmt: skip
        late = Sending(held=held, flights=flights, filling=filling, farewells=farewells)
        self.may_send, self.sent, self.held_back = flights.may_send, flights.sent, late.held_back
        failures = self._failures = Failures(
            plan, held=held, filling=filling, settler=settler, farewells=farewells, gaps=gaps,
            quota=quota,
        )  # fmt: skip
        names = self._names = Names(out=out)
        addresses = self._addresses = Addresses(
            plan, guard=guard, names=names, claims=claims, held=held, filling=filling,
            settler=settler, farewells=farewells, failures=failures, gaps=gaps, out=out,
        )  # fmt: skip
        gate = self._gate = Gate(
            plan, held=held, flights=flights, filling=filling, settler=settler, wishes=wishes,
            names=names, addresses=addresses, farewells=farewells, failures=failures,
            gaps=gaps,
        )  # fmt: skip
        self._arrivals = Arrivals(plan, held=held, filling=filling, quota=quota, gate=gate, out=out)
        self._starts = Starts(
            plan, held=held, flights=flights, filling=filling, settler=settler, page_ids=page_ids,
            gaps=gaps, quota=quota, levels=levels, addresses=addresses, gate=gate,
            farewells=farewells, wishes=wishes,
        )  # fmt: skip
        self._gathering = Gathering(
            flights=flights, filling=filling, wishes=wishes, settler=settler, page_ids=page_ids,
            settle=self._settle,
        )  # fmt: skip
        self._renew_at = 0.0
        self._drain_at = 0.0
        self._draining: set[int] = set()
        self.visits = 0

    # -- commands out ------------------------------------------------------------------------------

    def take(self) -> list[Command]:
        """The commands since the last call, in order."""
        out = self._out.copy()
        self._out.clear()
        return out

    def next_wake(self) -> float | None:
        """When wake() is wanted next, if no event comes before. None: only an event helps."""
        by_id = self._held.by_id
        times = [self._renew_at] if by_id else []
        if by_id and not self._draining:
            times.append(self._drain_at)
        if (turn := self._held.next_turn) is not None and not self._starts.is_full():
            times.append(turn)
        for at in (
            self._arrivals.next_ask, self._filling.next_write, self._quota.next_draw,
            self._levels.next_ask,
        ):  # fmt: skip
            if at is not None:
                times.append(at)
        return min(times) if times else None

    @property
    def is_stopping(self) -> bool:
        return self._held.is_stopping

    @property
    def is_done(self) -> bool:
        """After stop: nothing is held, under way or unwritten."""
        return not (
            self._held.by_id
            or self._flights
            or self._filling.is_writing
            or not self._filling.batch.is_empty
            or self._arrivals.is_asking
        )

    @property
    def facts(self) -> dict[str, int]:
        """For progress: sites held, active, resting, requests under way."""
        return self._held.facts() | {"flying": len(self._flights)}

    # -- time and leases ---------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Does what is due now. Safe to call at any time."""
        held = self._held
        if held.by_id:
            if now >= self._renew_at:
                self._renew_at = now + self._plan.lease_s * _RENEW_SHARE
                self._out.append(Renew())
                self._end_leases(now)
            if now >= self._drain_at and not self._draining:
                self._drain_at = now + _DRAIN_S
                self._out.append(Drain(tuple(c.site for c in held.by_id.values() if c.is_loaded)))
        self._arrivals.ask(now)
        self._quota.draw(now)
        self._starts.turns(now)
        self._filling.wake(now, is_stopping=held.is_stopping)
        self._levels.ask(now)

    def leased(self, event: Leased, *, now: float) -> None:
        if not self._held.by_id:
            self._renew_at = now + self._plan.lease_s * _RENEW_SHARE
        self._arrivals.leased(event, now=now)
        self.wake(now)

    def strange(self, site_ids: Iterable[int]) -> set[int]:
        """Those of these sites that we hold no context for."""
        return set(site_ids) - self._held.by_id.keys()

    def renewed(
        self, site_ids: Iterable[int], *, asked: float, slots: Iterable[tuple[str, Slot]] = (),
        now: float,
    ) -> None:  # fmt: skip
        """The leases that are still ours; the others are lost. And slots that may be wider."""
        self._addresses.widened(slots, now)
        still = set(site_ids)
        for site_id, ctx in list(self._held.by_id.items()):
            if site_id in still:
                ctx.until = asked + self._plan.lease_s
            elif ctx.until - self._plan.lease_s < asked:  # not one granted since
                self._farewells.lose(ctx, now)

    def _end_leases(self, now: float) -> None:
        for ctx in list(self._held.by_id.values()):
            if now >= ctx.until:
                self._farewells.lose(ctx, now)

    # -- what the store knows ----------------------------------------------------------------------

    def loaded(self, event: Loaded, *, now: float) -> None:
        self._arrivals.loaded(event, now=now)
        self.wake(now)

    def rebuilt(
        self, site_id: int, epoch: int, hashes: list[int], *, limit: int, now: float
    ) -> None:
        self._arrivals.rebuilt(site_id, epoch, hashes, limit=limit)

    def letters(
        self, letters: list[Letter], *, meant: Iterable[tuple[int, str]] = (),
        wished: Iterable[str] = (), now: float,
    ) -> None:  # fmt: skip
        self._farewells.hand_over(meant, now)
        self._addresses.wished(wished, now)
        for letter in letters:
            ctx = self._held.sites.get(letter.wanted.site)
            if ctx is None or not ctx.is_loaded or ctx.is_leaving:
                continue
            self._draining.add(letter.letter)
            self._wishes.letter(ctx, letter, now=now)
            self._held.schedule(ctx, now)
        if not letters:
            self._drain_at = now + _DRAIN_S
        self.wake(now)

    def ids(self, first: int, *, now: float) -> None:
        self._page_ids.came(first)
        self._gathering.ids_came(now)
        self.wake(now)

    def drawn(self, number: int, *, now: float) -> None:
        """So many visits may be made; none for now if 0."""
        self._quota.drawn(number, now=now)
        if number == 0 and not self._flights:
            for ctx in list(self._held.by_id.values()):
                self._farewells.leave(ctx, now)
        self.wake(now)

    def resolved(self, answer: Answer, *, now: float) -> None:
        self._names.came(answer, now=now)
        self.wake(now)

    def claimed(self, site_id: int, answer: Claimed, *, now: float) -> None:
        self._addresses.claimed(site_id, answer, now=now)
        self.wake(now)

    def shared(self, key: str, slot: Slot, *, now: float) -> None:
        self._addresses.shared(key, slot, now)
        self.wake(now)

    def level(self, rank: int, *, now: float) -> None:
        """Nothing of a lesser rank waits in the store, nor is under way."""
        self._levels.came(rank, now=now)
        self.wake(now)

    # -- what came of a request --------------------------------------------------------------------

    def awaits(self, ticket: int) -> bool:
        """False if nobody wants the answer any more."""
        return ticket in self._flights

    def needs_body(self, ticket: int) -> bool:
        """True of a request for a robots.txt or a sitemap: the machine reads it itself."""
        flight = self._flights.get(ticket)
        return flight is not None and (flight.known is None or flight.known.kind == SITEMAP)

    def own_digest(self, ticket: int) -> str:
        """Of the copy that the page has: nobody needs to be asked about an equal payload."""
        flight = self._flights.get(ticket)
        return own_digest(flight.known) if flight and flight.known else ""

    @property
    def is_gathering(self) -> bool:
        """True while the links of a large page are taken in, some with each batch."""
        return self._gathering.is_busy

    def fetched(self, capture: Capture, *, now: float, page: Page | None = None) -> None:
        """`page`: what it says, where the shell has read that beside the loop."""
        if capture.ticket in self._flights:
            self._gathering.came(capture, page, now)
            self.wake(now)

    def _settle(
        self, flight: Flight, capture: Capture, page: Page | None, lines: bytearray | None,
        now: float,
    ) -> None:  # fmt: skip
        ctx = flight.ctx
        self._flights.landed(capture.ticket, started=capture.started, now=now)
        size = len(capture.head) + (capture.spool.size if capture.spool else len(capture.body))
        flight.host.ended(now, capture.ended - capture.started, size_bytes=size)
        if name := tls_counter(capture):
            self._filling.touch(ctx).counts[name] += 1
        if flight.site != ctx.site:
            if (other := self._held.sites.get(flight.site)) is not None:
                self._held.after_rest(other, now)
        else:
            if ctx.guise.answered(capture, now):
                self._filling.touch(ctx).counts["cookies.set"] += 1
            if capture.code and (
                ctx.is_half_failing or not capture.url.startswith(ctx.answered or "-")
            ):
                self._failures.answered(ctx, capture.url)
        known = flight.known
        if known is None:
            self._gate.came(flight, capture, now)
        else:
            later = self._settler.page(ctx, known, capture, page=page, gathered=lines, now=now)
            self._page_came(ctx, known, capture, later, now)
        self._filling.filled(now)

    def _page_came(
        self, ctx: Context, known: Known, capture: Capture, later: Known | None, now: float
    ) -> None:
        self.visits += 1
        ctx.visits += 1
        outcome = capture.outcome
        if later is not None:
            ctx.queue.give_back(later, now=now)
        if capture.code in (429, 503):
            self._failures.retry_after(ctx, capture, now)
        if outcome in OF_THE_SITE:
            fault = certificate_fault(outcome, capture.detail)
            why = f"tls:{fault}" if fault else ""
            self._failures.of_authority(ctx, urls.split(known.url).authority, outcome, why, now)
            return
        ctx.unanswered = 0
        if ctx.failures and outcome not in TRANSIENT:
            ctx.failures = 0
            self._filling.batch.site_facts[ctx.site_id] = (ctx.address, 0)
        if ctx.is_leaving or self.is_stopping:
            if not ctx.flying:
                self._farewells.leave(ctx, now)
            return
        self._held.after_rest(ctx, now)

    # -- batches and the end -----------------------------------------------------------------------

    def grew(self, file: int, by: int) -> None:
        """A spooled part turned out so long: what the filling batch has in that file moves."""
        self._filling.grew(file, by)

    def written(self, batch: Batch, result: Committed, *, now: float) -> None:
        """A batch is in the store for good: now its rows may be forgotten."""
        self._filling.written()
        by_id = self._held.by_id
        for site_id, _, page in batch.done:
            ctx = by_id.get(site_id)
            if ctx is not None:
                ctx.queue.forget((page,))
        for new in result.inserted:
            ctx = by_id.get(new.site_id)
            if ctx is not None and ctx.epoch == batch.epochs.get(new.site_id):
                ctx.queue.put(new.known, now=now)
                self._held.schedule(ctx, now)
        for new in result.nearer:
            ctx = by_id.get(new.site_id)
            if ctx is not None and ctx.epoch == batch.epochs.get(new.site_id):
                self._moved(ctx, new.known, now)
        for letter, _ in batch.letters:
            self._draining.discard(letter)
        for site_id in result.refused:
            ctx = by_id.get(site_id)
            if ctx is not None and ctx.epoch == batch.epochs.get(site_id):
                self._farewells.lose(ctx, now)
        self._farewells.written(now)
        self._gathering.go_on(now)
        self.wake(now)

    def _moved(self, ctx: Context, known: Known, now: float) -> None:
        """The store moved a waiting page forward: what is in memory of it follows."""
        self._filling.batch.move(known)
        if ctx.queue.nearer(known, now=now):
            self._held.schedule(ctx, now)
        else:
            self._flights.moved(ctx, known)

    def stop(self, *, now: float, abort: bool = False) -> None:
        """Starts nothing more; what is under way ends (or is aborted and wanted again)."""
        self._held.is_stopping = True
        for ctx in list(self._held.by_id.values()):
            if abort:
                for flight in self._flights.abort(ctx, now):
                    if flight.known is not None:
                        ctx.queue.give_back(flight.known, now=now)
            self._farewells.leave(ctx, now)
        self.wake(now)

    def close_files(self) -> Batch | None:
        """After stop: a last batch that closes the open files. None: nothing is open."""
        return self._filling.close_files()
