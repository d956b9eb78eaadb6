"""The index of payloads in the simulator: real tables in memory, asked at once."""

from __future__ import annotations

import random
from collections.abc import Callable

from geomi.archive import duplicates_tables as tables
from geomi.archive.duplicates import NOTHING_MET, Met
from geomi.cluster.asking import digest_of
from geomi.cluster.batch import Batch
from geomi.cluster.context import Plan
from geomi.cluster.digests import Asked, Index, Neighbour
from geomi.cluster.payloads import key_of_capture, may_refer
from geomi.cluster.simfiles import SimFiles
from geomi.cluster.simstore import SimStore
from geomi.config import Settings
from geomi.errors import OperatorError
from geomi.history.past import Past
from geomi.records import Capture
from geomi.store import SQLITE, Store
from geomi.store.migrate import migrate

NAME = "simulation"


class SimIndex:
    """One for all agents. `voids`: digests of confirmed meaningless pages."""

    def __init__(
        self, store: Store, files: SimFiles, settings: Settings, *, tick: Callable[[str], None]
    ) -> None:
        place: Store = store
        if store.dialect == SQLITE:
            place = SimStore(tick)
            migrate(place, tables.INDEX_FILE, where="simulation")
        with place.transaction():
            home = tables.register(place, NAME, folder="", address="")
        self.voids: set[str] = set()
        self.index = Index(
            place, store, home=home, name=NAME, others=_nobody,
            past=lambda: Past.of(store, lambda name: files.readable(f"/sim/{name}")),
            least_bytes=settings.archive.duplicate_bytes,
        )  # fmt: skip

    def stored(self, batch: Batch) -> None:
        self.index.add(batch.agent, batch.incarnation, locations=batch.references.places())

    def catch_up(self) -> None:
        self.index.catch_up()

    def power_cut(self, rng: random.Random) -> None:
        """Its commits are not synced: the last ones may be gone; here, now and then, all."""
        if rng.random() < 0.5:
            with self.index.store.transaction():
                tables.empty(self.index.store, self.index.home)

    def payloads(self, plan: Plan) -> SimPayloads:
        return SimPayloads(self, plan)


class SimPayloads:
    """cluster.payloads.Payloads of one agent."""

    def __init__(self, sim: SimIndex, plan: Plan) -> None:
        self._sim = sim
        self._plan = plan

    def met(self, capture: Capture) -> Met:
        digest = digest_of(capture)
        if not digest:
            return NOTHING_MET
        is_void = digest in self._sim.voids
        if not may_refer(capture, self._plan):
            return Met(digest=digest, is_void=is_void)
        key = key_of_capture(capture, digest)
        found = self._sim.index.find([Asked(key, digest, capture.code)])
        return Met(digest=digest, original=found.get(key), is_void=is_void)


def _nobody(folder: str, address: str) -> Neighbour:
    raise OperatorError("the simulator has one collection")
