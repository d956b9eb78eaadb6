"""Sites change hands while a crawl goes on: the coordinator means them for another, who has few.

Their holder hears of it, ends what is under way, and gives them back with all that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from geomi.cluster import parts
from geomi.cluster import tables as cluster_tables
from geomi.cluster.balance import LOOKED_AT, Balance, Held, crowded, even
from geomi.cluster.plan import site_rules
from geomi.config import Settings
from geomi.frontier import counters
from geomi.store import Store


class Sharing:
    """Between agents that have none and who has most, and between those who serve one address."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._balance = Balance()
        self._is_own = lru_cache(maxsize=10_000)(
            lambda site: site_rules(settings, site).manners.is_own
        )
        self._groups = lru_cache(maxsize=100_000)(
            lambda site: tuple(f"group:{name}" for name in site_rules(settings, site).groups)
        )

    @property
    def promised(self) -> frozenset[str]:
        """Agents without a site that some are meant for."""
        return self._balance.promised

    def look(self, now: float) -> None:
        balance, store = self._balance, self._store
        if not balance.is_time(now):
            return
        running = [f"{name}/{number}" for name, number, *_ in cluster_tables.running_agents(store)]
        if len(running) < 2:
            return
        rows = store.all("SELECT holder, count(*) FROM sites WHERE holder <> '' GROUP BY holder")
        sites = {str(holder): int(number) for holder, number in rows}
        richest, dry = balance.look(sites, running)
        if store.one("SELECT 1 FROM sites WHERE go_to <> '' LIMIT 1"):
            return  # what was meant for somebody is still on its way
        if richest:
            self._share_out(richest, dry)
        elif balance.is_time_to_even(now):
            self._even(sites)

    def _share_out(self, richest: str, dry: list[str]) -> None:
        """Who has no site is meant to have some of who has most."""
        store = self._store
        held = [
            Held(*row)
            for row in store.all(
                "SELECT site_id, site, address, waiting FROM sites WHERE holder = ?"
                " AND holder <> '' ORDER BY waiting DESC, site_id LIMIT ?",
                (richest, LOOKED_AT),
            )
        ]
        slots = parts.takers(store)
        most = self._settings.manners.address_slots

        given = self._balance.share(
            held, dry, is_alone=self._is_own,
            divided={key for key, holders in slots.items() if len(holders) + len(dry) <= most},
        )  # fmt: skip
        wished = crowded(one.address for one in held if one.address not in slots)
        if most > 1 and wished:
            with store.transaction():
                parts.wish(store, wished, holder=richest)
        self._mean(given)

    def _even(self, sites: Mapping[str, int]) -> None:
        """Who serves an address with others is meant to have as many sites as its time is for."""
        slots = parts.takers(self._store)
        if not any(len(holders) > 1 for holders in slots.values()):
            return
        room = {
            holder: self._settings.agent.contexts - sites.get(holder, 0)
            for holders in slots.values() for holder in holders
        }  # fmt: skip
        has_groups = any(key.startswith("group:") for key in slots)
        self._mean(even(
            (
                (site_id, holder, (address, *(self._groups(site) if has_groups else ())))
                for site_id, site, holder, address in self._store.all(
                    "SELECT site_id, site, holder, address FROM sites WHERE holder <> ''"
                    " ORDER BY site_id"
                )
            ),
            slots, room,
        ))  # fmt: skip

    def _mean(self, given: Mapping[int, str]) -> None:
        if given:
            with self._store.transaction():
                self._store.many(
                    "UPDATE sites SET go_to = ? WHERE site_id = ? AND holder <> ''",
                    [(taker, site_id) for site_id, taker in sorted(given.items())],
                )
                counters.count(self._store, [("sites.shared_out", len(given))])
