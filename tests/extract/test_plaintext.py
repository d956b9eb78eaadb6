"""Title and text of documents, for packages."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from geomi.extract.plaintext import TEXT_MOST, document_of, text_of, title_of

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def test_what_a_reader_does_not_see_is_left_out() -> None:
    document = (
        "<title>A &amp; B</title><style>p{}</style ><!-- no --><script>if (a<b) x()</script>"
        "<p class='a'>one<br>two</p><noscript>no</noscript><textarea>no</textarea>three&nbsp;4 < 5"
    )
    assert title_of(document) == "A & B"
    assert text_of(document) == "one two three 4 < 5"


def test_what_never_ends_hides_the_rest() -> None:
    assert text_of("a<script>b") == "a"
    assert text_of("a<!-- b") == "a"
    assert text_of("a<p title='b") == "a"


def test_a_korean_page_of_old_is_read_in_its_charset_also_gzipped() -> None:
    body = "<title>한글 제목</title><p>본문".encode("euc-kr")
    head = HEAD.replace(b"html\r\n", b"html; charset=euc-kr\r\n")
    assert title_of(document_of(head, body)) == "한글 제목"
    packed = head.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    assert text_of(document_of(packed, gzip.compress(body))) == "본문"


def test_a_text_beyond_all_bounds_is_cut() -> None:
    assert len(text_of("a " * TEXT_MOST)) == TEXT_MOST


def test_hostile_documents_take_no_longer_than_others() -> None:
    for piece in ("<script>", "<!--", "<title>", "</", "<a ", "<", "&", "<style"):
        text_of(piece * 200_000)
        title_of(piece * 200_000)


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(body: bytes) -> None:
    text_of(document_of(HEAD, body))
