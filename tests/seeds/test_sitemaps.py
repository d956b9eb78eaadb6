from __future__ import annotations

import gzip
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.seeds import sitemaps
from geomi.seeds.sitemaps import Entry, Kind, Listing, parse_sitemap

HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'
NS = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
SITEMAP = (
    HEAD + b"<urlset " + NS + b' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">\n'
    b"<url>\n <loc>http://a.org/?x=1&amp;y=2</loc>\n <lastmod>2024-05-06</lastmod>\n"
    b" <changefreq>daily</changefreq>\n"
    b" <image:image><image:loc>http://a.org/i.png</image:loc></image:image>\n</url>\n"
    b"<!-- <url><loc>http://a.org/comment</loc></url> -->\n"
    b"<url><loc><![CDATA[ http://a.org/cdata?x&y ]]></loc></url>\n"
    b"<url><lastmod>2024-05-07T00:00:00Z</lastmod><loc>\nhttp://b.org/\n</loc></url>\n"
    b"</urlset>\n"
)
ENTRIES = (
    Entry(url="http://a.org/?x=1&y=2", lastmod=1714953600.0),
    Entry(url="http://a.org/cdata?x&y"),
    Entry(url="http://b.org/", lastmod=1715040000.0),
)
INDEX = (
    HEAD + b"<sitemapindex " + NS + b">"
    b"<sitemap><loc>http://a.org/1.xml.gz</loc><lastmod>2024-05-06</lastmod></sitemap>"
    b"<sitemap><loc>http://a.org/2.xml</loc></sitemap></sitemapindex>"
)
RSS = b"""<?xml version="1.0"?>
<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://x/rss-0.91.dtd">
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
<title>News</title><link>http://a.org/front</link>
<atom:link href="http://a.org/feed" rel="self"/>
<item><title>One &nbsp; & two</title><link>/1?a=b&c=d</link>
 <guid isPermaLink="false">tag:1</guid><pubDate>Mon, 06 May 2024 00:00:00 GMT</pubDate>
 <description><![CDATA[<item><link>http://a.org/no</link></item>]]></description>
 <source url="http://b.org/feed"><link>http://b.org/no</link></source></item>
<item><guid>http://a.org/2</guid></item>
<item><guid isPermaLink='true'>http://a.org/guid</guid><link>http://a.org/3</link></item>
</channel></rss>
"""
RDF = b"""<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="http://a.org/"><link>http://a.org/</link></channel>
<item rdf:about="http://a.org/1"><link>http://a.org/1?link</link>
<dc:date>2024-05-06</dc:date></item><item rdf:about="http://a.org/2"/>
</rdf:RDF>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://a.org/"/>
<link rel="self" href="http://a.org/feed"/>
<entry><link rel="enclosure" href="http://a.org/x.mp3"/><link rel='alternate' href='/1'/>
 <published>2024-01-01T00:00:00Z</published><updated>2024-05-06T00:00:00Z</updated>
 <source><link href="http://b.org/"/><updated>2025-01-01T00:00:00Z</updated></source></entry>
<entry><link href="http://a.org/2?x=1&amp;y=2"></link></entry>
</feed>"""


def urls_of(listing: Listing) -> list[str]:
    return [entry.url for entry in listing.entries]


def test_a_sitemap_gives_its_pages_with_their_dates() -> None:
    assert parse_sitemap(SITEMAP) == Listing(kind=Kind.SITEMAP, entries=ENTRIES)


def test_a_prefix_makes_no_difference() -> None:
    prefixed = SITEMAP.replace(b"xmlns=", b"xmlns:sm=")
    for name in (b"urlset", b"url", b"loc", b"lastmod"):
        prefixed = prefixed.replace(b"<" + name + b">", b"<sm:" + name + b">")
        prefixed = prefixed.replace(b"</" + name + b">", b"</sm:" + name + b">")
    prefixed = prefixed.replace(b"<urlset ", b"<sm:urlset ")
    assert parse_sitemap(prefixed).entries == ENTRIES


def test_an_index_gives_children_to_be_fetched() -> None:
    assert parse_sitemap(INDEX) == Listing(
        kind=Kind.INDEX,
        children=(
            Entry(url="http://a.org/1.xml.gz", lastmod=1714953600.0),
            Entry(url="http://a.org/2.xml"),
        ),
    )


@pytest.mark.parametrize(
    ("feed", "kind", "entries"),
    [
        (RSS, Kind.RSS, [
            Entry(url="http://a.org/1?a=b&c=d", lastmod=1714953600.0),
            Entry(url="http://a.org/2"), Entry(url="http://a.org/3"),
        ]),
        (RDF, Kind.RSS, [
            Entry(url="http://a.org/1?link", lastmod=1714953600.0), Entry(url="http://a.org/2"),
        ]),
        (ATOM, Kind.ATOM, [
            Entry(url="http://a.org/1", lastmod=1714953600.0),
            Entry(url="http://a.org/2?x=1&y=2"),
        ]),
    ],
)  # fmt: skip
def test_a_feed_gives_its_items(feed: bytes, kind: Kind, entries: list[Entry]) -> None:
    found = parse_sitemap(feed, base="http://a.org/feed/")
    assert found == Listing(kind=kind, entries=tuple(entries))


