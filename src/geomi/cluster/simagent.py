"""One agent process of the simulation, and what the simulator remembers of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from geomi.cluster.agent import Agent
from geomi.cluster.errands import Errands
from geomi.cluster.ledger import Ledger


@dataclass(slots=True)
class SimAgent:
    """One agent process of the simulation."""

    name: str
    incarnation: int
    machine: Agent
    ledger: Ledger
    errands: Errands
    store_free: float = 0.0
    wake_at: float = float("inf")
    is_dead: bool = False
    is_closing: bool = False
    is_done: bool = False
    aborted: set[int] = field(default_factory=set)
    stopped_until: float = 0.0  # SIGSTOP: nothing of it runs before
