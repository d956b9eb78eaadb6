"""Proves a collection: the store with itself, and the store with the archive. Changes nothing.

Plain functions over a store and a `Disk`, so that the simulator asks the same questions. What a
kill leaves behind and the next crawl mends (a held lease, an open file, a batch without its number)
is counted, no problem; what ought to be over and is not, is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from geomi import url as urls
from geomi.cluster import tables as cluster_tables
from geomi.cluster.verify_archive import BytesDisk, Disk, RealDisk, check_archive
from geomi.cluster.verify_past import check_files, check_past, past_of
from geomi.cluster.verify_revisits import Elsewhere, check_revisits
from geomi.cluster.verify_rewrites import check_jobs
from geomi.frontier import counters
from geomi.history.past import Past
from geomi.records import Reason
from geomi.states import TRANSIENT, Outcome
from geomi.store import Store

__all__ = [
    "BytesDisk",
    "Disk",
    "Finding",
    "RealDisk",
    "Report",
    "check_store",
    "verify",
]

#: So many problems of one kind are listed; all are counted.
LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be: what was seen and wanted, and where."""

    what: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What verify found. `counts` says how much was looked at."""

    problems: tuple[Finding, ...]
    counts: dict[str, int]

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(slots=True)
class Findings:
    """Filled by the checks. Lists the first LISTED of a kind and counts the rest."""

    found: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, what: str, where: str) -> None:
        self.kinds[kind] += 1
        if self.kinds[kind] <= LISTED:
            self.found.append(Finding(what=what, where=where))

    def report(self) -> Report:
        more = [
            Finding(what=f"{kind}: {number - LISTED} more like this", where="")
            for kind, number in self.kinds.items()
            if number > LISTED
        ]
        return Report(problems=(*self.found, *more), counts=dict(self.counts))


def verify(
    store: Store,
    *,
    where: Callable[[str], str],
    disk: Disk | None = None,
    directories: Sequence[str] = (),
    quick: bool = False,
    elsewhere: Elsewhere | None = None,
) -> Report:
    """Every check. `where` turns an archive directory into a path; `directories` are those set.

    `quick` leaves out the digests and what looks at every URL, and samples the records of a file.
    `elsewhere`: what collections that share the index have of a visit.
    """
    found = Findings()
    disk = disk or RealDisk()
    if check_store(store, found, where=where, disk=disk, quick=quick):
        check_archive(
            store, found.add, found.counts, where=where, disk=disk, directories=directories,
            quick=quick,
        )  # fmt: skip
        check_revisits(
            store, found.add, found.counts, where=where, disk=disk, quick=quick,
            elsewhere=elsewhere,
        )  # fmt: skip
    return found.report()


def check_store(
    store: Store, found: Findings, *, where: Callable[[str], str], disk: Disk, quick: bool = False
) -> bool:
    """The store with itself, in one image of it: a crawl may go on meanwhile.

    False: visits that moved cannot be read, and nothing else can be judged without them.
    """
    with store.image():
        past = past_of(store, where, disk)
        if not check_files(store, past, found.add, found.counts, where=where, disk=disk):
            return False
        _check_counters(store, found, past)
        _check_pages(store, found, past)
        if not quick:
            _check_urls(store, found)
        _check_pending(store, found)
        _check_visits(store, found)
        _check_batches(store, found)
        _check_leases(store, found)
        _check_letters(store, found)
        check_jobs(store, found.add, found.counts)
        check_past(
            store, past, found.add, found.counts, settled=_SETTLED.format, quick=quick
        )  # fmt: skip
    return True


def _number(store: Store, sql: str, params: Sequence[Any] = ()) -> int:
    row = store.one(sql, params)
    return int(row[0] or 0) if row else 0


def _check_counters(store: Store, found: Findings, past: Past) -> None:
    counted = counters.counters(store)
    states = {str(state) for state in Outcome} - {str(Outcome.CONN)}
    seen: dict[str, int] = {}
    for outcome, number in store.all("SELECT outcome, count(*) FROM pages GROUP BY outcome"):
        if outcome not in states:
            found.add("states", f"{number} pages in state {outcome!r}, wanted one of geomi.states",
                      "pages")  # fmt: skip
        seen["outcome." + outcome] = number
    for name in counted:
        if name.startswith("outcome."):
            seen.setdefault(name, 0)
    seen["pages.known"] = sum(seen.values())
    seen["pages.pending"] = _number(store, "SELECT count(*) FROM pending")
    row = store.one("SELECT count(*), count(*) FILTER (WHERE page > 0), sum(size) FROM visits")
    seen["requests"], seen["visits"], seen["bytes"] = (
        int(here or 0) + moved for here, moved in zip(row or (0, 0, 0), past.totals(), strict=True)
    )
    for name, number in seen.items():
        if counted.get(name, 0) != number:
            found.add("counters", f"says {counted.get(name, 0)}, counted {number}",
                      f"counter {name}")  # fmt: skip
    for name in ("pages.known", "pages.pending", "requests", "visits"):
        found.counts[name] = seen[name]


_PLACED = (
    "SELECT 1 FROM visits v WHERE v.page = p.page AND v.page > 0 AND v.file = p.file"
    ' AND v."offset" = p."offset" AND v.length = p.length'
    # Of a file that was rewritten it may be a revisit: the payload is kept with another capture.
    " AND (v.revisit = 0 OR EXISTS (SELECT 1 FROM files f WHERE f.file = v.file"
    " AND f.generation > 0))"
)
_MADE_BY_VISITS = ", ".join(
    f"'{state}'" for state in (Outcome.OK, Outcome.CUT, Outcome.SAME, Outcome.CODE, Outcome.GONE)
)
_RANKS = ", ".join(f"p.depth + {4 * step}" for step in range(9))
#: A visit after which its page waits no longer, and no due date, notice, comparison of names or
#: import (4 + 8 + 32 + 128) wanted it.
_SETTLED = (
    "({0}.reason & 172 = 0 AND {0}.outcome NOT IN ("
    + ", ".join(f"'{state}'" for state in sorted(map(str, TRANSIENT)))
    + ") AND NOT ({0}.outcome = 'code' AND ({0}.code >= 500 OR {0}.code = 429)))"
)


def _check_pages(store: Store, found: Findings, past: Past) -> None:
    for site, number in store.all(
        "SELECT p.site_id, count(*) FROM pages p LEFT JOIN sites s ON s.site_id = p.site_id"
        " WHERE s.site_id IS NULL GROUP BY p.site_id"
    ):
        found.add("sites", f"{number} pages of a site that is not in the store", f"site {site}")
    for site_id, url_hash in store.each(
        "SELECT site_id, url_hash FROM pages GROUP BY site_id, url_hash HAVING count(*) > 1"
    ):
        for url, number in store.all(
            "SELECT url, count(*) FROM pages WHERE site_id = ? AND url_hash = ?"
            " GROUP BY url HAVING count(*) > 1",
            (site_id, url_hash),
        ):
            found.add("twice", f"{number} pages of one URL, wanted one", url)
    for url, outcome, visits, number in store.each(
        "SELECT * FROM (SELECT p.url, p.outcome, p.visits, p.moved + (SELECT count(*) FROM visits v"
        " WHERE v.page = p.page AND v.page > 0) AS n FROM pages p) AS c"
        f" WHERE visits <> n OR (n = 0 AND outcome IN ({_MADE_BY_VISITS}))"
    ):
        found.add("page visits", f"{outcome} and {visits} visits, {number} are in the history", url)
    for page, url, file, offset in store.each(
        'SELECT p.page, p.url, p.file, p."offset" FROM pages p WHERE p.file > 0'
        f" AND NOT EXISTS ({_PLACED})"
        " AND p.stored_url = ''"  # else another page's visit did: see verify_revisits
    ):
        # An older copy is chosen again where younger ones were hidden; it may have moved by then.
        if not past.has_place(page, file, offset):
            found.add("page place", f"kept in file {file} at {offset}, where no visit put it", url)


def _check_urls(store: Store, found: Findings) -> None:
    """Every URL is filed under its own site and hash: else it would be met again as a new one."""
    for url, url_hash, site in store.each(
        "SELECT p.url, p.url_hash, s.site FROM pages p JOIN sites s ON s.site_id = p.site_id"
    ):
        if urls.url_hash(url) != url_hash:
            found.add("hash", f"hash {url_hash}, wanted {urls.url_hash(url)}", url)
        if urls.site_of(url) != site:
            found.add("site", f"filed under {site}, wanted {urls.site_of(url)}", url)


def _check_pending(store: Store, found: Findings) -> None:
    for page, site_id, there, url in store.each(
        "SELECT w.page, w.site_id, p.site_id, p.url FROM pending w LEFT JOIN pages p"
        " ON p.page = w.page WHERE p.page IS NULL OR p.site_id <> w.site_id"
    ):
        seen = "is no page" if there is None else f"is a page of site {there}"
        found.add("pending", f"waits at site {site_id}, but {seen}", url or f"page {page}")
    # Ranks differ from depths for what failed, by steps of four: see frontier.retry.rank.
    for (url,) in store.each(
        "SELECT p.url FROM pending w JOIN pages p ON p.page = w.page WHERE w.depth <> p.depth"
        " AND EXISTS (SELECT 1 FROM pending o WHERE o.site_id = w.site_id AND o.page = w.page"
        f" AND o.depth <> w.depth AND o.depth IN ({_RANKS}))"
    ):
        found.add("pending twice", "waits twice, wanted once", url)
    for url, outcome in store.each(
        "SELECT p.url, p.outcome FROM pending w JOIN pages p ON p.page = w.page"
        " WHERE p.outcome IN ('skip', 'bad', 'Conn', 'erased')"
    ):
        found.add("pending settled", f"waits, but is settled as {outcome}", url)
    waiting_new = _number(
        store,
        "SELECT count(*) FROM pending w JOIN pages p ON p.page = w.page WHERE p.outcome = 'NULL'",
    )
    if waiting_new < _number(store, "SELECT count(*) FROM pages WHERE outcome = 'NULL'"):
        # Only now: the list of all that waits is held in memory for this.
        for (url,) in store.each(
            "SELECT p.url FROM pages p WHERE p.outcome = 'NULL'"
            " AND p.page NOT IN (SELECT page FROM pending)"
        ):
            found.add("lost", "was never asked and waits nowhere: it is lost", url)
    for site, waiting, number in store.each(
        "SELECT s.site, s.waiting, coalesce(w.n, 0) FROM sites s LEFT JOIN"
        " (SELECT site_id, count(*) AS n FROM pending GROUP BY site_id) w ON w.site_id = s.site_id"
        " WHERE s.waiting <> coalesce(w.n, 0)"
    ):
        found.add("waiting", f"says {waiting} pages wait, counted {number}", f"site {site}")
    for site, next_due, soonest in store.each(
        "SELECT * FROM (SELECT s.site, s.next_due, (SELECT min(not_before) FROM pending w"
        " WHERE w.site_id = s.site_id) AS soonest FROM sites s WHERE s.waiting > 0"
        " AND s.holder = '') AS c WHERE next_due > soonest"
    ):
        found.add("next due", f"is due at {next_due:.3f}, a page of it at {soonest:.3f}",
                  f"site {site}")  # fmt: skip


def _check_visits(store: Store, found: Findings) -> None:
    for visit, page in store.each(
        "SELECT v.visit, v.page FROM visits v LEFT JOIN pages p ON p.page = v.page"
        " WHERE v.page > 0 AND p.page IS NULL"
    ):
        found.add("visit page", f"is of page {page}, which is not in the store", f"visit {visit}")
    for visit, epoch, newest, site in store.each(
        "SELECT v.visit, v.epoch, s.epoch, s.site FROM visits v JOIN sites s"
        " ON s.site_id = v.site_id WHERE v.epoch > s.epoch"
    ):
        found.add("epoch", f"carries epoch {epoch}, the newest of {site} is {newest}",
                  f"visit {visit}")  # fmt: skip
    for url, run, first, visit in store.each(
        "SELECT * FROM (SELECT p.url, v.run, (SELECT min(o.visit) FROM visits o"
        " WHERE o.page = v.page AND o.page > 0 AND o.visit < v.visit AND o.run = v.run"
        f" AND {_SETTLED.format('o')})"
        " AS first, v.visit FROM visits v JOIN pages p ON p.page = v.page"
        f" WHERE v.page > 0 AND {_SETTLED.format('v')}) AS c WHERE first IS NOT NULL"
    ):
        found.add("committed twice", f"visits {first} and {visit} both settled it in run {run}",
                  url)  # fmt: skip
    for (url,) in store.each(
        "SELECT d.url FROM seeds d LEFT JOIN sites s ON s.site = d.site WHERE NOT EXISTS"
        " (SELECT 1 FROM pages p WHERE p.site_id = s.site_id AND p.url_hash = d.url_hash"
        " AND p.url = d.url) AND coalesce(s.state, '') <> 'refused'"
        " AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.url = d.url)"
    ):
        found.add("seeds", "a seed that is neither a page nor in the inbox", url)


def _check_batches(store: Store, found: Findings) -> None:
    row = store.one("SELECT count(seq), min(seq), max(seq), count(*) FROM batches")
    numbered, first, last, total = row or (0, None, None, 0)
    found.counts["batches"] = total
    found.counts["batches.unnumbered"] = total - numbered
    if numbered and (first != 1 or last != numbered):
        found.add("numbers", f"{numbered} batches are numbered from {first} to {last}", "batches")
    if total > numbered and _run_state(store) in ("done", "stopped"):
        found.add("numbers", f"{total - numbered} batches have no number, and the run is over",
                  "batches")  # fmt: skip
    for batch, visits, number in store.each(
        "SELECT * FROM (SELECT b.batch, b.visits, b.moved + (SELECT count(*) FROM visits v"
        " WHERE v.visit BETWEEN b.first_visit AND b.last_visit AND v.batch = b.batch) AS n"
        " FROM batches b) AS c WHERE visits <> n"
    ):
        found.add("batch", f"says {visits} visits, counted {number}", f"batch {batch}")
    loose = _number(
        store,
        "SELECT count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM batches b"
        " WHERE b.batch = v.batch)",
    )
    if loose:
        found.add("batch", f"{loose} visits belong to no batch", "visits")
    for batch, visits, number in store.each(
        "SELECT * FROM (SELECT b.batch, b.visits, (SELECT count(*) FROM log l"
        " WHERE l.batch = b.batch AND l.change = 'added' AND l.visit = 0) AS n"
        " FROM batches b) AS c WHERE n <> CASE WHEN visits > 0 THEN 1 ELSE 0 END"
    ):
        found.add("log", f"{number} entries for a batch of {visits} visits", f"batch {batch}")
    lost = _number(
        store,
        "SELECT count(*) FROM log l WHERE NOT EXISTS (SELECT 1 FROM batches b"
        " WHERE b.batch = l.batch)",
    )
    if lost:
        found.add("log", f"{lost} entries are of batches that are not there", "log")


def _run_state(store: Store) -> str:
    last = cluster_tables.last_run(store)
    return str(last[2]) if last else ""


def _check_leases(store: Store, found: Findings) -> None:
    """Nobody holds what an ended agent held. A dead one's is taken back when the crawl goes on."""
    running = {
        f"{agent}/{incarnation}" for agent, incarnation, *_ in cluster_tables.running_agents(store)
    }
    held = 0
    for site, holder in store.each("SELECT site, holder FROM sites WHERE holder <> ''"):
        held += 1
        if holder not in running:
            found.add("leases", f"held by {holder}, which has ended", f"site {site}")
    for address, holder in store.each("SELECT address, holder FROM addresses WHERE holder <> ''"):
        if holder not in running:
            found.add("claims", f"claimed by {holder}, which has ended", f"address {address}")
    found.counts["sites.held"] = held


def _check_letters(store: Store, found: Findings) -> None:
    letters = lost = 0
    for letter, site, url, reason in store.each("SELECT letter, site, url, reason FROM inbox"):
        letters += 1
        # Seeds and probes may be wanted between two runs; what a run found is taken in by it.
        lost += not reason & (Reason.SEED | Reason.PROBE)
        canonical = urls.canonical(url)
        if canonical != url or urls.site_of(url) != site:
            found.add("letters", f"for {site}, but {url!r} is not a canonical URL of it",
                      f"letter {letter}")  # fmt: skip
    found.counts["letters"] = letters
    if lost and _run_state(store) == "done":
        found.add("letters", f"{lost} letters wait, and the run is done", "inbox")
