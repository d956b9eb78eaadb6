"""The coordinator: a small loop over the store. Per-page traffic never passes through it.

Gives committed batches their number, takes back leases that ended, delivers letters to sites nobody
holds, admits new sites, wants again what a looser scope lets in, and knows when the crawl is over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from geomi import url as urls
from geomi.cluster import tables as cluster_tables
from geomi.cluster.batch import known_sites
from geomi.cluster.context import SiteRules
from geomi.cluster.found import NewPage, found_nearer, page_row, revive
from geomi.cluster.plan import admission, site_rules
from geomi.cluster.standing import Standing, standing
from geomi.config import Settings
from geomi.errors import OperatorError
from geomi.frontier import retry, tables
from geomi.frontier.scope import Admission, prefix_of
from geomi.frontier.tables import Known
from geomi.history import tables as history_tables
from geomi.records import PASSES_SEEN, Reason, Wanted
from geomi.seeds import tables as seeds_tables
from geomi.seeds.lists import Seed
from geomi.store import Store

LETTERS_A_STEP = 5_000
OUTSIDE_A_STEP = 200


class Coordinator:
    """One a collection. Holds the collection's lock through its owner."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._admission: Admission = admission(settings, store)

    # -- beginning a run ---------------------------------------------------------------------------

    def begin(self, *, again: bool, options: Mapping[str, object], now: float) -> int:
        """The run to work in: the unfinished one goes on, else a new one begins."""
        last = cluster_tables.last_run(self._store)
        text = json.dumps(dict(options), default=str, sort_keys=True)
        with self._store.transaction():
            if last is not None and last[2] != "done" and not again:
                run = int(last[0])
                self._store.run("UPDATE runs SET settings = ? WHERE run = ?", (text, run))
                cluster_tables.set_run(self._store, run, "running", "", now)
            else:
                if last is not None and last[2] != "done":
                    cluster_tables.set_run(self._store, int(last[0]), "done", "superseded", now)
                kind = "again" if again else "first" if last is None else "more"
                run = cluster_tables.begin_run(self._store, kind, text, now)
                if again:
                    self._want_all_again(now)
            self._store.run("UPDATE sites SET state = 'open', why = '' WHERE state = 'parked'")
            self._store.run("UPDATE sites SET failures = 0, go_to = '' WHERE holder = ''")
            # Hours may have been changed: whoever takes the site looks, and rests it in full first.
            self._store.run(
                "UPDATE sites SET why = '', rest_until = 0, clean = 0"
                " WHERE holder = '' AND state = 'open' AND why = ?",
                (tables.CLOSED,),
            )
        return run

    def _want_all_again(self, now: float) -> None:
        """Every page that was ever asked is visited once more; the often failed come last."""
        self._store.run(
            "INSERT INTO pending (site_id, depth, page, reason, not_before, weight, tries)"
            " SELECT site_id, depth + min(fails, 8) * 4, page, ?, 0, 0, 0 FROM pages"
            " WHERE outcome NOT IN ('skip', 'bad') AND page NOT IN (SELECT page FROM pending)"
            " ON CONFLICT (site_id, depth, page) DO NOTHING",
            (int(Reason.AGAIN),),
        )
        self._store.run("UPDATE pending SET not_before = 0, tries = 0")
        self._recount()

    def _recount(self) -> None:
        """Waiting pages of all sites, counted anew after a bulk change."""
        self._store.run(
            "UPDATE sites SET waiting = coalesce((SELECT n FROM (SELECT site_id AS s, count(*) AS n"
            " FROM pending GROUP BY site_id) c WHERE c.s = sites.site_id), 0), next_due = 0"
        )
        row = self._store.one("SELECT count(*) FROM pending")
        have = tables.counters(self._store).get("pages.pending", 0)
        tables.count(self._store, [("pages.pending", int(row[0] if row else 0) - have)])

    def set_quota(self, visits: int | None) -> None:
        with self._store.transaction():
            self._store.run("DELETE FROM counters WHERE name = 'quota'")
            if visits is not None:
                tables.count(self._store, [("quota", visits)])

    def add_seeds(self, seeds: Iterable[Seed], *, now: float) -> int:
        """Seeds and their sites; each seed's own page is wanted. Returns how many are new."""
        new = 0
        with self._store.transaction():
            for seed in seeds:
                site = urls.site_of(seed.url)
                number, is_new = seeds_tables.add_seed(
                    self._store, seed.url, url_hash=urls.url_hash(seed.url), site=site,
                    labels=seed.labels, source=seed.source, now=now,
                )  # fmt: skip
                if is_new:
                    new += 1
                    self._admit(site, admitted="given", now=now)
                    start = Wanted(
                        url=seed.url, site=site, reason=Reason.SEED, kind="s", party=number
                    )
                    tables.want(self._store, [start], admit="seed")
        self._admission = admission(self._settings, self._store)
        return new

    def _admit(self, site: str, *, admitted: str, now: float) -> int:
        """A site is in from now on; what was remembered of it from outside is wanted."""
        domain = urls.domain_of(urls.host_of(site))
        site_id = tables.add_site(self._store, site, domain=domain, admitted=admitted, now=now)
        self._store.run(
            "INSERT INTO inbox (site, url, kind, via, depth, party, reason, not_before, weight,"
            " hops, admit) SELECT site, url, kind, via, depth, party, ?, 0, 0, 0, ? FROM outside"
            " WHERE site = ?",
            (int(Reason.LINK), admitted, site),
        )
        self._store.run("DELETE FROM outside WHERE site = ?", (site,))
        return site_id

    # -- scope -------------------------------------------------------------------------------------

    def widen(self, *, run: int, now: float) -> int:
        """Wants what the settings let in now and did not before. Returns how many pages."""
        mark = json.dumps(
            [
                self._settings.dump().get(name) for name in ("crawl", "seeds", "guard", "traps")
            ]
            + [
                {  # who we are to a site is no matter of scope, and may be secret
                    host: {name: value for name, value in table.items() if "access." not in name}
                    for host, table in self._settings.site.items()
                },
                list(self._settings.manners.own),
            ],
            default=str, sort_keys=True,
        )  # fmt: skip
        row = self._store.one("SELECT value FROM meta WHERE name = 'scope'")
        if row is not None and row[0] == mark:
            return 0
        wanted = 0
        with self._store.transaction():
            if row is not None:
                wanted = self._revive(run)
                self._admit_outside(now)
            self._store.run(
                "INSERT INTO meta (name, value) VALUES ('scope', ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (mark,),
            )
        return wanted

    def _revive(self, run: int) -> int:
        """Skipped pages that the scope no longer refuses."""
        rules: dict[int, SiteRules] = {}
        revived: list[tuple[int, int, int]] = []
        limits: Counter[int] = Counter()
        for page, site_id, site, url, kind, depth, party, why in self._store.all(
            "SELECT p.page, p.site_id, s.site, p.url, p.kind, p.depth, p.party, p.why"
            " FROM pages p JOIN sites s ON s.site_id = p.site_id WHERE p.outcome = 'skip'"
            " ORDER BY p.page"
        ):
            rule = rules.get(site_id)
            if rule is None:
                rule = rules[site_id] = self._rules_with_prefixes(site, site_id)
            if why == "max_pages":
                if party not in limits:
                    limits[party] = int((self._store.one(
                        "SELECT count(*) FROM pages WHERE party = ? AND site_id = ?"
                        " AND outcome <> 'skip' AND kind <> 'e'", (party, site_id),
                    ) or (0,))[0])  # fmt: skip
                if rule.max_pages is not None and limits[party] >= rule.max_pages:
                    continue
                limits[party] += 1
            if not (rule.scope.refusal(url, kind, depth) or rule.valves.refusal(url, depth)):
                revived.append((site_id, depth, page))
        self._store.many(
            "UPDATE pages SET outcome = 'NULL', why = '' WHERE page = ?",
            [(page,) for _, _, page in revived],
        )
        self._store.many(
            "INSERT INTO pending (site_id, depth, page, reason, not_before, weight, tries)"
            " VALUES (?, ?, ?, 2, 0, 0, 0) ON CONFLICT (site_id, depth, page) DO NOTHING",
            revived,
        )
        tables.count(
            self._store,
            [("outcome.skip", -len(revived)), ("outcome.NULL", len(revived))],
        )
        if revived:
            self._recount()
        return len(revived)

    def _rules_with_prefixes(self, site: str, site_id: int) -> SiteRules:
        from dataclasses import replace

        rules = site_rules(self._settings, site)
        if not rules.is_prefix:
            return rules
        starts = self._store.all(
            "SELECT url FROM pages WHERE site_id = ? AND kind = 's' AND depth = 0", (site_id,)
        )
        prefixes = tuple(sorted({prefix_of(url) for (url,) in starts}))
        return replace(rules, scope=replace(rules.scope, prefixes=prefixes))

    def _admit_outside(self, now: float) -> None:
        """Candidates that the rules admit now."""
        for site, domain in self._store.all("SELECT DISTINCT site, domain FROM outside"):
            rule = self._admission.by_name(site, domain)
            if rule:
                self._found(site, rule, now)

    def _found(self, site: str, rule: str, now: float) -> None:
        """A candidate becomes a real seed: the first URL of its site that was found."""
        row = self._store.one(
            "SELECT url FROM outside WHERE site = ? AND kind <> 'e' ORDER BY found LIMIT 1", (site,)
        )
        if row is not None:
            seeds_tables.add_seed(
                self._store, row[0], url_hash=urls.url_hash(row[0]), site=site, labels={},
                source="found", now=now,
            )  # fmt: skip
        self._admit(site, admitted=rule, now=now)

    # -- admission by address ----------------------------------------------------------------------

    def to_ask(self) -> list[str]:
        """Candidate sites whose address decides, not asked yet; at most some hundred at a time."""
        if not self._admission.needs_address:
            return []
        return [
            row[0]
            for row in self._store.all(
                "SELECT DISTINCT o.site FROM outside o LEFT JOIN asked a ON a.site = o.site"
                " WHERE a.site IS NULL AND o.kind <> 'e' LIMIT ?",
                (OUTSIDE_A_STEP,),
            )
        ]

    def answered(self, site: str, rule: str, *, now: float) -> None:
        """What the address of a candidate decided; empty: it stays outside."""
        with self._store.transaction():
            self._store.run(
                "INSERT INTO asked (site, answer, asked) VALUES (?, ?, ?)"
                " ON CONFLICT (site) DO UPDATE SET answer = excluded.answer",
                (site, rule or "refused", now),
            )
            if rule:
                self._found(site, rule, now)

    # -- the loop ----------------------------------------------------------------------------------

    def step(self, *, run: int, now: float) -> int:
        """One round. Returns how much was done, so that the caller may come again at once."""
        done = history_tables.number_batches(self._store)
        ended = self._store.one(
            "SELECT 1 FROM sites WHERE holder <> '' AND lease_until <= ? LIMIT 1", (now,)
        )
        if ended is not None:
            with self._store.transaction():
                done += self._store.run(
                    "UPDATE sites SET holder = '', lease_until = 0"
                    " WHERE holder <> '' AND lease_until <= ?",
                    (now,),
                )
                self._store.run("DELETE FROM addresses WHERE until <= ?", (now,))
        if self._store.one(
            "SELECT 1 FROM addresses WHERE holder = '' AND until <= ? LIMIT 1", (now,)
        ):
            with self._store.transaction():
                self._store.run("DELETE FROM addresses WHERE holder = '' AND until <= ?", (now,))
        if self._store.one("SELECT 1 FROM sites WHERE go_to <> '' LIMIT 1") is not None:
            # Meant for a holder of its address who has let go of it, or is gone.
            with self._store.transaction():
                self._store.run(
                    "UPDATE sites SET go_to = '' WHERE go_to <> '' AND go_to NOT IN"
                    " (SELECT holder FROM addresses WHERE until > ?)",
                    (now,),
                )
        return done + self.deliver(run=run, now=now)

    def deliver(self, *, run: int, now: float) -> int:
        """Letters for sites that nobody holds become pages; unknown sites are admitted."""
        if self._store.one("SELECT 1 FROM inbox LIMIT 1") is None:
            return 0
        with self._store.transaction():
            letters = self._store.all(
                "SELECT i.letter, i.site, i.url, i.kind, i.via, i.depth, i.party, i.reason,"
                " i.not_before, i.weight, i.hops, i.admit, s.site_id FROM inbox i"
                " LEFT JOIN sites s ON s.site = i.site WHERE s.holder IS NULL OR s.holder = ''"
                " ORDER BY i.letter LIMIT ?",
                (LETTERS_A_STEP,),
            )
            self._take_in(letters, run=run, now=now)
        return len(letters)

    def _take_in(self, letters: list[tuple], *, run: int, now: float) -> None:  # type: ignore[type-arg]
        if not letters:
            return
        ids: dict[str, int] = {}
        rules: dict[str, SiteRules] = {}
        first = tables.take_ids(self._store, "page", len(letters))
        waiting: Counter[int] = Counter()
        counts: Counter[str] = Counter()
        firsts: dict[str, int] = {}
        admitted = known_sites(self._store, {row[1] for row in letters})
        for place, row in enumerate(letters):
            _, site, url, kind, via, depth, party, reason, not_before, weight, hops, admit, _ = row
            if site not in ids:
                if site not in admitted and kind != "s":
                    number, _ = seeds_tables.add_seed(
                        self._store, url, url_hash=urls.url_hash(url), site=site, labels={},
                        source="found", now=now,
                    )  # fmt: skip
                    firsts[site] = number
                ids[site] = self._admit(site, admitted=admit or "rule", now=now)
                rules[site] = self._rules_with_prefixes(site, ids[site])
            if kind != "s":
                if site not in firsts:
                    seed = self._store.one("SELECT min(seed) FROM seeds WHERE site = ?", (site,))
                    firsts[site] = int(seed[0]) if seed and seed[0] else 0
                party = firsts[site] or party
            scope = rules[site].scope
            # A seed itself was given by name; where its redirect leads is judged.
            why = "" if kind == "s" and not hops else scope.refusal(url, kind, depth)
            why = why or rules[site].valves.refusal(url, depth)
            limit = rules[site].max_pages
            if not why and limit is not None and kind != "e":
                have = self._store.one(
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
            url_hash = urls.url_hash(url)
            may_be_nearer = scope.max_depth is not None
            new = NewPage(ids[site], known, url_hash, now, run, why, True, may_be_nearer)
            if self._store.run(tables.MAYBE_PAGE, (*page_row(new), ids[site], url_hash, url)):
                counts["pages.known"] += 1
                counts["outcome." + known.outcome] += 1
                if not why:
                    self._wait(new, waiting)
            elif not why:
                if may_be_nearer and found_nearer(self._store, new) is not None:
                    continue
                if (back := revive(self._store, new, counts)) is not None:
                    self._wait(back, waiting)
        self._store.many("DELETE FROM inbox WHERE letter = ?", [(row[0],) for row in letters])
        self._store.many(
            "UPDATE sites SET waiting = waiting + ?, next_due = 0 WHERE site_id = ?",
            [(delta, site_id) for site_id, delta in waiting.items()],
        )
        counts["pages.pending"] += sum(waiting.values())
        tables.count(self._store, counts.items())

    def _wait(self, new: NewPage, waiting: Counter[int]) -> None:
        known = new.known
        self._store.run(
            tables.PUT_PENDING,
            (new.site_id, known.rank, known.page, known.reason, known.not_before, 0.0, 0),
        )
        waiting[new.site_id] += 1
        if not known.reason & PASSES_SEEN:
            self._store.run("UPDATE seeds SET pages = pages + 1 WHERE seed = ?", (known.party,))

    # -- the end -----------------------------------------------------------------------------------

    def standing(self, *, now: float) -> Standing:
        return standing(self._store, patience_s=self._settings.crawl.patience, now=now)

    def is_over(self, at: Standing) -> bool:
        """Nothing is held, due, or on its way."""
        return not (at.held or at.due or at.letters or self.to_ask())

    def end(self, run: int, state: str, why: str, *, now: float) -> None:
        with self._store.transaction():
            cluster_tables.set_run(self._store, run, state, why, now)


def must_have_seeds(store: Store) -> None:
    if store.one("SELECT 1 FROM seeds LIMIT 1") is None:
        raise OperatorError("no seed: give a URL, or --seeds FILE")
