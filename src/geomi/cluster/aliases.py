"""Looks for sites with two names: pairs them, has pages compared, and decides. For the coordinator.

The work is bounded: a front page is compared with at most three others that are equal to it, at one
address or under the name with or without `www.`, however many sites share the address.
"""

from __future__ import annotations

from typing import Any

from geomi import url as urls
from geomi.cluster.admitted import ADMISSION
from geomi.cluster.alias_checks import Checks
from geomi.cluster.mergers import Mergers, site_name
from geomi.cluster.pace import Pace
from geomi.cluster.plan import site_rules
from geomi.config import Settings
from geomi.fetch.robots import Robots, from_status
from geomi.frontier import alias_tables, aliases, counters, tables
from geomi.frontier.aliases import Again, Face, State, Tally, Verdict
from geomi.records import Reason, Wanted
from geomi.states import HAD
from geomi.store import Store

_STEP_S = 0.5  # between two looks
_FACES_A_STEP = 100
_PAIRS_A_STEP = 30
_TESTS_A_STEP = 200
_PARTNERS = 3  # other names a front page is compared with
_SAMPLE_OF = 500  # pages of each name looked through for a sample
_PAGES_TOLD = 1_000  # who has more pages is not asked beyond
_PATIENCE_S = 3_600.0  # a page that has not come by then says nothing
_SOON = 5.0  # weight of a page that a decision waits for


