"""What an agent settles together: rows for one transaction, and how they are committed.

Order: append the records, sync the files, `commit` (one transaction), only then forget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from msgspec import Struct, field

from geomi import url as urls
from geomi.archive import tables as archive_tables
from geomi.archive.duplicates import Original
from geomi.archive.writer import FileWrite
from geomi.cluster.admitted import OUTSIDE, known_sites
from geomi.cluster.found import NewPage, found_nearer, page_row, revive
from geomi.cluster.givenup import REFUSED, give_up_site, refused_as
from geomi.cluster.references import References, place_of, put_references
from geomi.frontier import alias_tables, counters, maybes
from geomi.frontier import tables as frontier_tables
from geomi.frontier.tables import Known
from geomi.history import tables as history_tables
from geomi.records import PASSES_SEEN
from geomi.seeds import tables as seeds_tables
from geomi.store import SQLITE, Both, Store

# Places in a row of `visits` (history.tables.PUT_VISIT).
SITE, EPOCH, SIZE, FILE, OFFSET, LENGTH, BATCH = 1, 6, 15, 17, 18, 19, 22


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
    original: Original | None = None  # a revisit of it: its place is the page's now
    url: str = ""  # whose response that is, if it is another page's


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
    # parameters of PUT_FACE
    faces: list[tuple[int, str, str, str]] = []
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
    references: References = field(default_factory=References)
    payload_bytes: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    # a commit of it that was not answered: its number, and what the store made of it
    tried: tuple[int, Committed] | None = None
    spooled: tuple[tuple[int, int], ...] = ()  # (file, bytes) of spooled parts, once written

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
    """Writes a batch, all or nothing but for refused sites. `lengths`: files as appended.

    Whatever else wants the sites meanwhile waits, or comes to a younger epoch. After a
    ResourceError ask `answered` before it is called again.
    """
    with store.transaction():
        refused = _refused(store, batch)
        visits = [row for row in batch.visits if row[SITE] not in refused]
        number = history_tables.open_batch(store, batch.agent, batch.incarnation, now)
        for row in visits:
            row[BATCH] = number
        last = history_tables.put_visits(store, number, visits)
        put_references(store, number, batch.references, refused)
        for file, length in lengths.items():
            archive_tables.committed(store, file, length, last_visit=last)
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
        store.many(alias_tables.PUT_FACE, [f for f in batch.faces if f[0] not in refused])
        store.many(
            "DELETE FROM inbox WHERE letter = ?",
            [(letter,) for letter, site in batch.letters if site not in refused],
        )
        _parties(store, batch, refused, parties, now)
        store.many(
            "UPDATE sites SET waiting = waiting + ? WHERE site_id = ?",
            [(delta, site) for site, delta in sorted(waiting.items()) if delta],
        )
        store.many(
            "UPDATE sites SET address = ?, failures = ? WHERE site_id = ?",
            [(a, f, site) for site, (a, f) in batch.site_facts.items() if site not in refused],
        )
        counts["pages.pending"] += sum(waiting.values())
        counters.count(store, counts.items(), writer=batch.agent)
        committed = Committed(
            refused=frozenset(refused), inserted=tuple(inserted), nearer=tuple(nearer)
        )
        batch.tried = (number, committed)
    return committed


def answered(store: Store, batch: Batch) -> Committed | None:
    """What became of a commit whose answer was lost, if it was committed all the same."""
    if batch.tried is None:
        return None
    number, committed = batch.tried
    with store.transaction():
        _refused(store, batch)  # waits for the rows: that commit has ended, one way or the other
        if history_tables.is_committed(store, number, batch.agent, batch.incarnation):
            return committed
    return None


#: Who holds the lease of some sites. The answer stays true until the transaction ends: SQLite has
#: its one writer, PostgreSQL locks the rows, in the order of their keys.
_HOLDERS = Both(
    "SELECT site_id, epoch, holder FROM sites WHERE site_id IN ({marks})",
    "SELECT site_id, epoch, holder FROM sites WHERE site_id IN ({marks})"
    " ORDER BY site_id FOR NO KEY UPDATE",
)


def _refused(store: Store, batch: Batch) -> set[int]:
    """Sites whose lease is no longer this agent's."""
    refused = set(batch.epochs)
    ids = sorted(batch.epochs)
    sentence = _HOLDERS.of(store)
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        marks = ",".join("?" * len(some))
        for site_id, epoch, holder in store.all(sentence.format(marks=marks), some):
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
    places = {
        s.page: (s.visit[FILE], s.visit[OFFSET], s.visit[LENGTH], s.date, s.record_id, s.digest, "")
        if s.original is None
        else place_of(s.original, s.digest, s.url)
        for s in batch.stored
        if s.page and (s.original or not s.is_revisit) and s.visit[SITE] not in refused
    }
    alone: list[tuple[Any, ...]] = []
    placed: dict[int, tuple[Any, ...]] = {}  # by page: the last of what it was settled as
    for site_id, before, after, params in batch.settled:
        if site_id in refused:
            continue
        counts["outcome." + before] -= 1
        counts["outcome." + after] += 1
        if after in REFUSED:
            counts[refused_as(params[2])] += 1
        page = params[-1]
        if page not in places:
            alone.append(params)
            continue
        if (earlier := placed.get(page)) is not None:
            alone.append(earlier)
        placed[page] = params
    both = [places[page] + params for page, params in placed.items()]
    if store.dialect != SQLITE:  # one order for all who write there
        alone.sort(key=itemgetter(-1))
        both.sort(key=itemgetter(-1))
    store.many(frontier_tables.SETTLE_PAGE, alone)
    store.many(frontier_tables.STORE_AND_SETTLE, both)
    store.many(
        frontier_tables.STORE_PAGE,
        [(*place, page) for page, place in places.items() if page not in placed],
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
    unsure = [n for n in batch.new if n.is_maybe and n.site_id not in refused]
    for new, is_new in zip(
        unsure, maybes.put_maybes(store, [page_row(n) for n in unsure]), strict=True
    ):
        if is_new:
            sure.append(new)
            if not new.why:
                fresh.append(new)
        elif not new.why:
            there.append(new)
    _wait(store, sure)
    nearer: list[NewPage] = []
    revived: dict[int, NewPage] = {}  # by page: two notices of one page are one wish
    changeable = maybes.changeable(store, [page_row(n) for n in there])
    for new, may_change in zip(there, changeable, strict=True):
        if not (may_change or new.known.reason & PASSES_SEEN):
            continue
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
            alias_tables.look_again(store, site_id)
            counts["pages.pending"] += waiting.pop(site_id, 0)


def _outside(store: Store, batch: Batch, refused: set[int], counts: Counter[str]) -> None:
    """Links to other sites: to the inbox of an admitted one, else remembered as candidates."""
    rows = [row for row in batch.outside if row[0] not in refused]
    # Found here for a site that is another's now: its holder gets a letter.
    inbox = [
        (urls.site_of(k.url), k.url, k.kind, k.via, k.depth, k.party, k.reason, k.not_before, 0.0,
         k.hops, "")
        for k in (n.known for n in batch.new if n.site_id in refused and not n.by_letter)
        if k.via and urls.site_of(k.via) != urls.site_of(k.url)
    ]  # fmt: skip
    if not rows and not inbox:
        return
    store.enter(OUTSIDE)  # a site admitted from here on looks again when this has ended
    admitted = known_sites(store, {row[1][2] for row in rows})
    outside = []
    for _, params, hops, admit in rows:
        if admit or params[2] in admitted:
            _, url, site, _, kind, via, depth, party, _ = params
            inbox.append((site, url, kind, via, depth, party, 2, 0.0, 0.0, hops, admit))
        else:
            outside.append(params)
    store.many(frontier_tables.PUT_INBOX, inbox)
    if store.dialect != SQLITE:  # one order for all who write there
        outside.sort(key=lambda row: row[:2])
    store.many(seeds_tables.PUT_OUTSIDE, outside)
    counts["inbox.put"] += len(inbox)


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
            for seed, (page, outcome, digest) in sorted(batch.seeds.items())
            if page not in lost
        ],
    )
