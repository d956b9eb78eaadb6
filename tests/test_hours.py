"""Hours of the week: what is understood, when they are open, and when they open next."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.hours import Hours, parse, span, zone_of

SEOUL, BERLIN = "Asia/Seoul", "Europe/Berlin"


def at(text: str, zone: str, *, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone_of(zone), fold=fold).timestamp()


def hours(*texts: str, zone: str = "UTC") -> Hours:
    found = parse(texts, zone)
    assert found is not None
    return found


def test_no_hours_are_always() -> None:
    assert parse((), "UTC") is None


@pytest.mark.parametrize(
    ("text", "moment", "opens"),
    [
        ("22:00-06:00", "2025-06-04T21:59:59", "2025-06-04T22:00:00"),
        ("22:00-06:00", "2025-06-04T22:00:00", ""),
        ("22:00-06:00", "2025-06-05T05:59:59", ""),
        ("22:00-06:00", "2025-06-05T06:00:00", "2025-06-05T22:00:00"),
        ("Sat-Sun 00:00-24:00", "2025-06-06T23:59:59", "2025-06-07T00:00:00"),
        ("Sat-Sun 00:00-24:00", "2025-06-08T23:59:59", ""),
        ("Sat-Sun 00:00-24:00", "2025-06-09T00:00:00", "2025-06-14T00:00:00"),
        # A night belongs to the day on which it begins; days go round the end of the week.
        ("Fri 22:00-02:00", "2025-06-07T01:59:59", ""),
        ("Fri 22:00-02:00", "2025-06-06T01:00:00", "2025-06-06T22:00:00"),
        ("sun 22:00-02:00", "2025-06-09T01:00:00", ""),
        ("Sat-Mon 9:30-17:00", "2025-06-09T12:00:00", ""),
        ("Sat-Mon 9:30-17:00", "2025-06-10T12:00:00", "2025-06-14T09:30:00"),
        ("Mon,Wed-Thu 01:00-02:00", "2025-06-10T01:30:00", "2025-06-11T01:00:00"),
        ("00:00-24:00", "2025-06-10T01:30:00", ""),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", SEOUL, BERLIN])
def test_when_they_are_open_and_when_they_open(
    text: str, moment: str, opens: str, zone: str
) -> None:
    now = at(moment, zone)
    found = hours(text, zone=zone)
    assert found.is_open(now) == (not opens)
    assert found.opens_at(now) == (at(opens, zone) if opens else now)


def test_any_one_of_several_is_enough() -> None:
    found = hours("22:00-06:00", "Sat-Sun 00:00-24:00")
    assert found.opens_at(at("2025-06-07T12:00:00", "UTC")) == at("2025-06-07T12:00:00", "UTC")
    assert found.opens_at(at("2025-06-06T12:00:00", "UTC")) == at("2025-06-06T22:00:00", "UTC")


def test_the_clock_on_the_wall_counts_when_summer_begins_and_ends() -> None:
    early = hours("02:15-02:45", zone=BERLIN)
    # 2 o'clock of 30 March 2025 did not exist; that of 26 October came twice.
    assert early.opens_at(at("2025-03-30T00:00", BERLIN)) == at("2025-03-31T02:15", BERLIN)
    assert early.is_open(at("2025-10-26T02:30", BERLIN, fold=0))
    assert early.is_open(at("2025-10-26T02:30", BERLIN, fold=1))
    assert early.opens_at(at("2025-10-26T02:50", BERLIN)) == at("2025-10-26T02:15", BERLIN, fold=1)


@pytest.mark.parametrize(
    "text",
    [
        "", "22:00", "22-06", "24:00-06:00", "22:00-25:00", "22:60-23:00", "22:00-24:01",
        "10:00-10:00", "Someday 10:00-11:00", "Sat- 10:00-11:00", "Sat, 10:00-11:00",
        "Sat Sun 10:00-11:00", "10:00-11:00 Sat", "-1:00-02:00", "１0:00-11:00",
    ],
)  # fmt: skip
def test_what_is_no_entry_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        span(text)


@pytest.mark.parametrize("name", ["", "Asia/Atlantis", "../etc/passwd", "/etc/hostname", "KST\0"])
def test_what_is_no_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        zone_of(name)


@given(
    now=st.integers(1_700_000_000, 1_800_000_000),
    begins=st.integers(0, 1439), ends=st.integers(1, 1440), day=st.integers(0, 6),
    zone=st.sampled_from(["UTC", SEOUL, BERLIN, "America/St_Johns", "Australia/Lord_Howe"]),
)  # fmt: skip
def test_they_are_open_when_they_open_and_shut_until_then(
    now: int, begins: int, ends: int, day: int, zone: str
) -> None:
    if begins == ends:
        return
    name = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")[day]
    text = f"{name} {begins // 60}:{begins % 60:02}-{ends // 60}:{ends % 60:02}"
    found = hours(text, zone=zone)
    opens = found.opens_at(float(now))
    assert found.is_open(opens)
    assert opens - now <= 15 * 86_400
    if opens > now:
        # To the minute: no earlier one is open, but an hour that the clocks leave out.
        steps = range(now, int(opens), 3601)
        assert sum(found.is_open(float(step)) for step in steps) <= 1
