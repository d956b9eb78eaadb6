"""Gaps, rates and broken rules, from requests alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.cluster.tables import MIGRATIONS
from geomi.history.past import Past
from geomi.history.politeness import Asked, Politeness, Rule, Server, in_order, measure
from geomi.store import SqliteStore
from geomi.store.migrate import migrate

RULE = Rule(rest_s=2.0, rest_factor=10.0, rest_factor_max_s=300.0, address_rest_s=0.25)


def at(started: float, *, took: float = 0.1, host: str = "a", address: str = "192.0.2.1") -> Asked:
    return Asked(started, started + took, host, address, 1)


def judged(asked: Sequence[Asked], **rules: Rule) -> Politeness:
    return measure(asked, lambda host, run: rules.get(host, RULE))


def of(seen: Politeness, kind: str, name: str) -> Server:
    return next(one for one in seen.worst if (one.kind, one.name) == (kind, name))


def test_a_gap_of_a_host_runs_from_the_end_of_a_visit_to_the_next_start() -> None:
    seen = judged([at(0.0), at(5.0, took=0.2), at(9.2)])
    assert of(seen, "host", "a").smallest_gap_s == pytest.approx(4.0)
    assert seen.ok


def test_a_gap_of_an_address_runs_from_start_to_start_across_its_hosts() -> None:
    seen = judged([at(0.0, host="a"), at(0.3, host="b"), at(0.5, host="c")])
    server = of(seen, "address", "192.0.2.1")
    assert server.smallest_gap_s == pytest.approx(0.2)
    assert (server.violations, server.wanted_s) == (1, 0.25)
    assert seen.violations == 1


@pytest.mark.parametrize(
    ("took", "gap", "ok"),
    [
        (0.1, 2.0, True), (0.1, 1.99, False),  # the least rest
        (1.0, 10.0, True), (1.0, 9.9, False),  # ten times the download
        (100.0, 300.0, True), (100.0, 299.0, False),  # at most 300 s of it
    ],
)  # fmt: skip
def test_the_rest_is_the_larger_of_least_and_multiple(took: float, gap: float, ok: bool) -> None:
    assert judged([at(0.0, took=took), at(took + gap)]).ok is ok


def test_a_visit_that_starts_before_the_last_ended_breaks_the_rule() -> None:
    seen = judged([at(0.0, took=5.0), at(3.0)])
    server = of(seen, "host", "a")
    assert (server.violations, server.seen_s) == (1, -2.0)
    assert server.wanted_s == 50.0


def test_with_two_connections_one_may_start_while_another_is_under_way() -> None:
    rule = Rule(rest_s=2.0, rest_factor=0.0, connections=2)
    assert judged([at(0.0, took=5.0), at(3.0), at(6.0)], a=rule).violations == 1  # 6.0: rest of 5.0
    assert judged([at(0.0, took=9.0), at(3.0), at(5.2)], a=rule).ok
    assert judged([at(0.0, took=9.0), at(3.0, took=9.0), at(5.2)], a=rule).violations == 1


def test_two_visits_at_once_that_end_within_a_millisecond_are_no_missing_rest() -> None:
    rule = Rule(rest_s=0.02, rest_factor=0.0, address_rest_s=0.0, connections=2)
    seen = judged([at(0.0, took=0.0008), at(0.0001, took=0.0009), at(0.0211)], a=rule)
    assert seen.ok


def test_own_hosts_are_listed_and_exempt() -> None:
    own = Rule(is_own=True)
    seen = judged([at(0.0), at(0.001), at(0.002)], a=own)
    assert seen.ok
    assert of(seen, "host", "a").is_own
    assert of(seen, "host", "a").most == (3, 3, 3)
    assert seen.smallest == {}


def test_a_strange_host_on_the_address_of_an_own_one_keeps_its_own_gap_only() -> None:
    own = Rule(is_own=True)
    seen = judged([at(0.0, host="mine"), at(0.1, host="a"), at(0.2, host="mine")], mine=own)
    assert seen.ok
    assert not of(seen, "address", "192.0.2.1").is_own


def test_a_group_has_the_gap_of_an_address() -> None:
    rule = Rule(groups=("hosting",))
    seen = judged([at(0.0, host="a"), at(0.1, host="b", address="192.0.2.2")], a=rule, b=rule)
    assert of(seen, "group", "hosting").violations == 1
    assert seen.violations == 1


def test_a_crawl_delay_binds_from_when_it_was_known() -> None:
    rule = Rule(crawl_delay_s=30.0, crawl_delay_since=100.0)
    assert judged([at(50.0), at(60.0), at(110.0), at(139.0)], a=rule).violations == 1
    assert judged([at(50.0), at(60.0), at(110.0), at(140.2)], a=rule).ok


def test_the_greatest_rate_is_that_of_the_busiest_window() -> None:
    starts = [0.0, 5.0, 5.2, 5.4, 12.0, 64.0]
    seen = judged([at(start, host=str(start)) for start in starts])
    assert of(seen, "address", "192.0.2.1").most == (3, 4, 5)
    assert seen.busiest[1].name == "192.0.2.1"


def test_a_gap_between_two_runs_counts_though_hours_lie_between() -> None:
    many = [at(float(start), host=f"h{start}", address=f"x{start}") for start in range(5, 9000, 50)]
    seen = judged([at(0.0), *many, at(9000.0)])
    assert seen.smallest["host"].smallest_gap_s == pytest.approx(8999.9)
    assert seen.servers == {"host": 181, "address": 181}


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0.01, 5), st.sampled_from("ab")), max_size=25)
)
def test_it_agrees_with_looking_at_all_pairs(drawn: list[tuple[float, float, str]]) -> None:
    asked = [at(start, took=took, host=host) for start, took, host in sorted(drawn)]
    seen = judged(asked)
    for host in "ab":
        own = [one for one in asked if one.host == host]
        if len(own) < 2:
            continue
        gaps = [
            later.started - max(before.ended for before in own[: place + 1])
            for place, later in enumerate(own[1:])
        ]
        server = of(seen, "host", host)
        assert server.smallest_gap_s == pytest.approx(min(gaps))
        for place, window_s in enumerate((1, 10, 60)):
            busiest = max(
                sum(one.started - window_s < other.started <= one.started for other in own)
                for one in own
            )
            assert server.most[place] == busiest


def test_requests_come_in_order_of_start_whatever_the_order_of_commits() -> None:
    store = SqliteStore(":memory:")
    migrate(store, MIGRATIONS, where="test")
    # (committed, starts): a long download is committed late, another agent's batch comes between.
    batches = [(10.0, [8.0, 3.0]), (12.0, [11.0, 1.0]), (11.5, [2.0]), (40.0, [39.0, 20.0])]
    with store.transaction():
        for number, (committed, starts) in enumerate(batches, start=1):
            store.run("INSERT INTO batches VALUES (?, 'a0', 1, ?, 0, 0, 0, ?, 0)",
                      (number, committed, number))  # fmt: skip
            for start in starts:
                store.run(
                    "INSERT INTO visits VALUES (NULL, 0, 1, 'u', 'robots', 1, 0, 1, 'a', ?, ?, ?,"
                    " 'OK', 200, '', '', 0, -1, 0, 0, 0, '', 0, ?, '')",
                    ("" if start == 20.0 else "192.0.2.1", start, start + 1, number),
                )
    # 20.0 reached no server: it has no address.
    assert [one.started for one in in_order(store, Past([], str))] == [
        1.0,
        2.0,
        3.0,
        8.0,
        11.0,
        39.0,
    ]
