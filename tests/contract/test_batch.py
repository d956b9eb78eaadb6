"""What a commit makes of a batch: rows, counters, and what it refuses."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi import url as urls
from geomi.cluster.batch import EPOCH, OFFSET, SITE, Batch, Committed, Stored, commit
from geomi.cluster.found import NewPage
from geomi.cluster.tables import MIGRATIONS
from geomi.frontier import counters, tables
from geomi.frontier.tables import Known
from geomi.history.past import follow
from geomi.history.tables import number_batches
from geomi.seeds.tables import add_seed
from geomi.store import SqliteStore, Store, open_store
from geomi.store.migrate import migrate
from postgres import Postgres

NOW = 1_700_000_000.0
HOLDER = "a0/1"


@dataclass
class Bench:
    """A store with leased sites 1, 2, 3 …, one seed each, and batches made by hand."""

    store: Store
    sites: int = 3
    pages: Iterator[int] = field(default_factory=lambda: iter(range(1, 10**6)))

    def __post_init__(self) -> None:
        migrate(self.store, MIGRATIONS, where="c")
        with self.store.transaction():
            for number in range(1, self.sites + 1):
                site = f"s{number}.example"
                tables.add_site(self.store, site, domain=site, admitted="given", now=NOW)
                add_seed(self.store, f"http://{site}/", url_hash=number, site=site, labels={},
                         source="given", now=NOW)  # fmt: skip
            self.store.run("UPDATE sites SET holder = ?, epoch = 5", (HOLDER,))

    def batch(self) -> Batch:
        return Batch(agent="a0", incarnation=1, holder=HOLDER, run=1)

    def commit(self, batch: Batch, lengths: dict[int, int] | None = None) -> Committed:
        return commit(self.store, batch, now=NOW, lengths=lengths or {})

    def find(
        self, batch: Batch, path: str, *, site: int = 1, why: str = "", is_maybe: bool = False,
        kind: str = "a", depth: int = 1, not_before: float = 0.0,
    ) -> Known:  # fmt: skip
        url = f"http://s{site}.example/{path}"
        known = Known(
            next(self.pages), url, depth, depth, site, kind, f"http://s{site}.example/", 0,
            "skip" if why else "NULL", 0, 0, "", "", "", "", "", "", 2, not_before, 0,
        )  # fmt: skip
        batch.new.append(NewPage(site, known, urls.url_hash(url), NOW, 1, why, is_maybe))
        batch.epochs[site] = 5
        return known

    def visit(
        self, batch: Batch, known: Known, *, outcome: str = "OK", before: str = "", size: int = 10,
        later: float | None = None, file: int = 0, offset: int = 0, index: int = 0,
    ) -> list[Any]:  # fmt: skip
        """A visit that settles a page; with `later` it waits again."""
        site = known.party
        row = [
            known.page, site, "", "page", 1, 2, 5, f"s{site}.example", "192.0.2.1", NOW, NOW + 0.5,
            outcome, 200, "text/html", "sha1:A", size, -1, file, offset, 100, "date", 0, 0, "",
        ]  # fmt: skip
        batch.visits.append(row)
        batch.epochs[site] = 5
        batch.parties.add(site)
        batch.settled.append((site, before or known.outcome, outcome, (
            1, outcome, "", 200, "text/html", "sha1:A", size, 0.5, "000", "title", NOW, 1, 0, 0, 0,
            "", "", NOW, 0.0, 0.0, known.page,
        )))  # fmt: skip
        if file:
            batch.stored.append(
                Stored(row, known.page, index, 120, "date", "urn:uuid:1", "sha1:A", False)
            )
        if later is None:
            batch.done.append((site, known.rank, known.page))
        else:
            again = known._replace(not_before=later, tries=known.tries + 1, outcome=outcome)
            batch.retried.append((site, again))
        return row

    def all(self, sql: str) -> list[tuple[Any, ...]]:
        return self.store.all(sql)

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of what a batch may write for a site, but not the batches themselves."""
        names = ("visits", "pages", "pending", "robots", "outside", "inbox", "seeds")
        return {name: sorted(self.all(f"SELECT * FROM {name}")) for name in names}

    def check(self) -> None:
        """Counters equal counts; each page that is NULL waits; each site knows what waits."""
        counted = {
            name: value
            for name, value in counters.counters(self.store).items()
            if value and not name.startswith("refused.")  # how often, not how many
        }
        outcomes = self.all("SELECT 'outcome.' || outcome, count(*) FROM pages GROUP BY outcome")
        counts = dict(outcomes)
        for name, sql in {
            "pages.known": "SELECT count(*) FROM pages",
            "pages.pending": "SELECT count(*) FROM pending",
            "requests": "SELECT count(*) FROM visits",
            "visits": "SELECT count(*) FROM visits WHERE page > 0",
            "bytes": "SELECT coalesce(sum(size), 0) FROM visits",
        }.items():
            counts[name] = self.all(sql)[0][0]
        assert counted == {name: value for name, value in counts.items() if value}
        assert self.all(
            "SELECT site_id, waiting FROM sites s"
            " WHERE waiting <> (SELECT count(*) FROM pending p WHERE p.site_id = s.site_id)"
        ) == []  # fmt: skip
        assert self.all(
            "SELECT url FROM pages WHERE outcome = 'NULL'"
            " AND page NOT IN (SELECT page FROM pending)"
        ) == []  # fmt: skip
        assert self.all("SELECT url FROM pages GROUP BY url HAVING count(*) > 1") == []
        assert self.all("SELECT sum(pages) FROM seeds") == self.all(
            "SELECT count(*) FROM pages WHERE outcome <> 'skip' OR why LIKE 'parked%'"
        )