def test_a_text_sitemap_is_a_url_a_line() -> None:
    found = parse_sitemap(b"\xef\xbb\xbfhttp://a.org/1\r\n\r\n  http://a.org/2 \njunk\n")
    assert found.kind is Kind.TEXT
    assert urls_of(found) == ["http://a.org/1", "http://a.org/2"]
    assert [(problem.line, problem.text) for problem in found.problems] == [(4, "junk")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_read_with_and_without_mark(encoding: str) -> None:
    text = "<urlset><url><loc>http://a.org/가</loc></url></urlset>"
    assert urls_of(parse_sitemap(text.encode(encoding))) == ["http://a.org/%EA%B0%80"]


@pytest.mark.parametrize("label", ["EUC-KR", "cp949", "euc-kr"])
def test_a_declared_encoding_is_obeyed(label: str) -> None:
    text = f'<?xml version="1.0" encoding="{label}"?><urlset><url><loc>http://a.org/똠</loc></url>'
    assert urls_of(parse_sitemap(text.encode("cp949"))) == ["http://a.org/%EB%98%A0"]


@pytest.mark.parametrize("label", ["none-such", "base64", "punycode", "unicode_escape", "idna"])
def test_an_encoding_that_is_none_is_utf_8(label: str) -> None:
    text = f'<?xml version="1.0" encoding="{label}"?><urlset><url><loc>http://a.org/가</loc></url>'
    assert urls_of(parse_sitemap(text.encode())) == ["http://a.org/%EA%B0%80"]


def test_entities_are_never_expanded_and_nothing_outside_is_read() -> None:
    body = (
        b'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "http://a.org/"><!ENTITY b "&a;&a;">'
        b'<!ENTITY f SYSTEM "file:///etc/passwd">]>'
        b"<urlset><url><loc>http://a.org/&b;&f;</loc></url></urlset>"
    )
    assert urls_of(parse_sitemap(body)) == ["http://a.org/&b;&f;"]


def test_a_parameter_that_looks_like_an_entity_stays() -> None:
    body = b"<urlset><url><loc>http://a.org/?a=1&copy=2&amp;lt=3&#38;x&#x26;y</loc></url></urlset>"
    assert urls_of(parse_sitemap(body)) == ["http://a.org/?a=1&copy=2&lt=3&x&y"]


def test_what_is_no_url_is_told_with_its_line() -> None:
    body = (
        b"<urlset>\n<url><loc>/relative</loc></url>\n<url><loc>ftp://a.org/</loc></url>\n"
        b"<url/>\n<url><loc>http://a.org/</loc></url>\n</urlset>"
    )
    found = parse_sitemap(body, base="http://a.org/sitemap.xml")
    assert urls_of(found) == ["http://a.org/"]
    assert [(problem.line, problem.text) for problem in found.problems] == [
        (2, "/relative"), (3, "ftp://a.org/"), (4, "")
    ]  # fmt: skip


def test_a_page_named_twice_counts_once_with_its_last_date() -> None:
    body = "".join(
        f"<url><loc>http://a.org/</loc><lastmod>{date}</lastmod></url>"
        for date in ("2024-05-05", "2024-05-06", "never", "2023-01-01")
    )
    found = parse_sitemap(f"<urlset>{body}</urlset>".encode())
    assert found.entries == (Entry(url="http://a.org/", lastmod=1714953600.0),)


def test_with_a_site_only_its_pages_count() -> None:
    found = parse_sitemap(SITEMAP, site="a.org")
    assert found.entries == ENTRIES[:2]
    assert found.elsewhere == 1


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<!doctype html><html><body>404</body></html>", "no sitemap and no feed"),
        (b"<html></html>", "root element is 'html'"),
        (b"<opml></opml>", "root element is 'opml'"),
        (b"<", "no XML element"),
        (b"<!-- never ends", "no XML element"),
        (b"not found", "no http(s) URL"),
        (b"\x1f\x8b", "ends too early"),
        (b"\x1f\x8bgarbage that is no gzip", "damaged"),
    ],
)
def test_another_kind_of_file_gives_nothing_but_a_reason(body: bytes, what: str) -> None:
    found = parse_sitemap(body)
    assert found.kind is Kind.NONE
    assert not found.entries
    assert what in found.problems[0].what


@pytest.mark.parametrize("body", [SITEMAP, INDEX, RSS, RDF, ATOM])
def test_a_torn_file_gives_what_comes_before(body: bytes) -> None:
    whole = parse_sitemap(body, base="http://a.org/")
    wanted = [entry.url for entry in whole.entries + whole.children]
    for end in range(len(body)):
        found = parse_sitemap(body[:end], base="http://a.org/")
        urls = [entry.url for entry in found.entries + found.children]
        if urls and urls != wanted[: len(urls)]:  # torn before the better of two links
            assert urls[:-1] == wanted[: len(urls) - 1]
        if end < len(body.rstrip()) - 1:
            assert found.problems


