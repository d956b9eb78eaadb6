"""The coordinator: a small loop over the store. Per-page traffic never passes through it.

Gives committed batches their number, takes back leases that ended, delivers letters to sites nobody
holds, admits new sites, wants again what a looser scope lets in, and knows when the crawl is over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from geomi import url as urls
from geomi.cluster import tables as cluster_tables
from geomi.cluster.admitted import ADMISSION, Latecomers, move_outside
from geomi.cluster.aliases import Aliases
from geomi.cluster.context import QUIET_SHARE, SiteRules
from geomi.cluster.pace import Pace
from geomi.cluster.plan import admission, longest_gap_s
from geomi.cluster.post import Post, rules_with_prefixes
from geomi.cluster.sharing import Sharing
from geomi.cluster.standing import Standing, is_idle, standing
from geomi.config import Settings
from geomi.errors import OperatorError
from geomi.frontier import alias_tables, aliases, counters, import_tables, tables
from geomi.frontier.scope import Admission
from geomi.history import tables as history_tables
from geomi.records import Reason, Wanted
from geomi.seeds import tables as seeds_tables
from geomi.seeds.lists import Seed
from geomi.store import Both, Store

OUTSIDE_A_STEP = 200
# Rounds come ten times a second, and most have nothing to do. What costs more the more sites are
# held is looked at less often; nobody waits for it.
_NUMBER_S = 0.5  # followers read batches by number
_LEASES_S = 2.0  # or sooner, when the first of them ends
_MEANT_S = 1.0
_SWEEP_S = 10.0  # an address that has rested is in nobody's way
_ENDED = "holder <> '' AND lease_until <= ?"
#: Who is writing or renewing this moment is looked at again in the next round: nobody waits.
_EXPIRE = Both(
    f"UPDATE sites SET holder = '', lease_until = 0 WHERE {_ENDED}",
    "UPDATE sites SET holder = '', lease_until = 0 WHERE site_id IN"
    f" (SELECT site_id FROM sites WHERE {_ENDED} FOR NO KEY UPDATE SKIP LOCKED)",
)


class Coordinator:
    """One a collection. Holds the collection's lock through its owner."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._admission: Admission = admission(settings, store)
        self._latecomers = Latecomers(store)
        self._post = Post(store, settings, admit=self._admit)
        self._sharing = Sharing(store, settings)
        self._number = Pace(_NUMBER_S)
        self._leases = Pace(_LEASES_S)
        self._meant = Pace(_MEANT_S)
        self._sweep = Pace(_SWEEP_S)
        self._mourning_s = max(
            0.0, longest_gap_s(settings) - settings.cluster.lease_s * QUIET_SHARE
        )
        self._aliases = Aliases(store, settings)

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
                if last is not None:
                    self._aliases.begin_run(run, now=now)
            self._store.run("UPDATE sites SET state = 'open', why = '' WHERE state = 'parked'")
            self._store.run("UPDATE sites SET failures = 0, go_to = '' WHERE holder = ''")
            # Hours may have been changed: whoever takes the site looks, and rests it in full first.
            self._store.run(
                "UPDATE sites SET why = '', rest_until = 0, clean = 0"
                " WHERE holder = '' AND state = 'open' AND why = ?",
                (tables.CLOSED,),
            )
        self._latecomers.look_at_all()
        return run

    def _want_all_again(self, now: float) -> None:
        """Every page that was ever asked is visited once more; the often failed come last."""
        self._store.run(
            "INSERT INTO pending (site_id, depth, page, reason, not_before, weight, tries)"
            " SELECT site_id,"
            " depth + CASE WHEN fails < 8 THEN fails ELSE 8 END * 4, page, ?, 0, 0, 0 FROM pages"
            " WHERE outcome NOT IN ('skip', 'bad', 'erased')"
            " AND page NOT IN (SELECT page FROM pending)"
            " AND kind <> 'p'"  # probes: once a directory, see history.meaningless
            f" AND site_id NOT IN ({alias_tables.SECOND_NAMES})"
            " AND site_id NOT IN (SELECT site_id FROM sites WHERE admitted = 'import')"
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
        have = counters.counter(self._store, "pages.pending")
        counters.count(self._store, [("pages.pending", int(row[0] if row else 0) - have)])

    def set_quota(self, visits: int | None) -> None:
        with self._store.transaction():
            counters.set_quota(self._store, visits)

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
        self._store.enter(ADMISSION)  # before it has a number
        import_tables.take_up(self._store, site)
        site_id = tables.add_site(self._store, site, domain=domain, admitted=admitted, now=now)
        move_outside(self._store, site, admitted)
        self._latecomers.admitted(site, admitted)
        return site_id

    def await_latecomers(self, wait: Callable[[float], None]) -> None:
        """For who admits sites and leaves: `wait` passes some time. The loop looks by itself."""
        while self._latecomers.are_awaited:
            if not self._latecomers.look():
                wait(0.02)

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
            f" AND substr(p.why, 1, {len(aliases.WHY)}) <> ? ORDER BY p.page",
            (aliases.WHY,),
        ):
            rule = rules.get(site_id)
            if rule is None:
                rule = rules_with_prefixes(self._store, self._settings, site, site_id)
                rules[site_id] = rule
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
        counters.count(
            self._store,
            [("outcome.skip", -len(revived)), ("outcome.NULL", len(revived))],
        )
        if revived:
            self._recount()
        return len(revived)

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

    def step(self, *, run: int, now: float, at_once: bool = False) -> int:
        """One round. Returns how much was done, so that the caller may come again at once.

        `at_once`: also what may wait for a later round.
        """
        done = self._latecomers.look()
        if self._number.is_time(now) or at_once:
            done += history_tables.number_batches(self._store)
        if self._leases.is_time(now) or at_once:
            done += self._expire(now)
        if self._sweep.is_time(now) or at_once:
            self._sweep_addresses(now)
        if self._meant.is_time(now) or at_once:
            self._forget_promises(now)
        self._sharing.look(now)
        done += self._aliases.step(run=run, now=now, at_once=at_once)
        return done + self.deliver(run=run, now=now)

    def _expire(self, now: float) -> int:
        """Takes back leases that ended; when it looks again, none can have ended before."""
        first = self._store.one("SELECT min(lease_until) FROM sites WHERE holder <> ''")
        if first is None or first[0] is None:
            return 0
        if first[0] > now:
            self._leases.come_again(first[0])
            return 0
        with self._store.transaction():
            done = self._store.run(_EXPIRE.of(self._store), (now,))
            self._store.run("DELETE FROM addresses WHERE until <= ?", (now - self._mourning_s,))
        self._leases.come_again(now)  # what somebody wrote this moment was passed over
        return done

    def _sweep_addresses(self, now: float) -> None:
        if self._store.one(
            "SELECT 1 FROM addresses WHERE holder = '' AND until <= ? LIMIT 1", (now,)
        ):
            with self._store.transaction():
                self._store.run("DELETE FROM addresses WHERE holder = '' AND until <= ?", (now,))

    def _forget_promises(self, now: float) -> None:
        """Sites meant for a holder of their address who has let go of it, or is gone."""
        if self._store.one("SELECT 1 FROM sites WHERE go_to <> '' LIMIT 1") is None:
            return
        promised = sorted(self._sharing.promised)
        but = f" AND go_to NOT IN ({','.join('?' * len(promised))})" if promised else ""
        lost = f"go_to <> '' AND go_to NOT IN (SELECT holder FROM addresses WHERE until > ?){but}"
        if self._store.one(f"SELECT 1 FROM sites WHERE {lost} LIMIT 1", (now, *promised)):
            with self._store.transaction():
                self._store.run(f"UPDATE sites SET go_to = '' WHERE {lost}", (now, *promised))

    def deliver(self, *, run: int, now: float) -> int:
        """Letters for sites that nobody holds become pages; unknown sites are admitted."""
        return self._post.deliver(run=run, now=now)

    # -- the end -----------------------------------------------------------------------------------

    def standing(self, *, now: float) -> Standing:
        return standing(self._store, patience_s=self._settings.crawl.patience, now=now)

    def is_over(self, *, now: float) -> bool:
        """Nothing is held, due, or on its way."""
        if not is_idle(self._store, patience_s=self._settings.crawl.patience, now=now):
            return False
        if self._latecomers.are_awaited or self.to_ask():
            return False
        return not self._aliases.last_look(now=now)

    def end(self, run: int, state: str, why: str, *, now: float) -> None:
        with self._store.transaction():
            cluster_tables.set_run(self._store, run, state, why, now)


NO_SEED = "no seed: give a URL, or --seeds FILE"


def must_have_seeds(store: Store) -> None:
    if store.one("SELECT 1 FROM seeds LIMIT 1") is None:
        raise OperatorError(NO_SEED)
