"""String literals of scripts, where guessing was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.extract import Extractor, scripts

PAGE = "http://h.test/d/p.html"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = '/list'; b = \"/view/1.html?x=1\"", ["/list", "/view/1.html?x=1"]),
        ("a = 'https://h.test/x'; b = '//cdn.h.test/y'", ["https://h.test/x", "//cdn.h.test/y"]),
        ("a = '/게시판/목록'", ["/게시판/목록"]),
        ("a = '/\\u0061\\/b\\x2Ehtml'", ["/a/b.html"]),
        ("a = '/n' + x; b = y + '/n'; c = '/y'", ["/y"]),
        ("a = 'list.html'; b = '../x'; c = 'text/html'; d = '/'; e = '/.'; f = '//'", []),
        ("a = '/a b'; b = '</a>'; c = '/{id}'; d = '/<p>'; e = '/a\\nb'", []),
        ("a = 'http://www.w3.org/2000/svg'; b = 'http://localhost/x'", []),
        ("// '/n'\na = '/y' // it's\nb = '/z'", ["/y", "/z"]),
        ("/* '/n' \" */ a = '/y'", ["/y"]),
        ("a = `it's ${b} '/n'`; c = '/y'", ["/y"]),
        ("a.replace(/['\"]/g, '/y'); b = c / 2; d = '/z'", ["/y", "/z"]),
        ("a = 'it\nb = '/y'", ["/y"]),
        ("a = '/y'; b = '/y'", ["/y"]),
        (f"a = '/{'n' * 600}'", []),
        ("", []),
    ],
)
def test_literals_that_are_written_like_addresses_are_taken(text: str, expected: list[str]) -> None:
    assert scripts.addresses(text) == expected


@pytest.mark.parametrize("mime", ["application/javascript", "text/javascript;charset=utf-8"])
def test_a_script_has_links_of_kind_h_where_asked_for(mime: str) -> None:
    body = "a = '/list?q=한'; b = '/list?q=한'".encode()
    head = {"content-type": mime}
    assert Extractor().page("http://h.test/js/a.js", head, body).links == []
    page = Extractor(scripts=True).page("http://h.test/js/a.js", head, body)
    assert [(kind, target.url) for kind, target in page.links] == [
        ("h", "http://h.test/list?q=%ED%95%9C")
    ]
    assert page.link_type == "h00"


def test_scripts_in_pages_are_read_for_addresses_where_asked_for() -> None:
    body = b"<script>var a = '/x'; location = '/y'</script><script type=text/template>'/n'</script>"
    head = {"content-type": "text/html; charset=utf-8"}
    few = Extractor().page(PAGE, head, body)
    assert [target.url for _, target in few.links] == ["http://h.test/y"]
    more = Extractor(scripts=True).page(PAGE, head, body)
    assert [target.url for _, target in more.links] == ["http://h.test/y", "http://h.test/x"]


@given(st.text(alphabet="'\"\\/*`[]()=+ab\n", max_size=60))
def test_no_script_raises(text: str) -> None:
    scripts.addresses(text)


@pytest.mark.parametrize(
    "piece", ['"', "'/", "/*", "`", "/[", "=/", '"\\', "//", '"/a/a', "(/", "* "]
)
def test_a_hostile_script_is_read_once(piece: str) -> None:
    scripts.addresses("=/*"[:1] + piece * 100_000)