@pytest.fixture
def bench(connect: Callable[[], Store]) -> Bench:
    return Bench(connect())


def test_a_page_found_and_visited_in_the_same_batch_is_settled_and_waits_no_longer(
    bench: Bench,
) -> None:
    batch = bench.batch()
    known = bench.find(batch, "a")
    bench.visit(batch, known, file=1, offset=200)
    result = bench.commit(batch, {})
    assert not result.refused and not result.inserted
    assert bench.all(
        'SELECT outcome, visits, title, file, "offset", length, stored_id FROM pages'
    ) == [("OK", 1, "title", 1, 200, 100, "urn:uuid:1")]
    assert bench.all("SELECT * FROM pending") == []
    bench.check()


def test_a_page_tried_again_and_settled_within_one_batch_waits_no_longer(bench: Bench) -> None:
    batch = bench.batch()
    known = bench.find(batch, "a")
    bench.visit(batch, known, outcome="hTim", later=NOW + 1)
    bench.visit(batch, known, before="hTim")
    bench.commit(batch)
    assert bench.all("SELECT outcome, visits FROM pages") == [("OK", 2)]
    assert bench.all("SELECT * FROM pending") == []
    bench.check()


def test_a_page_that_failed_waits_for_its_next_try(bench: Bench) -> None:
    batch = bench.batch()
    known = bench.find(batch, "a")
    bench.commit(batch)
    batch = bench.batch()
    bench.visit(batch, known, outcome="dTim", later=NOW + 40)
    bench.commit(batch)
    assert bench.all("SELECT page, not_before, tries FROM pending") == [(known.page, NOW + 40, 1)]
    bench.check()


def elsewhere(bench: Bench) -> None:
    bench.store.run("UPDATE sites SET holder = 'a1/2' WHERE site_id = 1")


def younger(bench: Bench) -> None:
    bench.store.run("UPDATE sites SET epoch = 6 WHERE site_id = 1")


def given_back(bench: Bench) -> None:
    bench.store.run("UPDATE sites SET holder = '' WHERE site_id = 1")


@pytest.mark.parametrize("loses", [elsewhere, younger, given_back])
def test_of_a_site_that_was_lost_nothing_is_written_but_where_its_records_lie(
    bench: Bench, loses: Callable[[Bench], None]
) -> None:
    first = bench.batch()
    waiting = bench.find(first, "waits")
    bench.commit(first)
    with bench.store.transaction():
        bench.store.run(tables.PUT_INBOX, (
            "s1.example", "http://s1.example/letter", "a", "", 1, 1, 2, 0.0, 0.0, 0, "",
        ))  # fmt: skip
        loses(bench)
    before = bench.rows()
    batch = bench.batch()
    bench.visit(batch, waiting, file=7, offset=300)
    bench.find(batch, "b")
    bench.find(batch, "c", is_maybe=True)
    batch.seeds[1] = (waiting.page, "OK", "sha1:A")
    batch.parties.clear()
    batch.letters.append((1, 1))
    batch.robots.append(("http://s1.example", 1, NOW, NOW, 200, 0.0, b""))
    batch.outside.append((1, (9, "http://o/", "o", "o", "a", "", 1, 1, NOW), 0, ""))
    batch.given_up.append((1, "noIP", "", ""))
    batch.site_facts[1] = ("192.0.2.9", 3)
    result = bench.commit(batch)
    assert result == Committed(refused=frozenset({1}), inserted=())
    assert bench.rows() == before
    assert bench.all("SELECT * FROM orphans") == [(7, 300, 120, 1, 5)]
    assert bench.all("SELECT address, failures FROM sites WHERE site_id = 1") == [("", 0)]
    bench.check()


