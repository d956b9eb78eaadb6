"""The agent: decides which page comes next among the sites it holds. A step machine.

Events come in as method calls with `now`; commands are taken out with `take()`. No socket, file,
clock, database or random source in here: the shell has those, and the simulator is another shell.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import replace

from geomi import url as urls
from geomi.archive.names import Ids
from geomi.archive.writer import Writer
from geomi.cluster.batch import FILE, OFFSET, Batch, Committed
from geomi.cluster.commands import (
    Abort,
    Ask,
    Claim,
    Command,
    Drain,
    Draw,
    Leased,
    Letter,
    Level,
    Load,
    Loaded,
    Rebuild,
    Release,
    Renew,
    Resolve,
    TakeIds,
    Write,
)
from geomi.cluster.context import Context, Flight, Plan, RobotsState
from geomi.cluster.guise import proxy_of, through, tls_counter
from geomi.cluster.settle import Extract, Settler, host_of
from geomi.errors import InternalError
from geomi.extract.head import parse_head
from geomi.fetch.access import Access
from geomi.fetch.guard import Guard
from geomi.fetch.request import Fetch
from geomi.fetch.robots import Robots, from_status
from geomi.fetch.verdict import certificate_fault
from geomi.frontier.politeness import Gaps, retry_after_s, server_of
from geomi.frontier.retry import OF_THE_SITE
from geomi.frontier.scope import Scope, prefix_of
from geomi.frontier.seen import SeenFilter
from geomi.frontier.tables import Known
from geomi.frontier.traps import Templates
from geomi.records import Answer, Capture
from geomi.states import TRANSIENT, Outcome

ID_RANGE = 1 << 18  # page ids taken at once; more than one page's links
_ID_LOW = 1 << 17
_LOAD_ROBOTS_HOPS = 5
_RENEW_SHARE = 0.25  # of a lease's time between renewals
_QUIET_SHARE = 0.2  # nothing starts in this last part of a lease
_DENIES_A_TURN = 200  # robots.txt may refuse so many pages before others get a turn
_LEVEL_S = 0.1  # between looks whether a level has ended everywhere
_NAMES = 50_000  # names whose address is remembered; beyond it they are asked again
_SITE_RELEASE_S = 5.0  # a site whose next page is due later than this goes back
_ASK_S = 0.25  # between two questions for sites; a fifth of it where one was given back
_DAYS_30 = 30 * 86_400.0


class Agent:
    """One agent. Which command is answered by which event: see cluster.commands."""

    def __init__(
        self,
        plan: Plan,
        *,
        extractor: Extract,
        guard: Guard,
        ids: Ids,
        writer: Writer,
        first_page_id: int,
    ) -> None:
        self._plan = plan
        self._guard = guard
        self._out: list[Command] = []
        self._gaps = Gaps(margin_s=plan.address_margin_s)
        # Contexts by site and by id. Filled by loaded leases, emptied by _drop().
        self._sites: dict[str, Context] = {}
        self._by_id: dict[int, Context] = {}
        # (when, serial, context): the turn of a context is the entry with its serial.
        self._turns: list[tuple[float, int, Context]] = []
        # Leaving, once the batch with their last rows is written.
        self._crowd: list[Context] = []
        self._flights: dict[int, Flight] = {}
        self._ticket = 0
        self._serial = 0
        self._token = 0
        # Names resolved, until when; and who waits for one.
        self._names: dict[str, tuple[Answer, float]] = {}
        self._asking: dict[str, list[Callable[[Answer, float], None]]] = {}
        self._claiming: dict[int, tuple[Context, Callable[[float], None]]] = {}
        self._claims: dict[str, int] = {}  # claimed keys -> contexts that need them
        self._retry_said: dict[str, tuple[str, float]] = {}
        # Page ids: two ranges, so that one can be fetched while the other is used.
        self._id, self._id_end = first_page_id, first_page_id + ID_RANGE
        self._id_next: int | None = None
        self._ids_asked = False
        self._settler = Settler(
            plan, extractor=extractor, writer=writer, ids=ids, sites=self._sites,
            next_page=self._next_page,
        )  # fmt: skip
        self._writer = writer
        self._writing: int | None = None  # number of the batch under way
        self._batch_since: float | None = None
        self._held_back: list[tuple[int, Capture]] = []  # captures that came while ids ran short
        self._loading_dirty: list[Load] = []
        self._is_asking_leases = False
        self._ask_at = 0.0
        self._renew_at = 0.0
        self._drain_at = 0.0
        self._draining: set[int] = set()
        self.is_stopping = False
        self._quota = 0 if plan.has_quota else 1 << 60
        self._is_drawing = False
        self._draw_at = 0.0
        # With a depth limit, no page of a greater rank starts; contexts that wait for it to rise.
        self._level = -(1 << 40)
        self._too_deep: dict[int, Context] = {}
        self._is_asking_level = False
        self._level_at = 0.0
        self.visits = 0

    # -- commands out ------------------------------------------------------------------------------

    def take(self) -> list[Command]:
        """The commands since the last call, in order."""
        out, self._out = self._out, []
        return out

    def next_wake(self) -> float | None:
        """When wake() is wanted next, if no event comes before. None: only an event helps."""
        times = [self._renew_at] if self._by_id else []
        if self._by_id and not self._draining:
            times.append(self._drain_at)
        if not self.is_stopping and not self._is_asking_leases and self._has_room():
            times.append(self._ask_at)
        if self._turns and not self._is_full():
            times.append(self._turns[0][0])
        if self._batch_since is not None and self._writing is None:
            times.append(self._batch_since + self._plan.batch_s)
        if self._quota <= 0 and not self._is_drawing:
            times.append(self._draw_at)
        if self._too_deep and not self._is_asking_level:
            times.append(self._level_at)
        return min(times) if times else None

    # -- time and leases ---------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Does what is due now. Safe to call at any time."""
        if self._by_id:
            if now >= self._renew_at:
                self._renew_at = now + self._plan.lease_s * _RENEW_SHARE
                self._out.append(Renew())
                self._end_leases(now)
            if now >= self._drain_at and not self._draining:
                self._drain_at = now + 1.0
                self._out.append(Drain(tuple(c.site for c in self._by_id.values() if c.is_loaded)))
        if (
            not self.is_stopping
            and not self._is_asking_leases
            and now >= self._ask_at
            and self._has_room()
        ):
            self._is_asking_leases = True
            self._out.append(Ask(self._plan.contexts - len(self._by_id)))
        if self._quota <= 0 and not self._is_drawing and now >= self._draw_at:
            self._is_drawing = True
            self._out.append(Draw(200))
        self._start_turns(now)
        self._maybe_write(now)
        self._ask_level(now)

    def _has_room(self) -> bool:
        return len(self._by_id) < self._plan.contexts and self._quota > 0

    def leased(self, event: Leased, *, now: float) -> None:
        self._is_asking_leases = False
        self._ask_at = now + _ASK_S
        for lease in event.leases:
            if self.is_stopping or lease.site_id in self._by_id:
                self._out.append(Release(
                    site_id=lease.site_id, epoch=lease.epoch, rest_until=0.0, rest_s=0.0,
                    failures=0,
                ))  # fmt: skip
                continue
            self._token += 1
            ctx = Context(
                lease,
                self._plan.rules(lease.site),
                window=self._plan.window,
                token=self._token,
                until=event.asked + self._plan.lease_s,
                now=now,
            )
            if not self._by_id:
                self._renew_at = now + self._plan.lease_s * _RENEW_SHARE
            self._by_id[lease.site_id] = ctx
            self._sites[lease.site] = ctx
            self._load(ctx, is_first=True)
        self.wake(now)

    def renewed(self, site_ids: Iterable[int], *, asked: float, now: float) -> None:
        """The leases that are still ours; the others are lost."""
        held = set(site_ids)
        for site_id, ctx in list(self._by_id.items()):
            if site_id in held:
                ctx.until = asked + self._plan.lease_s
            elif ctx.until - self._plan.lease_s < asked:  # not one granted since
                self._lose(ctx, now)

    def _end_leases(self, now: float) -> None:
        for ctx in list(self._by_id.values()):
            if now >= ctx.until:
                self._lose(ctx, now)

    def _lose(self, ctx: Context, now: float) -> None:
        """The site is another's from now on: abort, and let the store refuse what is unwritten."""
        for ticket in list(ctx.flying):
            self._flights.pop(ticket, None)
            self._out.append(Abort(ticket))
        ctx.flying.clear()
        self._settler.batch.counts["leases.lost"] += 1
        self._drop(ctx)
        if ctx.dirty == self._settler.number:
            self._write(now)

    def _drop(self, ctx: Context) -> tuple[str, ...]:
        """Forgets a context; returns the claims nobody else here needs."""
        ctx.is_gone = True
        if self._by_id.get(ctx.site_id) is ctx:
            del self._by_id[ctx.site_id]
            self._too_deep.pop(ctx.site_id, None)
        if self._sites.get(ctx.site) is ctx:
            del self._sites[ctx.site]
        self._claiming.pop(ctx.site_id, None)
        free = []
        for key in ctx.claims:
            left = self._claims.get(key, 1) - 1
            if left:
                self._claims[key] = left
            else:
                self._claims.pop(key, None)
                free.append(key)
        ctx.claims = ()
        return tuple(free)

    # -- what the store knows ----------------------------------------------------------------------

    def _load(self, ctx: Context, *, is_first: bool = False) -> None:
        after = ctx.queue.load_begins()
        load = Load(ctx.site_id, ctx.epoch, after, self._plan.window, is_first)
        if ctx.dirty == self._settler.number:
            # Rows of this site are not in the store yet: the write must come before the read.
            self._loading_dirty.append(load)
        else:
            self._out.append(load)

    def loaded(self, event: Loaded, *, now: float) -> None:
        ctx = self._by_id.get(event.site_id)
        if ctx is None or ctx.epoch != event.epoch:
            return
        facts = event.facts
        if facts is not None:
            plan = self._plan
            ctx.seen = SeenFilter(expected=facts.pages, error=plan.seen_error)
            ctx.templates = Templates(ctx.rules.valves, pages=facts.pages)
            ctx.is_seen_whole = facts.pages == 0
            if facts.pages:
                self._out.append(Rebuild(ctx.site_id, ctx.epoch, -(1 << 63)))
            ctx.failures = facts.failures
            ctx.first_seed = facts.first_seed
            ctx.party_pages = dict(facts.party_pages)
            if ctx.rules.is_prefix:
                ctx.scope = _with_prefixes(ctx, facts.seed_urls)
            for authority, _fetched, expires, code, failing, body in facts.robots:
                if expires > now:
                    self._know_robots(ctx, authority, code, body, expires, failing)
            rest = facts.rest_s
            ctx.host.rest_s = rest
            if not ctx.is_named:
                if facts.is_clean:
                    ctx.host.rest_until = facts.rest_until
                else:
                    ctx.host.rest(now, ctx.host.full_rest_s())
            ctx.is_loaded = True
        ctx.queue.loaded(event.rows, limit=event.limit, now=now)
        self._schedule(ctx, now)
        self.wake(now)

    def rebuilt(
        self, site_id: int, epoch: int, hashes: list[tuple[int, int]], *, limit: int, now: float
    ) -> None:
        """A part of a site's known URLs; the last part makes the filter whole."""
        ctx = self._by_id.get(site_id)
        if ctx is None or ctx.epoch != epoch or ctx.seen is None:
            return
        ctx.seen.update(url_hash for url_hash, _ in hashes)
        if len(hashes) < limit:
            ctx.is_seen_whole = True
        else:
            self._out.append(Rebuild(site_id, epoch, hashes[-1][0]))

    def letters(self, letters: list[Letter], *, now: float) -> None:
        for letter in letters:
            ctx = self._sites.get(letter.wanted.site)
            if ctx is None or not ctx.is_loaded or ctx.is_leaving:
                continue
            self._draining.add(letter.letter)
            self._settler.letter(ctx, letter, now=now)
            self._schedule(ctx, now)
        if not letters:
            self._drain_at = now + 1.0
        self.wake(now)

    def ids(self, first: int, *, now: float) -> None:
        self._ids_asked = False
        if self._id >= self._id_end:
            self._id, self._id_end = first, first + ID_RANGE
        else:
            self._id_next = first
        held, self._held_back = self._held_back, []
        for ticket, capture in held:
            flight = self._flights.get(ticket)
            if flight is not None:
                self._settle(flight, capture, now)
        self.wake(now)

    def drawn(self, number: int, *, now: float) -> None:
        """So many visits may be made; none for now if 0."""
        self._is_drawing = False
        self._quota += number
        if number == 0:
            self._draw_at = now + 1.0
            if not self._flights:
                for ctx in list(self._by_id.values()):
                    self._leave(ctx, now)
        self.wake(now)

    def _next_page(self) -> int:
        if self._id >= self._id_end:
            if self._id_next is None:
                raise InternalError("page ids ran out; _ids_low should have held pages back")
            self._id, self._id_end = self._id_next, self._id_next + ID_RANGE
            self._id_next = None
        page = self._id
        self._id += 1
        return page

    def _ids_low(self) -> bool:
        """True when a page with very many links could use up all ids; asks for more early."""
        left = self._id_end - self._id
        if left > _ID_LOW or self._id_next is not None:
            return False
        if not self._ids_asked:
            self._ids_asked = True
            self._out.append(TakeIds(ID_RANGE))
        return left < 110_000

    # -- names and addresses -----------------------------------------------------------------------

    def _name(self, host: str, then: Callable[[Answer, float], None], now: float) -> None:
        known = self._names.get(host)
        if known is not None and known[1] > now:
            then(known[0], now)
            return
        waiting = self._asking.get(host)
        if waiting is not None:
            waiting.append(then)
            return
        self._asking[host] = [then]
        self._out.append(Resolve(host))

    def resolved(self, answer: Answer, *, now: float) -> None:
        if len(self._names) >= _NAMES:
            self._names.clear()
        self._names[answer.host] = (answer, now + max(answer.ttl_s, 1.0))
        for then in self._asking.pop(answer.host, ()):
            then(answer, now)
        self.wake(now)

    def _find_address(self, ctx: Context, now: float) -> None:
        ctx.is_resolving = True
        if proxy := ctx.guise.proxy:
            self._name(proxy, lambda answer, at: self._proxied(ctx, answer, at), now)
            return
        self._name(host_of(ctx.site), lambda answer, at: self._addressed(ctx, answer, at), now)

    def _proxied(self, ctx: Context, answer: Answer, now: float) -> None:
        """The operator named the proxy, so any address it has is meant."""
        ctx.guise.by(answer.addresses[0] if answer.addresses else "")
        self._name(host_of(ctx.site), lambda answer, at: self._addressed(ctx, answer, at), now)

    def _addressed(self, ctx: Context, answer: Answer, now: float) -> None:
        ctx.is_resolving = False
        if ctx.is_gone:
            return
        if not ctx.address or ctx.address not in answer.addresses:
            self._settler.name(ctx, answer, now=now)
        ctx.address_expires = now + max(answer.ttl_s, 1.0)
        if not answer.addresses:
            self._no_address(ctx, answer, now)
            return
        allowed, refusal = self._allowed(answer.addresses, is_named=ctx.is_named)
        if not allowed:
            self._settler.batch.counts["guard.refused"] += 1
            self._give_up(ctx, Outcome.SKIP, f"guard:{refusal}", now)
            return
        # The lowest, IPv4 first; where that does not answer, the next one.
        address = allowed[ctx.unanswered % len(allowed)]
        if address == ctx.address or (ctx.address in allowed and not ctx.unanswered):
            self._schedule(ctx, now)
            return
        keys = (server_of(address), *(f"group:{name}" for name in ctx.rules.groups))
        if ctx.is_named:
            ctx.address, ctx.keys = address, ()
            self._schedule(ctx, now)
            return
        ctx.is_resolving = True

        def claimed(at: float) -> None:
            ctx.is_resolving = False
            ctx.address, ctx.keys = address, keys
            self._schedule(ctx, at)

        self._claim(ctx, keys, claimed, now)

    def _allowed(
        self, addresses: tuple[str, ...], *, is_named: bool
    ) -> tuple[tuple[str, ...], str]:
        """Those that may be connected to, and why the first refused one may not."""
        allowed, refusal = [], ""
        for address in addresses:
            why = self._guard.refusal(address, host_is_named=is_named)
            if why:
                refusal = refusal or why
            else:
                allowed.append(address)
        return tuple(allowed), refusal

    def _claim(
        self, ctx: Context, keys: tuple[str, ...], then: Callable[[float], None], now: float
    ) -> None:
        for key in keys:
            if key not in ctx.claims:
                self._claims[key] = self._claims.get(key, 0) + 1
        ctx.claims = tuple(dict.fromkeys((*ctx.claims, *keys)))
        self._claiming[ctx.site_id] = (ctx, then)
        self._out.append(Claim(ctx.site_id, keys))

    def claimed(self, site_id: int, other: str, *, now: float) -> None:
        """`other` is who holds the address instead; empty: it is ours."""
        waiting = self._claiming.pop(site_id, None)
        if waiting is None or waiting[0].is_gone:
            return
        ctx, then = waiting
        if other:
            ctx.is_resolving = False
            self._leave(ctx, now, go_to=other)
        else:
            then(now)
        self.wake(now)

    # -- turns -------------------------------------------------------------------------------------

    def _schedule(self, ctx: Context, when: float) -> None:
        """The context gets a turn at `when`, unless it has one sooner."""
        if ctx.is_gone or (ctx.turn and ctx.turn_at <= when):
            return
        self._serial += 1
        ctx.turn, ctx.turn_at = self._serial, when
        heapq.heappush(self._turns, (when, self._serial, ctx))

    def _is_full(self) -> bool:
        if len(self._flights) >= self._plan.connections or self._quota <= 0:
            return True
        batch = self._settler.batch
        return self._writing is not None and (
            len(batch.visits) >= 2 * self._plan.batch_visits
            or batch.payload_bytes >= 2 * self._plan.batch_bytes
        )

    def _start_turns(self, now: float) -> None:
        turns = self._turns
        while turns and turns[0][0] <= now and not self._is_full():
            _, serial, ctx = heapq.heappop(turns)
            if ctx.turn == serial and not ctx.is_gone:  # else an earlier turn took its place
                ctx.turn = 0
                self._turn(ctx, now)

    def _turn(self, ctx: Context, now: float) -> None:
        """One context: start a page, or find out what it waits for."""
        if self.is_stopping or ctx.is_leaving:
            if not ctx.flying:
                self._leave(ctx, now)
            return
        # To count the pages of a party, what is new must be certain.
        is_counting = ctx.rules.max_pages is not None and not ctx.is_seen_whole
        if not ctx.is_loaded or ctx.is_resolving or is_counting or self._ids_low():
            if ctx.is_loaded and not ctx.is_resolving:
                self._schedule(ctx, now + 0.05)
            return
        if now > ctx.until - self._plan.lease_s * _QUIET_SHARE:
            self._schedule(ctx, now + self._plan.lease_s * 0.02)
            return
        queue = ctx.queue
        if queue.wants_load(now):
            self._load(ctx)
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
            if not ctx.flying and host.rest_until > now + max(self._plan.patience_s, 60.0):
                self._leave(ctx, now)
                return
            self._schedule(ctx, host.rest_until)
            return
        if now >= ctx.address_expires or not ctx.address:
            self._find_address(ctx, now)
            return
        if ctx.gap_s and not ctx.is_slotted:
            at = self._gaps.reserve(ctx.keys, ctx.gap_s, now=now)
            ctx.is_slotted = True
            if at > now:
                self._schedule(ctx, at)
                return
        if ctx.gap_s:
            at = self._gaps.earliest(ctx.keys, ctx.gap_s)
            if at > now:
                self._schedule(ctx, at)
                return
        if self._start(ctx, now) and host.flying < host.manners.connections and queue.has_due(now):
            self._schedule(ctx, now)

    def _closed(self, ctx: Context, opens: float, now: float) -> None:
        """Outside its hours a site rests; if that is long, it goes back until they begin."""
        if opens <= now + max(self._plan.patience_s, 60.0):
            self._schedule(ctx, opens)
        elif not ctx.flying:  # else the last that ends gives the turn
            self._settler.touch(ctx).counts["hours.closed"] += 1
            ctx.is_closed = True
            ctx.host.rest_until = max(ctx.host.rest_until, opens)
            self._leave(ctx, now)

    def _idle(self, ctx: Context, now: float) -> None:
        """Nothing is due in memory: wait for what is under way, or give the site back."""
        queue = ctx.queue
        if ctx.flying or queue.is_loading:
            return
        due = queue.next_due()
        # One whose other scheme fails is held until that is decided: only the context knows it.
        hold_s = max(self._plan.patience_s, 60.0) if ctx.is_half_failing else _SITE_RELEASE_S
        if due is not None and due <= now + hold_s:
            self._schedule(ctx, due)
            return
        if not queue.is_empty and due is None:
            self._schedule(ctx, now + 0.1)
            return
        # Maybes may still turn out new: leave only once the store has answered.
        if ctx.dirty == self._settler.number or ctx.dirty == self._writing:
            if self._writing is None:
                self._write(now)
            self._schedule(ctx, now + 0.02)
            return
        self._leave(ctx, now)

    def _start(self, ctx: Context, now: float) -> bool:
        """Starts one request of this site. False: none was started."""
        for _ in range(_DENIES_A_TURN):
            known = ctx.queue.next(now)
            if known is None:
                self._schedule(ctx, now)
                return False
            if ctx.scope.max_depth is not None and not self._may_begin(ctx, known.rank, now):
                ctx.queue.give_back(known, now=now)
                if (due := ctx.queue.next_due()) is not None:  # a second try of a lesser rank
                    self._schedule(ctx, due)
                return False
            parts = urls.split(known.url)
            state = ctx.robots.get(parts.authority)
            if state is not None and state.given_up is not None:
                self._settler.refuse(ctx, known, *state.given_up, now=now)
                self._filled(now)
                continue
            if state is not None and state.not_before > now:
                later = known._replace(not_before=state.not_before)
                ctx.queue.give_back(later, now=now)
                continue
            if ctx.rules.obey_robots:
                if state is None:
                    state = ctx.robots[parts.authority] = RobotsState()
                if state.rules is None or state.expires <= now:
                    ctx.queue.give_back(known, now=now)
                    if state.is_fetching:
                        return False
                    state.is_fetching = True
                    url = state.url or f"{parts.authority}/robots.txt"
                    self._fetch_robots(ctx, parts.authority, url, state.hops, now)
                    return True
                if not state.rules.allows(parts.target):
                    verdict = state.rules.verdict(parts.target)
                    why = f"robots:{verdict.line}"
                    self._settler.refuse(ctx, known, Outcome.DENY, why, now=now)
                    self._filled(now)
                    continue
            headers = ctx.guise.lines(known.url, now)
            if known.stored_date and (known.etag or known.last_modified):
                headers += _conditional(known)
            self._fly(ctx, known, parts, ctx.address, now, headers=headers,
                      access=ctx.guise.access)  # fmt: skip
            return True
        self._schedule(ctx, now)
        return False

    def _may_begin(self, ctx: Context, rank: int, now: float) -> bool:
        """With a depth limit a level ends before the next one begins: so depths are exact.

        Across all sites where the limit is for all, else within the site.
        """
        if self._plan.has_depth_limit:
            if rank <= self._level:
                return True
            self._too_deep[ctx.site_id] = ctx
            self._ask_level(now)
            return False
        if rank > ctx.level:
            if ctx.flying:
                return False  # the last that ends gives the turn
            if ctx.dirty in (self._settler.number, self._writing):
                self._write(now)
                self._schedule(ctx, now + 0.02)
                return False
            ctx.level = rank
        return True

    def _ask_level(self, now: float) -> None:
        if self._too_deep and not self._is_asking_level and now >= self._level_at:
            if not self._flights:  # what is found and unwritten may be of this level
                self._write(now)
            self._is_asking_level = True
            self._out.append(Level())

    def level(self, rank: int, *, now: float) -> None:
        """Nothing of a lesser rank waits in the store, nor is under way."""
        self._is_asking_level = False
        if rank > self._level:
            self._level = rank
            waiting, self._too_deep = self._too_deep, {}
            for ctx in waiting.values():
                self._schedule(ctx, now)
        else:
            self._level_at = now + _LEVEL_S
        self.wake(now)

    def _fly(
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
    ) -> None:
        self._ticket += 1
        ticket = self._ticket
        self._flights[ticket] = Flight(
            ctx, known, now, ctx.host, parts.site, authority=authority, hops=hops
        )
        ctx.flying.add(ticket)
        if known is not None:
            self._quota -= 1
        ctx.host.started()
        ctx.is_slotted = False
        self._gaps.started(ctx.keys, ctx.gap_s, now=now)
        self._out.append(Fetch(
            ticket=ticket, url=known.url if known else url, scheme=parts.scheme, host=parts.host,
            port=parts.port, target=parts.target, address=address, headers=headers, access=access,
        ))  # fmt: skip

    # -- robots.txt --------------------------------------------------------------------------------

    def _fetch_robots(self, ctx: Context, authority: str, url: str, hops: int, now: float) -> None:
        parts = urls.split(url)
        if parts.site == ctx.site:
            self._fly(ctx, None, parts, ctx.address, now, headers=ctx.guise.lines(url, now),
                      access=ctx.guise.access, authority=authority, hops=hops,
                      url=url)  # fmt: skip
            return
        # A redirect to another host: its hours count, and its access, not those of our site.
        rules = self._plan.rules(parts.site)
        if rules.hours is not None and (opens := rules.hours.opens_at(now)) > now:
            ctx.robots[authority].is_fetching = False
            ctx.closed_until = opens  # the next turn sees to it
            self._schedule(ctx, now)
            return
        access = rules.access

        def addressed(answer: Answer, at: float) -> None:
            """Its address is checked and claimed too."""
            if ctx.is_gone:
                return
            is_named = rules.manners.is_own
            allowed, _ = self._allowed(answer.addresses, is_named=is_named)
            if not allowed:
                self._robots_failed(ctx, authority, Outcome.C_ERR, "robots:redirect", at)
                return

            def claimed(later: float) -> None:
                self._fly(ctx, None, parts, allowed[0], later, access=access,
                          authority=authority, hops=hops, url=url)  # fmt: skip

            if is_named:
                claimed(at)
            else:
                self._claim(ctx, (server_of(allowed[0]),), claimed, at)

        def proxied(answer: Answer, at: float) -> None:
            nonlocal access
            access = through(access, answer.addresses[0] if answer.addresses else "")
            self._name(parts.host, addressed, at)

        if proxy := proxy_of(access):
            self._name(proxy, proxied, now)
        else:
            self._name(parts.host, addressed, now)

    def _robots_came(self, flight: Flight, capture: Capture, now: float) -> None:
        ctx = flight.ctx
        self._settler.robots(ctx, capture, site=flight.site, now=now)
        code = capture.code
        if capture.outcome in TRANSIENT:
            fault = certificate_fault(capture.outcome, capture.detail)
            why = f"tls:{fault}" if fault else "robots"
            self._robots_failed(ctx, flight.authority, capture.outcome, why, now)
            return
        if code in (301, 302, 303, 307, 308) and flight.hops < _LOAD_ROBOTS_HOPS:
            location = parse_head(capture.head).get("location", "")
            url = urls.canonical(location, capture.url) if location else None
            if url is not None:
                # The next hop is a visit like any other: it takes its turn.
                state = ctx.robots[flight.authority]
                state.is_fetching = False
                state.url, state.hops = url, flight.hops + 1
                self._schedule(ctx, max(now, ctx.host.rest_until))
                return
        state = ctx.robots.setdefault(flight.authority, RobotsState())
        state.is_fetching = False
        state.url, state.hops = "", 0
        kind = from_status(code)
        if kind == "deny":
            failing = state.failing_since or now
            state.failing_since = failing
            if now - failing < _DAYS_30:
                self._retry_after(ctx, capture, now)
                self._robots_failed(ctx, flight.authority, Outcome.DENY, f"robots:{code}", now)
                return
        body = capture.body[: self._plan.robots_limit] if kind == "parse" else b""
        expires = now + self._plan.robots_cache_s
        parsed = self._know_robots(ctx, flight.authority, code, body, expires, 0.0)
        if self._plan.sitemaps:
            self._settler.sitemaps(ctx, parsed.sitemaps, via=capture.url, now=now)
        self._settler.touch(ctx).robots.append(
            (flight.authority, ctx.site_id, now, expires, code, 0.0, body)
        )
        delay = ctx.host.crawl_delay_s
        if delay:
            ctx.host.rest(now, max(delay, ctx.host.rest_s))
        if delay > ctx.rules.crawl_delay_max_s:
            self._give_up(ctx, Outcome.SKIP, f"parked:crawl_delay {delay:g}", now)
            return
        self._schedule(ctx, max(now, ctx.host.rest_until))

    def _know_robots(
        self, ctx: Context, authority: str, code: int, body: bytes, expires: float, failing: float
    ) -> Robots:
        state = ctx.robots.setdefault(authority, RobotsState())
        parsed = Robots.parse(body) if from_status(code) == "parse" else Robots.ALLOW_ALL
        state.rules = parsed.for_agent(self._plan.robots_agent)
        state.expires = expires
        state.failing_since = failing
        if state.rules.crawl_delay_s and not ctx.is_named:
            ctx.host.crawl_delay_s = max(ctx.host.crawl_delay_s, state.rules.crawl_delay_s)
        return parsed

    def _robots_failed(
        self, ctx: Context, authority: str, outcome: Outcome, why: str, now: float
    ) -> None:
        """Nothing may be fetched until robots.txt answers: the whole site waits, or gives up."""
        state = ctx.robots.setdefault(authority, RobotsState())
        state.is_fetching = False
        state.url, state.hops = "", 0
        self._authority_failed(ctx, authority, outcome, why, now)

    def _authority_failed(
        self, ctx: Context, authority: str, outcome: Outcome, why: str, now: float
    ) -> None:
        """One scheme of a site fails: alone, where the other one answers; else the site does."""
        others = any(
            name != authority and state.rules is not None for name, state in ctx.robots.items()
        )
        if not others and ctx.answered in ("", authority):
            self._site_failed(ctx, outcome, why, now)
            return
        state = ctx.robots.setdefault(authority, RobotsState())
        state.failures += 1
        retry = ctx.rules.retry
        gap_s = retry.gap(state.failures)
        if state.failures >= retry.attempts or gap_s > self._plan.patience_s:
            state.given_up = outcome, why
        state.not_before = now + gap_s
        ctx.is_half_failing = state.given_up is None
        self._schedule(ctx, max(now, ctx.host.rest_until))

    # -- what came of a request --------------------------------------------------------------------

    def awaits(self, ticket: int) -> bool:
        """False if nobody wants the answer any more."""
        return ticket in self._flights

    def fetched(self, capture: Capture, *, now: float) -> None:
        flight = self._flights.get(capture.ticket)
        if flight is None:
            return
        if self._ids_low() or self._held_back:
            self._held_back.append((capture.ticket, capture))
            return
        self._settle(flight, capture, now)
        self.wake(now)

    def _settle(self, flight: Flight, capture: Capture, now: float) -> None:
        ctx = flight.ctx
        ticket = capture.ticket
        del self._flights[ticket]
        ctx.flying.discard(ticket)
        size = len(capture.head) + (capture.spool.size if capture.spool else len(capture.body))
        flight.host.ended(now, capture.ended - capture.started, size_bytes=size)
        if name := tls_counter(capture):
            self._settler.touch(ctx).counts[name] += 1
        if flight.site == ctx.site:
            if ctx.guise.answered(capture, now):
                self._settler.touch(ctx).counts["cookies.set"] += 1
            if capture.code and (
                ctx.is_half_failing or not capture.url.startswith(ctx.answered or "-")
            ):
                self._answers(ctx, capture.url)
        known = flight.known
        if known is None:
            self._robots_came(flight, capture, now)
        else:
            self._page_came(ctx, known, capture, now)
        self._filled(now)

    def _answers(self, ctx: Context, url: str) -> None:
        """A scheme of the site answers: its failures no longer stand in a row."""
        ctx.answered = urls.split(url).authority
        state = ctx.robots.get(ctx.answered)
        if state is not None:
            state.failures, state.not_before = 0, 0.0
        ctx.is_half_failing = any(
            state.failures > 0 and state.given_up is None for state in ctx.robots.values()
        )

    def _page_came(self, ctx: Context, known: Known, capture: Capture, now: float) -> None:
        self.visits += 1
        ctx.visits += 1
        outcome = capture.outcome
        later = self._settler.page(ctx, known, capture, now=now)
        if later is not None:
            ctx.queue.give_back(later, now=now)
        if capture.code in (429, 503):
            self._retry_after(ctx, capture, now)
        if outcome in OF_THE_SITE:
            fault = certificate_fault(outcome, capture.detail)
            why = f"tls:{fault}" if fault else ""
            self._authority_failed(ctx, urls.split(known.url).authority, outcome, why, now)
            return
        ctx.unanswered = 0
        if ctx.failures and outcome not in TRANSIENT:
            ctx.failures = 0
            self._settler.batch.site_facts[ctx.site_id] = (ctx.address, 0)
        if ctx.is_leaving or self.is_stopping:
            if not ctx.flying:
                self._leave(ctx, now)
            return
        self._schedule(ctx, ctx.host.rest_until if ctx.host.rest_until > now else now)

    def _retry_after(self, ctx: Context, capture: Capture, now: float) -> None:
        """The server says when: its host rests, and its address once two of its hosts say it."""
        value = parse_head(capture.head).get("retry-after", "") if capture.head else ""
        seconds = retry_after_s(value, now=now) if value else None
        if seconds is None or ctx.is_gone:
            return
        if seconds > ctx.rules.retry_after_max_s:
            self._give_up(ctx, Outcome.SKIP, f"parked:retry_after {seconds:g}", now)
            return
        ctx.host.rest(now, seconds)
        server = server_of(capture.address)
        said = self._retry_said.get(server)
        if said is not None and said[0] != ctx.site and said[1] > now:
            self._gaps.hold(server, min(said[1], now + seconds))
        elif len(self._retry_said) < _NAMES:
            self._retry_said[server] = (ctx.site, now + seconds)

    def _no_address(self, ctx: Context, answer: Answer, now: float) -> None:
        """noIP: the page that is next takes the state, and the whole site waits."""
        known = ctx.queue.next(now)
        if known is not None:
            capture = Capture(
                ticket=0, url=known.url, address="", started=now, ended=now,
                outcome=Outcome.NO_IP, detail=answer.error,
            )  # fmt: skip
            self._quota -= 1
            later = self._settler.page(ctx, known, capture, now=now)
            if later is not None:
                ctx.queue.give_back(later, now=now)
        self._site_failed(ctx, Outcome.NO_IP, answer.error, now)
        self._filled(now)

    def _site_failed(self, ctx: Context, outcome: Outcome, why: str, now: float) -> None:
        """The server, not one page, failed: it rests longer each time; then all its pages keep it.

        Failures in a row are counted once a rest, however many requests were under way.
        """
        if ctx.is_leaving and not ctx.flying:
            self._leave(ctx, now)
        if ctx.is_gone or ctx.is_leaving:
            return
        retry = ctx.rules.retry
        if now < ctx.failing_until:
            self._schedule(ctx, ctx.host.rest_until)
            return
        ctx.failures += 1
        if outcome in (Outcome.C_ERR, Outcome.C_TIM) and not why.startswith("tls:"):
            ctx.unanswered += 1
        ctx.address_expires = 0.0
        self._settler.touch(ctx).site_facts[ctx.site_id] = (ctx.address, ctx.failures)
        if ctx.failures >= retry.attempts:
            self._give_up(ctx, outcome, why, now)
            return
        ctx.failing_until = now + retry.gap(ctx.failures)
        ctx.host.rest(now, retry.gap(ctx.failures))
        self._schedule(ctx, ctx.host.rest_until)

    def _give_up(self, ctx: Context, outcome: Outcome, why: str, now: float) -> None:
        """All that waits at the site takes this state, for this run."""
        self._settler.touch(ctx).given_up.append((ctx.site_id, str(outcome), why))
        self._settler.batch.site_facts[ctx.site_id] = (ctx.address, 0)
        for ticket in list(ctx.flying):
            self._flights.pop(ticket, None)
            self._out.append(Abort(ticket))
        ctx.flying.clear()
        self._leave(ctx, now)

    # -- batches and farewells ---------------------------------------------------------------------

    def _filled(self, now: float) -> None:
        """A row was added: write when the batch is large enough."""
        batch = self._settler.batch
        if batch.is_empty:
            return
        if self._batch_since is None:
            self._batch_since = now
        if (
            len(batch.visits) >= self._plan.batch_visits
            or batch.payload_bytes >= self._plan.batch_bytes
            or len(batch.settled) >= 10 * self._plan.batch_visits
        ):
            self._write(now)

    def _maybe_write(self, now: float) -> None:
        batch = self._settler.batch
        if batch.is_empty:
            return
        if self._batch_since is None:
            self._batch_since = now
        if now >= self._batch_since + self._plan.batch_s or self._loading_dirty or self.is_stopping:
            self._write(now)

    def _write(self, now: float) -> None:
        """Hands the batch over, unless one is under way: then it goes on filling."""
        if self._writing is not None:
            return
        del now
        number = self._settler.number
        batch = self._settler.take()
        self._batch_since = None
        if batch.is_empty:
            return
        self._writing = number
        self._out.append(Write(batch))
        loads, self._loading_dirty = self._loading_dirty, []
        self._out += loads

    def grew(self, file: int, by: int) -> None:
        """A spooled part turned out so long: what the filling batch has in that file moves."""
        self._writer.grew(file, by)
        for stored in self._settler.batch.stored:
            if stored.visit[FILE] == file:
                stored.visit[OFFSET] += by

    def written(self, batch: Batch, result: Committed, *, now: float) -> None:
        """A batch is in the store for good: now its rows may be forgotten."""
        self._writing = None
        for site_id, _, page in batch.done:
            ctx = self._by_id.get(site_id)
            if ctx is not None:
                ctx.queue.forget((page,))
        for new in result.inserted:
            ctx = self._by_id.get(new.site_id)
            if ctx is not None and ctx.epoch == batch.epochs.get(new.site_id):
                ctx.queue.put(new.known, now=now)
                self._schedule(ctx, now)
        for new in result.nearer:
            ctx = self._by_id.get(new.site_id)
            if ctx is not None and ctx.epoch == batch.epochs.get(new.site_id):
                self._moved(ctx, new.known, now)
        for letter, _ in batch.letters:
            self._draining.discard(letter)
        for site_id in result.refused:
            ctx = self._by_id.get(site_id)
            if ctx is not None and ctx.epoch == batch.epochs.get(site_id):
                self._lose(ctx, now)
        crowd, self._crowd = self._crowd, []
        for ctx in crowd:
            self._say_goodbye(ctx, now)
        self.wake(now)

    def _moved(self, ctx: Context, known: Known, now: float) -> None:
        """The store moved a waiting page forward: what is in memory of it follows."""
        self._settler.batch.move(known)
        if ctx.queue.nearer(known, now=now):
            self._schedule(ctx, now)
            return
        for ticket in ctx.flying:
            flight = self._flights[ticket]
            if flight.known is not None and flight.known.page == known.page:
                flight.known = flight.known._replace(rank=known.rank, depth=known.depth)

    def _leave(self, ctx: Context, now: float, *, go_to: str = "") -> None:
        """Gives the site back as soon as its last rows are written."""
        if ctx.is_gone or ctx.flying:
            ctx.is_leaving = True
            return
        ctx.is_leaving = True
        ctx.go_to = go_to or ctx.go_to
        if ctx.dirty == self._settler.number or ctx.dirty == self._writing:
            if ctx not in self._crowd:
                self._crowd.append(ctx)
            if self._writing is None:
                self._write(now)
            return
        self._say_goodbye(ctx, now)

    def _say_goodbye(self, ctx: Context, now: float) -> None:
        if ctx.is_gone:
            return
        if ctx.flying or ctx.dirty in (self._settler.number, self._writing):
            self._leave(ctx, now)
            return
        free = self._drop(ctx)
        self._out.append(Release(
            site_id=ctx.site_id, epoch=ctx.epoch, rest_until=ctx.host.rest_until,
            rest_s=ctx.host.rest_s, failures=ctx.failures, is_closed=ctx.is_closed,
            go_to=ctx.go_to, unclaim=free,
        ))  # fmt: skip
        self._ask_at = min(self._ask_at, now + _ASK_S / 5)

    def stop(self, *, now: float, abort: bool = False) -> None:
        """Starts nothing more; what is under way ends (or is aborted and wanted again)."""
        self.is_stopping = True
        for ctx in list(self._by_id.values()):
            if abort:
                for ticket in list(ctx.flying):
                    flight = self._flights.pop(ticket, None)
                    if flight is not None and flight.known is not None:
                        ctx.queue.give_back(flight.known, now=now)
                    self._out.append(Abort(ticket))
                ctx.flying.clear()
            self._leave(ctx, now)
        self.wake(now)

    def close_files(self) -> Batch | None:
        """After stop: a last batch that closes the open files. None: nothing is open."""
        batch = self._settler.take()
        batch.files = self._writer.close_all()
        return batch if batch.files else None

    @property
    def is_done(self) -> bool:
        """After stop: nothing is held, under way or unwritten."""
        return not (
            self._by_id
            or self._flights
            or self._writing is not None
            or not self._settler.batch.is_empty
            or self._is_asking_leases
        )

    @property
    def facts(self) -> dict[str, int]:
        """For progress: sites held, active, resting, requests under way."""
        active = sum(1 for ctx in self._by_id.values() if ctx.flying)
        return {
            "sites": len(self._by_id),
            "active": active,
            "resting": len(self._by_id) - active,
            "flying": len(self._flights),
        }


def _conditional(known: Known) -> tuple[str, ...]:
    lines = []
    if known.etag:
        lines.append(f"If-None-Match: {known.etag}")
    if known.last_modified:
        lines.append(f"If-Modified-Since: {known.last_modified}")
    return tuple(lines)


def _with_prefixes(ctx: Context, seed_urls: tuple[str, ...]) -> Scope:
    return replace(ctx.scope, prefixes=tuple(sorted({prefix_of(url) for url in seed_urls})))
