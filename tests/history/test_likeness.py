"""Masks, fingerprints and nearness of texts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.history.likeness import Near, distance, fingerprint, same_text, words

PAGE = "members only please log in with your name and password to read this board of the house"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-11-20 10:11:12 by", "at 2025-01-02 23:59:00 by"),
        ("on Mon, 03 Feb 2026 10:11 GMT we", "on Tuesday, 14 Mar 2027 09:00 UTC we"),
        ("오늘 2026년 3월 2일 (월) 오전 10시 맑음", "오늘 2027년 12월 31일 (금) 오후 3시 맑음"),
        ("key 5f3a9c0e1b2d4f60718293a4b5c6d7e8 end", "key 00000000000000001111111122222222 end"),
        (
            "id 123e4567-e89b-12d3-a456-426614174000 end",
            "id 00000000-0000-4000-8000-0123456789ab end",
        ),
        ("token aGVsbG8gd29ybGQ3zZ9xY= end", "token Qm9uam91ciBsZSBtb25kZQ1= end"),
        ("page /lost/1.html is lost", "page /a/b/view.php?id=7 is lost"),
        ("page lost.html is lost", "page index.jsp is lost"),
        ("you are number 7 of 12,345", "you are number 1,000 of 9"),
    ],
)  # fmt: skip
def test_what_differs_from_visit_to_visit_is_masked(one: str, other: str) -> None:
    assert words(one) == words(other)
    assert "#" in words(one)


@pytest.mark.parametrize(
    "text",
    ["java.util.ConcurrentModificationException", "internationalisation", "may and march and sun",
     "e.g. this", "다람쥐 헌 쳇바퀴에"],
)  # fmt: skip
def test_words_are_not_masked(text: str) -> None:
    assert "#" not in words(text)


def test_words_of_dates_that_stand_alone_are_kept() -> None:
    assert words("in may the sun") == ["in", "may", "the", "sun"]
    assert words("by 3 may the sun") == ["by", "#", "the", "sun"]


def test_equal_words_have_equal_names_and_fingerprints() -> None:
    one, other = words(f"{PAGE} 10:11:12"), words(f"{PAGE} 23:00:01")
    assert same_text(one) == same_text(other)
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint([]) == 0


def test_nearly_equal_texts_are_near_and_others_are_far() -> None:
    chance = random.Random(1)
    long = [f"word{letter}" for letter in chance.choices("abcdefghijklmnop", k=300)]
    changed = [*long[:150], "another", *long[151:]]
    assert distance(fingerprint(long), fingerprint(changed)) <= 8
    other = [f"other{letter}" for letter in chance.choices("abcdefghijklmnop", k=300)]
    assert distance(fingerprint(long), fingerprint(other)) > 15


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


@given(
    st.integers(0, (1 << 64) - 1),
    st.lists(st.integers(0, 63), max_size=6, unique=True),
    st.integers(0, 3),
)
def test_what_is_near_is_found_and_nothing_else(number: int, bits: list[int], most: int) -> None:
    changed = number
    for bit in bits:
        changed ^= 1 << bit
    near = Near(most)
    near.add(_signed(number), "it")
    assert distance(_signed(number), _signed(changed)) == len(bits)
    assert near.find(_signed(changed)) == ("it" if len(bits) <= most else "")


def test_of_several_near_ones_the_nearest_is_named() -> None:
    near = Near(3)
    near.add(0b111, "far")
    near.add(0b001, "close")
    assert near.find(0) == "close"