def test_refusal_is_per_site_and_the_rest_of_the_batch_counts(bench: Bench) -> None:
    with bench.store.transaction():
        younger(bench)
    batch = bench.batch()
    for site in (1, 2):
        bench.visit(batch, bench.find(batch, "a", site=site), file=1, offset=site * 1000)
    assert bench.commit(batch).refused == {1}
    assert bench.all("SELECT site_id, outcome FROM pages") == [(2, "OK")]
    assert bench.all("SELECT site_id FROM visits") == [(2,)]
    assert bench.all('SELECT site_id, "offset" FROM orphans') == [(1, 1000)]
    bench.check()


def test_a_page_found_for_a_site_that_was_lost_meanwhile_comes_to_its_holder_by_letter(
    bench: Bench,
) -> None:
    """Else it would be lost with that site's rows, and the page it was found on is done."""
    batch = bench.batch()
    found = bench.find(batch, "found-on-another-site", site=2)
    batch.new[-1].known = found._replace(via="http://s1.example/")
    bench.find(batch, "found-at-home", site=2)  # the page it was found on is refused as well
    by_letter = bench.find(batch, "by-letter", site=2)
    batch.new[-1].known = by_letter._replace(via="http://s1.example/")
    batch.new[-1].by_letter = True  # that letter stays in the inbox
    bench.find(batch, "kept", site=1)
    bench.store.run("UPDATE sites SET holder = 'a1/2', epoch = 6 WHERE site_id = 2")
    assert bench.commit(batch).refused == {2}
    assert bench.all("SELECT url FROM pages") == [("http://s1.example/kept",)]
    assert bench.all("SELECT site, url, via FROM inbox") == [
        ("s2.example", "http://s2.example/found-on-another-site", "http://s1.example/")
    ]


def test_a_maybe_that_is_there_is_dropped_and_one_that_is_new_is_told(bench: Bench) -> None:
    batch = bench.batch()
    bench.find(batch, "there")
    bench.commit(batch)
    batch = bench.batch()
    bench.find(batch, "there", is_maybe=True)
    fresh = bench.find(batch, "new", is_maybe=True)
    bench.find(batch, "new", is_maybe=True)  # twice in one batch
    bench.find(batch, "far", is_maybe=True, why="depth")
    result = bench.commit(batch)
    assert [new.known.page for new in result.inserted] == [fresh.page]
    assert bench.all("SELECT url, outcome, why FROM pages ORDER BY url") == [
        ("http://s1.example/far", "skip", "depth"),
        ("http://s1.example/new", "NULL", ""),
        ("http://s1.example/there", "NULL", ""),
    ]
    assert bench.all("SELECT pages FROM seeds WHERE seed = 1") == [(2,)]
    bench.check()


def test_equal_hashes_of_different_urls_are_different_pages(bench: Bench) -> None:
    batch = bench.batch()
    bench.find(batch, "a")
    bench.find(batch, "b", is_maybe=True)
    for new in batch.new:
        new.url_hash = 42
    assert len(bench.commit(batch).inserted) == 1
    bench.check()


@pytest.mark.parametrize(
    ("why", "is_wanted"),
    [("depth", True), ("prefix", True), ("include", True), ("max_pages", True),
     ("parked:crawl_delay 9999", False), ("guard:private", False)],
)  # fmt: skip
def test_a_page_refused_by_its_first_link_is_wanted_by_an_admissible_one(
    bench: Bench, why: str, is_wanted: bool
) -> None:
    """The style sheet below another directory that some page also links to."""
    batch = bench.batch()
    refused = bench.find(batch, "style.css", why=why, depth=9)
    bench.commit(batch)
    batch = bench.batch()
    bench.find(batch, "style.css", is_maybe=True, kind="e", depth=2)
    result = bench.commit(batch)
    assert [new.known.page for new in result.inserted] == [refused.page] * is_wanted
    assert bench.all("SELECT outcome, kind, depth FROM pages") == [
        ("NULL", "e", 2) if is_wanted else ("skip", "a", 9)
    ]
    assert bench.all("SELECT depth, page FROM pending") == [(2, refused.page)] * is_wanted
    if is_wanted:
        bench.check()


