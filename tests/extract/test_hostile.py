"""Documents made to hurt: each is read once, within bounds, and says what it could not take."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from geomi.extract import Extractor
from geomi.records import Page

PAGE = "http://h.test/d/p.html"
HTML = {"content-type": "text/html; charset=utf-8"}
MIB = 1 << 20


def read(body: bytes, head: dict[str, str] | None = None) -> tuple[Page, int]:
    """The page, and how many bytes more than before were held at most."""
    extractor = Extractor()
    tracemalloc.start()
    try:
        page = extractor.page(PAGE, HTML if head is None else HTML | head, body)
        return page, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("tag", [b"<div>", b"<b><i>", b"<table><tr><td>", b"<svg><g>"])
def test_ten_megabytes_of_nested_tags_hold_no_tree(tag: bytes) -> None:
    page, held = read(tag * (10 * MIB // len(tag)) + b"<a href=x>")
    assert [target.url for _, target in page.links] == ["http://h.test/d/x"]
    assert held < 2 * MIB


def test_of_a_million_links_a_hundred_thousand_are_taken() -> None:
    body = b"".join(b"<a href=%d>" % number for number in range(1_000_000))
    page = Extractor().page(PAGE, HTML, body)
    assert len(page.links) == 100_000
    assert page.cut_links == 900_000


def test_a_flood_of_equal_links_is_one_link() -> None:
    page, held = read(b"<a href=x>" * 300_000)
    assert len(page.links) == 1
    assert held < 2 * MIB


def test_a_page_over_a_mebibyte_is_walked_without_a_second_copy() -> None:
    page, held = read(b"<p class=x>text</p><img src=x>" * (8 * MIB // 30))
    assert len(page.links) == 1
    assert held < 2 * MIB


def test_a_hundred_kilobytes_are_no_url() -> None:
    long = b"x" * 100_000
    body = b"<a href='%s'><a href='/%s?%s'><a href=y><img src='data:,%s'>" % (
        long,
        long,
        long,
        long,
    )
    page, _ = read(body)
    assert [target.url for _, target in page.links] == ["http://h.test/d/y"]
    assert page.bad_links == 2


def test_thousands_of_long_urls_are_counted_and_not_kept() -> None:
    body = b"".join(b"<a href='%d%s'>" % (number, b"x" * 9000) for number in range(900))
    page, held = read(body)
    assert (page.links, page.bad_links) == ([], 900)
    assert held < 4 * MIB


@pytest.mark.parametrize(
    "href", [b"\xff\xfe", b"\xed\xa0\x80", b"a\xc3", b"\xf5\x80\x80\x80", b"\xc0\xaf"]
)
def test_invalid_utf_8_in_a_link_becomes_the_replacement_character(href: bytes) -> None:
    page, _ = read(b"<a href='/%s'><a href=y>" % href)
    assert page.links[0][1].url.endswith("%EF%BF%BD")
    assert page.links[-1][1].url == "http://h.test/d/y"


def test_nuls_anywhere_are_survived() -> None:
    body = b"<\0a href=n>\0<a href='x\0y'>\0<title>\0T\0</title><a hr\0ef=n><a href=\0>"
    page, _ = read(b"<p>" + body)
    assert page.title == "T"
    assert [target.url for _, target in page.links] == [
        "http://h.test/d/x%EF%BF%BDy",
        "http://h.test/d/%EF%BF%BD",
    ]
    page, _ = read(b"\0" * MIB)
    assert page.links == []


@pytest.mark.parametrize(
    "href",
    ["http://[", "http://[::1", "http://a b/", "http://%/", "http://h:99999/", "http://h:x/",
     "https://", "http://256.256.256.256/", "http://a\x7fb/", "//"],
)  # fmt: skip
def test_a_link_to_an_impossible_host_is_bad(href: str) -> None:
    page, _ = read(f"<a href='{href}'><a href=y>".encode())
    assert page.bad_links == 1
    assert [target.url for _, target in page.links] == ["http://h.test/d/y"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip", "deflate, gzip"])
def test_a_bomb_is_not_unpacked_beyond_its_bounds(encoding: str) -> None:
    bomb = b"<a href=x>" + bytes(60 * MIB)
    for name in encoding.split(", "):
        bomb = gzip.compress(bomb, 9) if name == "gzip" else zlib.compress(bomb, 9)
    page, held = read(bomb, {"content-encoding": encoding})
    assert len(page.links) <= 1  # cut at 10 MiB, or refused for its ratio
    assert held < 45 * MIB
    page, held = read(bomb[: len(bomb) // 3], {"content-encoding": encoding})
    assert page.links == []
    assert held < 10 * MIB


def test_a_body_within_its_ratio_is_cut_where_memory_says() -> None:
    body = b"<a href=x>" + b"".join(b"%d " % number for number in range(3_000_000))
    page, held = read(gzip.compress(body, 1), {"content-encoding": "gzip"})
    assert [target.url for _, target in page.links] == ["http://h.test/d/x"]
    assert held < 45 * MIB


def test_attributes_without_end_are_not_read() -> None:
    body = b"<a %s href=x><a href=y>" % b" ".join(b"a%d=1" % number for number in range(50_000))
    page, _ = read(body)
    assert [target.url for _, target in page.links] == ["http://h.test/d/y"]


def test_inner_documents_are_bounded_like_others() -> None:
    inner = b"&lt;iframe srcdoc=&amp;quot;" * 3000
    for body in (b"<iframe srcdoc='" + inner + b"'>", b"<iframe srcdoc='<a href=x>'>" * 20_000):
        page, _ = read(body)
        assert len(page.links) <= 1


@pytest.mark.parametrize(
    "field",
    ["<x>;" * 20_000, "<" * 60_000, "<x>; rel=" + '"' * 60_000, "<x>;rel=next," * 20_000,
     '<x>; a="\\' * 9000, "<x" * 30_000],
)  # fmt: skip
def test_a_hostile_link_field_is_read_once(field: str) -> None:
    page, _ = read(b"<p>", {"link": field, "refresh": field})
    assert len(page.links) <= 1
