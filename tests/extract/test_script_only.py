"""Pages that are nothing until scripts have run."""

from __future__ import annotations

import pytest

from geomi.extract import Extractor
from geomi.extract.script_only import is_script_only
from geomi.records import Page

PAGE = "http://h.test/"
SCRIPT = "<script src=/main.js></script>"


def is_only(document: str | bytes, head: str = "text/html; charset=utf-8") -> bool:
    body = document.encode() if isinstance(document, str) else document
    return Extractor().page(PAGE, {"content-type": head}, body).script_only


@pytest.mark.parametrize(
    "document",
    [
        f"<title>Shop</title><body><div id=root></div>{SCRIPT}",
        f"<body><div class=x id='app'>Loading ...</div>{SCRIPT}",
        f'<div id="__next"></div><script id=__NEXT_DATA__>{"x" * 5000}</script>{SCRIPT}',
        f"<app-root></app-root>{SCRIPT}",
        f"<APP-ROOT class=x> </APP-ROOT>{SCRIPT}",
        f"<noscript>You need to enable JavaScript to run this app.</noscript>{SCRIPT}",
        f"<noscript><p>자바스크립트를 켜 주세요</noscript>{SCRIPT}",
        f"<style>{'a' * 999}</style><svg><text>{'b' * 999}</text></svg><!-- {'c' * 999} -->"
        f"<div id=app></div>{SCRIPT}",
        f"<link rel=alternate href=/rss><div id=app></div>{SCRIPT}",
    ],
)
def test_an_empty_shell_is_told(document: str) -> None:
    assert is_only(document)


@pytest.mark.parametrize(
    "document",
    [
        f"<div id=root></div><a href=/x>x</a>{SCRIPT}",
        f"<div id=root>{'Text that can be read. ' * 20}</div>{SCRIPT}",
        f"<noscript>JavaScript</noscript><p>{'글' * 100}</p>{SCRIPT}",
        "<div id=root></div>",
        f"<div id=content></div>{SCRIPT}",
        SCRIPT,
        "<p>A page without links.",
        "",
    ],
)
def test_a_page_with_links_or_text_or_without_a_sign_is_none(document: str) -> None:
    assert not is_only(document)


def test_a_korean_shell_is_told_in_its_own_charset() -> None:
    body = f"<noscript>자바스크립트를 켜 주세요</noscript>{SCRIPT}".encode("euc-kr")
    assert is_only(body, "text/html; charset=euc-kr")


def test_it_asks_nothing_of_a_page_with_links() -> None:
    page = Extractor().page(PAGE, {"content-type": "text/html"}, b"<a href=/x>")
    assert not is_script_only(f"<div id=root></div>{SCRIPT}".encode(), page)
    assert is_script_only(f"<div id=root></div>{SCRIPT}".encode(), Page(mime="text/html"))


@pytest.mark.parametrize(
    "piece",
    [b"<noscript>", b"<script>", b"<div id=app ", b"<a-", b"<a-b>", b"<!--", b"<a-b> ", b"<div ",
     b"<div id=", b"<noscript", b"id=app", b"<x ", b"<a-a-a-a"],
)  # fmt: skip
def test_a_hostile_shell_is_read_once(piece: bytes) -> None:
    is_script_only(b"<script>" + piece * 60_000, Page(mime="text/html"))
    is_script_only(b"<script></script><div id=app></div>" + piece * 60_000, Page(mime=""))