def test_an_admitted_page_is_not_refused_by_a_later_link(bench: Bench) -> None:
    batch = bench.batch()
    bench.find(batch, "a")
    bench.commit(batch)
    batch = bench.batch()
    bench.find(batch, "a", why="depth", is_maybe=True, depth=9)
    bench.commit(batch)
    assert bench.all("SELECT outcome, depth FROM pages") == [("NULL", 1)]
    bench.check()


def test_all_that_waits_at_a_site_that_failed_takes_its_state(bench: Bench) -> None:
    batch = bench.batch()
    seen, later = bench.find(batch, "seen"), bench.find(batch, "later")
    bench.find(batch, "waits")
    bench.find(batch, "other", site=2)
    bench.commit(batch)
    batch = bench.batch()
    bench.visit(batch, seen)
    bench.visit(batch, later, outcome="cTim", later=NOW + 40)
    bench.find(batch, "new")
    batch.given_up.append((1, "cTim", "", ""))
    bench.commit(batch)
    assert bench.all("SELECT url, outcome FROM pages WHERE site_id = 1 ORDER BY url") == [
        ("http://s1.example/later", "cTim"), ("http://s1.example/new", "cTim"),
        ("http://s1.example/seen", "OK"), ("http://s1.example/waits", "cTim"),
    ]  # fmt: skip
    assert bench.all("SELECT site_id FROM pending") == [(2,)]
    bench.check()


def test_only_one_scheme_of_a_site_may_be_given_up(bench: Bench) -> None:
    batch = bench.batch()
    waits, seen = bench.find(batch, "waits"), bench.find(batch, "seen")
    bench.commit(batch)
    batch = bench.batch()
    bench.visit(batch, seen)
    bench.find(batch, "new")
    batch.given_up.append((1, "cErr", "tls:expired", "https://s1.example/"))
    bench.commit(batch)
    assert dict(bench.all("SELECT url, outcome FROM pages")) == {
        waits.url: "NULL", seen.url: "OK", "http://s1.example/new": "NULL",
    }  # fmt: skip
    assert bench.all("SELECT waiting FROM sites WHERE site_id = 1") == [(2,)]
    bench.check()


def test_a_link_goes_to_the_inbox_of_an_admitted_site_and_else_is_remembered(bench: Bench) -> None:
    batch = bench.batch()
    bench.find(batch, "a")
    for site, admit in (("s2.example", ""), ("other.example", ""), ("new.kr", "tld")):
        params = (1, f"http://{site}/", site, site, "a", "via", 2, 1, NOW)
        batch.outside.append((1, params, 0, admit))
        batch.outside.append((1, params, 0, admit))
    bench.commit(batch)
    assert bench.all("SELECT DISTINCT site, admit FROM inbox ORDER BY site") == [
        ("new.kr", "tld"), ("s2.example", ""),
    ]  # fmt: skip
    assert bench.all("SELECT site FROM outside") == [("other.example",)]


def test_a_letter_leaves_the_inbox_with_the_batch_that_takes_it_in(bench: Bench) -> None:
    with bench.store.transaction():
        for url in ("http://s1.example/x", "http://s1.example/y"):
            bench.store.run(
                tables.PUT_INBOX, ("s1.example", url, "a", "", 1, 1, 2, 0.0, 0.0, 0, "")
            )
    batch = bench.batch()
    bench.find(batch, "x")
    batch.letters.append((1, 1))
    bench.commit(batch)
    assert bench.all("SELECT url FROM inbox") == [("http://s1.example/y",)]


def test_the_length_of_each_file_is_vouched_for_by_the_batch(bench: Bench) -> None:
    with bench.store.transaction():
        bench.store.run(
            "INSERT INTO files (file, root, directory, name, agent, incarnation, committed,"
            " first_visit, last_visit, state, created)"
            " VALUES (1, 0, 'archive', 'x', 'a0', 1, 0, 1, 0, 'open', 0)"
        )
    batch = bench.batch()
    bench.visit(batch, bench.find(batch, "a"), file=1)
    bench.commit(batch, {1: 4321})
    assert bench.all("SELECT committed, first_visit, last_visit FROM files") == [(4321, 1, 1)]