@pytest.mark.parametrize("body", [SITEMAP, INDEX, RSS, RDF, ATOM])
def test_a_tail_does_no_harm(body: bytes) -> None:
    whole = parse_sitemap(body, base="http://a.org/")
    for tail in (b"\n\n", b"<!-- made by a plugin -->\n", b"\0\0"):
        assert parse_sitemap(body + tail, base="http://a.org/") == whole


@pytest.mark.parametrize("layers", [1, 2])
def test_gzip_is_undone(layers: int) -> None:
    body = SITEMAP
    for _ in range(layers):
        body = gzip.compress(body)
    assert parse_sitemap(body).entries == ENTRIES


def test_members_of_a_gzip_follow_one_another() -> None:
    body = b"".join(gzip.compress(SITEMAP[at : at + 100]) for at in range(0, len(SITEMAP), 100))
    assert parse_sitemap(body).entries == ENTRIES
    assert parse_sitemap(body + b"\0\0 padding").entries == ENTRIES


def test_a_gzip_may_end_anywhere() -> None:
    packed = gzip.compress(SITEMAP)
    for end in range(1, len(packed)):
        found = parse_sitemap(packed[:end])
        assert found.problems
        assert urls_of(found) == [entry.url for entry in ENTRIES[: len(found.entries)]]


def test_more_than_the_limit_of_urls_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemaps, "MOST_URLS", 3)
    urls = [f"http://a.org/{number}" for number in range(5)]
    xml = "".join(f"<url><loc>{url}</loc></url>\n" for url in urls)
    for body in (f"<urlset>\n{xml}</urlset>", "\n".join(["", *urls])):
        found = parse_sitemap(body.encode())
        assert urls_of(found) == urls[:3]
        assert [(problem.line, problem.what) for problem in found.problems] == [
            (5, "more than 3 URLs; cut here")
        ]


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_more_than_the_limit_of_bytes_is_left_out(
    monkeypatch: pytest.MonkeyPatch, layers: int
) -> None:
    monkeypatch.setattr(sitemaps, "MOST_BYTES", 2**20)
    body = SITEMAP.replace(b"</urlset>", b" " * 2**24 + b"<url><loc>http://c.org/</loc></url>")
    for _ in range(layers):
        body = gzip.compress(body)
    found = parse_sitemap(body)
    assert found.entries == ENTRIES
    assert "more than 1 MiB" in found.problems[0].what


def test_more_tags_than_a_sitemap_needs_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemaps, "_MOST_TAGS", 10)
    found = parse_sitemap(b"<urlset>" + b"<url><loc>http://a.org/</loc></url>" * 4 + b"</urlset>")
    assert urls_of(found) == ["http://a.org/"]
    assert "more than 10 tags" in found.problems[0].what


def test_a_url_without_end_is_no_url() -> None:
    body = b"<urlset><url><loc>http://a.org/" + b"x" * 200_000 + b"</loc></url></urlset>"
    found = parse_sitemap(body)
    assert found.entries == ()
    assert found.problems[0].text == ("http://a.org/" + "x" * 80)[:80]


def test_problems_are_bounded() -> None:
    body = b"<urlset>" + b"<url><loc>x</loc></url>\n" * 1000 + b"</urlset>"
    assert len(parse_sitemap(body).problems) == 100


@pytest.mark.parametrize(
    "unit",
    [b"<a>", b"<loc>", b"<loc ", b'<loc "', b"<loc '>", b"<url><loc>", b"</url>", b"<!--",
     b"<!---->", b"<![CDATA[", b"<?", b"&", b"&#", b"<", b"\n", b"] ", b"a= ", b'"'],
)  # fmt: skip
@pytest.mark.parametrize(
    "root", [b"<urlset>", b"<rss><item>", b"<feed><entry><link ", b"<!DOCTYPE a["]
)
def test_hostile_text_is_read_in_one_pass(root: bytes, unit: bytes) -> None:
    # With quadratic work all of these together would run for minutes.
    found = parse_sitemap(root + unit * (300_000 // len(unit)))
    assert not found.entries


URLS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).map(
    lambda text: "http://a.org/?" + text.strip()
)


@given(st.lists(URLS, max_size=5))
def test_what_is_written_is_read(urls: list[str]) -> None:
    from geomi.url import canonical

    xml = "".join(f"<url><loc>{escape(url)}</loc></url>" for url in urls)
    found = parse_sitemap(f"<urlset>{xml}</urlset>".encode())
    wanted = [canonical(url.strip()) for url in urls]
    assert urls_of(found) == list(dict.fromkeys(wanted))


@given(
    st.lists(
        st.sampled_from(
            [b"<urlset>", b"<rss>", b"<feed>", b"<url>", b"<loc>", b"http://a.org/", b"</loc>",
             b"</url>", b"<item>", b"<link", b" href='x'", b">", b"</item>", b"<!--", b"-->",
             b"<![CDATA[", b"]]>", b"&amp;", b'"', b"\xff", b"/>", b"<?", b"?>", b"\n"]
        )
    ).map(b"".join)
)  # fmt: skip
def test_soup_never_fails(body: bytes) -> None:
    parse_sitemap(body, base="http://a.org/")
