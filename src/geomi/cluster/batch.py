"""What an agent settles together: rows for one transaction, and how they are committed.

Order: append the records, sync the files, `commit` (one transaction), only then forget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from geomi.archive import tables as archive_tables
from geomi.archive.writer import FileWrite
from geomi.cluster.found import NewPage, found_nearer, page_row, revive
from geomi.frontier import tables as frontier_tables
from geomi.frontier.tables import Known
from geomi.history import tables as history_tables
from geomi.records import PASSES_SEEN
from geomi.seeds import tables as seeds_tables
from geomi.states import Outcome
from geomi.store import Store

# Places in a row of `visits` (history.tables.PUT_VISIT).
SITE, EPOCH, SIZE, FILE, OFFSET, LENGTH, BATCH = 1, 6, 15, 17, 18, 19, 22


_REFUSED = frozenset({Outcome.SKIP, Outcome.DENY})


def refused_as(why: str) -> str:
    """The counter of pages that were refused: `trap:depth` -> `refused.trap_depth`.

    Of others what stands behind the colon is a number, or one of many words.
    """
    name, _, more = why.partition(":")
    return f"refused.trap_{more}" if name == "trap" else f"refused.{name}"


class Stored(Struct):
    """A visit with a record: what must be right once lengths of spooled parts are known."""

    visit: list[Any]
    page: int  # 0: no page row to update
    index: int  # of its first part among the parts of its file
    extent: int
    date: str
    record_id: str
    digest: str
    is_revisit: bool


class Batch(Struct, kw_only=True):
    """Rows in the order they were settled. Filled by the agent, emptied by commit()."""

    agent: str
    incarnation: int
    holder: str
    run: int
    # site_id -> epoch of every site with a row here
    epochs: dict[int, int] = {}
    visits: list[list[Any]] = []
    stored: list[Stored] = []
    # (site_id, outcome before, outcome after, parameters of SETTLE_PAGE)
    settled: list[tuple[int, str, str, tuple[Any, ...]]] = []
    # (site_id, rank, page): no longer pending
    done: list[tuple[int, int, int]] = []
    # (site_id, Known): still pending, later
    retried: list[tuple[int, Known]] = []
    new: list[NewPage] = []
    # (site of the page it was found on, parameters of PUT_OUTSIDE, hops, admit)
    outside: list[tuple[int, tuple[Any, ...], int, str]] = []
    robots: list[tuple[Any, ...]] = []
    # (site_id, outcome, why, prefix): all of its URLs that begin so and still wait take this state
    given_up: list[tuple[int, str, str, str]] = []
    # letters of the inbox that were taken in, with the site they were for
    letters: list[tuple[int, int]] = []
    # parties with a download here
    parties: set[int] = set()
    # seed -> (page, outcome, digest)
    seeds: dict[int, tuple[int, str, str]] = {}
    # (site_id, host's address, failures in a row)
    site_facts: dict[int, tuple[str, int]] = {}
    files: list[FileWrite] = []
    spools: list[str] = []
    payload_bytes: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def is_empty(self) -> bool:
        return not (self.epochs or self.files)

    def settles(self, page: int) -> bool:
        """True if this batch says what becomes of a waiting page."""
        return any(page == row[2] for row in self.done) or any(
            page == known.page for _, known in self.retried
        )

    def move(self, known: Known) -> None:
        """A page that waits was moved in line while its visit was under way."""
        self.done = [
            (site_id, known.rank if page == known.page else rank, page)
            for site_id, rank, page in self.done
        ]
        self.retried = [
            (site_id, k._replace(rank=known.rank) if k.page == known.page else k)
            for site_id, k in self.retried
        ]

    def grown(self, file: int, index: int, length: int) -> None:
        """A spooled part at `index` of `file` turned out `length` bytes long."""
        for stored in self.stored:
            visit = stored.visit
            if visit[FILE] != file:
                continue
            if stored.index == index:
                visit[LENGTH] = length
                stored.extent += length
            elif stored.index > index:
                visit[OFFSET] += length


class Committed(Struct, frozen=True, kw_only=True):
    """What the store made of a batch."""

    refused: frozenset[int]  # sites whose epoch is no longer ours: nothing of them was written
    inserted: tuple[NewPage, ...]  # maybes that were new, and wait
    nearer: tuple[NewPage, ...] = ()  # pages that wait and were found by a shorter way


def commit(store: Store, batch: Batch, *, now: float, lengths: dict[int, int]) -> Committed:
    """Writes a batch, all or nothing but for refused sites. `lengths`: files as appended."""
    with store.transaction():
        refused = _refused(store, batch)
        visits = [row for row in batch.visits if row[SITE] not in refused]
        number = history_tables.open_batch(store, batch.agent, batch.incarnation, now)
        for row in visits:
            row[BATCH] = number
        store.many(history_tables.PUT_VISIT, visits)
        history_tables.close_batch(store, number, len(visits))
        for file, length in lengths.items():
            archive_tables.committed(store, file, length)
        if refused:
            _keep_orphans(store, batch, refused)
        counts: Counter[str] = Counter(batch.counts)
        waiting: Counter[int] = Counter()
        counts["requests"] += len(visits)
        counts["visits"] += sum(1 for row in visits if row[0])
        counts["bytes"] += sum(row[SIZE] for row in visits)
        parties: Counter[int] = Counter()  # pages admitted to each
        inserted, nearer = _insert(store, batch, refused, counts, waiting, parties)
        _settle(store, batch, refused, counts, waiting)
        _give_up(store, batch, refused, counts, waiting)
        _outside(store, batch, refused, counts)
        store.many(frontier_tables.PUT_ROBOTS, [r for r in batch.robots if r[1] not in refused])
        store.many(
            "DELETE FROM inbox WHERE letter = ?",
            [(letter,) for letter, site in batch.letters if site not in refused],
        )
        _parties(store, batch, refused, parties, now)
        store.many(
            "UPDATE sites SET waiting = waiting + ? WHERE site_id = ?",
            [(delta, site) for site, delta in waiting.items() if delta],
        )
        store.many(
            "UPDATE sites SET address = ?, failures = ? WHERE site_id = ?",
            [(a, f, site) for site, (a, f) in batch.site_facts.items() if site not in refused],
        )
        counts["pages.pending"] += sum(waiting.values())
        frontier_tables.count(store, counts.items())
    return Committed(refused=frozenset(refused), inserted=tuple(inserted), nearer=tuple(nearer))


def _refused(store: Store, batch: Batch) -> set[int]:
    """Sites whose lease is no longer this agent's. The write lock is held: it stays true."""
    refused = set(batch.epochs)
    ids = list(batch.epochs)
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        marks = ",".join("?" * len(some))
        for site_id, epoch, holder in store.all(
            f"SELECT site_id, epoch, holder FROM sites WHERE site_id IN ({marks})", some
        ):
            if epoch == batch.epochs[site_id] and holder == batch.holder:
                refused.discard(site_id)
    return refused