def test_what_lies_behind_a_spooled_record_moves_with_its_length(bench: Bench) -> None:
    batch = bench.batch()
    rows = [
        bench.visit(batch, bench.find(batch, name), file=file, offset=offset, index=index)
        for name, file, offset, index in (("a", 1, 0, 0), ("b", 1, 50, 2), ("c", 2, 50, 3))
    ]
    batch.stored[0].extent = 20
    batch.grown(1, 0, 1000)
    assert [row[OFFSET] for row in rows] == [0, 1050, 50]
    assert [stored.extent for stored in batch.stored] == [1020, 120, 120]
    batch.grown(1, 0, -1000)
    assert [row[OFFSET] for row in rows] == [0, 50, 50]


def test_a_commit_that_fails_writes_nothing_and_can_be_repeated(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = bench.batch()
    bench.visit(batch, bench.find(batch, "a"))
    before = bench.rows()

    def full(*_: object, **__: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(counters, "count", full)
        bench.commit(batch)
    assert bench.rows() == before
    assert bench.all("SELECT * FROM batches") == []
    bench.commit(batch)
    bench.check()


def test_a_party_begins_with_its_first_batch_and_ends_with_its_last(bench: Bench) -> None:
    """Also a party of a single page."""
    batch = bench.batch()
    bench.visit(batch, bench.find(batch, "", site=1))
    bench.commit(batch)
    with bench.store.transaction():
        number_batches(bench.store)
    again = bench.batch()
    again.epochs[2] = 5
    again.parties.add(2)  # its own page came by letter: nothing new is in the batch
    commit(bench.store, again, now=NOW + 7, lengths={})
    assert bench.all("SELECT party_started, party_ended FROM seeds ORDER BY seed") == [
        (NOW, NOW), (NOW + 7, NOW + 7), (0.0, 0.0),
    ]  # fmt: skip


@given(st.integers(0, 10**9))
def test_counters_equal_counts_after_random_batches(seed: int) -> None:
    after_random_batches(SqliteStore(":memory:"), random.Random(seed))


@pytest.mark.parametrize("seed", range(20))
def test_counters_equal_counts_after_random_batches_on_postgresql(
    postgres: Postgres, seed: int
) -> None:
    after_random_batches(open_store(postgres.schema()), random.Random(seed))


def after_random_batches(store: Store, rng: random.Random) -> None:
    bench = Bench(store)
    waits: dict[int, list[Known]] = {1: [], 2: [], 3: []}
    visited = 0
    for _ in range(rng.randint(1, 8)):
        batch = bench.batch()
        lost = rng.choice([0, 0, 0, 1, 2, 3])
        if lost:
            with store.transaction():
                store.run("UPDATE sites SET epoch = 6 WHERE site_id = ?", (lost,))
        sure: Counter[str] = Counter()
        for _ in range(rng.randint(0, 25)):
            site = rng.randint(1, 3)
            move = rng.random()
            if move < 0.5:
                path = f"p{rng.randint(0, 15)}"
                why = rng.choice(["", "", "depth"])
                known = bench.find(batch, path, site=site, why=why, is_maybe=True)
                sure[known.url] += 1
            elif move < 0.9 and waits[site]:
                known = waits[site].pop(rng.randrange(len(waits[site])))
                if rng.random() < 0.3:
                    bench.visit(batch, known, outcome="hTim", later=NOW + 9)
                else:
                    bench.visit(batch, known, size=rng.randint(0, 99), file=1, offset=visited)
                visited += 1
            elif move > 0.97:
                batch.epochs[site] = 5
                batch.given_up.append((site, rng.choice(["noIP", "skip"]), "parked: x", ""))
        result = bench.commit(batch)
        assert result.refused == ({lost} & set(batch.epochs))
        bench.check()
        with store.transaction():
            store.run("UPDATE sites SET epoch = 5")
        for site in waits:
            rows = tables.window(store, site, after=(-1, 0), limit=1000)
            waits[site] = rows
        for row in store.all("SELECT site_id, epoch FROM visits"):
            assert row[1] == 5
    number_batches(store)
    named = [visit for _, _, visit in follow(store, 0, str)]
    assert named == [row[0] for row in store.all("SELECT visit FROM visits ORDER BY visit")]
    stored = store.all('SELECT "offset" FROM visits WHERE file = 1')
    orphans = store.all('SELECT "offset" FROM orphans')
    assert not {row[0] for row in stored} & {row[0] for row in orphans}
    store.close()


def test_the_places_of_a_row_are_where_the_insert_says() -> None:
    from geomi.history.tables import PUT_VISIT

    columns = PUT_VISIT.partition("(")[2].partition(")")[0].replace('"', "").split(", ")
    assert (columns[SITE], columns[EPOCH], columns[OFFSET]) == ("site_id", "epoch", "offset")
