"""Three in a row, a day apart: what a wall may replace, and what it says of change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from geomi.history.keeping import APART_S, IN_A_ROW, Row, Seen, kept, observations

DAY = APART_S


def seen(*marks: str, apart_s: float = DAY) -> list[Seen]:
    """`+` good, `-` means nothing, `r` a good revisit without a record of its own."""
    return [
        Seen(visit=number, started=number * apart_s, digest=f"{mark}{number}",
             means_nothing=mark == "-", is_stored=mark != "r")
        for number, mark in enumerate(marks, start=1)
    ]  # fmt: skip


def copy_of(*marks: str, apart_s: float = DAY) -> int:
    found = kept(seen(*marks, apart_s=apart_s))
    return found.visit if found else 0


def test_a_wall_replaces_a_good_capture_only_after_three_in_a_row() -> None:
    assert copy_of("+", "-") == 1
    assert copy_of("+", "-", "-") == 1
    assert copy_of("+", "-", "-", "-") == 4
    assert copy_of("+", "-", "-", "-", "-") == 5


def test_a_good_capture_replaces_a_wall_at_once_and_ends_the_row() -> None:
    assert copy_of("-", "+") == 2
    assert copy_of("+", "-", "-", "+", "-", "-") == 4
    assert copy_of("+", "-", "-", "r", "-", "-") == 1


def test_walls_less_than_a_day_apart_count_once() -> None:
    assert copy_of("+", *"-" * 20, apart_s=DAY / 24) == 1
    assert copy_of("+", *"-" * 60, apart_s=DAY / 24) == 61


def test_where_there_was_nothing_better_the_newest_is_the_copy() -> None:
    assert copy_of("-", "-") == 2
    assert copy_of("r") == 0
    assert copy_of() == 0


def test_a_row_at_crawl_time_says_the_same_as_the_whole_history() -> None:
    row = Row()
    said = []
    for one in seen("+", "-", "-", "+", "-", "-", "-"):
        row = row.after(one.started, means_nothing=one.means_nothing)
        said.append(row.replaces_good)
    assert said == [False] * 6 + [True]
    assert IN_A_ROW == 3


@given(st.lists(st.sampled_from("+-r"), max_size=30))
def test_the_copy_is_never_a_wall_younger_than_three_days_behind_a_good_capture(
    marks: list[str],
) -> None:
    visits = seen(*marks)
    copy = kept(visits)
    if copy is not None and copy.means_nothing:
        before = [one for one in visits if one.visit < copy.visit]
        good = [one for one in before if not one.means_nothing]
        stored = [one for one in good if one.is_stored]
        assert not stored or copy.visit - good[-1].visit >= IN_A_ROW


def test_walls_are_no_observations() -> None:
    visits = [
        Seen(visit=1, started=1.0, digest="a", means_nothing=False),
        Seen(visit=2, started=2.0, digest="wall", means_nothing=True),
        Seen(visit=3, started=3.0, digest="a", means_nothing=False),
        Seen(visit=4, started=4.0, digest="b", means_nothing=False),
    ]
    assert list(observations(visits)) == [(1.0, None), (3.0, False), (4.0, True)]
