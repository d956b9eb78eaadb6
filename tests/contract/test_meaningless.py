"""The list, features, marks and probes, in both stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from geomi.cluster import meaningless_orders as orders
from geomi.cluster.copies import Copies
from geomi.cluster.tables import MIGRATIONS
from geomi.errors import OperatorError
from geomi.history import groups_tables as groups
from geomi.history import meaningless_tables as tables
from geomi.history import tables as history
from geomi.history.meaningless import PROBE_AGAIN_S, State
from geomi.history.meaningless_tables import Entry, Feature
from geomi.history.past import follow
from geomi.store import Store
from geomi.store.migrate import migrate
from geomi.url import url_hash

D = [f"sha1:{letter * 32}" for letter in "ABCDEFG"]
DAY = 86_400.0


@pytest.fixture
def store(connect: Callable[..., Store]) -> Store:
    opened = connect()
    migrate(opened, MIGRATIONS, where="here")
    opened.run(
        "INSERT INTO sites (site_id, site, domain, added) VALUES (1, 'a.example', 'a.example', 0)"
    )
    return opened


def entry(digest: str, state: str = "candidate", **fields: object) -> Entry:
    found = Entry(digest, state, "rule:login", "a.example", "http://a.example/x", 6, "scan", 1.0)
    return found._replace(**fields)


def put_page(store: Store, page: int, url: str, digest: str, *, kind: str = "a") -> None:
    store.run(
        "INSERT INTO pages (page, site_id, url, url_hash, depth, party, kind, via, found, run,"
        " outcome, digest) VALUES (?, 1, ?, ?, 1, 1, ?, '', 0, 1, 'OK', ?)",
        (page, url, url_hash(url), kind, digest),
    )


def put_visits(store: Store, visits: list[tuple[int, float, str, str, int]]) -> int:
    """(page, started, outcome, digest, offset): one batch, numbered; its first visit."""
    with store.transaction():
        batch = history.open_batch(store, "a0", 1, 0.0)
        rows = [
            [page, 1, "", "page", 1, 2, 1, "a.example", "192.0.2.1", started, started + 1, outcome,
             200, "text/html", digest, 9, -1, 7, offset, 10, f"date {offset}", 0, batch, ""]
            for page, started, outcome, digest, offset in visits
        ]  # fmt: skip
        last = history.put_visits(store, batch, rows)
    history.number_batches(store)
    return last - len(visits) + 1


def feature(digest: str, *, main: str = "m", hints: str = "", verdict: str = "") -> Feature:
    return Feature(digest, 5, main, hints, 20, 900, verdict)


# -- the list --------------------------------------------------------------------------------------


def test_a_scan_counts_anew_and_decides_nothing_that_was_decided(store: Store) -> None:
    tables.put(store, [entry(D[0], "rejected"), entry(D[1])])
    tables.put_candidates(store, [entry(D[0], pages=9), entry(D[2])])
    found = {one.digest: (one.state, one.pages) for one in tables.listed(store)}
    assert found == {D[0]: ("rejected", 9), D[1]: ("candidate", 6), D[2]: ("candidate", 6)}


def test_candidates_that_are_found_no_more_go_and_decisions_stay(store: Store) -> None:
    tables.put(store, [entry(D[0]), entry(D[1], "confirmed"), entry(D[2], at=9.0)])
    assert tables.drop_candidates(store, 5.0) == 1
    assert {one.digest for one in tables.listed(store)} == {D[1], D[2]}


def test_the_list_is_cut_by_state_and_site(store: Store) -> None:
    tables.put(store, [entry(D[0]), entry(D[1], "confirmed"), entry(D[2], site="b.example")])
    assert [one.digest for one in tables.listed(store, state="confirmed")] == [D[1]]
    assert [one.digest for one in tables.listed(store, site="b.example")] == [D[2]]


def test_orders_change_all_digests_or_none(store: Store) -> None:
    tables.put(store, [entry(D[0])])
    with pytest.raises(OperatorError, match=f"{D[1]}: not in the list"):
        orders.decide(store, [D[0], D[1]], State.CONFIRMED, now=2.0)
    assert tables.entry(store, D[0]) == entry(D[0])
    assert orders.decide(store, [D[0]], State.CONFIRMED, now=2.0) == 1
    assert orders.decide(store, [D[0]], State.CONFIRMED, now=3.0) == 0
    assert tables.entry(store, D[0]) == entry(D[0], "confirmed", by="hand", at=2.0)
    with pytest.raises(OperatorError, match="not in the list"):
        orders.remove(store, [D[0], D[1]])
    assert orders.remove(store, [D[0]]) == 1
    assert tables.entry(store, D[0]) is None


def test_an_import_leaves_what_was_decided_here(store: Store) -> None:
    tables.put(store, [entry(D[0], "rejected"), entry(D[1])])
    new = [entry(digest, "confirmed", by="import f") for digest in (*D[:3], D[2])]
    assert orders.take_in(store, new) == (2, 2)
    assert {one.digest: one.state for one in tables.listed(store)} == {
        D[0]: "rejected", D[1]: "confirmed", D[2]: "confirmed",
    }  # fmt: skip


def test_what_is_added_by_hand_is_confirmed_though_it_was_never_seen(store: Store) -> None:
    assert orders.add(store, [(D[0], "wall.html"), (D[0], "")], reason="ours", now=4.0) >= 1
    assert tables.in_state(store, "confirmed") == {D[0]: None}
    tables.put_features(store, [feature(D[0])])
    assert tables.in_state(store, "confirmed") == {D[0]: (5, "m")}


# -- marks and copies ------------------------------------------------------------------------------


def test_marks_stand_in_the_log_and_their_undoing_too(store: Store) -> None:
    put_page(store, 3, "http://a.example/x", D[0])
    first = put_visits(store, [(3, 0.0, "OK", D[0], 0)])
    seq = list(follow(store, 0, str))[-1][0]
    with store.transaction():
        tables.mark(store, [(first, 3, D[0], "rule:login")], [], now=1.0)
    with store.transaction():
        tables.mark(store, [], [(first, 3)], now=2.0)
    with store.transaction():
        tables.mark(store, [], [], now=3.0)
    history.number_batches(store)
    changes = [(change, visit) for _, change, visit in follow(store, seq, str)]
    assert changes == [("hidden", first), ("shown", first)]
    assert tables.number_hidden(store) == 0
    assert tables.unsettled(store, after=0, limit=9) == [3]


def test_visits_whose_mark_and_verdict_disagree_are_told(store: Store) -> None:
    put_page(store, 3, "http://a.example/x", D[0])
    put_page(store, 4, "http://a.example/y", D[1])
    put_page(store, 5, "http://a.example/geomi-probe-1", D[2], kind="p")
    first = put_visits(
        store, [(3, 0.0, "OK", D[0], 0), (4, 0.0, "OK", D[1], 10), (5, 0.0, "OK", D[2], 20)]
    )
    tables.put_features(store, [feature(D[0], verdict="rule:login"), feature(D[1])])
    rows = tables.marked_wrongly(store, first, first + 2)
    assert [(row[0] - first, row[3], row[4], row[6]) for row in rows] == [
        (0, "rule:login", None, "a"), (2, "", None, "p"),
    ]  # fmt: skip
    moved = tables.marks_of_moved(store, [(first, 3, D[0]), (first + 9, 99, D[1])])
    assert [row[:5] for row in moved] == [(first, 3, D[0], "rule:login", None)]


@pytest.mark.parametrize(
    ("walls", "copy"), [(1, 0), (2, 0), (3, 30)], ids=["one", "two in a row", "three in a row"]
)
def test_the_copy_of_a_page_is_a_wall_only_after_three_in_a_row(
    store: Store, tmp_path: Path, walls: int, copy: int
) -> None:
    put_page(store, 3, "http://a.example/x", D[1])
    visits = [(3, 0.0, "OK", D[0], 0)]
    visits += [(3, (k + 1) * DAY, "OK", D[1], 10 * (k + 1)) for k in range(walls)]
    first = put_visits(store, visits)
    store.run(
        'UPDATE pages SET file = 7, "offset" = ?, length = 10, stored_date = ?, stored_digest = ?,'
        " stored_id = 'urn:x', etag = 'of the wall' WHERE page = 3",
        (10 * walls, f"date {10 * walls}", D[1]),
    )
    with store.transaction():
        tables.mark(
            store, [(first + k + 1, 3, D[1], "confirmed") for k in range(walls)], [], now=1.0
        )
    row = 'SELECT "offset", stored_date, stored_digest, etag FROM pages WHERE page = 3'
    store.run("UPDATE sites SET holder = 'a0/1' WHERE site_id = 1")
    assert Copies(store, str).run() == 0  # its rows are the holder's
    assert store.one(row) == (10 * walls, f"date {10 * walls}", D[1], "of the wall")
    store.run("UPDATE sites SET holder = '' WHERE site_id = 1")
    assert Copies(store, str).run() == (1 if copy == 0 else 0)
    kept = (0, "date 0", D[0], "") if copy == 0 else (30, "date 30", D[1], "of the wall")
    assert store.one(row) == kept
    assert tables.unsettled(store, after=0, limit=9) == []
    with store.transaction():
        tables.mark(store, [], [(first + k + 1, 3) for k in range(walls)], now=2.0)
    Copies(store, str).run()
    assert (store.one(row) or ())[:3] == (10 * walls, f"date {10 * walls}", D[1])


# -- sites as a whole ------------------------------------------------------------------------------


def test_texts_of_a_site_come_with_their_urls_but_for_front_page_void_and_probe(
    store: Store,
) -> None:
    tables.put_features(
        store, [feature(D[0]), feature(D[1]), feature(D[2], main="n"), feature(D[3], main="")]
    )
    for page, (url, digest) in enumerate(
        [("", D[0]), ("a", D[0]), ("b", D[1]), ("c", D[2]), ("d", D[3]), ("e", D[0])], start=1
    ):
        put_page(store, page, f"http://a.example/{url}", digest)
    put_page(store, 9, "http://a.example/geomi-probe-1", D[0], kind="p")
    store.run("UPDATE pages SET outcome = 'void' WHERE page = 6")
    ((site, contents),) = groups.contents(store)
    assert site == 1
    assert [(one.same, one.pages, one.urls, dict(one.digests)) for one in contents] == [
        ("m", 2, ("http://a.example/a", "http://a.example/b"), {D[0]: 1, D[1]: 1}),
        ("n", 1, ("http://a.example/c",), {D[2]: 1}),
    ]


def test_a_directory_is_asked_once_in_thirty_days_and_its_answer_is_read(store: Store) -> None:
    url, directory = "http://a.example/b/geomi-probe-1", "http://a.example/b/"
    assert not groups.asked(store, directory, now=100.0)
    groups.put_probe(store, directory, 1, url, now=100.0)
    assert groups.asked(store, directory, now=100.0 + PROBE_AGAIN_S - 1)
    assert not groups.asked(store, directory, now=101.0 + PROBE_AGAIN_S)
    assert groups.answered(store, now=200.0) == 0
    put_page(store, 3, url, D[0], kind="p")
    assert groups.answered(store, now=200.0) == 1
    assert groups.probed(store, 1) == {}
    tables.put_features(store, [feature(D[0])])
    assert groups.probed(store, 1) == {"m": directory}


def test_a_probe_that_came_to_no_page_says_nothing(store: Store) -> None:
    url = "http://a.example/b/geomi-probe-1"
    groups.put_probe(store, "http://a.example/b/", 1, url, now=100.0)
    put_page(store, 3, url, D[0], kind="p")
    store.run("UPDATE pages SET outcome = 'code' WHERE page = 3")
    tables.put_features(store, [feature(D[0])])
    assert groups.answered(store, now=200.0) == 1
    assert groups.probed(store, 1) == {}
