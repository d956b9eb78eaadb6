"""How a site comes to its agent: asked for, leased, and what the store knows of it loaded."""

from __future__ import annotations

from dataclasses import replace

from geomi.cluster.commands import Ask, Command, Leased, Loaded, Rebuild, Release
from geomi.cluster.context import Context, Plan
from geomi.cluster.filling import Filling
from geomi.cluster.gate import Gate
from geomi.cluster.held import Held
from geomi.cluster.quota import Quota
from geomi.frontier.hints import Hints
from geomi.frontier.scope import Scope, prefix_of
from geomi.frontier.seen import SeenFilter
from geomi.frontier.traps import Templates

#: A site reads so many waiting pages at once, however many sites there are.
_LEAST_SHARE = 16
_ASK_S = 0.25  # between two questions for sites; a fifth of it where one was given back


class Arrivals:
    """As many sites as the plan allows, and none without visits left to make."""

    def __init__(
        self, plan: Plan, *, held: Held, filling: Filling, quota: Quota, gate: Gate,
        out: list[Command],
    ) -> None:  # fmt: skip
        self._plan = plan
        self._held = held
        self._filling = filling
        self._quota = quota
        self._gate = gate
        self._out = out
        self._token = 0
        self._ask_at = 0.0
        self.is_asking = False

    @property
    def next_ask(self) -> float | None:
        """When sites are to be asked for; None: there is no room, or the answer is under way."""
        if self.is_asking or self._held.is_stopping or self._quota.left <= 0:
            return None
        return self._ask_at if len(self._held.by_id) < self._plan.contexts else None

    def ask(self, now: float) -> None:
        at = self.next_ask
        if at is not None and now >= at:
            self.is_asking = True
            self._out.append(Ask(self._plan.contexts - len(self._held.by_id)))

    def freed(self, now: float) -> None:
        """A site was given back: there is room for another, soon."""
        self._ask_at = min(self._ask_at, now + _ASK_S / 5)

    def leased(self, event: Leased, *, now: float) -> None:
        self.is_asking = False
        self._ask_at = now + _ASK_S
        window = self._share(len(self._held.by_id) + len(event.leases))
        for ctx in self._held.by_id.values():
            ctx.queue.resize(window)
        for lease in event.leases:
            if self._held.is_stopping or lease.site_id in self._held.by_id:
                self._out.append(Release(
                    site_id=lease.site_id, epoch=lease.epoch, rest_until=0.0, rest_s=0.0,
                    failures=0,
                ))  # fmt: skip
                continue
            self._token += 1
            rules = self._plan.rules(lease.site)
            ctx = Context(
                lease,
                rules,
                window=window,
                token=self._token,
                until=event.asked + self._plan.lease_s,
                now=now,
                host=self._held.host(lease.site, rules.manners),
            )
            self._held.add(ctx)
            self._filling.load(ctx, is_first=True)

    def _share(self, sites: int) -> int:
        """Waiting pages that each of so many sites keeps in memory."""
        plan = self._plan
        return min(plan.window, max(_LEAST_SHARE, plan.waiting // max(1, sites)))

    def loaded(self, event: Loaded, *, now: float) -> None:
        """Waiting pages of a site; the first time, its facts too."""
        ctx = self._held.by_id.get(event.site_id)
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
            tried, failed = facts.hints
            ctx.hints = Hints(tried=tried, failed=failed)
            ctx.queue.doubts_hints = ctx.hints.are_doubted and ctx.scope.max_depth is None
            ctx.failures = facts.failures
            ctx.first_seed = facts.first_seed
            ctx.kept = facts.kept
            ctx.equivalents = facts.equivalents if plan.applies_rules else ()
            ctx.fronts = dict(facts.fronts)
            ctx.party_pages = dict(facts.party_pages)
            if ctx.rules.is_prefix:
                ctx.scope = _with_prefixes(ctx, facts.seed_urls)
            for authority, _fetched, expires, code, failing, body in facts.robots:
                if expires > now:
                    self._gate.know(ctx, authority, code, body, expires, failing)
            rest = facts.rest_s
            ctx.host.rest_s = rest
            if not ctx.is_named:
                if facts.is_clean:
                    ctx.host.rest_until = max(ctx.host.rest_until, facts.rest_until)
                else:
                    ctx.host.rest(now, ctx.host.full_rest_s())
            ctx.is_loaded = True
        ctx.queue.loaded(event.rows, limit=event.limit, now=now)
        self._held.schedule(ctx, now)

    def rebuilt(self, site_id: int, epoch: int, hashes: list[int], *, limit: int) -> None:
        """A part of a site's known URLs; the last part makes the filter whole."""
        ctx = self._held.by_id.get(site_id)
        if ctx is None or ctx.epoch != epoch or ctx.seen is None:
            return
        ctx.seen.update(hashes)
        if len(hashes) < limit:
            ctx.is_seen_whole = True
        else:
            self._out.append(Rebuild(site_id, epoch, hashes[-1]))


def _with_prefixes(ctx: Context, seed_urls: tuple[str, ...]) -> Scope:
    return replace(ctx.scope, prefixes=tuple(sorted({prefix_of(url) for url in seed_urls})))
