"""Which sites are in; and that no link to one slips by at the moment it is let in."""

from __future__ import annotations

from collections.abc import Iterable

from geomi.records import Reason
from geomi.store import SQLITE, Store

#: The room of those who decide by the admitted sites what becomes of a link (Store.enter).
OUTSIDE = "outside"


def known_sites(store: Store, sites: Iterable[str]) -> set[str]:
    """Those of `sites` that are admitted."""
    names = list(sites)
    found: set[str] = set()
    for start in range(0, len(names), 500):
        some = names[start : start + 500]
        marks = ",".join("?" * len(some))
        found.update(
            row[0]
            for row in store.all(
                f"SELECT site FROM sites WHERE site IN ({marks}) AND admitted <> 'import'", some
            )
        )
    return found


def move_outside(store: Store, site: str, admitted: str) -> int:
    """What was remembered of a site from outside is wanted; how many URLs."""
    moved = store.run(
        "INSERT INTO inbox (site, url, kind, via, depth, party, reason, not_before, weight,"
        " hops, admit) SELECT site, url, kind, via, depth, party, ?, 0, 0, 0, ? FROM outside"
        " WHERE site = ?",
        (int(Reason.LINK), admitted, site),
    )
    store.run("DELETE FROM outside WHERE site = ?", (site,))
    return moved


class Latecomers:
    """Links that were on their way to `outside` while their site was admitted.

    Who commits a link looks whether its site is in. Where many write at a time, one that looked
    before may commit after the admission. So once all who were in the room at the admission are
    gone, `outside` is looked at once more. (With one writer at a time there is nobody.)
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # Filled by admitted(), emptied by look(): sites not looked at, and who was in the room.
        self._sites: dict[str, str] = {}
        self._before: frozenset[str] | None = None
        self._waiting: dict[str, str] = {}

    def admitted(self, site: str, rule: str) -> None:
        """A site was let in, in a transaction that is to be committed before the next look."""
        if self._store.dialect != SQLITE:
            self._sites[site] = rule

    @property
    def are_awaited(self) -> bool:
        return bool(self._sites or self._waiting)

    def look(self) -> int:
        """One look; how many links were found. Waits for nobody."""
        if self._before is None:
            if not self._sites:
                return 0
            self._waiting, self._sites = self._sites, {}
            self._before = self._store.present(OUTSIDE)
        if self._before and self._before & self._store.present(OUTSIDE):
            return 0
        with self._store.transaction():
            moved = sum(move_outside(self._store, *one) for one in self._waiting.items())
        self._waiting, self._before = {}, None
        return moved

    def look_at_all(self) -> int:
        """Every admitted site: what a coordinator that died may have left."""
        if self._store.dialect == SQLITE:
            return 0
        with self._store.transaction():
            sites = self._store.all(
                "SELECT DISTINCT o.site, s.admitted FROM outside o JOIN sites s ON s.site = o.site"
            )
            return sum(move_outside(self._store, *one) for one in sites)
