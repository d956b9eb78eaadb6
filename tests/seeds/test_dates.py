from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.seeds.dates import timestamp


@pytest.mark.parametrize(
    ("text", "date"),
    [
        (b"2024", (2024, 1, 1)),
        (b"2024-05", (2024, 5, 1)),
        (b" 2024-05-06 ", (2024, 5, 6)),
        (b"2024-5-6", (2024, 5, 6)),
        (b"2024-05-06T07:08Z", (2024, 5, 6, 7, 8)),
        (b"2024-05-06T07:08:09", (2024, 5, 6, 7, 8, 9)),
        (b"2024-05-06T07:08:09.123456789Z", (2024, 5, 6, 7, 8, 9)),
        (b"2024-05-06t07:08:09z", (2024, 5, 6, 7, 8, 9)),
        (b"2024-05-06 07:08:09 +09:00", (2024, 5, 5, 22, 8, 9)),
        (b"2024-05-06T07:08:09-0330", (2024, 5, 6, 10, 38, 9)),
        (b"2024-05-06T07:08:09+09", (2024, 5, 5, 22, 8, 9)),
        (b"2024-05-06T07:08:60Z", (2024, 5, 6, 7, 8, 59)),
        (b"Mon, 06 May 2024 07:08:09 GMT", (2024, 5, 6, 7, 8, 9)),
        (b"Mon, 06 May 2024 07:08:09 +0900", (2024, 5, 5, 22, 8, 9)),
        (b"6 May 2024 07:08:09 -0000", (2024, 5, 6, 7, 8, 9)),
    ],
)
def test_dates_of_sitemaps_and_feeds_are_seconds_of_utc(text: bytes, date: tuple[int, ...]) -> None:
    assert timestamp(text) == datetime(*date, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    "text",
    [
        b"", b"today", b"2024-13", b"2024-02-30", b"0000-01-01", b"2024-05-06T25:00", b"9" * 5,
        b"2024-05-06T07:08:09+99:99" + b" " * 100, "２０２４".encode(), b"\xff",
        b"Mon, 99 May 2024 07:08:09 GMT", b"0001-01-01T00:00:00+14:00",
    ],
)  # fmt: skip
def test_what_is_no_date_is_none(text: bytes) -> None:
    assert timestamp(text) is None


@given(st.binary(max_size=70) | st.text("0123456789-:T+Z. ", max_size=40).map(str.encode))
def test_a_date_never_fails(text: bytes) -> None:
    timestamp(text)
