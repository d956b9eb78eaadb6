"""A turn of a site: a page is started, or it is found out what the site waits for."""

from __future__ import annotations

from geomi import url as urls
from geomi.cluster.addresses import Addresses
from geomi.cluster.context import Context, Plan, RobotsState
from geomi.cluster.farewells import Farewells
from geomi.cluster.filling import Filling
from geomi.cluster.flights import Flights
from geomi.cluster.gate import Gate
from geomi.cluster.held import SHORT_S, Held
from geomi.cluster.levels import Levels
from geomi.cluster.pageids import PageIds
from geomi.cluster.quota import Quota
from geomi.cluster.settle import Settler
from geomi.cluster.wishes import Wishes
from geomi.frontier.politeness import Gaps
from geomi.frontier.tables import Known
from geomi.states import Outcome

_DENIES_A_TURN = 200  # robots.txt may refuse so many pages before others get a turn
_SITE_RELEASE_S = 5.0  # a site whose next page is due later than this goes back


class Starts:
    """After one page the agent turns to another site; whose turn it is, Held knows."""

    def __init__(
        self, plan: Plan, *, held: Held, flights: Flights, filling: Filling, settler: Settler,
        page_ids: PageIds, gaps: Gaps, quota: Quota, levels: Levels, addresses: Addresses,
        gate: Gate, farewells: Farewells, wishes: Wishes,
    ) -> None:  # fmt: skip
        self._plan = plan
        self._held = held
        self._flights = flights
        self._filling = filling
        self._settler = settler
        self._page_ids = page_ids
        self._gaps = gaps
        self._quota = quota
        self._levels = levels
        self._addresses = addresses
        self._gate = gate
        self._farewells = farewells
        self._wishes = wishes

    def is_full(self) -> bool:
        """True while nothing more may be started, whoever has a turn."""
        return (
            len(self._flights) >= self._plan.connections
            or self._quota.left <= 0
            or self._filling.is_behind
        )

    def turns(self, now: float) -> None:
        """All turns that have come, until the agent is full."""
        while not self.is_full():
            ctx = self._held.take_turn(now)
            if ctx is None:
                return
            self._turn(ctx, now)

    def _turn(self, ctx: Context, now: float) -> None:
        held = self._held
        if held.is_stopping or ctx.is_leaving:
            if not ctx.flying:
                self._farewells.leave(ctx, now)
            return
        # To count the pages of a party, what is new must be certain.
        is_counting = ctx.rules.max_pages is not None and not ctx.is_seen_whole
        if not ctx.is_loaded or ctx.is_resolving or is_counting or self._page_ids.is_low():
            if ctx.is_loaded and not ctx.is_resolving:
                held.schedule(ctx, now + 0.05)
            return
        if now > ctx.until - self._plan.quiet_s:
            held.schedule(ctx, now + self._plan.lease_s * 0.02)
            return
        queue = ctx.queue
        if queue.wants_load(now):
            self._filling.load(ctx)
        host = ctx.host
        if not queue.has_due(now):
            self._idle(ctx, now)
            return
        if host.flying >= host.manners.connections:
            return  # its next visit that ends gives the turn
        opens = ctx.closed_until
        if ctx.rules.hours is not None:
            opens = max(opens, ctx.rules.hours.opens_at(now))
        if opens > now:
            self._closed(ctx, opens, now)
            return
        if host.rest_until > now:
            if not ctx.flying and host.rest_until > now + max(self._plan.patience_s, SHORT_S):
                self._farewells.leave(ctx, now)
                return
            held.schedule(ctx, host.rest_until)
            return
        if now >= ctx.address_expires or not ctx.address:
            self._addresses.find(ctx, now)
            return
        if ctx.gap_s and not ctx.is_slotted:
            at = self._gaps.reserve(ctx.keys, ctx.gap_s, now=now)
            ctx.is_slotted = True
            if at > now:
                held.schedule(ctx, at)
                return
        if ctx.gap_s:
            at = self._gaps.earliest(ctx.keys, ctx.gap_s, now=now)
            if at > now:
                ctx.is_slotted = at <= now + 2 * ctx.gap_s  # else: a place in another part of time
                held.schedule(ctx, at)
                return
        if self._start(ctx, now) and host.flying < host.manners.connections and queue.has_due(now):
            held.schedule(ctx, now)

    def _closed(self, ctx: Context, opens: float, now: float) -> None:
        """Outside its hours a site rests; if that is long, it goes back until they begin."""
        if opens <= now + max(self._plan.patience_s, SHORT_S):
            self._held.schedule(ctx, opens)
        elif not ctx.flying:  # else the last that ends gives the turn
            self._filling.touch(ctx).counts["hours.closed"] += 1
            ctx.is_closed = True
            ctx.host.rest_until = max(ctx.host.rest_until, opens)
            self._farewells.leave(ctx, now)

    def _idle(self, ctx: Context, now: float) -> None:
        """Nothing is due in memory: wait for what is under way, or give the site back."""
        queue = ctx.queue
        if ctx.flying or queue.is_loading:
            return
        due = queue.next_due()
        # One whose other scheme fails is held until that is decided: only the context knows it.
        hold_s = max(self._plan.patience_s, SHORT_S) if ctx.is_half_failing else _SITE_RELEASE_S
        if due is not None and due <= now + hold_s:
            self._held.schedule(ctx, due)
            return
        if not queue.is_empty and due is None:
            self._held.schedule(ctx, now + 0.1)
            return
        # Maybes may still turn out new: leave only once the store has answered.
        if self._filling.is_unwritten(ctx):
            self._filling.write()
            self._held.schedule(ctx, now + 0.02)
            return
        self._farewells.leave(ctx, now)

    def _start(self, ctx: Context, now: float) -> bool:
        """Starts one request of this site. False: none was started."""
        held, queue = self._held, ctx.queue
        for _ in range(_DENIES_A_TURN):
            known = queue.next(now)
            if known is None:
                break
            if ctx.scope.max_depth is not None and not self._levels.may_begin(ctx, known.rank, now):
                queue.give_back(known, now=now)
                if (due := queue.next_due()) is not None:  # a second try of a lesser rank
                    held.schedule(ctx, due)
                return False
            parts = urls.split(known.url)
            state = ctx.robots.get(parts.authority)
            if state is not None and state.given_up is not None:
                self._refuse(ctx, known, *state.given_up, now)
                continue
            if state is not None and state.not_before > now:
                later = known._replace(not_before=state.not_before)
                queue.give_back(later, now=now)
                continue
            if ctx.rules.obey_robots:
                if state is None:
                    state = ctx.robots[parts.authority] = RobotsState()
                if state.rules is None or state.expires <= now:
                    queue.give_back(known, now=now)
                    if state.is_fetching:
                        return False
                    return self._gate.fetch(ctx, parts.authority, state, now)
                if not state.rules.allows(parts.target):
                    line = state.rules.verdict(parts.target).line
                    self._refuse(ctx, known, Outcome.DENY, f"robots:{line}", now)
                    continue
            if ctx.equivalents and (why := self._wishes.equivalent(ctx, known, now=now)):
                self._refuse(ctx, known, Outcome.SKIP, why, now)
                continue
            headers = ctx.guise.lines(known.url, now)
            if known.stored_date and (known.etag or known.last_modified):
                headers += _conditional(known)
            self._flights.start(
                ctx, known, parts, ctx.address, now, headers=headers, access=ctx.guise.access
            )
            return True
        held.schedule(ctx, now)
        return False

    def _refuse(self, ctx: Context, known: Known, outcome: Outcome, why: str, now: float) -> None:
        self._settler.refuse(ctx, known, outcome, why, now=now)
        self._filling.filled(now)


def _conditional(known: Known) -> tuple[str, ...]:
    lines = []
    if known.etag:
        lines.append(f"If-None-Match: {known.etag}")
    if known.last_modified:
        lines.append(f"If-Modified-Since: {known.last_modified}")
    return tuple(lines)
