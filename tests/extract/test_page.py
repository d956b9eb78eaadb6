"""What the extractor says of a page besides its links, its limits and its memory."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.extract import Extractor
from geomi.records import Page
from geomi.url import canonical

PAGE = "http://h.test/d/p.html"
HTML = {"content-type": "text/html; charset=utf-8"}


def read(document: str, head: dict[str, str] | None = None, url: str = PAGE) -> Page:
    return Extractor().page(url, HTML if head is None else head, document.encode())


def urls(page: Page) -> list[str]:
    return [target.url for _, target in page.links]


def test_the_title_is_the_first_one_with_blanks_collapsed() -> None:
    page = read("<title lang=ko> A &amp;\n\t <b>한 </title><svg><title>B</title>")
    assert page.title == "A & <b>한"
    assert len(read(f"<title>{'가' * 9999}</title>").title) == 500
    assert read(f"<title>&#{'1' * 9999};</title>").title
    assert read("<!-- <title>A</title> --><title></title>").title == ""


def test_links_are_resolved_against_the_first_base_wherever_it_stands() -> None:
    page = read("<a href=x><base href=/b/c?q><base href=/n/><a href='?y'><a href='#z'>")
    assert page.base == "http://h.test/b/c?q"
    assert urls(page) == [
        "http://h.test/b/x",
        "http://h.test/b/c?y",
        "http://h.test/b/c?q",
    ]


def test_a_base_that_is_no_url_or_names_the_page_changes_nothing() -> None:
    for base in ("data:,x", "http://[", "p.html", "#", ""):
        page = read(f"<base href='{base}'><base href=/n/><a href=x><a href='#y'>")
        assert page.base == PAGE
        assert urls(page) == ["http://h.test/d/x"]


def test_a_link_may_depend_on_the_whole_url_of_its_page() -> None:
    extractor = Extractor()
    for url in ("http://h.test/d/p?a/b", "http://h.test/d/q"):
        page = extractor.page(url, HTML, b"<a href='?x'><a href='http:?y'><a href=z><a href=''>")
        path = url.partition("?")[0]
        assert urls(page) == [f"{path}?x", f"{path}?y", "http://h.test/d/z"]


def test_pages_of_one_directory_share_targets_and_other_directories_do_not_mix() -> None:
    extractor = Extractor()
    first = extractor.page("http://h.test/a/1", HTML, b"<a href=x><a href=/x>")
    again = extractor.page("http://h.test/a/2", HTML, b"<a class=c href=x>")
    other = extractor.page("http://h.test/b/1", HTML, b"<a href=x><a href=/a/x>")
    assert again.links[0][1] is first.links[0][1]
    assert other.links[1][1] is first.links[0][1]
    assert urls(other) == ["http://h.test/b/x", "http://h.test/a/x"]
    assert {target.site for _, target in other.links} == {"h.test"}


@given(
    st.lists(st.sampled_from(["..", "a", "b.c", ".", "", "-", "%2e", "a:b", "..x"]), min_size=1),
    st.sampled_from(["http://h.test/", "http://h.test/a/b/c", "https://h.test:8/a//b/?c/d"]),
)
def test_plain_paths_are_joined_as_the_url_parser_joins_them(names: list[str], url: str) -> None:
    href = "/".join(names)
    page = read(f'<a href="{href}">', url=url)
    expected = canonical(href, url) if href else None
    assert urls(page) == ([expected] if expected else [])


def test_a_full_cache_is_dropped_whole_and_nothing_else_changes() -> None:
    small, large = Extractor(cache_targets=10), Extractor()
    for number in range(30):
        document = "".join(f"<a href=x{number % 7}/{i}>" for i in range(number % 5)).encode()
        page = f"http://h.test/{number % 3}/p"
        assert urls(small.page(page, HTML, document)) == urls(large.page(page, HTML, document))


@pytest.mark.parametrize(
    ("document", "head", "expected"),
    [
        ("", {}, ""),
        ("<meta name=ROBOTS content='NoFollow'>", {}, "nofollow"),
        ("<meta name=geomi content=none>", {}, "nofollow noindex"),
        ("<meta name=otherbot content=none>", {}, ""),
        ("<meta name=robots content='noarchive, noindex'>", {}, "noindex noarchive"),
        ("", {"x-robots-tag": "noindex"}, "noindex"),
        ("", {"x-robots-tag": "otherbot: noindex, geomi: nofollow"}, "nofollow"),
    ],
)
def test_robots_words_are_obeyed(document: str, head: dict[str, str], expected: str) -> None:
    page = read(document + "<a href=x><img src=y><script>location='z'</script>", HTML | head)
    said = [word for word in ("nofollow", "noindex", "noarchive") if getattr(page, word)]
    assert " ".join(said) == expected
    kinds = "".join(kind for kind, _ in page.links)
    assert kinds == ("e" if page.nofollow else "aeh")


def test_nofollow_can_be_recorded_without_being_obeyed() -> None:
    body = b"<meta name=robots content=nofollow><a href=x>"
    page = Extractor(obey_meta=False).page(PAGE, HTML, body)
    assert page.nofollow
    assert urls(page) == ["http://h.test/d/x"]


def test_words_about_links_and_words_about_pages_are_obeyed_apart() -> None:
    body = b"<meta name=robots content=nofollow><a href=x><a rel=nofollow href=y>"
    links = Extractor(obey_nofollow=False).page(PAGE, HTML, body).links
    assert links == []
    page = Extractor(obey_meta=False).page(PAGE, HTML, body)
    assert urls(page) == ["http://h.test/d/x"]
    page = Extractor(obey_meta=False).page(PAGE, HTML | {"x-robots-tag": "none"}, body)
    assert (page.nofollow, page.noindex, len(page.links)) == (True, True, 1)


def test_robots_words_hold_for_what_is_not_html_too() -> None:
    page = read("", {"content-type": "application/pdf", "x-robots-tag": "noarchive"})
    assert page.noarchive


def test_the_canonical_url_is_recorded_and_is_no_link() -> None:
    page = read("<link rel=canonical href='/c?x#y'><link rel=canonical href=/n>")
    assert page.canonical == "http://h.test/c?x"
    assert page.links == []


def test_links_that_are_no_urls_are_counted() -> None:
    page = read("<a href='http://['><img src='https://a b/'><a href=mailto:x><a href=y>")
    assert page.bad_links == 2
    assert urls(page) == ["http://h.test/d/y"]


def test_links_that_are_too_long_are_counted() -> None:
    fits = "x" * (2083 - len("http://h.test/d/"))
    page = read(f"<a href={fits}><a href={fits}y><a href={'x' * 100_000}>")
    assert page.bad_links == 2
    assert [len(url) for url in urls(page)] == [2083]


def test_links_beyond_the_limit_are_counted() -> None:
    body = "".join(f"<a href={number}>" for number in range(50)).encode()
    page = Extractor(max_links=20).page(PAGE, HTML, body)
    assert len(page.links) == 20
    assert page.cut_links == 30


def test_a_long_document_has_the_same_links_and_limits() -> None:
    body = b"<title>T</title><base href=/b/>" + b"".join(
        b"<p><a href=%d>" % (number % 40_000) for number in range(80_000)
    )
    assert len(body) > 1 << 20
    page = Extractor(max_links=50_000).page(PAGE, HTML, body)
    assert (len(page.links), page.cut_links, page.title) == (40_000, 0, "T")
    assert page.links[-1][1].url == "http://h.test/b/39999"
    page = Extractor(max_links=30_000).page(PAGE, HTML, body)
    assert len(page.links) == 30_000
    assert page.cut_links > 0


@pytest.mark.parametrize(
    ("mime", "body", "is_read"),
    [
        ("text/html", b"<a href=x>", True),
        ("TEXT/HTML;x", b"<a href=x>", True),
        ("application/xhtml+xml", b"<a href='x'/>", True),
        ("", b" <!DOCTYPE html><a href=x>", True),
        ("", b"<!-- c --><a href=x>", True),
        ("unknown/unknown", b"\n<html><a href=x>", True),
        ("html", b"<body><a href=x>", True),
        ("", b"plain <a href=x>", False),
        ("", b"", False),
        ("text/plain", b"<html><a href=x>", False),
        ("application/xml", b"<html><a href='x'/></html>", False),
        ("application/octet-stream", b"<html><a href=x>", False),
        ("application/javascript", b"location='x'", False),
        ("text/html", b"%PDF-1.7 <a href=x>", False),
        ("text/html", b"\x89PNG\r\n\x1a\n<a href=x>", False),
        ("text/html", b"ab\0\0<a href=x>", False),
        ("text/html", b"\n<p>\0<a href=x>", True),
        ("text/html", "\ufeff<a href=x>".encode("utf-16-le"), True),
    ],
)
def test_only_what_is_html_is_read_as_html(mime: str, body: bytes, is_read: bool) -> None:
    page = Extractor().page(PAGE, {"content-type": mime}, body)
    assert urls(page) == (["http://h.test/d/x"] if is_read else [])
    assert page.mime == mime.partition(";")[0].lower()


def test_a_packed_page_is_read_and_a_bomb_is_not() -> None:
    packed = HTML | {"content-encoding": "gzip"}
    extractor = Extractor(decode_ratio=50)
    assert urls(extractor.page(PAGE, packed, gzip.compress(b"<a href=x>"))) != []
    bomb = gzip.compress(b"<a href=x>" + bytes(4 << 20))
    assert urls(extractor.page(PAGE, packed, bomb)) == []
    assert urls(extractor.page(PAGE, HTML | {"content-encoding": "zstd"}, b"(\xb5/\xfd")) == []


#: What would take hours if anything were scanned twice for each thing found.
HOSTILE = {
    "nested tags": b"<div>",
    "tags that never end": b"<a ",
    "values that never end": b'<a href="',
    "comments that never end": b"<!--",
    "scripts in scripts": b"<script><!--<script>",
    "escaped quotes": b'<style>"\\',
    "urls that never end": b'<style>url("',
    "handlers": b'<p onclick="location ',
    "srcset": b"<img srcset=', (",
    "references": b"<a href='&#1",
    "equal signs": b"<a =",
    "end tags": b"</x ",
    "declarations": b"<![CDATA[",
    "nothing": b"\0",
    "less than": b"<",
    "meta": b"<meta charset=x content='charset=charset=",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("mime", ["text/html", "application/xhtml+xml", "text/css"])
def test_a_hostile_document_is_read_once(name: str, mime: str) -> None:
    piece = HOSTILE[name]
    for start in (b"", b"<html>" + piece):
        body = start + piece[-8:] * 60_000
        page = Extractor().page(PAGE, {"content-type": mime}, body)
        assert len(page.links) <= 1
