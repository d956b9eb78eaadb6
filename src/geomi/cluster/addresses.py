"""Where a site is asked: its name is resolved, every address checked, one of them claimed."""

from __future__ import annotations

from collections.abc import Iterable

from geomi import url as urls
from geomi.cluster.claims import Claims, Then
from geomi.cluster.commands import Claimed, Command, Share
from geomi.cluster.context import Context, Plan
from geomi.cluster.failures import Failures
from geomi.cluster.farewells import Farewells
from geomi.cluster.filling import Filling
from geomi.cluster.held import Held
from geomi.cluster.names import Names
from geomi.cluster.settle import Settler
from geomi.fetch.guard import Guard
from geomi.frontier.politeness import Gaps, server_of
from geomi.frontier.slots import ALWAYS, SITES, Slot, common
from geomi.records import Answer
from geomi.states import Outcome


class Addresses:
    """One a site for the time of its lease: the lowest, IPv4 first, unless it does not answer."""

    def __init__(
        self, plan: Plan, *, guard: Guard, names: Names, claims: Claims, held: Held,
        filling: Filling, settler: Settler, farewells: Farewells, failures: Failures, gaps: Gaps,
        out: list[Command],
    ) -> None:  # fmt: skip
        self._plan = plan
        self._guard = guard
        self._names = names
        self._claims = claims
        self._held = held
        self._filling = filling
        self._settler = settler
        self._farewells = farewells
        self._failures = failures
        self._gaps = gaps
        self._sharing: set[str] = set()  # keys whose sharing the store has not heard of
        self._out = out

    def find(self, ctx: Context, now: float) -> None:
        """The context gets a turn once its address is known and claimed."""
        ctx.is_resolving = True
        if proxy := ctx.guise.proxy:
            self._names.ask(proxy, lambda answer, at: self._proxied(ctx, answer, at), now)
            return
        self._names.ask(urls.host_of(ctx.site), lambda answer, at: self._came(ctx, answer, at), now)

    def _proxied(self, ctx: Context, answer: Answer, now: float) -> None:
        """The operator named the proxy, so any address it has is meant."""
        ctx.guise.by(answer.addresses[0] if answer.addresses else "")
        self._names.ask(urls.host_of(ctx.site), lambda answer, at: self._came(ctx, answer, at), now)

    def _came(self, ctx: Context, answer: Answer, now: float) -> None:
        ctx.is_resolving = False
        if ctx.is_gone:
            return
        if not ctx.address or ctx.address not in answer.addresses:
            self._settler.name(ctx, answer, now=now)
        ctx.address_expires = now + max(answer.ttl_s, 1.0)
        if not answer.addresses:
            self._failures.of_name(ctx, answer, now)
            return
        allowed, refusal = self.allowed(answer.addresses, is_named=ctx.is_named)
        if not allowed:
            self._filling.batch.counts["guard.refused"] += 1
            self._farewells.give_up(ctx, Outcome.SKIP, f"guard:{refusal}", now)
            return
        # The lowest, IPv4 first; where that does not answer, the next one.
        address = allowed[ctx.unanswered % len(allowed)]
        if address == ctx.address or (ctx.address in allowed and not ctx.unanswered):
            self._held.schedule(ctx, now)
            return
        keys = (server_of(address), *(f"group:{name}" for name in ctx.rules.groups))
        if ctx.is_named:
            ctx.address, ctx.keys = address, ()
            self._held.schedule(ctx, now)
            return
        ctx.is_resolving = True

        def claimed(_: Claimed, at: float) -> None:
            ctx.is_resolving = False
            ctx.address, ctx.keys = address, keys
            self._held.schedule(ctx, at)

        self._claims.ask(ctx, keys, claimed, address=keys[0], may_share=self._gaps.is_sure(now))

    def allowed(self, addresses: tuple[str, ...], *, is_named: bool) -> tuple[tuple[str, ...], str]:
        """Those that may be connected to, and why the first refused one may not."""
        allowed, refusal = [], ""
        for address in addresses:
            why = self._guard.refusal(address, host_is_named=is_named)
            if why:
                refusal = refusal or why
            else:
                allowed.append(address)
        return tuple(allowed), refusal

    def claim(self, ctx: Context, address: str, host: str, then: Then, now: float) -> None:
        """Another host that speaks for this site: its address is claimed too."""
        self._claims.ask(
            ctx, (server_of(address),), then, host=host, may_share=self._gaps.is_sure(now)
        )

    def claimed(self, site_id: int, answer: Claimed, *, now: float) -> None:
        waiting = self._claims.came(site_id)
        if waiting is None:
            return
        ctx, then = waiting
        for key, slot in answer.slots:
            self._take(key, slot, now)
        for key, until in answer.rests:
            self._gaps.hold(key, until)
        if answer.other:
            ctx.is_resolving = False
            self._farewells.leave(ctx, now, go_to=answer.other)
        else:
            then(answer, now)

    # -- time at an address that others serve too --------------------------------------------------

    def wished(self, keys: Iterable[str], now: float) -> None:
        """Somebody else has sites there: who has many alone shares the time, and keeps one half.

        Where the time is shared already there are many sites, whoever has them.
        """
        for key in keys:
            slot = self._gaps.slot(key)
            if (
                key in self._sharing
                or self._claims.needed(key) < (SITES if slot == ALWAYS else 1)
                or slot.of * 2 > self._plan.slots
                or not self._gaps.is_sure(now)
            ):
                continue
            keep = next((half for half in slot.halves() if self._suits(key, half)), None)
            if keep is not None:
                self._sharing.add(key)
                self._take(key, keep, now)
                until = self._gaps.rests_until(key, self._plan.gap_s)
                self._out.append(Share(key, keep, until))

    def _suits(self, key: str, half: Slot) -> bool:
        """True if every site there still has time that is ours at all of its keys."""
        return all(
            common((half, *(self._gaps.slot(one) for one in ctx.keys if one != key))) is not None
            for ctx in self._held.by_id.values()
            if key in ctx.keys
        )

    def shared(self, key: str, slot: Slot, now: float) -> None:
        """What the store says is ours at a key that we shared."""
        self._sharing.discard(key)
        if self._claims.needed(key):
            self._take(key, slot, now)

    def widened(self, slots: Iterable[tuple[str, Slot]], now: float) -> None:
        """What others let go of."""
        for key, slot in slots:
            if key not in self._sharing and self._claims.needed(key):
                self._take(key, slot, now)

    def _take(self, key: str, slot: Slot, now: float) -> None:
        if self._gaps.take_slot(key, slot):
            self._held.line_up(key, self._gaps, now)
