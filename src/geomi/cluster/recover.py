"""What dead agents left on this machine: their files, leases and claims are taken over."""

from __future__ import annotations

import os

from geomi.archive.files import Lock, RealFiles
from geomi.cluster import node, tables
from geomi.cluster.collection import Collection
from geomi.cluster.ledger import Ledger
from geomi.cluster.plan import longest_gap_s
from geomi.config import Settings
from geomi.store import Store


def recover(collection: Collection, store: Store, settings: Settings) -> int:
    """Keeps the committed part of each file they left open, frees their sites; their number.

    An agent is dead when its flock can be taken. That can be seen on its own machine alone, so
    agents of other machines are left to those: their leases end by themselves.
    """
    recovered = 0
    here = node.here()
    files = RealFiles()
    ledger = Ledger(
        store=store, files=files, where=collection.kept_path, level=settings.archive.level,
        now=store.now, rest_s=longest_gap_s(settings),
    )  # fmt: skip
    for agent, incarnation, host, _, _ in tables.running_agents(store):
        if host != here:
            continue
        lock = Lock(collection.lock_path(f"{agent}-{incarnation}"))
        if not lock.take():
            continue
        try:
            ledger.recover(agent, incarnation)
            collection.clear_spool(agent, incarnation)
            recovered += 1
        finally:
            lock.release()
            try:
                os.unlink(lock.path)
            except FileNotFoundError:  # somebody else recovered it too: harmless
                pass
    files.close()
    return recovered
