"""The gate of a site: its robots.txt is asked for first, and says what may be visited."""

from __future__ import annotations

from geomi import url as urls
from geomi.cluster.addresses import Addresses
from geomi.cluster.commands import Claimed
from geomi.cluster.context import Context, Flight, Plan, RobotsState, Server
from geomi.cluster.failures import Failures
from geomi.cluster.farewells import Farewells
from geomi.cluster.filling import Filling
from geomi.cluster.flights import Flights
from geomi.cluster.guise import proxy_of, through
from geomi.cluster.held import Held
from geomi.cluster.names import Names
from geomi.cluster.settle import Settler
from geomi.cluster.wishes import REDIRECTS, Wishes
from geomi.extract.head import parse_head
from geomi.extract.unpack import unpack
from geomi.fetch.robots import Robots, from_status, whole_lines
from geomi.fetch.verdict import certificate_fault
from geomi.frontier.politeness import Gaps, server_of
from geomi.records import Answer, Capture
from geomi.states import TRANSIENT, Outcome

_HOPS = 5  # redirects of a robots.txt that are followed
_LOOK_S = 0.1  # between looks at a host that another visit is under way to
_DAYS_30 = 30 * 86_400.0
_RATIO = 1000.0  # most that one grows when unpacked; many rules are much alike


