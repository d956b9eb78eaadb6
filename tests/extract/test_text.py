"""What a reader sees of a document, and how it is built."""

from __future__ import annotations

import gzip

import pytest

from geomi.extract import text
from geomi.extract.text import of_document

HTML = {"content-type": "text/html"}


def read(body: bytes, **head: str) -> text.Text | None:
    return text.read("http://a.example/x", {**HTML, **head}, body)


def test_scripts_styles_comments_and_choices_are_not_text() -> None:
    found = of_document(
        "<title>A &amp; B</title><style>p{}</style><h1 class=x>Head <b>line</b></h1>"
        "<script>var a = '<p>no</p>';</script><!-- no --><p>one<br>two"
        "<noscript>no</noscript><select><option>no</select><template>no</template>"
    )
    assert (found.title, found.heading, found.text) == (
        "A & B", "Head line", "Head line one two",
    )  # fmt: skip


def test_what_surrounds_every_page_is_text_but_not_the_main_text() -> None:
    found = of_document("<header>site</header><nav>a b</nav><p>news</p><footer>2026</footer>")
    assert found.text == "site a b news 2026"
    assert found.main == "news"
    assert of_document("<nav>only this</nav>").main == "only this"


def test_a_greater_than_sign_in_a_value_ends_no_tag_and_a_less_than_sign_begins_none() -> None:
    assert of_document("<p title=\"a > b\" x='>'>1 < 2 <3").text == "1 < 2 <3"


def test_forms_are_known_by_their_fields() -> None:
    found = of_document(
        '<form action=/in><input name="id" placeholder="Name"><INPUT TYPE=PassWord name=pw>'
        '<input type=hidden name=t><input type="submit" value="Log in"><textarea name=m></textarea>'
        "<button type=submit>Go</button></form><a href=/x>x</a><!-- <input type=password> -->"
    )
    assert (found.forms, found.passwords, found.links) == (1, 1, 1)
    assert found.fields == ("id", "pw", "m")
    assert found.labels == "Name Log in Go"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ('<meta http-equiv=refresh content="0; url=/login?next=%2F">', "/login?next=%2F"),
        ("<script>alert('x'); location.href = '/member/login.do';</script>", "/member/login.do"),
        ('<script>top.location.replace("/sso")</script>', "/sso"),
        ("<script>function go() { location.href = '/later'; }</script>", ""),
        ("<p>location.href = '/text'</p>", ""),
    ],
)
def test_where_a_page_sends_its_reader_at_once(body: str, where: str) -> None:
    assert of_document(body).sends_to == where


def test_what_scripts_say_at_once_is_read() -> None:
    found = of_document("<script>alert('로그인 후 이용하세요'); history.back();</script>")
    assert found.alerts == "로그인 후 이용하세요"
    assert found.text == ""


def test_bytes_are_read_in_their_charset() -> None:
    korean = "<meta charset=euc-kr><title>실명 확인</title><p>본문".encode("euc-kr")
    found = read(korean)
    assert found is not None
    assert (found.title, found.text) == ("실명 확인", "본문")
    wrong = read("<p>한글".encode("cp949"), **{"content-type": "text/html; charset=utf-8"})
    assert wrong is not None  # said to be what it is not: whatever comes, nothing is raised


def test_what_is_no_html_is_none() -> None:
    assert read(b"%PDF-1.4") is None
    assert read(b"{}", **{"content-type": "application/json"}) is None
    assert read(b"<p>x", **{"content-type": "image/gif"}) is None
    assert read(b"nonsense", **{"content-encoding": "deflate"}) is None


def test_a_packed_document_is_unpacked_within_limits() -> None:
    found = read(gzip.compress(b"<title>packed</title>"), **{"content-encoding": "gzip"})
    assert found is not None
    assert found.title == "packed"
    bomb = gzip.compress(b"<p>" + b" " * (30 << 20))
    found = read(bomb, **{"content-encoding": "gzip"})
    assert found is not None
    assert found.length == 4 << 20


HOSTILE = {
    "beginnings of headings": b"<h1 " * 200_000,
    "beginnings of titles": b"<title " * 120_000,
    "beginnings of buttons": b"<button " * 120_000,
    "values without end": b'<a ="' * 200_000,
    "comments without end": b"<!--" * 250_000,
    "depth": b"<div>" * 200_000,
    "scripts in scripts": b"<script>" * 120_000,
    "alerts without end": b"<script>" + b'alert("' * 9_000,
    "navigation in navigation": b"<nav>" * 200_000,
    "entities": b"&" * (1 << 20),
    "no letters": bytes(range(128, 256)) * 8_192,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_read_to_its_limit(name: str) -> None:
    # Each would take minutes if its cost grew with the square of its length.
    found = read(b"<html>" + HOSTILE[name] + b"x" * (2 << 20))
    assert found is not None
    assert len(found.text) <= text.MOST_BYTES
    assert found.length > 2 << 20
