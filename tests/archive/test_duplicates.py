"""Names of payloads in the index, the filter before it, and the paper's form of a duplicate."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from geomi.archive.bits import Bits
from geomi.archive.duplicates import capacity, key_of, next_size, paper_head, slices
from geomi.archive.names import sha1_b32

DIGEST = sha1_b32(b"a page")


def test_captures_that_differ_in_status_never_share_a_name() -> None:
    keys = {key_of(DIGEST, code=code) for code in (200, 403, 404, 410, 503)}
    assert len(keys) == 5


def test_redirects_share_a_name_only_where_they_lead_to_the_same_place() -> None:
    here = key_of(DIGEST, code=302, location="/login")
    assert here == key_of(DIGEST, code=302, location="/login")
    assert here != key_of(DIGEST, code=302, location="/login?from=1")
    assert here != key_of(DIGEST, code=301, location="/login")


def test_what_is_no_redirect_is_named_without_a_location() -> None:
    assert key_of(DIGEST, code=201, location="/new") == key_of(DIGEST, code=201)


@given(st.binary(max_size=40), st.integers(100, 599), st.text())
def test_a_name_fits_the_column_of_a_database(data: bytes, code: int, location: str) -> None:
    key = key_of(sha1_b32(data), code=code, location=location)
    assert -(2**63) <= key < 2**63


def test_the_form_of_the_paper_says_304_and_no_last_modified() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nServer: x\r\nlast-modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
        b"Content-Type: text/html\r\n\r\n"
    )
    assert paper_head(head) == (
        b"HTTP/1.1 304 Not Modified\r\nServer: x\r\nContent-Type: text/html\r\n\r\n"
    )


@given(st.integers(0, 12))
def test_slices_fill_a_filter_to_its_last_byte(steps: int) -> None:
    size = 0
    for _ in range(steps):
        size = next_size(size)
    parts = slices(size)
    assert len(parts) == steps
    assert sum((mask + 1) // 8 for _, mask in parts) == size
    assert [start for start, _ in parts] == [
        sum((mask + 1) // 8 for _, mask in parts[:number]) for number in range(steps)
    ]


def some_keys(seed: int, number: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.getrandbits(64) - 2**63 for _ in range(number)]


def test_a_filter_knows_what_was_added_and_little_else_while_it_grows(tmp_path: Path) -> None:
    path = str(tmp_path / "x.bits")
    bits = Bits(path)
    bits.fill(lambda last: ())
    keys = some_keys(1, 3 * capacity(next_size(0)))  # three slices
    bits.add(keys)
    assert all(map(bits.may_have, keys))
    new = some_keys(2, 20_000)
    assert sum(map(bits.may_have, new)) < 0.01 * len(new)
    again = Bits(path)
    assert again.is_whole
    assert all(map(again.may_have, keys))
    bits.close()
    again.close()


def test_what_one_process_adds_another_sees_also_beyond_the_size_it_opened(tmp_path: Path) -> None:
    path = str(tmp_path / "x.bits")
    one, other = Bits(path), Bits(path)
    one.fill(lambda last: ())
    assert other.is_whole
    keys = some_keys(3, 2 * capacity(next_size(0)))
    one.add(keys)
    other.add(some_keys(4, 1))  # looks whether the file grew
    assert all(map(other.may_have, keys))
    one.close()
    other.close()


def test_a_filter_that_is_not_whole_knows_nothing_for_certain(tmp_path: Path) -> None:
    bits = Bits(str(tmp_path / "x.bits"))
    assert bits.may_have(7)
    there = sorted(some_keys(5, 1000))
    bits.fill(lambda last: [key for key in there if last is None or key > last][:300])
    assert bits.is_whole
    assert all(map(bits.may_have, there))
    assert not all(map(bits.may_have, some_keys(6, 100)))
    bits.close()


def test_a_file_that_is_no_filter_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.bits"
    path.write_bytes(b"something else altogether, and longer than a header is")
    bits = Bits(str(path))
    assert not bits.is_whole
    bits.fill(lambda last: ())
    assert not bits.may_have(7)
    bits.close()