def _keep_orphans(store: Store, batch: Batch, refused: set[int]) -> None:
    store.many(
        'INSERT INTO orphans (file, "offset", length, site_id, epoch) VALUES (?, ?, ?, ?, ?)',
        [
            (s.visit[FILE], s.visit[OFFSET], s.extent, s.visit[SITE], s.visit[EPOCH])
            for s in batch.stored
            if s.visit[SITE] in refused
        ],
    )


def _settle(
    store: Store, batch: Batch, refused: set[int], counts: Counter[str], waiting: Counter[int]
) -> None:
    settled = [row for row in batch.settled if row[0] not in refused]
    store.many(frontier_tables.SETTLE_PAGE, [row[3] for row in settled])
    for _, before, after, params in settled:
        counts["outcome." + before] -= 1
        counts["outcome." + after] += 1
        if after in _REFUSED:
            counts[refused_as(params[2])] += 1
    store.many(
        frontier_tables.STORE_PAGE,
        [
            (s.visit[FILE], s.visit[OFFSET], s.visit[LENGTH], s.date, s.record_id, s.digest, s.page)
            for s in batch.stored
            if s.page and not s.is_revisit and s.visit[SITE] not in refused
        ],
    )
    store.many(
        frontier_tables.PUT_PENDING,
        [
            (site_id, k.rank, k.page, k.reason, k.not_before, 0.0, k.tries)
            for site_id, k in batch.retried
            if site_id not in refused
        ],
    )
    # After the retried ones: a page may be tried again and settled for good within one batch.
    done = [row for row in batch.done if row[0] not in refused]
    for site_id, _, _ in done:
        waiting[site_id] -= 1
    store.many(frontier_tables.DROP_PENDING, done)


def _insert(
    store: Store, batch: Batch, refused: set[int], counts: Counter[str], waiting: Counter[int],
    parties: Counter[int],
) -> tuple[list[NewPage], list[NewPage]]:  # fmt: skip
    """New pages and what of them waits. Returns the maybes that wait now, and those found nearer.

    Before _settle: some of them are settled in the same batch.
    """
    sure = [n for n in batch.new if not n.is_maybe and n.site_id not in refused]
    store.many(frontier_tables.NEW_PAGE, [page_row(n) for n in sure])
    fresh: list[NewPage] = []
    there: list[NewPage] = []
    for new in batch.new:
        if not new.is_maybe or new.site_id in refused:
            continue
        row = (*page_row(new), new.site_id, new.url_hash, new.known.url)
        if store.run(frontier_tables.MAYBE_PAGE, row):
            sure.append(new)
            if not new.why:
                fresh.append(new)
        elif not new.why:
            there.append(new)
    _wait(store, sure)
    nearer: list[NewPage] = []
    revived: dict[int, NewPage] = {}  # by page: two notices of one page are one wish
    for new in there:
        moved = None
        if new.may_be_nearer:
            moved = found_nearer(store, new, is_settled=batch.settles)
        if moved is not None:
            nearer.append(moved)
        elif (back := revive(store, new, counts)) is not None:
            revived.setdefault(back.known.page, back)
    _wait(store, revived.values())
    for new in sure:
        counts["outcome." + new.known.outcome] += 1
        if new.why:
            counts[refused_as(new.why)] += 1
    for new in (*sure, *revived.values()):
        if not new.why:
            waiting[new.site_id] += 1
            if not new.known.reason & PASSES_SEEN:
                parties[new.known.party] += 1
    counts["pages.known"] += len(sure)
    return [*fresh, *revived.values()], nearer