class Gate:
    """One robots.txt for each scheme and authority, fetched like a page: it takes a turn."""

    def __init__(
        self, plan: Plan, *, held: Held, flights: Flights, filling: Filling, settler: Settler,
        wishes: Wishes, names: Names, addresses: Addresses, farewells: Farewells,
        failures: Failures, gaps: Gaps,
    ) -> None:  # fmt: skip
        self._plan = plan
        self._held = held
        self._flights = flights
        self._filling = filling
        self._settler = settler
        self._wishes = wishes
        self._names = names
        self._addresses = addresses
        self._farewells = farewells
        self._failures = failures
        # One byte more than is read, which says whether the last line is torn.
        self._limit_bytes = plan.robots_limit + 1
        self._gaps = gaps

    def fetch(self, ctx: Context, authority: str, state: RobotsState, now: float) -> bool:
        """Asks for the robots.txt of an authority, or for where it was last redirected.

        False: that is another host, and its turn has not come; the context gets one when it has.
        """
        url = state.url or f"{authority}/robots.txt"
        parts = urls.split(url)
        server = None
        if parts.site != ctx.site:
            server = state.server
            if server is None or server.site != parts.site:
                state.is_fetching = True
                self._seek(ctx, authority, state, parts, now)
                return False
            at = self._turn_at(server, now)
            if at > now:
                self._held.schedule(ctx, at)
                return False
        state.is_fetching = True
        asked = server or ctx
        self._flights.start(
            ctx, None, parts, asked.address, now, authority=authority, hops=state.hops, url=url,
            headers=() if server else ctx.guise.lines(url, now),
            access=server.access if server else ctx.guise.access, server=server,
            limit_bytes=self._limit_bytes,
        )  # fmt: skip
        return True

    def _turn_at(self, server: Server, now: float) -> float:
        """When another host may be asked, by the same rules as if it were visited for itself."""
        host = server.host
        if host.flying >= host.manners.connections:
            return now + _LOOK_S
        if host.rest_until > now:
            return host.rest_until
        rules = self._plan.rules(server.site)
        if rules.hours is not None and (opens := rules.hours.opens_at(now)) > now:
            return opens
        if not server.is_slotted:
            server.is_slotted = True
            at = self._gaps.reserve(server.keys, server.gap_s, now=now)
            if at > now:
                return at
        return self._gaps.earliest(server.keys, server.gap_s, now=now)

    def _seek(
        self, ctx: Context, authority: str, state: RobotsState, parts: urls.Parts, now: float
    ) -> None:
        """Another host speaks for this site: its access counts, and its address is claimed too."""
        rules = self._plan.rules(parts.site)
        if rules.hours is not None and (opens := rules.hours.opens_at(now)) > now:
            state.is_fetching = False
            ctx.closed_until = opens  # the next turn sees to it
            self._held.schedule(ctx, now)
            return
        access = rules.access
        manners = rules.manners

        def addressed(answer: Answer, at: float) -> None:
            if ctx.is_gone:
                return
            allowed, _ = self._addresses.allowed(answer.addresses, is_named=manners.is_own)
            if not allowed:
                self._failed(ctx, authority, Outcome.C_ERR, "robots:redirect", at)
                return
            key = server_of(allowed[0])
            host = self._held.host(parts.site, manners)

            def claimed(got: Claimed, later: float) -> None:
                host.rest_until = max(host.rest_until, got.host_rests_until)
                ctx.elsewhere[key] = host
                state.server = Server(
                    parts.site, host=host, address=allowed[0], access=access,
                    keys=() if manners.is_own else (key,),
                    gap_s=0.0 if manners.is_own else manners.address_rest_s,
                )  # fmt: skip
                state.is_fetching = False
                self._held.schedule(ctx, later)

            if manners.is_own:
                claimed(Claimed(), at)
            else:
                self._addresses.claim(ctx, allowed[0], parts.site, claimed, at)

        def proxied(answer: Answer, at: float) -> None:
            nonlocal access
            access = through(access, answer.addresses[0] if answer.addresses else "")
            self._names.ask(parts.host, addressed, at)

        if proxy := proxy_of(access):
            self._names.ask(proxy, proxied, now)
        else:
            self._names.ask(parts.host, addressed, now)

    def came(self, flight: Flight, capture: Capture, now: float) -> None:
        """The answer to such a request: rules, another hop, or a failure."""
        ctx = flight.ctx
        self._settler.robots(ctx, capture, site=flight.site, now=now)
        code = capture.code
        if capture.outcome in TRANSIENT:
            fault = certificate_fault(capture.outcome, capture.detail)
            why = f"tls:{fault}" if fault else "robots"
            self._failed(ctx, flight.authority, capture.outcome, why, now)
            return
        if code in REDIRECTS and flight.hops < _HOPS:
            location = parse_head(capture.head).get("location", "")
            url = urls.canonical(location, capture.url) if location else None
            if url is not None:
                # The next hop is a visit like any other: it takes its turn.
                state = ctx.robots[flight.authority]
                state.is_fetching = False
                state.url, state.hops = url, flight.hops + 1
                self._held.after_rest(ctx, now)
                return
        state = self._ended(ctx, flight.authority)
        kind = from_status(code)
        if kind == "deny":
            failing = state.failing_since or now
            state.failing_since = failing
            if now - failing < _DAYS_30:
                self._failures.retry_after(ctx, capture, now)
                self._failed(ctx, flight.authority, Outcome.DENY, f"robots:{code}", now)
                return
        body = self._text(ctx, capture) if kind == "parse" else b""
        expires = now + self._plan.robots_cache_s
        parsed = self.know(ctx, flight.authority, code, body, expires, 0.0)
        if self._plan.sitemaps:
            self._wishes.sitemaps(ctx, parsed.sitemaps, via=capture.url, now=now)
        self._filling.touch(ctx).robots.append(
            (flight.authority, ctx.site_id, now, expires, code, 0.0, body)
        )
        delay = ctx.host.crawl_delay_s
        if delay:
            ctx.host.rest(now, max(delay, ctx.host.rest_s))
        if delay > ctx.rules.crawl_delay_max_s:
            self._farewells.give_up(ctx, Outcome.SKIP, f"parked:crawl_delay {delay:g}", now)
            return
        self._held.after_rest(ctx, now)

    def _text(self, ctx: Context, capture: Capture) -> bytes:
        """The whole lines of a robots.txt within the limit, without its content-encoding."""
        counts = self._filling.touch(ctx).counts
        limit, body = self._limit_bytes, capture.body
        encoding = parse_head(capture.head).get("content-encoding", "")
        if encoding and body:
            unpacked = unpack(body, encoding, limit_bytes=limit, ratio=_RATIO)
            if unpacked is None:
                counts["robots.unreadable"] += 1  # it has no line that could be a rule
                return b""
            body = unpacked
        if len(body) >= limit:
            counts["robots.cut"] += 1
        return whole_lines(body, self._plan.robots_limit)

    def know(
        self, ctx: Context, authority: str, code: int, body: bytes, expires: float, failing: float
    ) -> Robots:
        """Reads a robots.txt, fresh or kept from earlier."""
        state = ctx.robots.setdefault(authority, RobotsState())
        parsed = Robots.parse(body) if from_status(code) == "parse" else Robots.ALLOW_ALL
        state.rules = parsed.for_agent(self._plan.robots_agent)
        state.expires = expires
        state.failing_since = failing
        if state.rules.crawl_delay_s and not ctx.is_named:
            ctx.host.delays(state.rules.crawl_delay_s)
        return parsed

    def _failed(self, ctx: Context, authority: str, outcome: Outcome, why: str, now: float) -> None:
        """Nothing may be fetched until robots.txt answers: the whole site waits, or gives up."""
        self._ended(ctx, authority)
        self._failures.of_authority(ctx, authority, outcome, why, now)

    @staticmethod
    def _ended(ctx: Context, authority: str) -> RobotsState:
        """The next time it is asked for anew, from its own place."""
        state = ctx.robots.setdefault(authority, RobotsState())
        state.is_fetching = False
        state.url, state.hops, state.server = "", 0, None
        return state
