"""When it is the server that fails, or wants to be left alone: who waits, and how long."""

from __future__ import annotations

from geomi import url as urls
from geomi.cluster.context import Context, Plan, RobotsState
from geomi.cluster.farewells import Farewells
from geomi.cluster.filling import Filling
from geomi.cluster.held import Held
from geomi.cluster.quota import Quota
from geomi.cluster.settle import Settler
from geomi.extract.head import parse_head
from geomi.frontier.politeness import Gaps, retry_after_s, server_of
from geomi.records import Answer, Capture
from geomi.states import Outcome

_SERVERS = 50_000  # whose Retry-After is remembered


class Failures:
    """Of sites and their schemes. Those of single pages are the settler's."""

    def __init__(
        self, plan: Plan, *, held: Held, filling: Filling, settler: Settler, farewells: Farewells,
        gaps: Gaps, quota: Quota,
    ) -> None:  # fmt: skip
        self._plan = plan
        self._held = held
        self._filling = filling
        self._settler = settler
        self._farewells = farewells
        self._gaps = gaps
        self._quota = quota
        # server -> (site, until): who asked to be left alone there
        self._retry_said: dict[str, tuple[str, float]] = {}

    def answered(self, ctx: Context, url: str) -> None:
        """A scheme of the site answers: its failures no longer stand in a row."""
        ctx.answered = urls.split(url).authority
        state = ctx.robots.get(ctx.answered)
        if state is not None:
            state.failures, state.not_before = 0, 0.0
        ctx.is_half_failing = any(
            state.failures > 0 and state.given_up is None for state in ctx.robots.values()
        )

    def of_authority(
        self, ctx: Context, authority: str, outcome: Outcome, why: str, now: float
    ) -> None:
        """One scheme of a site fails: alone, where the other one answers; else the site does."""
        others = any(
            name != authority and state.rules is not None for name, state in ctx.robots.items()
        )
        if not others and ctx.answered in ("", authority):
            self.of_site(ctx, outcome, why, now, authority=authority)
            return
        state = ctx.robots.setdefault(authority, RobotsState())
        state.failures += 1
        retry = ctx.rules.retry
        gap_s = retry.gap(state.failures)
        if state.failures >= retry.attempts or gap_s > self._plan.patience_s:
            state.given_up = outcome, why
        state.not_before = now + gap_s
        ctx.is_half_failing = state.given_up is None
        self._held.after_rest(ctx, now)

    def of_name(self, ctx: Context, answer: Answer, now: float) -> None:
        """noIP: the page that is next takes the state, and the whole site waits."""
        known = ctx.queue.next(now)
        if known is not None:
            capture = Capture(
                ticket=0, url=known.url, address="", started=now, ended=now,
                outcome=Outcome.NO_IP, detail=answer.error,
            )  # fmt: skip
            self._quota.left -= 1
            later = self._settler.page(ctx, known, capture, now=now)
            if later is not None:
                ctx.queue.give_back(later, now=now)
        self.of_site(ctx, Outcome.NO_IP, answer.error, now)
        self._filling.filled(now)

    def of_site(
        self, ctx: Context, outcome: Outcome, why: str, now: float, *, authority: str = ""
    ) -> None:
        """The server, not one page, failed: it rests longer each time; then all its pages keep it.

        With an `authority`, all pages of that scheme: whether the other one answers is not known.
        Failures in a row are counted once a rest, however many requests were under way.
        """
        if ctx.is_leaving and not ctx.flying:
            self._farewells.leave(ctx, now)
        if ctx.is_gone or ctx.is_leaving:
            return
        retry = ctx.rules.retry
        if now < ctx.failing_until:
            self._held.after_rest(ctx, now)
            return
        ctx.failures += 1
        if outcome in (Outcome.C_ERR, Outcome.C_TIM) and not why.startswith("tls:"):
            ctx.unanswered += 1
        ctx.address_expires = 0.0
        self._filling.touch(ctx).site_facts[ctx.site_id] = (ctx.address, ctx.failures)
        if ctx.failures >= retry.attempts:
            self._farewells.give_up(ctx, outcome, why, now, authority=authority)
            return
        ctx.failing_until = now + retry.gap(ctx.failures)
        ctx.host.rest(now, retry.gap(ctx.failures))
        self._held.after_rest(ctx, now)

    def retry_after(self, ctx: Context, capture: Capture, now: float) -> None:
        """The server says when: its host rests, and its address once two of its hosts say it."""
        value = parse_head(capture.head).get("retry-after", "") if capture.head else ""
        seconds = retry_after_s(value, now=now) if value else None
        if seconds is None or ctx.is_gone:
            return
        if seconds > ctx.rules.retry_after_max_s:
            self._farewells.give_up(ctx, Outcome.SKIP, f"parked:retry_after {seconds:g}", now)
            return
        ctx.host.rest(now, seconds)
        server = server_of(capture.address)
        said = self._retry_said.get(server)
        if said is not None and said[0] != ctx.site and said[1] > now:
            self._gaps.hold(server, min(said[1], now + seconds))
        elif len(self._retry_said) < _SERVERS:
            self._retry_said[server] = (ctx.site, now + seconds)
