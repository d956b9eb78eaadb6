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


def test_a_meta_element_further_down_counts_where_the_bytes_need_it() -> None:
    unseen = b"<script>'<meta charset=gbk>'</script><!-- <meta charset=gbk> -->"
    late = b" " * 1024 + unseen + b"<META charset=big5><meta charset=gbk>"
    page = Extractor().page(PAGE, {"content-type": "text/html"}, late + b"\xa4\xa4")
    assert page.charset == "big5"
    assert Extractor().page(PAGE, {"content-type": "text/html"}, late).charset == "us-ascii"


def page_of(text: str, codec: str) -> bytes:
    return f"<html><head><title>{text[:20]}</title></head><p>{text}</p></html>".encode(codec)


@pytest.mark.parametrize(
    ("label", "codec", "expected"),
    [
        ("utf-8", "cp949", "euc-kr"),  # impossible
        ("euc-kr", "utf-8", "utf-8"),
        ("ks_c_5601-1987", "utf-8", "utf-8"),
        ("big5", "utf-8", "utf-8"),
        ("iso-8859-1", "cp949", "windows-1252"),  # possible, as any bytes are that
        ("gb18030", "cp949", "gb18030"),
        ("utf-16", "utf-8", "utf-16le"),
        ("utf-8", "utf-8", "utf-8"),
        ("euc-kr", "cp949", "euc-kr"),
    ],
)
@pytest.mark.parametrize("is_meta", [False, True])
def test_a_label_is_obeyed_unless_the_bytes_cannot_be_that(
    label: str, codec: str, expected: str, is_meta: bool
) -> None:
    if is_meta and label == "utf-16":
        expected = "utf-8"  # what a meta element says in ASCII cannot be UTF-16
    meta = f"<meta charset={label}>".encode() if is_meta else b""
    head = {"content-type": "text/html" if is_meta else f"text/html; charset={label}"}
    for length in (30, 80, len(KOREAN), 9000):
        text = (KOREAN * 200)[:length]
        for before in (0, 5000):
            body = meta + b" " * before + page_of(text, codec)
            assert Extractor().page(PAGE, head, body).charset == expected


def test_a_character_cut_in_two_is_no_reason_to_doubt_a_label() -> None:
    for codec, name in (("utf-8", "utf-8"), ("cp949", "euc-kr")):
        whole = page_of(KOREAN, codec)
        for place in range(60, 90):
            if whole[place] < 0x80:
                continue
            body = whole[:place] + whole[place + 1 :]
            head = {"content-type": f"text/html; charset={name}"}
            assert Extractor().page(PAGE, head, body).charset == name
            assert guess(body) == name
            if codec == "cp949":
                head = {"content-type": "text/html; charset=utf-8"}
                assert Extractor().page(PAGE, head, body).charset == "euc-kr"


def test_other_languages_keep_their_wrong_label() -> None:
    head = {"content-type": "text/html; charset=utf-8"}
    for text, codec in (
        ("这是一个中文网页，没有任何标签。" * 9, "gbk"),
        ("これは日本語のページです。" * 9, "euc_jp"),
        ("café déjà vu " * 9, "latin-1"),
    ):
        assert Extractor().page(PAGE, head, page_of(text, codec)).charset == "utf-8"
        assert guess(page_of(text, codec)) != "euc-kr"


def test_iso_2022_kr_is_recognised_and_read() -> None:
    body = "<title>한글 <</title><a href='한?한'>글</a>".encode("iso2022_kr")
    for mime in ("text/html", "text/html; charset=iso-2022-kr"):
        page = Extractor().page(PAGE, {"content-type": mime}, body)
        assert page.charset == "replacement"
        assert page.title == "한글 <"
        assert [url.url for _, url in page.links] == ["http://h.test/d/%ED%95%9C?%ED%95%9C"]


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
        ("?q=%C7%D1한&r=%25+a b", "euc-kr", "?q=%C7%D1%C7%D1&r=%25+a b"),  # escapes stay
        ("?가=나&다=라?마/바", "euc-kr", "?%B0%A1=%B3%AA&%B4%D9=%B6%F3?%B8%B6/%B9%D9"),
        ("?q=가\ud800", "euc-kr", "?q=%B0%A1%26%2365533%3B"),
        ("?q=\ud83d\ude00", "euc-kr", "?q=%26%23128512%3B"),
        ("?q=\U0001f600!", "euc-kr", "?q=%26%23128512%3B!"),
        ("?q=漢字€", "euc-kr", "?q=%F9%D3%ED%AE%A2%E6"),
        ("?q=日本", "shift_jis", "?q=%93%FA%96{"),
        ("#?q=한", "euc-kr", ""),
        ("?한", "euc-kr", "?%C7%D1"),
        ("//호스트/한?한", "euc-kr", "//호스트/한?%C7%D1"),
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


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("한/글?한=글#한", "http://h.test/d/%ED%95%9C/%EA%B8%80?%C7%D1=%B1%DB"),
        ("%ED%95%9C?q=%ED%95%9C한", "http://h.test/d/%ED%95%9C?q=%ED%95%9C%C7%D1"),
        (
            "?q=한 글&amp;r=&#44544;\"'<>",
            "http://h.test/d/p.html?q=%C7%D1%20%B1%DB&r=%B1%DB%22%27%3C%3E",
        ),
        ("?q=똠é😀", "http://h.test/d/p.html?q=%8Cc%26%23233%3B%26%23128512%3B"),
        ("http://한글.test/길?길", "http://xn--bj0bj06e.test/%EA%B8%B8?%B1%E6"),
        ("\n ?q=\t한\n글 ", "http://h.test/d/p.html?q=%C7%D1%B1%DB"),
    ],
)
def test_a_link_on_a_euc_kr_page_is_the_one_a_browser_asks_for(href: str, expected: str) -> None:
    quoted = href.replace('"', "&quot;")
    body = f'<a href="{quoted}">'.encode("cp949", "xmlcharrefreplace")
    for mime in ("text/html; charset=euc-kr", "text/html"):
        document = body if "=" in mime else b"<meta charset=ks_c_5601-1987>" + body
        page = Extractor().page(PAGE, {"content-type": mime}, document)
        assert [target.url for _, target in page.links] == [expected]


def test_a_surrogate_in_a_script_is_what_a_browser_makes_of_it() -> None:
    body = b"<script>location='?q=\\uac00\\ud800'; location.href='?r=\\ud83d\\ude00'</script>"
    page = Extractor().page(PAGE, {"content-type": "text/html; charset=euc-kr"}, body)
    assert [target.url.partition("?")[2] for _, target in page.links] == [
        "q=%B0%A1%26%2365533%3B",
        "r=%26%23128512%3B",
    ]


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
