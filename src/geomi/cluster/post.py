"""The post: letters for sites that nobody holds become pages, and unknown sites are let in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from geomi import url as urls
from geomi.cluster.admitted import known_sites
from geomi.cluster.context import SiteRules
from geomi.cluster.found import NewPage, found_nearer, page_row, revive
from geomi.cluster.givenup import refused_as
from geomi.cluster.plan import site_rules
from geomi.cluster.secondnames import SecondNames
from geomi.config import Settings
from geomi.frontier import counters, maybes, retry, tables
from geomi.frontier.scope import prefix_of
from geomi.frontier.tables import Known
from geomi.records import PASSES_SEEN
from geomi.seeds import tables as seeds_tables
from geomi.store import SQLITE, Store

LETTERS_A_STEP = 5_000

_LETTERS = (
    "SELECT i.letter, i.site, i.url, i.kind, i.via, i.depth, i.party, i.reason,"
    " i.not_before, i.weight, i.hops, i.admit, s.site_id FROM inbox i"
    " LEFT JOIN sites s ON s.site = i.site WHERE {} ORDER BY i.letter LIMIT ?"
)
#: Nobody may be given these sites before their letters are pages. Letters are read after this, so
#: none of them was drained by a holder who has gone since.
_LOCK_FREE = (
    "SELECT site_id FROM sites WHERE holder = '' AND site IN (SELECT site FROM inbox)"
    " ORDER BY site_id LIMIT ? FOR UPDATE SKIP LOCKED"
)


class Post:
    """Delivers, for the coordinator. `admit` lets a site in and gives its id."""

    def __init__(self, store: Store, settings: Settings, *, admit: Callable[..., int]) -> None:
        self._store = store
        self._settings = settings
        self._admit = admit

    def deliver(self, *, run: int, now: float) -> int:
        """Some thousand letters in one transaction; how many were taken."""
        store = self._store
        if store.one("SELECT 1 FROM inbox LIMIT 1") is None:
            return 0
        if store.dialect == SQLITE:
            with store.transaction():
                letters = store.all(
                    _LETTERS.format("s.holder IS NULL OR s.holder = ''"), (LETTERS_A_STEP,)
                )
                if letters:
                    first = counters.take_ids(store, "page", len(letters))
                    self._take_in(letters, first, run=run, now=now)
            return len(letters)
        row = store.one(f"SELECT count(*) FROM (SELECT 1 FROM inbox LIMIT {LETTERS_A_STEP}) AS i")
        number = int(row[0]) if row else 0
        with store.transaction():  # of its own: agents want ids too
            first = counters.take_ids(store, "page", number)
        with store.transaction():
            free = [row[0] for row in store.all(_LOCK_FREE, (LETTERS_A_STEP,))]
            letters = store.all(
                _LETTERS.format("s.site_id IS NULL OR s.site_id = ANY(?)"), (free, number)
            )
            if letters:
                letters = self._take_in(letters, first, run=run, now=now)
        return len(letters)

    def _take_in(
        self, letters: Sequence[tuple[Any, ...]], first: int, *, run: int, now: float
    ) -> list[tuple[Any, ...]]:
        """Letters to pages, numbered from `first`; those that were taken."""
        store = self._store
        ids: dict[str, int] = {}
        rules: dict[str, SiteRules] = {}
        sums = _Sums()
        firsts: dict[str, int] = {}
        taken: list[tuple[Any, ...]] = []
        news: list[NewPage] = []
        closed: set[str] = set()  # sites that were deleted: what leads there is forgotten
        admitted = known_sites(store, {row[1] for row in letters})
        others = SecondNames(store, self._settings, {row[1] for row in letters})
        for place, row in enumerate(letters):
            _, site, url, kind, via, depth, party, reason, not_before, weight, hops, admit, _ = row
            if site not in ids:
                if site not in admitted and kind != "s":
                    number, _ = seeds_tables.add_seed(
                        store, url, url_hash=urls.url_hash(url), site=site, labels={},
                        source="found", now=now,
                    )  # fmt: skip
                    firsts[site] = number
                if row[-1] is not None and site in admitted:
                    ids[site] = row[-1]
                else:
                    ids[site] = self._admit(site, admitted=admit or "rule", now=now)
                    if self._is_held(ids[site]):
                        ids[site] = 0  # another writer admitted it, and an agent has it already
                rules[site] = rules_with_prefixes(store, self._settings, site, ids[site])
                if tables.is_refused(store, ids[site]):
                    closed.add(site)
            if not ids[site]:
                continue
            taken.append(row)
            if site in closed:
                continue
            if kind != "s":
                if site not in firsts:
                    seed = store.one("SELECT min(seed) FROM seeds WHERE site = ?", (site,))
                    firsts[site] = int(seed[0]) if seed and seed[0] else 0
                party = firsts[site] or party
            scope = rules[site].scope
            # A seed itself was given by name; where its redirect leads is judged.
            why = "" if kind == "s" and not hops else scope.refusal(url, kind, depth)
            why = why or rules[site].valves.refusal(url, depth)
            why = why or others.why(row)
            limit = rules[site].max_pages
            if not why and limit is not None and kind != "e":
                self._put(news, sums)
                news = []
                have = store.one(
                    "SELECT count(*) FROM pages WHERE party = ? AND site_id = ?"
                    " AND outcome <> 'skip' AND kind <> 'e'",
                    (party, ids[site]),
                )
                if have is not None and have[0] >= limit:
                    why = "max_pages"
            known = Known(
                first + place, url, retry.rank(depth, weight=weight), depth, party, kind, via,
                hops, "skip" if why else "NULL", 0, 0, "", "", "", "", "", "", reason, not_before,
                0,
            )  # fmt: skip
            may_be_nearer = scope.max_depth is not None
            news.append(
                NewPage(ids[site], known, urls.url_hash(url), now, run, why, True, may_be_nearer)
            )
        self._put(news, sums)
        others.settle()
        store.many("DELETE FROM inbox WHERE letter = ?", [(row[0],) for row in taken])
        store.many(
            "UPDATE seeds SET pages = pages + ? WHERE seed = ?",
            [(number, seed) for seed, number in sorted(sums.parties.items())],
        )
        store.many(
            "UPDATE sites SET waiting = waiting + ?, next_due = 0 WHERE site_id = ?",
            [(delta, site_id) for site_id, delta in sorted(sums.waiting.items())],
        )
        sums.counts["pages.pending"] += sum(sums.waiting.values())
        counters.count(store, sums.counts.items())
        return taken

    def _is_held(self, site_id: int) -> bool:
        """The row was just written, so it is ours until the end."""
        row = self._store.one("SELECT holder FROM sites WHERE site_id = ?", (site_id,))
        return row is not None and row[0] != ""

    def _put(self, news: Sequence[NewPage], sums: _Sums) -> None:
        """Pages that are not there wait; of the others those that another way in changes."""
        store = self._store
        fresh: list[NewPage] = []
        there: list[NewPage] = []
        for new, is_new in zip(
            news, maybes.put_maybes(store, [page_row(new) for new in news]), strict=True
        ):
            if is_new:
                sums.counts["pages.known"] += 1
                sums.counts["outcome." + new.known.outcome] += 1
                if new.why:
                    sums.counts[refused_as(new.why)] += 1
            if not new.why:
                (fresh if is_new else there).append(new)
        self._wait(fresh, sums)
        changeable = maybes.changeable(store, [page_row(new) for new in there])
        for new, may_change in zip(there, changeable, strict=True):
            if not (may_change or new.known.reason & PASSES_SEEN):
                continue
            if new.may_be_nearer and found_nearer(store, new) is not None:
                continue
            if (back := revive(store, new, sums.counts)) is not None:
                self._wait([back], sums)

    def _wait(self, news: Sequence[NewPage], sums: _Sums) -> None:
        self._store.many(
            tables.PUT_PENDING,
            [
                (n.site_id, n.known.rank, n.known.page, n.known.reason, n.known.not_before, 0.0, 0)
                for n in news
            ],
        )
        for new in news:
            sums.waiting[new.site_id] += 1
            if not new.known.reason & PASSES_SEEN:
                sums.parties[new.known.party] += 1


class _Sums:
    """What is written once at the end of a delivery."""

    def __init__(self) -> None:
        self.waiting: Counter[int] = Counter()  # by site
        self.parties: Counter[int] = Counter()  # pages by seed
        self.counts: Counter[str] = Counter()


def rules_with_prefixes(store: Store, settings: Settings, site: str, site_id: int) -> SiteRules:
    """The rules of a site; where they speak of a seed's directory, with those of its seeds."""
    rules = site_rules(settings, site)
    if not rules.is_prefix:
        return rules
    starts = store.all(
        "SELECT url FROM pages WHERE site_id = ? AND kind = 's' AND depth = 0", (site_id,)
    )
    prefixes = tuple(sorted({prefix_of(url) for (url,) in starts}))
    return replace(rules, scope=replace(rules.scope, prefixes=prefixes))
