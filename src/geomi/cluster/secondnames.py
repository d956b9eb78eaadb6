"""Letters for a second name of a site: their pages are wanted under the name that is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from geomi.cluster.plan import site_rules
from geomi.config import Settings
from geomi.frontier import alias_tables, aliases, tables
from geomi.records import Reason, Wanted
from geomi.store import Store


class SecondNames:
    """Letters for names that are another name of a site: one delivery of the coordinator's."""

    def __init__(self, store: Store, settings: Settings, sites: Iterable[str]) -> None:
        self._store = store
        self._settings = settings
        self._names = alias_tables.second_names(store, sites)
        self._wanted: list[Wanted] = []
        self._seeds: list[int] = []

    def why(self, letter: Sequence[Any]) -> str:
        """Why its URL is not asked for; empty: it is. Noted is what follows, see settle()."""
        _, site, url, kind, via, depth, party, reason, _, weight, hops, *_ = letter
        if site not in self._names or reason & aliases.VISITED:
            return ""
        _, kept = self._names[site]
        twin = site_rules(self._settings, kept).twin(url, kept, kind, depth)
        if not twin:
            return ""
        self._wanted.append(Wanted(
            url=twin, site=kept, reason=Reason(reason), kind=kind, via=via, party=party,
            depth=depth, hops=hops, weight=weight,
        ))  # fmt: skip
        if kind == "s" and not hops:
            self._seeds.append(party)
        return aliases.WHY + twin

    def settle(self) -> None:
        """Wants the pages under the names that are kept."""
        tables.want(self._store, self._wanted)
        self._store.many(
            "UPDATE seeds SET outcome = 'skip' WHERE seed = ?", [(seed,) for seed in self._seeds]
        )
