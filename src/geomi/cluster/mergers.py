"""A merge carried out and taken back: pages of a second name go over, and come again.

Both wait until nobody holds the second name: it is recalled, and its pages are then written here.
Some thousand pages are moved in one transaction; what is left is known by its state.
"""

from __future__ import annotations

from collections import Counter

from geomi import url as urls
from geomi.cluster.plan import site_rules
from geomi.config import Settings
from geomi.frontier import alias_tables, aliases, counters, tables
from geomi.frontier.aliases import State
from geomi.frontier.queue import FIRST, Key
from geomi.frontier.tables import Known
from geomi.records import Reason, Wanted
from geomi.states import HAD
from geomi.store import Store

_PAGES_A_STEP = 2_000
_FIRST_CHECK_S = 3_600.0  # after a merge
_WHY = len(aliases.WHY)


class Mergers:
    """Moves pages. Whether names are one is decided elsewhere."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        # How far a move came, by pair. A move that begins anew finds what is left.
        self._waiting: dict[int, Key] = {}
        self._skipped: dict[int, int] = {}

    def step(self, *, run: int, now: float) -> int:
        """Goes on with all moves. Returns how many pages were moved, or moves ended."""
        done = 0
        for pair, state, kept, alias, _ in alias_tables.in_state(
            self._store, (State.MERGING, State.PARTING), limit=50
        ):
            with self._store.transaction():
                if not alias_tables.is_free(self._store, alias):
                    alias_tables.recall(self._store, alias)
                    continue
                if state is State.MERGING:
                    done += self._merge(pair, kept, alias, run=run, now=now)
                else:
                    done += self._part(pair, alias, run=run, now=now)
        return done

    # -- merging -----------------------------------------------------------------------------------

    def _merge(self, pair: int, kept_id: int, alias_id: int, *, run: int, now: float) -> int:
        """Some of what waits under the second name: wanted under the other one instead."""
        store = self._store
        after = self._waiting.get(pair, FIRST)
        rows = tables.window(store, alias_id, after=after, limit=_PAGES_A_STEP)
        kept = site_name(store, kept_id)
        rules = site_rules(self._settings, kept)
        wanted: list[Wanted] = []
        skipped: list[tuple[Known, str]] = []
        dropped: list[Known] = []
        for known in rows:
            twin = rules.twin(known.url, kept, known.kind, known.depth)
            if not twin or known.reason & aliases.VISITED:
                continue
            wanted.append(Wanted(
                url=twin, site=kept, reason=Reason.LINK, kind=known.kind, via=known.via,
                party=known.party, depth=known.depth, hops=known.hops,
            ))  # fmt: skip
            if known.outcome in HAD:  # it was to be visited again; its copy stays
                dropped.append(known)
            else:
                skipped.append((known, twin))
        tables.want(store, wanted)
        self._skip(alias_id, skipped, dropped, run=run)
        if len(rows) == _PAGES_A_STEP:
            self._waiting[pair] = rows[-1].rank, rows[-1].page
            return len(rows)
        self._waiting.pop(pair, None)
        alias_tables.set_state(store, pair, State.MERGED, now=now)
        store.run("UPDATE aliases SET next_look = ? WHERE pair = ?", (now + _FIRST_CHECK_S, pair))
        alias_tables.let_go(store, alias_id)
        counters.count(store, [("alias.merged", 1)])
        return len(rows) + 1

    def _skip(
        self, alias_id: int, skipped: list[tuple[Known, str]], dropped: list[Known], *, run: int
    ) -> None:
        store = self._store
        counts: Counter[str] = Counter()
        store.many(
            "UPDATE pages SET outcome = 'skip', why = ?, run = ? WHERE page = ?",
            [(aliases.WHY + twin, run, known.page) for known, twin in skipped],
        )
        store.many(
            "UPDATE seeds SET outcome = 'skip' WHERE url_hash = ? AND url = ?",
            [
                (urls.url_hash(known.url), known.url)
                for known, _ in skipped
                if known.kind == "s" and not known.hops
            ],
        )
        gone = [known for known, _ in skipped] + dropped
        store.many(tables.DROP_PENDING, [(alias_id, known.rank, known.page) for known in gone])
        for known, _ in skipped:
            counts["outcome." + known.outcome] -= 1
        counts["outcome.skip"] += len(skipped)
        counts["refused.alias"] += len(skipped)
        counts["pages.pending"] -= len(gone)
        tables.refresh_waiting(store, [alias_id])
        counters.count(store, counts.items())

    # -- parting -----------------------------------------------------------------------------------

    def part(self, pair: int, alias_id: int, *, ends: State, why: str, now: float) -> None:
        """Inside a transaction: the names are two from now on."""
        alias_tables.set_state(self._store, pair, State.PARTING, now=now, why=why, ends=str(ends))
        alias_tables.recall(self._store, alias_id)

    def _part(self, pair: int, alias_id: int, *, run: int, now: float) -> int:
        """Some of what was skipped is wanted again."""
        store = self._store
        after = self._skipped.get(pair, -(1 << 63))
        rows = store.all(
            "SELECT page, depth, url_hash FROM pages WHERE site_id = ? AND url_hash >= ?"
            f" AND outcome = 'skip' AND substr(why, 1, {_WHY}) = ? ORDER BY url_hash LIMIT ?",
            (alias_id, after, aliases.WHY, _PAGES_A_STEP),
        )
        want_skipped(store, alias_id, [row[:2] for row in rows], reason=Reason.LINK)
        if len(rows) == _PAGES_A_STEP:
            self._skipped[pair] = int(rows[-1][2])
            return len(rows)
        self._skipped.pop(pair, None)
        row = store.one("SELECT ends FROM aliases WHERE pair = ?", (pair,))
        ends = State(row[0]) if row and row[0] else State.UNDONE
        alias_tables.set_state(store, pair, ends, now=now)
        store.run(
            "UPDATE alias_tests SET verdict = 'unknown', decided = ? WHERE pair = ?"
            " AND verdict = ''",
            (now, pair),
        )
        self._want_again(alias_id, run)
        alias_tables.let_go(store, alias_id)
        counters.count(store, [(f"alias.{ends}", 1)])
        return len(rows) + 1

    def _want_again(self, alias_id: int, run: int) -> None:
        """In a run that visits all pages once more, its own too."""
        store = self._store
        if store.one("SELECT 1 FROM runs WHERE run = ? AND kind = 'again'", (run,)) is None:
            return
        number = store.run(
            "INSERT INTO pending (site_id, depth, page, reason, not_before, weight, tries)"
            " SELECT site_id, depth, page, ?, 0, 0, 0 FROM pages WHERE site_id = ? AND run < ?"
            " AND outcome NOT IN ('skip', 'bad', 'erased', 'NULL')"
            " AND page NOT IN (SELECT page FROM pending WHERE site_id = ?)",
            (int(Reason.AGAIN), alias_id, run, alias_id),
        )
        counters.count(store, [("pages.pending", number)])
        tables.refresh_waiting(store, [alias_id])


def want_skipped(
    store: Store, site_id: int, pages: list[tuple[int, int]], *, reason: Reason
) -> None:
    """Skipped (page, depth) of a site that nobody holds wait again."""
    if not pages:
        return
    store.many(
        "UPDATE pages SET outcome = 'NULL', why = '' WHERE page = ?", [(page,) for page, _ in pages]
    )
    store.many(
        tables.PUT_PENDING, [(site_id, depth, page, int(reason), 0.0, 0.0, 0)
                             for page, depth in pages],
    )  # fmt: skip
    number = len(pages)
    counters.count(
        store,
        [("outcome.skip", -number), ("outcome.NULL", number), ("pages.pending", number)],
    )
    tables.refresh_waiting(store, [site_id])


def site_name(store: Store, site_id: int) -> str:
    row = store.one("SELECT site FROM sites WHERE site_id = ?", (site_id,))
    assert row is not None
    return str(row[0])