def _wait(store: Store, pages: Iterable[NewPage]) -> None:
    store.many(
        frontier_tables.PUT_PENDING,
        [
            (n.site_id, n.known.rank, n.known.page, n.known.reason, n.known.not_before, 0.0, 0)
            for n in pages
            if not n.why
        ],
    )


def _give_up(
    store: Store, batch: Batch, refused: set[int], counts: Counter[str], waiting: Counter[int]
) -> None:
    for site_id, outcome, why, prefix in batch.given_up:
        if site_id not in refused:
            give_up_site(store, site_id, outcome, why, batch.run, counts, prefix=prefix)
            counts["pages.pending"] += waiting.pop(site_id, 0)


def give_up_site(
    store: Store, site_id: int, outcome: str, why: str, run: int, counts: Counter[str],
    *, prefix: str = "",
) -> None:  # fmt: skip
    """All that waits at a site, under a prefix, takes one state and waits no longer."""
    which = (
        "page IN (SELECT w.page FROM pending w JOIN pages p ON p.page = w.page"
        " WHERE w.site_id = ? AND substr(p.url, 1, ?) = ?)"
    )
    params = (site_id, len(prefix), prefix)
    for before, number in store.all(
        f"SELECT outcome, count(*) FROM pages WHERE {which} GROUP BY outcome", params
    ):
        counts["outcome." + before] -= number
        counts["outcome." + outcome] += number
        if outcome in _REFUSED:
            counts[refused_as(why)] += number
    store.run(
        f"UPDATE pages SET outcome = ?, why = ?, run = ?, fails = fails + 1 WHERE {which}",
        (outcome, why, run, *params),
    )
    store.run(
        f"UPDATE seeds SET outcome = ? WHERE url IN (SELECT url FROM pages WHERE {which})",
        (outcome, *params),
    )
    counts["pages.pending"] -= store.run(
        f"DELETE FROM pending WHERE site_id = ? AND {which}", (site_id, *params)
    )
    # What the batch itself put there is counted by its caller: set, do not add.
    frontier_tables.refresh_waiting(store, [site_id])


def _outside(store: Store, batch: Batch, refused: set[int], counts: Counter[str]) -> None:
    """Links to other sites: to the inbox of an admitted one, else remembered as candidates."""
    rows = [row for row in batch.outside if row[0] not in refused]
    if not rows:
        return
    admitted = known_sites(store, {row[1][2] for row in rows})
    inbox, outside = [], []
    for _, params, hops, admit in rows:
        if admit or params[2] in admitted:
            _, url, site, _, kind, via, depth, party, _ = params
            inbox.append((site, url, kind, via, depth, party, 2, 0.0, 0.0, hops, admit))
        else:
            outside.append(params)
    store.many(frontier_tables.PUT_INBOX, inbox)
    store.many(seeds_tables.PUT_OUTSIDE, outside)
    counts["inbox.put"] += len(inbox)


def known_sites(store: Store, sites: Iterable[str]) -> set[str]:
    """Those of `sites` that are admitted."""
    names = list(sites)
    found: set[str] = set()
    for start in range(0, len(names), 500):
        some = names[start : start + 500]
        marks = ",".join("?" * len(some))
        found.update(
            row[0] for row in store.all(f"SELECT site FROM sites WHERE site IN ({marks})", some)
        )
    return found


def _parties(
    store: Store, batch: Batch, refused: set[int], pages: Counter[int], now: float
) -> None:
    """When each party began and last ended a download, and how many pages it was given."""
    store.many(
        "UPDATE seeds SET party_ended = ?, pages = pages + ?,"
        " party_started = CASE WHEN party_started = 0 THEN ? ELSE party_started END WHERE seed = ?",
        [(now, pages[seed], now, seed) for seed in sorted(batch.parties | set(pages))],
    )
    lost = {params[-1] for site_id, _, _, params in batch.settled if site_id in refused}
    store.many(
        "UPDATE seeds SET page = ?, outcome = ?, digest = ? WHERE seed = ?",
        [
            (page, outcome, digest, seed)
            for seed, (page, outcome, digest) in batch.seeds.items()
            if page not in lost
        ],
    )
