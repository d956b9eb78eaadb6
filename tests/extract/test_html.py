"""Which tags are tags: the tokenizer against cases of the standard, and against lexbor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from geomi.extract import Extractor, html
from geomi.url import canonical

PAGE = "http://h.test/d/p.html"
HTML = {"content-type": "text/html; charset=utf-8"}
XHTML = {"content-type": "application/xhtml+xml"}


def links(document: str | bytes, head: dict[str, str] = HTML, url: str = PAGE) -> list[str]:
    body = document.encode() if isinstance(document, str) else document
    return [f"{kind} {target.url}" for kind, target in Extractor().page(url, head, body).links]


def names(document: str | bytes, head: dict[str, str] = HTML) -> list[str]:
    """Last part of each link, without kinds."""
    return [link.rpartition("/")[2] for link in links(document, head)]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('<a href="x">', ["x"]),
        ("<a href='x'>", ["x"]),
        ("<a href=x>", ["x"]),
        ("<A HREF=x>", ["x"]),
        ("<a\nhref\n=\n'x'\n>", ["x"]),
        ("<a/href=x>", ["x"]),
        ('<a class=y href="x"id=z>', ["x"]),
        ('<a href="x" href="y">', ["x"]),
        ('<a href="" href="y">', []),
        ("<a href>", []),
        ('<a title="<a href=n>" href=x>', ["x"]),
        ('<a title=">" href=x>', ["x"]),
        ("<p title=\"<a href='n'>\"><a href=x>", ["x"]),
        ("<p title='> <a href=n> <'><a href=x>", ["x"]),
        ('<p class="b"" ><a href=x>', ["x"]),
        ('<p "><a href=x>"', ["x"]),
        ('<p ="><a href=x>', ["x"]),
        ('<a href=a"b>', ["a%22b"]),
        ("<a href=a=b>", ["a=b"]),
        ("<div <a href=x>", []),
        ("<ab href=n><a-b href=n><a href=x>", ["x"]),
        ("</a href=n><a href=x>", ["x"]),
        ("</p='><a href=x>", ["x"]),
        ("</p ='><a href=x>", ["x"]),
        ("<!-- <a href=n> --><a href=x>", ["x"]),
        ("<!--><a href=x>", ["x"]),
        ("<!---><a href=x>", ["x"]),
        ("<!----><a href=x>", ["x"]),
        ("<!-- --!><a href=x>", ["x"]),
        ("<!-- -- > <a href=n> --><a href=x>", ["x"]),
        ("<!-- <a href=n>", []),
        ("<!doctype html><a href=x>", ["x"]),
        ("<? <a href=n><a href=x>", ["x"]),
        ("</ <a href=n><a href=x>", ["x"]),
        ("<![CDATA[ <a href=n><a href=x>", ["x"]),  # a bogus comment in HTML
        ("< a href=n><a href=x>", ["x"]),
        ("a < b <a href=x>", ["x"]),
        ("<<a href=x>", ["x"]),
        ("<script>'<a href=n>'</script><a href=x>", ["x"]),
        ("<script>'</scripty><a href=n>'</SCRIPT ><a href=x>", ["x"]),
        ("<script><!-- <script> </script> <a href=n> --></script><a href=x>", ["x"]),
        ("<script><!-- </script><a href=x>", ["x"]),
        ("<script><!--> <script> </script><a href=x>", ["x"]),
        ("<style><a href=n></style><a href=x>", ["x"]),
        ("<title><a href=n></title><a href=x>", ["x"]),
        ("<textarea><a href=n></textarea><a href=x>", ["x"]),
        ("<xmp><a href=n></xmp><iframe><a href=n></iframe><a href=x>", ["x"]),
        ("<plaintext><a href=n>", []),
        ("<noscript><a href=x></noscript><template><a href=y></template>", ["x", "y"]),
        ("<noframes><a href=x></noframes>", ["x"]),
        ("<a href=x", []),
        ("<a href='x>", []),
        ('<a href="x>y" <a href="z">', ["x%3Ey"]),
        ("<a href='a&amp;b'>", ["a&b"]),
        ("<a href='?a&copy=1&copy;&#65;&#x42&lt'>", ["p.html?a&copy=1%C2%A9AB%3C"]),
        ("<a href='&#99999999999;'>", ["%EF%BF%BD"]),
        ("<a href=' \n x\ty\r\nz '>", ["xyz"]),
        (b"<a href='a\0b'>", ["a%EF%BF%BDb"]),
        (b"<a\0href=n><a href=x>", ["x"]),
        ("<a href=x>\n" * 3, ["x"]),
        ("<svg><a xlink:href=x>", ["x"]),
    ],
)
def test_links_are_those_of_the_standard(document: str | bytes, expected: list[str]) -> None:
    found = names(document)
    assert [name for name in found if name] == expected


def test_a_slash_at_the_end_of_an_unquoted_value_belongs_to_it() -> None:
    assert links("<a href=x/>") == ["a http://h.test/d/x/"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("<a href='n'/><![CDATA[ <a href='m'/> > ]]]><a href='x'/>", ["n", "x"]),
        ("<script src='s'/><a href='x'/>", ["s", "x"]),
        ("<title/><a href='x'/><style/><a href='y'/>", ["x", "y"]),
        ("<script>'<a href=n>'</script><a href='x'/>", ["x"]),
    ],
)
def test_xhtml_has_cdata_and_empty_elements(document: str, expected: list[str]) -> None:
    assert names(document, XHTML) == expected


DOCUMENT = (
    b"<!DOCTYPE html><title>T</title><!-- <a href=c> --><p class='a>b'><a href=\"x?a=1&amp;b=2\">"
    b"<script>if (a<b) '<a href=n>'</script><img src=i srcset='j 1x, k 2x'><td background=b>"
    b"<a href='y' title=\"z>\"><!-- end --><frame src=f>"
)


def test_every_prefix_of_a_document_gives_a_prefix_of_its_tags() -> None:
    whole = [glance for glance in html.glances(DOCUMENT) if any(glance)]
    for end in range(len(DOCUMENT)):
        part = [glance for glance in html.glances(DOCUMENT[:end]) if any(glance)]
        settled = part[:-1]
        assert settled == whole[: len(settled)]


def test_a_document_and_a_tail_give_the_links_of_the_document_first() -> None:
    alone = links(DOCUMENT)
    assert links(DOCUMENT + b"</p>\xff\0<<<a href=last>")[: len(alone)] == alone


def test_tags_come_one_by_one_as_they_come_at_once() -> None:
    for xml in (False, True):
        assert list(html.each_glance(DOCUMENT, xml=xml)) == html.glances(DOCUMENT, xml=xml)


def test_a_plain_anchor_is_its_address_and_other_tags_are_whole() -> None:
    document = (
        b'<a class="n" href="x?a=1&amp;b=2#c" title="1 > 0">x</a><a href=\'y\'>y</a>'
        b'<a href="z" rel="nofollow">z</a><a href="w" class=k>w</a><a href="v"id="i">v</a>'
    )
    assert [glance for glance in html.glances(document) if any(glance)] == [
        (b"x?a=1&amp;b=2", b""),
        (b"", b"<a href='y'>"),
        (b"", b'<a href="z" rel="nofollow">'),
        (b"w", b""),
        (b"", b'<a href="v"id="i">'),
    ]
    whole = [tag[:2] for tag in html.each_tag(document) if tag]
    assert whole == [b"<a"] * 5


@given(st.binary(max_size=300), st.sampled_from(["text/html", "application/xhtml+xml", ""]))
def test_no_bytes_raise(body: bytes, mime: str) -> None:
    extractor = Extractor()
    for start in (b"", b"<html>", b"<a href=", b'<p style="', b"<script>", b"<img srcset='"):
        extractor.page(PAGE, {"content-type": mime}, start + body)


PIECES = [
    '<a href="%d">', "<a href='%d'>", "<A HREF=%d>", "<a\nhref = \"%d\"\n>", "<a/href=%d>",
    '<a title=">" href=%d>', '<a href="%d"class=y>', '<a href="%d', "<a href='%d", "<area href=%d>",
    '<a href="%d" onclick="z">', "<iframe src=%d>", "</iframe>", '<div title="', "<p title='", '">',
    "'>", "'", '"', "<!--", "-->", "--!>", "<!-->", "<!--->", "-", "<script>", "</script>",
    "</script ", "<style>", "</style>", "<title>", "</title>", "<textarea>", "</textarea", " ", "/",
    "=", ">", "<", "t", "<![CDATA[", "]]>", "<?", "</", "</a>", "<!doctype html>", "\n", "\f", "<b",
    "<p =x", "<p style='", '<p class="q"', "<td style='>'>", "<xmp>", "</xmp>", "<ab href=%d>",
    "<link>", '<img src="', "<i a=b",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14))
def test_tag_soup_has_the_links_of_a_browser_engine(pieces: list[str]) -> None:
    text = "".join(p % number if "%d" in p else p for number, p in enumerate(pieces))
    page = Extractor().page(PAGE, HTML, text.encode())
    ours = {target.url for kind, target in page.links if kind in "af"}
    theirs = set()
    for node in LexborHTMLParser(text).css("a[href],area[href],iframe[src]"):
        href = (node.attributes.get("src" if node.tag == "iframe" else "href") or "").strip()
        if href and href[0] != "#":
            theirs.add(canonical(href, PAGE))
    assert ours == theirs
