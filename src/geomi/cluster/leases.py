"""What agents ask of the store besides commits: leases, waiting pages, letters.

Each function is one transaction. Times of leases are the store's (`db_now`); agents count down on
their own clocks from before they asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from geomi.cluster.commands import Letter, Loaded, Release, SiteFacts
from geomi.cluster.context import Plan
from geomi.errors import InternalError
from geomi.frontier import alias_tables, counters, equivalence_tables, tables
from geomi.frontier.queue import Key
from geomi.records import Lease, Reason, Wanted
from geomi.store import Both, Store

_FRONTS = 1_000  # seeds of a site whose pages are known by URL; those given are marked beside
REBUILD_LIMIT = 100_000
DRAIN_LIMIT = 2_000
LEVEL_WAITS_S = 10.0  # a level waits so long for tries of failed pages


# In the order of an index, so that 100,000 sites which are due need not be sorted for some.
_FREE = (
    "SELECT site_id FROM sites WHERE waiting > 0 AND holder = '' AND next_due <= ?"
    " AND rest_until <= ? AND state = 'open' AND go_to {}"
    f" AND site_id NOT IN ({alias_tables.RECALLED}) ORDER BY next_due, site_id LIMIT ?"
)
_MEANT = _FREE.format("= ? AND go_to <> ''")
_ANYBODYS = _FREE.format("= ?")
_GRANTED = (
    " UPDATE sites SET holder = ?, epoch = epoch + 1, lease_until = ?, go_to = ''"
    " WHERE site_id IN (SELECT site_id FROM free) RETURNING site_id, site, epoch"
)
#: What another agent takes this moment is passed over: nobody waits, and nothing is given twice.
_GRANTS = tuple(
    Both(
        f"WITH free AS ({free}){_GRANTED}",
        f"WITH free AS MATERIALIZED ({free} FOR NO KEY UPDATE SKIP LOCKED){_GRANTED}",
    )
    for free in (_MEANT, _ANYBODYS)
)


def grant(store: Store, plan: Plan, number: int, *, now: float) -> list[Lease]:
    """Sites with something due that nobody holds. Those meant for this agent come first.

    One agent takes no more than its share of what is due, so that all get some.
    """
    holder = plan.holder
    due = _number(
        store,
        "SELECT count(*) FROM (SELECT 1 FROM sites WHERE waiting > 0 AND holder = ''"
        " AND next_due <= ? AND state = 'open' LIMIT 10000) AS few",
        now,
    )
    if not due:
        return []
    agents = max(plan.agents, _number(store, "SELECT count(*) FROM agents WHERE state = 'running'"))
    number = min(number, -(-due // agents))
    rows: list[tuple[Any, ...]] = []
    with store.transaction():
        for sentence, meant_for in zip(_GRANTS, (holder, ""), strict=True):
            left = number - len(rows)
            rows += store.all(
                sentence.of(store),
                (now, now + plan.patience_s, meant_for, left, holder, now + plan.lease_s),
            )
    return [
        Lease(site_id=site_id, site=site, epoch=epoch, until=now + plan.lease_s)
        for site_id, site, epoch in rows
    ]


def _number(store: Store, sql: str, *params: object) -> int:
    row = store.one(sql, params)
    return int(row[0]) if row else 0


def renew(store: Store, plan: Plan, *, now: float, disown: Sequence[int] = ()) -> list[int]:
    """Prolongs all leases and claims of an agent; the sites that are still its own.

    `disown`: leases that it was given without hearing of it.
    """
    with store.transaction():
        store.many(
            "UPDATE sites SET holder = '', lease_until = 0 WHERE site_id = ? AND holder = ?",
            [(site_id, plan.holder) for site_id in disown],
        )
        held = store.all(
            "UPDATE sites SET lease_until = ? WHERE holder = ? AND holder <> ''"
            " AND lease_until > ? RETURNING site_id",
            (now + plan.lease_s, plan.holder, now),
        )
        store.run(
            "UPDATE addresses SET until = ? WHERE holder = ?", (now + plan.lease_s, plan.holder)
        )
        store.run(
            "UPDATE agents SET beat = ? WHERE agent = ? AND incarnation = ?",
            (now, plan.agent, plan.incarnation),
        )
    return [row[0] for row in held]


def release(store: Store, plan: Plan, event: Release, *, now: float) -> None:
    """Gives a site back, with what the next holder must know."""
    with store.transaction():
        store.run(
            "UPDATE sites SET holder = '', lease_until = 0, clean = 1, rest_until = ?, rest_s = ?,"
            " failures = ?, go_to = ?, why = ?, next_due = CASE"
            " WHEN EXISTS (SELECT 1 FROM pending p WHERE p.site_id = sites.site_id"
            " AND p.not_before <= ?) THEN 0"
            " ELSE coalesce((SELECT min(not_before) FROM pending p"
            " WHERE p.site_id = sites.site_id), 0) END"
            " WHERE site_id = ? AND epoch = ? AND holder = ?",
            (
                event.rest_until, event.rest_s, event.failures, event.go_to,
                tables.CLOSED if event.is_closed else "", now, event.site_id, event.epoch,
                plan.holder,
            ),
        )  # fmt: skip
        for key, until in event.unclaim:
            # What still rests is nobody's until then: the next holder is told.
            if until > now:
                store.run(
                    "UPDATE addresses SET holder = '', until = ? WHERE address = ? AND holder = ?",
                    (until, key, plan.holder),
                )
            else:
                store.run(
                    "DELETE FROM addresses WHERE address = ? AND holder = ?", (key, plan.holder)
                )
            store.run("UPDATE sites SET go_to = '' WHERE go_to = ? AND go_to <> ''", (plan.holder,))


def load(
    store: Store, *, site_id: int, epoch: int, after: Key, limit: int, is_first: bool,
    has_page_limit: bool, has_prefix: bool = False,
) -> Loaded:  # fmt: skip
    """Waiting pages of a leased site, and on the first call its facts."""
    rows = tables.window(store, site_id, after=after, limit=limit)
    facts = None
    if is_first:
        facts = site_facts(store, site_id, has_page_limit=has_page_limit, has_prefix=has_prefix)
    return Loaded(site_id=site_id, epoch=epoch, rows=rows, limit=limit, facts=facts)


def site_facts(store: Store, site_id: int, *, has_page_limit: bool, has_prefix: bool) -> SiteFacts:
    row = store.one(
        "SELECT site, rest_until, rest_s, clean, failures FROM sites WHERE site_id = ?", (site_id,)
    )
    if row is None:
        raise InternalError(f"site {site_id}: leased, but not in the store")
    site, rest_until, rest_s, clean, failures = row
    with store.transaction():  # from now on a holder that vanishes leaves the site unclean
        store.run("UPDATE sites SET clean = 0 WHERE site_id = ?", (site_id,))
    # A bound for the size of the seen-filter; counting a large site exactly would take long.
    some = store.one(
        "SELECT count(*) FROM (SELECT 1 FROM pages WHERE site_id = ? LIMIT 200000) AS few",
        (site_id,),
    )
    pages = int(some[0]) if some else 0
    if pages >= 200_000:
        every = store.one("SELECT count(*) FROM pages WHERE site_id = ?", (site_id,))
        pages = int(every[0]) if every else 0
    seeds = store.all("SELECT seed, url FROM seeds WHERE site = ? ORDER BY seed", (site,))
    starts = [url for _, url in seeds]
    if has_prefix:  # where redirects of seeds led to
        starts += [
            url
            for (url,) in store.all(
                "SELECT url FROM pages WHERE site_id = ? AND kind = 's' AND hops > 0", (site_id,)
            )
        ]
    party_pages: list[tuple[int, int]] = []
    if has_page_limit:
        party_pages = [
            (int(party), int(number))
            for party, number in store.all(
                "SELECT party, count(*) FROM pages WHERE site_id = ? AND outcome <> 'skip'"
                " AND kind <> 'e' GROUP BY party",
                (site_id,),
            )
        ]
    # Of a sample: rows come by the hash of their URL, and a thousand say enough.
    hints = store.one(
        "SELECT count(*),"
        " coalesce(sum(CASE WHEN outcome IN ('OK', 'cut', 'same') THEN 0 ELSE 1 END), 0)"
        " FROM (SELECT kind, outcome, code, hops FROM pages WHERE site_id = ? LIMIT 1000) AS part"
        " WHERE kind = 'h' AND hops = 0 AND (outcome IN ('OK', 'cut', 'same', 'gone', 'bad')"
        " OR (outcome = 'code' AND code BETWEEN 400 AND 499))",
        (site_id,),
    )
    robots = store.all(
        "SELECT authority, fetched, expires, code, failing_since, body FROM robots"
        " WHERE site_id = ?",
        (site_id,),
    )
    return SiteFacts(
        pages=pages,
        rest_until=rest_until,
        rest_s=rest_s,
        is_clean=bool(clean),
        failures=failures,
        seed_urls=tuple(starts),
        first_seed=seeds[0][0] if seeds else 0,
        kept=alias_tables.kept_name(store, site_id),
        equivalents=equivalence_tables.active(store, site_id),
        fronts=tuple((url, seed) for seed, url in seeds[:_FRONTS]),
        party_pages=tuple(party_pages),
        hints=(int(hints[0]), int(hints[1])) if hints else (0, 0),
        robots=tuple(robots),
    )


def meant_for_others(store: Store, plan: Plan) -> list[tuple[int, str]]:
    """(site, who should have it) of those held by the caller that the coordinator shares out.

    Empty is who should have it of those that the coordinator wants back for itself.
    """
    return store.all(
        "SELECT site_id, go_to FROM sites WHERE holder = ? AND go_to <> '' UNION ALL"
        f" SELECT site_id, '' FROM sites WHERE site_id IN ({alias_tables.RECALLED})"
        " AND holder = ?",
        (plan.holder, plan.holder),
    )


def drain(store: Store, sites: tuple[str, ...]) -> list[Letter]:
    """Letters for sites held by the caller; they stay until its batch takes them in."""
    if store.one("SELECT 1 FROM inbox LIMIT 1") is None:
        return []
    found: list[Letter] = []
    for start in range(0, len(sites), 500):
        some = sites[start : start + 500]
        marks = ",".join("?" * len(some))
        found += [
            Letter(letter=row[0], wanted=Wanted(
                site=row[1], url=row[2], kind=row[3], via=row[4], depth=row[5], party=row[6],
                reason=Reason(row[7]), not_before=row[8], weight=row[9], hops=row[10],
            ))
            for row in store.all(
                "SELECT letter, site, url, kind, via, depth, party, reason, not_before, weight,"
                f" hops FROM inbox WHERE site IN ({marks}) ORDER BY letter LIMIT ?",
                (*some, DRAIN_LIMIT - len(found)),
            )
        ]  # fmt: skip
        if len(found) >= DRAIN_LIMIT:
            break
    return found


def level(store: Store, plan: Plan, *, now: float) -> int:
    """The least rank of what may be asked for soon, letters included.

    Left out: tries that come much later, and sites that rest long because they fail; nobody waits
    for them. One sentence, so that no letter becomes a page between two looks.
    """
    least = "SELECT depth FROM pending p WHERE p.site_id = s.site_id"
    retry = plan.rules("").retry
    patience = 0  # failures in a row after which a site is still waited for
    while patience < retry.attempts and retry.gap(patience + 1) <= LEVEL_WAITS_S:
        patience += 1
    row = store.one(
        "SELECT coalesce((SELECT min(d) FROM ("
        f"SELECT ({least} AND p.not_before <= ? ORDER BY p.depth LIMIT 1) AS d"
        " FROM sites s WHERE s.waiting > 0 AND s.state = 'open' AND s.failures <= ?"
        " UNION ALL SELECT min(depth) AS d FROM inbox) AS soon),"
        f" (SELECT min(d) FROM (SELECT ({least} ORDER BY p.depth LIMIT 1) AS d FROM sites s"
        " WHERE s.waiting > 0) AS late), 0)",
        (now + LEVEL_WAITS_S, patience),
    )
    return int(row[0]) if row is not None else 0


def draw(store: Store, number: int) -> int:
    """A share of the visits that the crawl may still make."""
    with store.transaction():
        return counters.draw_quota(store, number)
