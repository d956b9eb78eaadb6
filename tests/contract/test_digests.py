"""The index of payloads on both stores: what it finds, what it never names, how it catches up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from geomi.archive import duplicates_tables as tables
from geomi.archive.duplicates import key_of
from geomi.cluster import referrers
from geomi.cluster.digests import Asked, Index, Neighbour
from geomi.cluster.tables import MIGRATIONS
from geomi.errors import OperatorError
from geomi.history import tables as history
from geomi.history.past import Past
from geomi.store import SQLITE, SqliteStore, Store
from geomi.store.migrate import migrate

A, B, C = ("sha1:" + letter * 32 for letter in "ABC")
SITE = "http://s.example"


@dataclass
class Place:
    """A collection by hand: one site, pages and visits as a test needs them."""

    store: Store
    name: str = "n1"
    file: int = 7
    at: int = 0
    pages: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        migrate(self.store, MIGRATIONS, where="c")

    def page(self, path: str) -> int:
        if path not in self.pages:
            number = self.pages[path] = len(self.pages) + 1
            self.store.run(
                "INSERT INTO pages (page, site_id, url, url_hash, depth, party, kind, via, found,"
                " run, outcome) VALUES (?, 1, ?, ?, 0, 1, 'a', '', 0.0, 1, 'OK')",
                (number, SITE + path, number),
            )
        return self.pages[path]

    def visits(
        self, *some: tuple[str, str, dict[str, Any]], agent: str = "a0", incarnation: int = 1
    ) -> list[int]:
        """One batch of (path, digest, what is otherwise); numbers of its visits."""
        found = []
        with self.store.transaction():
            batch = history.open_batch(self.store, agent, incarnation, self.store.now())
            rows = []
            for path, digest, other in some:
                self.at += 100
                page = self.page(path) if path != "/robots.txt" else 0
                facts = {
                    "outcome": "OK",
                    "code": 200,
                    "size": 5000,
                    "revisit": 0,
                    "file": self.file,
                }
                facts |= other
                rows.append((
                    page, 1, "" if page else SITE + path, "page" if page else "robots", 1, 2, 1,
                    "s.example", "192.0.2.1", 1.0, 2.0, facts["outcome"], facts["code"],
                    "text/html", digest, facts["size"], -1, facts["file"], self.at, 100,
                    f"date {self.at}", facts["revisit"], batch, "",
                ))  # fmt: skip
            last = history.put_visits(self.store, batch, rows)
            found = list(range(last - len(rows) + 1, last + 1))
            for visit, (path, digest, other) in zip(found, some, strict=True):
                if not other.get("revisit") and path != "/robots.txt":
                    self.store.run(
                        'UPDATE pages SET file = v.file, "offset" = v."offset", stored_date ='
                        " v.stored_date, stored_id = ?, stored_digest = ? FROM visits v"
                        " WHERE pages.page = ? AND v.visit = ?",
                        (f"urn:uuid:{visit}", digest, self.pages[path], visit),
                    )
        return found

    def index(self, place: Store, others: Callable[[str, str], Neighbour] | None = None) -> Index:
        with place.transaction():
            home = tables.register(place, self.name, folder=self.name, address="")
        return Index(
            place, self.store, home=home, name=self.name, past=self.past,
            others=others or nobody, least_bytes=256,
        )  # fmt: skip

    def past(self) -> Past:
        return Past([], str)


def nobody(folder: str, address: str) -> Neighbour:
    raise OperatorError(f"{folder}: not there")


@pytest.fixture
def place(connect: Callable[[], Store]) -> Place:
    return Place(connect())


@pytest.fixture
def kept(place: Place, tmp_path: Any) -> Store:
    """Where the index is: a file of its own, or the same PostgreSQL."""
    if place.store.dialect != SQLITE:
        return place.store
    store = SqliteStore(str(tmp_path / "digests.db"))
    migrate(store, tables.INDEX_FILE, where="index")
    return store


def ask(index: Index, digest: str, code: int = 200, location: str = "") -> Any:
    key = key_of(digest, code=code, location=location)
    return index.find([Asked(key, digest, code)]).get(key)


def test_what_a_batch_stored_is_found_with_name_date_and_place(place: Place, kept: Store) -> None:
    index = place.index(kept)
    (visit,) = place.visits(("/a", A, {}))
    assert ask(index, A) is None  # not told yet
    assert index.add("a0", 1) == 1
    found = ask(index, A)
    assert (found.uri, found.date, found.record_id) == (
        SITE + "/a", "date 100", f"urn:uuid:{visit}"
    )  # fmt: skip
    assert (found.home, found.visit, found.file, found.offset, found.length) == (
        "", visit, 7, 100, 100
    )  # fmt: skip
    assert ask(index, B) is None
    assert ask(index, A, 404) is None


@pytest.mark.parametrize(
    "other",
    [
        {"revisit": 1}, {"outcome": "cut"}, {"outcome": "dErr"}, {"outcome": "dTim"},
        {"outcome": "hSht"}, {"size": 255}, {"file": 0}, {"outcome": "same", "revisit": 1},
    ],
)  # fmt: skip
def test_a_revisit_a_truncated_record_and_a_tiny_one_are_never_referred_to(
    place: Place, kept: Store, other: dict[str, Any]
) -> None:
    index = place.index(kept)
    place.visits(("/a", A, other))
    index.add("a0", 1)
    assert ask(index, A) is None


def test_a_redirect_is_found_by_where_it_leads(place: Place, kept: Store) -> None:
    index = place.index(kept)
    place.visits(("/a", A, {"outcome": "code", "code": 302}))
    index.add("a0", 1, locations={(7, 100): "/login"})
    assert ask(index, A, 302, "/login").uri == SITE + "/a"
    assert ask(index, A, 302, "/other") is None
    assert index.renew() == 0  # the store does not say where it leads


def test_a_robots_txt_is_found_too(place: Place, kept: Store) -> None:
    index = place.index(kept)
    place.visits(("/robots.txt", A, {}))
    index.add("a0", 1)
    found = ask(index, A)
    assert (found.uri, found.record_id) == (SITE + "/robots.txt", "")


def test_the_first_copy_stays_the_original(place: Place, kept: Store) -> None:
    index = place.index(kept)
    first, _ = place.visits(("/a", A, {}), ("/b", A, {}))
    index.add("a0", 1)
    place.visits(("/c", A, {}))
    index.add("a0", 1)
    assert ask(index, A).visit == first


def test_what_a_dead_agent_did_not_tell_is_caught_up(place: Place, kept: Store) -> None:
    index = place.index(kept)
    place.visits(("/a", A, {}), agent="a0")
    index.add("a0", 1)
    place.visits(("/b", B, {}), agent="a1")
    place.visits(("/c", C, {}), agent="a0", incarnation=2)
    assert index.catch_up() == 2
    assert ask(index, B).uri == SITE + "/b"
    assert ask(index, C).uri == SITE + "/c"
    assert index.catch_up() == 0


def test_an_index_that_was_lost_is_what_it_was_after_catching_up(place: Place, kept: Store) -> None:
    index = place.index(kept)
    place.visits(("/a", A, {}), ("/b", B, {}))
    place.visits(("/c", A, {}), ("/d", C, {"outcome": "code", "code": 404}))
    index.catch_up()
    before = kept.all('SELECT "key", home, visit FROM payloads ORDER BY "key"')
    assert len(before) == 3
    with kept.transaction():
        tables.empty(kept, index.home)
    assert ask(index, A) is None
    index.catch_up()
    assert kept.all('SELECT "key", home, visit FROM payloads ORDER BY "key"') == before
    assert index.renew() == 3
    assert kept.all('SELECT "key", home, visit FROM payloads ORDER BY "key"') == before


def test_an_entry_that_the_store_contradicts_names_nothing(place: Place, kept: Store) -> None:
    """The store is older than the index: a visit of that number is another one now."""
    index = place.index(kept)
    place.visits(("/a", A, {}))
    with kept.transaction():
        tables.put(kept, index.home, [(key_of(B, code=200), 1), (key_of(C, code=200), 99)])
    assert ask(index, B) is None
    assert ask(index, C) is None


def test_a_collection_that_cannot_be_asked_is_not_referred_to(
    place: Place, kept: Store, tmp_path: Any
) -> None:
    other = Place(SqliteStore(str(tmp_path / "other.db")), name="n2")
    theirs = other.index(kept)
    other.visits(("/a", A, {}))
    theirs.add("a0", 1)
    assert ask(place.index(kept), A) is None
    reached = place.index(kept, lambda folder, address: Neighbour(other.store, other.past))
    found = ask(reached, A)
    assert (found.home, found.uri, found.file) == ("n2", SITE + "/a", 0)


def test_who_refers_to_a_visit_is_known_through_all_revisits_of_a_page(
    place: Place, kept: Store
) -> None:
    index = place.index(kept)
    (a,) = place.visits(("/a", A, {}))
    again, twin = place.visits(("/a", A, {"revisit": 1}), ("/b", A, {"revisit": 1}))
    (twin_again,) = place.visits(("/b", A, {"revisit": 1, "outcome": "same", "code": 304}))
    (new,) = place.visits(("/b", B, {}))
    (newer,) = place.visits(("/b", B, {"revisit": 1}))
    with place.store.transaction():
        place.store.many(tables.PUT_REFERS, [(twin, "", a)])
    index.catch_up()
    assert [one.visit for one in referrers.referrers(index, a)] == [again, twin, twin_again]
    assert [one.visit for one in referrers.referrers(index, new)] == [newer]
    assert referrers.referrers(index, newer) == []


def test_another_copy_is_promoted_and_the_rest_refers_to_it(place: Place, kept: Store) -> None:
    index = place.index(kept)
    (a,) = place.visits(("/a", A, {}))
    twin, third = place.visits(("/b", A, {"revisit": 1}), ("/c", A, {"revisit": 1}))
    with place.store.transaction():
        place.store.many(tables.PUT_REFERS, [(twin, "", a), (third, "", a)])
    index.catch_up()
    with place.store.transaction():  # what rewriting does first
        place.store.run("UPDATE visits SET revisit = 0 WHERE visit = ?", (twin,))
    assert referrers.promote(index, a, twin, digest=A, code=200) == 1
    assert [one.visit for one in referrers.referrers(index, twin)] == [third]
    assert referrers.referrers(index, a) == []
    assert ask(index, A).visit == twin


def test_nothing_is_promoted_while_another_collection_refers(
    place: Place, kept: Store, tmp_path: Any
) -> None:
    other = Place(SqliteStore(str(tmp_path / "other.db")), name="n2")
    other.index(kept)
    index = place.index(
        kept, lambda folder, address: Neighbour(SqliteStore(other.store.path), other.past)
    )
    (a,) = place.visits(("/a", A, {}))
    (twin,) = place.visits(("/b", A, {"revisit": 1}))
    (foreign,) = other.visits(("/x", A, {"revisit": 1}))
    with place.store.transaction():
        place.store.many(tables.PUT_REFERS, [(twin, "", a)])
    with other.store.transaction():
        other.store.many(tables.PUT_REFERS, [(foreign, "n1", a)])
    index.catch_up()
    assert [(one.home, one.visit) for one in referrers.referrers(index, a)] == [
        ("", twin), ("n2", foreign)
    ]  # fmt: skip
    with pytest.raises(OperatorError, match="1 revisits of n2 refer to it"):
        referrers.promote(index, a, twin, digest=A, code=200)
    assert ask(index, A).visit == a


def test_who_cannot_be_asked_whether_it_refers_stops_a_deletion(place: Place, kept: Store) -> None:
    index = place.index(kept)
    (a,) = place.visits(("/a", A, {}))
    with kept.transaction():
        tables.register(kept, "n9", folder="gone", address="")
    with pytest.raises(OperatorError, match="gone: shares the index and cannot be asked"):
        referrers.referrers(index, a)


def test_what_is_forgotten_is_referred_to_no_more(place: Place, kept: Store) -> None:
    index = place.index(kept)
    a, b, moved = place.visits(
        ("/a", A, {}), ("/b", B, {}), ("/m", C, {"outcome": "code", "code": 301})
    )
    index.add("a0", 1, locations={(7, 300): "/x"})
    assert ask(index, C, 301, "/x") is not None
    referrers.forget(index, [a, moved])
    assert ask(index, A) is None
    assert ask(index, C, 301, "/x") is None
    assert ask(index, B).visit == b
