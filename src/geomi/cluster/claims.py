"""Claims: during a lease the address of a site, and its groups, are this agent's alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from geomi.cluster.commands import Claim, Claimed, Command
from geomi.cluster.context import Context

#: What happens once the keys are ours.
Then = Callable[[Claimed, float], None]


class Claims:
    """Keys that contexts of this agent need, and contexts that wait for one."""

    def __init__(self, *, out: list[Command]) -> None:
        self._needed: Counter[str] = Counter()  # contexts that need a claimed key
        self._waiting: dict[int, tuple[Context, Then]] = {}
        self._out = out

    def needed(self, key: str) -> int:
        """How many contexts need a key."""
        return self._needed[key]

    def ask(
        self, ctx: Context, keys: tuple[str, ...], then: Then, *, host: str = "", address: str = "",
        may_share: bool = True,
    ) -> None:  # fmt: skip
        for key in keys:
            if key not in ctx.claims:
                self._needed[key] += 1
        ctx.claims = tuple(dict.fromkeys((*ctx.claims, *keys)))
        self._waiting[ctx.site_id] = (ctx, then)
        self._out.append(Claim(ctx.site_id, keys, host, address, may_share))

    def came(self, site_id: int) -> tuple[Context, Then] | None:
        """Who waited for the answer that came; None: nobody any more."""
        waiting = self._waiting.pop(site_id, None)
        return None if waiting is None or waiting[0].is_gone else waiting

    def free(self, ctx: Context) -> tuple[str, ...]:
        """A context goes: the keys that nobody else here needs."""
        self._waiting.pop(ctx.site_id, None)
        free = []
        for key in ctx.claims:
            self._needed[key] -= 1
            if self._needed[key] <= 0:
                del self._needed[key]
                free.append(key)
        ctx.claims = ()
        return tuple(free)
