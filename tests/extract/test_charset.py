"""The encoding of a document in the order of the WHATWG, and queries in it."""

from __future__ import annotations

import codecs
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.extract import Extractor
from geomi.extract.charset import decode, query_in, sniff_html
from geomi.extract.guess import guess
from geomi.extract.labels import LABELS, codec_of, encoding_of

PAGE = "http://h.test/d/p.html"
KOREAN = (
    "국립중앙도서관은 해마다 모든 공공기관의 누리집을 수집하여 보존한다. "
    "이 자료는 누구나 볼 수 있으며, 연구자에게 큰 도움이 된다. 똠방각하와 펲시콜라도 있다. "
)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("UTF8", "utf-8"),
        (" euc-kr\n", "euc-kr"),
        ("KS_C_5601-1987", "euc-kr"),
        ("cp949", "euc-kr"),
        ("iso-2022-kr", "replacement"),
        ("latin1", "windows-1252"),
        ("ascii", "windows-1252"),
        ("gb2312", "gbk"),
        ("x-sjis", "shift_jis"),
        ("utf-7", ""),
        ("", ""),
    ],
)
def test_labels_mean_what_the_standard_says(label: str, name: str) -> None:
    assert encoding_of(label) == name


def test_every_encoding_can_be_decoded() -> None:
    for name in set(LABELS.values()):
        codecs.lookup(codec_of(name))
        assert isinstance(decode(bytes(range(256)), name), str)


@given(st.binary(max_size=60), st.sampled_from([*sorted(set(LABELS.values())), "us-ascii", "?"]))
def test_decoding_never_raises(data: bytes, charset: str) -> None:
    decode(data, charset)


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("; charset=euc-kr", b"\xef\xbb\xbf<meta charset=big5>", "utf-8"),
        ("; charset=euc-kr", b"<meta charset=big5>", "euc-kr"),
        ("; charset=nonsense", b"<meta charset=big5>", "big5"),
        ("", b"\xfe\xff\0<", "utf-16be"),
        ("", b"\xff\xfe<\0", "utf-16le"),
        ("", b"<?xml version='1.0' encoding='big5'?><meta charset=euc-kr>", "euc-kr"),
        ("", b"<?xml version='1.0' encoding='euc-kr'?><p>", "euc-kr"),
        ("", b"<META CONTENT='a; Charset = ks_c_5601-1987' http-equiv=Content-Type>", "euc-kr"),
        ("", b"<meta name=x content='text/html; charset=big5'><meta charset='gb2312'>", "gbk"),
        ("", b"<!-- <meta charset=big5> --><meta charset=euc-kr>", "euc-kr"),
        ("", b"<p title='<meta charset=big5>'><meta charset=euc-kr>", "euc-kr"),
        ("", b"<metal charset=big5><meta charset=utf-16>", "utf-8"),
        ("", b"<meta charset=x-user-defined>", "windows-1252"),
        ("", b"<p>" + b" " * 1024 + b"<meta charset=big5>", "us-ascii"),
        ("", b"<meta charset=nonsense><p>", "us-ascii"),
        ("", "<p>한글".encode(), "utf-8"),
        ("", ("<p>" + KOREAN).encode("cp949"), "euc-kr"),
    ],
)  # fmt: skip
def test_bom_header_meta_and_guess_come_in_this_order(
    header: str, body: bytes, expected: str
) -> None:
    page = Extractor().page(PAGE, {"content-type": f"text/html{header}"}, body)
    assert page.charset == expected


def test_xhtml_is_utf_8_unless_it_declares_otherwise() -> None:
    head = {"content-type": "application/xhtml+xml"}
    declared = b"<?xml version='1.0' encoding='euc-kr'?><p/>"
    assert Extractor().page(PAGE, head, declared).charset == "euc-kr"
    assert Extractor().page(PAGE, head, b"<meta charset='euc-kr'/>").charset == "utf-8"


@pytest.mark.parametrize("tld", ["kr", "com", "1", ""])
@pytest.mark.parametrize("codec", ["euc-kr", "cp949", "utf-8"])
def test_unlabelled_korean_is_recognised(tld: str, codec: str) -> None:
    words = KOREAN.split()
    chance = random.Random(7)
    for _ in range(200):
        text = " ".join(chance.choices(words, k=chance.randint(4, 30)))
        body = f"<html><body><p>{text}</p>".encode(codec, "ignore")
        assert sniff_html(body, tld=tld) == ("utf-8" if codec == "utf-8" else "euc-kr")


def test_a_body_cut_inside_a_character_is_still_utf_8() -> None:
    body = KOREAN.encode()
    for end in range(len(body) - 4, len(body)):
        assert guess(body[:end]) == "utf-8"


@given(st.binary(max_size=80))
def test_guessing_never_raises(body: bytes) -> None:
    assert guess(body, tld="kr")


@pytest.mark.parametrize(
    ("text", "charset", "expected"),
    [
        ("한?a=1", "euc-kr", "한?a=1"),
        ("한?q=한글&b=%20#글", "euc-kr", "한?q=%C7%D1%B1%DB&b=%20"),
        ("?q=똠", "euc-kr", "?q=%8Cc"),
        ("?q=é", "euc-kr", "?q=%26%23233%3B"),
        ("?q=한é글", "euc-kr", "?q=%C7%D1%26%23233%3B%B1%DB"),
        ("?q=ソ", "shift_jis", "?q=%83\\"),
        ("?q=é", "windows-1252", "?q=%E9"),
    ],
)
def test_a_query_is_in_the_charset_of_its_document(text: str, charset: str, expected: str) -> None:
    assert query_in(text, charset) == expected


@pytest.mark.parametrize(
    ("charset", "codec", "query"),
    [
        ("euc-kr", "cp949", "%C7%D1"),
        ("utf-8", "utf-8", "%ED%95%9C"),
        ("utf-16le", "utf-16-le", "%ED%95%9C"),
    ],
)
def test_links_have_their_path_in_utf_8_and_their_query_in_the_charset(
    charset: str, codec: str, query: str
) -> None:
    body = "<title>한</title><a href='한?q=한'><a href='&#54620;?q=&#54620;'>".encode(codec)
    page = Extractor().page(PAGE, {"content-type": f"text/html; charset={charset}"}, body)
    assert [target.url for _, target in page.links] == [f"http://h.test/d/%ED%95%9C?q={query}"]
    assert page.title == "한"


def test_iso_2022_documents_keep_their_links() -> None:
    head = {"content-type": "text/html; charset=iso-2022-kr"}
    body = "<title>한글 <</title><a href=x>한글 <a href=y>".encode("iso2022_kr")
    page = Extractor().page(PAGE, head, body)
    assert page.charset == "replacement"
    assert [target.url[-2:] for _, target in page.links] == ["/x", "/y"]
    head = {"content-type": "text/html; charset=iso-2022-jp"}
    body = "<title>日本</title><a href='x?日'>".encode("iso2022_jp")
    page = Extractor().page(PAGE, head, body)
    assert page.title == "日本"
    assert page.links[0][1].url == "http://h.test/d/x?%1B$BF|%1B(B"