class Aliases:
    """One a coordinator. All is in the store; what is here may be forgotten."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._mergers = Mergers(store, settings)
        self._checks = Checks(store, settings)
        self._pace = Pace(_STEP_S)
        self._run = 0

    def begin_run(self, run: int, *, now: float) -> None:
        """Inside the transaction that begins a new run: what is one site is looked at again."""
        self._run = run
        self._checks.begin_run(now=now)

    def step(self, *, run: int, now: float, at_once: bool) -> int:
        """A look, twice a second. Returns how much came of it."""
        self._run = run
        return self._look(now, soon=now) if self._pace.is_time(now) or at_once else 0

    def last_look(self, *, now: float) -> int:
        """When nothing is left to visit: what was compared may ask for more."""
        return self._look(now, soon=float("inf"))

    def _look(self, now: float, *, soon: float) -> int:
        if not self._settings.alias.detect and not self._store.one("SELECT 1 FROM aliases LIMIT 1"):
            return 0  # one question in the place of five
        done = self._faces(now)
        if self._settings.alias.detect:
            done += self._names(now) + self._pairs(now)
        done += self._tests(now, soon) + self._mergers.step(run=self._run, now=now)
        return done + self._checks.step(run=self._run, now=now, is_end=soon > now)

    # -- who may be one ----------------------------------------------------------------------------

    def _faces(self, now: float) -> int:
        """Front pages that came: others like them are looked for, and those who rely on them."""
        store, detects = self._store, self._settings.alias.detect
        # Without detection new ones are left for a later crawl, but for those others rely on.
        which = "" if detects else (
            " AND f.site_id IN (SELECT site_id FROM aliases WHERE state IN ('merging', 'merged'))"
        )  # fmt: skip
        rows = store.all(
            "SELECT f.site_id, s.site, f.url, f.digest, f.address FROM faces f JOIN sites s"
            f" ON s.site_id = f.site_id WHERE f.looked = 0{which} ORDER BY f.site_id LIMIT ?",
            (_FACES_A_STEP,),
        )
        done = 0
        for site_id, site, url, digest, address in rows:
            with store.transaction():
                store.run(
                    "UPDATE faces SET looked = 1 WHERE site_id = ? AND url = ?", (site_id, url)
                )
                done += self._must_stand(site_id, site, url, now)
                if detects and not alias_tables.kept_name(store, site_id):
                    done += self._partners(self._face(site_id, site, digest, address), now)
        return done

    def _must_stand(self, site_id: int, site: str, url: str, now: float) -> int:
        """Where the name that is kept fails, its other names are visited themselves."""
        pairs = self._store.all(
            "SELECT pair, alias_id FROM aliases WHERE site_id = ?"
            " AND state IN ('merging', 'merged')",
            (site_id,),
        )
        if not pairs:
            return 0
        front = alias_tables.twins(self._store, site_id, [url]).get(url)
        parked = self._store.one(
            "SELECT 1 FROM sites WHERE site_id = ? AND state <> 'open'", (site_id,)
        )
        lost = self._store.one(  # all that waited there was given up
            "SELECT 1 FROM (SELECT outcome FROM pages WHERE site_id = ? LIMIT 1000) AS few"
            " WHERE outcome IN ('noIP', 'cErr', 'cTim') LIMIT 1",
            (site_id,),
        )
        if front is not None and front.outcome in HAD and not parked and not lost:
            return 0
        why = f"{site} does not answer" if parked or lost else f"{url} is not there"
        for pair, alias_id in pairs:
            self._mergers.part(pair, alias_id, ends=State.WITHDRAWN, why=why, now=now)
        return len(pairs)

    def _face(self, site_id: int, site: str, digest: str, address: str) -> Face:
        given = self._store.one(
            "SELECT 1 FROM seeds WHERE site = ? AND source <> 'found' LIMIT 1", (site,)
        )
        pages = alias_tables.number_of_pages(self._store, site_id, limit=_PAGES_TOLD)
        return Face(site_id, site, digest, address, given is not None, pages)

    def _partners(self, face: Face, now: float) -> int:
        allowed = self._settings.alias.relations
        like = (
            "SELECT f.site_id, s.site, f.digest, f.address FROM faces f JOIN sites s"
            " ON s.site_id = f.site_id WHERE f.digest = ? AND f.site_id <> ?"
            f" AND f.site_id NOT IN ({alias_tables.SECOND_NAMES})"
        )
        found: list[tuple[Any, ...]] = []
        if "www" in allowed:
            found += self._store.all(
                f"{like} AND s.site = ? LIMIT 1",
                (face.digest, face.site_id, aliases.www_twin(face.site)),
            )
        if "address" in allowed and face.address:
            found += self._store.all(
                f"{like} AND f.address = ? ORDER BY f.site_id LIMIT ?",
                (face.digest, face.site_id, face.address, _PARTNERS),
            )
        if "content" in allowed:
            found += self._store.all(
                f"{like} ORDER BY f.address, f.site_id LIMIT ?",
                (face.digest, face.site_id, _PARTNERS),
            )
        return sum(self._pair(face, self._face(*row), now) for row in dict.fromkeys(found))

    def _pair(self, one: Face, other: Face, now: float) -> int:
        """Two names with the same front page, compared from now on; 0: they were before."""
        store = self._store
        relation = aliases.relation(one, other, allowed=self._settings.alias.relations)
        if not relation or alias_tables.pair_of(store, one.site_id, other.site_id) is not None:
            return 0
        if any(site_rules(self._settings, face.site).is_prefix for face in (one, other)):
            return 0
        kept = aliases.kept(one, other)
        alias = other if kept is one else one
        pair = alias_tables.put_pair(
            store, kept.site_id, alias.site_id, relation=relation, state=State.TESTING, why="",
            now=now,
        )  # fmt: skip
        alias_tables.put_fact(
            store, pair, "front", (f"http://{kept.site}/", f"http://{alias.site}/"),
            verdict=Verdict.AGREE, said=kept.digest, alias_said=alias.digest, now=now,
        )  # fmt: skip
        counters.count(store, [("alias.pairs", 1)])
        return 1

    def _names(self, now: float) -> int:
        """Of new sites that differ from one by `www.` alone both front pages are wanted.

        Read in the order of their numbers, and only up to the newest at a moment when nobody was
        admitting: who took a number before has come by then, though it may commit later.
        """
        if "www" not in self._settings.alias.relations:
            return 0
        store = self._store
        row = store.one("SELECT value FROM meta WHERE name = 'alias.sites'")
        last = int(row[0]) if row else 0
        newest = store.one("SELECT max(site_id) FROM sites WHERE site_id > ?", (last,))
        if newest is None or newest[0] is None or store.present(ADMISSION):
            return 0
        rows = store.all(
            "SELECT site_id, site FROM sites WHERE site_id > ? AND site_id <= ?"
            " ORDER BY site_id LIMIT 500",
            (last, newest[0]),
        )
        with store.transaction():
            for _, site in rows:
                twin = aliases.www_twin(site)
                if twin and store.one("SELECT 1 FROM sites WHERE site = ?", (twin,)):
                    tables.want(store, [one for name in (site, twin) for one in self._front(name)])
            store.run(
                "INSERT INTO meta (name, value) VALUES ('alias.sites', ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (str(rows[-1][0]),),
            )
        return len(rows)

    def _front(self, site: str) -> list[Wanted]:
        """The front page of a site, by the scheme of its first seed; known ones are known."""
        row = self._store.one("SELECT min(url) FROM seeds WHERE site = ?", (site,))
        if row is None or not row[0] or site_rules(self._settings, site).is_prefix:
            return []
        url = row[0][: row[0].find("/", 8)] + "/"
        return [Wanted(url=url, site=site, reason=Reason.LINK, depth=1)]

    # -- pairs -------------------------------------------------------------------------------------

    def _pairs(self, now: float) -> int:
        done = 0
        for pair, _, kept, alias, looks in alias_tables.in_state(
            self._store, (State.TESTING,), now=now, limit=_PAIRS_A_STEP
        ):
            with self._store.transaction():
                done += self._look_at_pair(pair, kept, alias, now)
                self._store.run(
                    "UPDATE aliases SET looks = looks + 1, next_look = ? WHERE pair = ?",
                    (now + min(60.0, 1.3**looks), pair),
                )
        return done

    def _look_at_pair(self, pair: int, kept_id: int, alias_id: int, now: float) -> int:
        store, limits = self._store, self._settings.alias
        for site_id in (kept_id, alias_id):
            if name := alias_tables.kept_name(store, site_id):
                why = f"{site_name(store, site_id)} is {name}"
                return self._decide(pair, State.REFUSED, now, why=why)
        heard = alias_tables.tally(store, pair, "sample")
        done = 0
        if heard.open + heard.agree + heard.differ < limits.sample:
            done = self._sample(pair, kept_id, alias_id, heard, now)
            heard = alias_tables.tally(store, pair, "sample")
        state = aliases.judged(heard, sample=limits.sample, share=limits.agree)
        if state is State.TESTING:
            return done
        why = (
            f"{heard.agree} of {heard.agree + heard.differ} sampled pages agree"
            + (f", {heard.unknown} say nothing" if heard.unknown else "")
        )  # fmt: skip
        if state is State.MERGING and not self._robots_agree(pair, kept_id, alias_id, now):
            state, why = State.REFUSED, "their robots.txt differ"
        if state is State.MERGING:
            alias_tables.recall(store, alias_id)
        return done + self._decide(pair, state, now, why=why)

    def _decide(self, pair: int, state: State, now: float, *, why: str) -> int:
        alias_tables.set_state(self._store, pair, state, now=now, why=why)
        if state is State.REFUSED:
            counters.count(self._store, [("alias.refused", 1)])
        return 1

    def _sample(self, pair: int, kept_id: int, alias_id: int, heard: Tally, now: float) -> int:
        """More pages to compare: those that both have, and those that one of them has."""
        store, limits = self._store, self._settings.alias
        kept, alias = site_name(store, kept_id), site_name(store, alias_id)
        mine = alias_tables.contents(store, kept_id, limit=_SAMPLE_OF)
        theirs = {
            urls.under(url, kept): depth
            for url, depth in alias_tables.contents(store, alias_id, limit=_SAMPLE_OF).items()
        }
        both = sorted({*mine, *theirs})
        in_kept = alias_tables.twins(store, kept_id, both)
        in_alias = {
            urls.under(url, kept): twin
            for url, twin in alias_tables.twins(
                store, alias_id, [urls.under(url, alias) for url in both]
            ).items()
        }
        front = store.one("SELECT said FROM alias_tests WHERE pair = ? AND kind = 'front'", (pair,))
        chosen = aliases.sampled(
            {url: twin.digest for url, twin in in_kept.items() if twin.outcome in HAD},
            {url: twin.digest for url, twin in in_alias.items() if twin.outcome in HAD},
            front=front[0] if front else "",
            tested=alias_tables.tested(store, pair),
            number=limits.sample - heard.agree - heard.differ - heard.open,
            hashed=urls.url_hash,
        )
        pages = [(url, urls.under(url, alias)) for url in chosen]
        wanted = []
        for url, other in pages:
            depth = mine.get(url, theirs.get(url, 1))
            for one, name, there in ((url, kept, in_kept), (other, alias, in_alias)):
                if url not in there:
                    wanted.append(Wanted(
                        url=one, site=name, reason=Reason.ALIAS, via=other if one == url else url,
                        depth=depth, weight=_SOON,
                    ))  # fmt: skip
        tables.want(store, wanted)
        alias_tables.put_tests(store, pair, "sample", pages, now=now)
        counters.count(store, [("alias.tests", len(pages))])
        done = len(pages)
        for test in alias_tables.open_tests(store, now=now, limit=_TESTS_A_STEP, pair=pair):
            done += self._look_at_test(*test, now=now)
        return done

    def _robots_agree(self, pair: int, kept_id: int, alias_id: int, now: float) -> bool:
        """The rules of both, scheme by scheme; where one is not known nothing is said."""
        mine, theirs = self._rules(kept_id), self._rules(alias_id)
        for scheme in mine.keys() & theirs.keys():
            is_same = mine[scheme][1] == theirs[scheme][1]
            alias_tables.put_fact(
                self._store, pair, "robots",
                (f"{mine[scheme][0]}/robots.txt", f"{theirs[scheme][0]}/robots.txt"),
                verdict=Verdict.AGREE if is_same else Verdict.DIFFER,
                said=f"{len(mine[scheme][1])} rules", alias_said=f"{len(theirs[scheme][1])} rules",
                now=now,
            )  # fmt: skip
            if not is_same:
                return False
        return True

    def _rules(self, site_id: int) -> dict[str, tuple[str, tuple[tuple[str, bool], ...]]]:
        """By scheme: authority, and what our agent is told there."""
        found = {}
        for authority, code, body in self._store.all(
            "SELECT authority, code, body FROM robots WHERE site_id = ?", (site_id,)
        ):
            answer = from_status(code)
            rules: tuple[tuple[str, bool], ...] = (("/", False),) if answer == "deny" else ()
            if answer == "parse":
                rules = Robots.parse(body).for_agent(self._settings.robots.agent).rules
            found[authority.partition(":")[0]] = authority, rules
        return found

    # -- tests -------------------------------------------------------------------------------------

    def _tests(self, now: float, soon: float) -> int:
        done = 0
        for test in alias_tables.open_tests(self._store, now=soon, limit=_TESTS_A_STEP):
            with self._store.transaction():
                done += self._look_at_test(*test, now=now)
        return done

    def _look_at_test(
        self, test: int, pair: int, kind: str, url: str, other: str, made: float,
        again: Again | None, looks: int, kept_id: int, alias_id: int, state: str, *, now: float,
    ) -> int:  # fmt: skip
        """One page under both names; 1: something came of it."""
        store = self._store
        kept = alias_tables.twins(store, kept_id, [url]).get(url)
        alias = alias_tables.twins(store, alias_id, [other]).get(other)
        verdict: Verdict | Again = Verdict.OPEN
        if kept is not None and alias is not None:
            verdict = aliases.compared(kept, alias, again=again)
        if isinstance(verdict, Again):
            page = other if verdict.of_alias else url
            tables.want(store, [Wanted(
                url=page, site=urls.site_of(page), reason=Reason.ALIAS, weight=_SOON
            )])  # fmt: skip
            alias_tables.make_again(store, test, verdict, next_look=now + 2)
            return 1
        if verdict is Verdict.OPEN and now < made + _PATIENCE_S:
            later = now + min(30.0, 0.5 * 2.0 ** min(looks, 10))
            alias_tables.look_later(store, test, next_look=later)
            return 0
        verdict = verdict or Verdict.UNKNOWN
        alias_tables.decide_test(
            store, test, verdict, said=kept.said if kept else "not found",
            alias_said=alias.said if alias else "not found", now=now,
        )  # fmt: skip
        counters.count(store, [(f"alias.{verdict}", 1)])
        if verdict is Verdict.DIFFER and kind == "check" and state in aliases.ONE:
            self._mergers.part(
                pair, alias_id, ends=State.WITHDRAWN, why=f"{other} differs from {url}", now=now
            )
        return 1
