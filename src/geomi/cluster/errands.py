"""What an agent asks of the store: which call carries a command out, and the event that answers it.

The shell and the simulator do the same errands; they differ in who runs them, and when.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from geomi.cluster import leases, parts
from geomi.cluster.agent import Agent
from geomi.cluster.commands import (
    Ask,
    Claim,
    Command,
    Drain,
    Draw,
    Leased,
    Letter,
    Level,
    Load,
    Rebuild,
    Release,
    Renew,
    Share,
    TakeIds,
    Write,
)
from geomi.cluster.context import Plan
from geomi.cluster.ledger import Ledger, Written
from geomi.frontier import counters
from geomi.frontier import tables as frontier_tables
from geomi.frontier.slots import Slot
from geomi.store import Store

#: Work for whoever owns the store, and what the agent is told of its result.
Errand = tuple[Callable[[], Any], Callable[[Any], None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errands:
    """For one agent. Its errands are run in the order of its commands, one at a time.

    But for `Rebuild`, which may be run beside them: the filter it is for has what this agent found,
    and nobody else writes pages of a leased site.
    """

    agent: Agent
    plan: Plan
    store: Store
    ledger: Ledger
    now: Callable[[], float]  # of the agent: does not jump
    date: Callable[[], float]  # of the store: leases are in it
    reading: Callable[[], AbstractContextManager[Store]]  # the store, for what runs beside
    # How far `now` may be from `date`, and what a second adds to that.
    error: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)
    # Leases that the store has for us and we know nothing of: the answer to a grant was lost.
    # Seen once, and seen twice: given back at the next renewal.
    strangers: set[int] = field(default_factory=set)
    disowned: list[int] = field(default_factory=list)

    def of(self, command: Command) -> Errand:
        """KeyError if it is no errand to the store."""
        agent, plan, store, now, date = self.agent, self.plan, self.store, self.now, self.date
        asked = now()

        def renewed(got: tuple[list[int], list[tuple[str, Slot]]]) -> None:
            held, slots = got
            strange = agent.strange(held)
            self.disowned[:] = sorted(strange & self.strangers)
            self.strangers.clear()
            self.strangers.update(strange)
            agent.renewed(held, asked=asked, slots=slots, now=now())

        match command:
            case Ask(number):
                return (
                    lambda: leases.grant(store, plan, number, now=date()),
                    lambda got: agent.leased(Leased(leases=got, asked=asked), now=now()),
                )
            case Renew():
                return (
                    lambda: (
                        leases.renew(store, plan, now=date(), disown=self.disowned),
                        parts.widen(store, plan, now=date()),
                    ),
                    renewed,
                )
            case Load():
                return (
                    lambda: leases.load(
                        store, site_id=command.site_id, epoch=command.epoch, after=command.after,
                        limit=command.limit, is_first=command.is_first,
                        has_page_limit=plan.has_page_limit, has_prefix=plan.has_prefix,
                    ),
                    lambda loaded: agent.loaded(loaded, now=now()),
                )  # fmt: skip
            case Rebuild(site_id, epoch, after):
                limit = leases.REBUILD_LIMIT

                def hashes() -> list[int]:
                    with self.reading() as reader:
                        return frontier_tables.hashes(reader, site_id, after=after, limit=limit)

                return (
                    hashes,
                    lambda rows: agent.rebuilt(site_id, epoch, rows, limit=limit, now=now()),
                )
            case Drain(sites):

                def drained() -> tuple[list[Letter], list[tuple[int, str]], list[str]]:
                    letters = leases.drain(store, sites)
                    return letters, leases.meant_for_others(store, plan), parts.wished(store, plan)

                def letters(got: tuple[list[Letter], list[tuple[int, str]], list[str]]) -> None:
                    agent.heard(*self.error(), now=now())
                    agent.letters(got[0], meant=got[1], wished=got[2], now=now())

                return drained, letters
            case Claim(site_id):
                return (
                    lambda: parts.claim(store, plan, command, now=date()),
                    lambda answer: agent.claimed(site_id, answer, now=now()),
                )
            case Share(key):
                return (
                    lambda: parts.share(store, plan, command, now=date()),
                    lambda slot: agent.shared(key, slot, now=now()),
                )
            case TakeIds(number):
                return (
                    lambda: _take_ids(store, number),
                    lambda first: agent.ids(first, now=now()),
                )
            case Draw(number):
                return (
                    lambda: leases.draw(store, number),
                    lambda share: agent.drawn(share, now=now()),
                )
            case Level():
                return (
                    lambda: leases.level(store, plan, now=date()),
                    lambda rank: agent.level(rank, now=now()),
                )
            case Release():
                return (lambda: leases.release(store, plan, command, now=date()), lambda _: None)
            case Write(batch):

                def written(result: Written) -> None:
                    for file, by in result.grown:
                        agent.grew(file, by)
                    agent.written(batch, result.committed, now=now())

                return (lambda: self.ledger.write(batch), written)
        raise KeyError(command)


def _take_ids(store: Store, number: int) -> int:
    with store.transaction():
        return counters.take_ids(store, "page", number)
