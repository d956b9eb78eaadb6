"""Tags that are read at a glance say what they say when they are read word by word."""

from __future__ import annotations

import random

import pytest

from geomi.extract import Extractor, html, resolve

NAMES = ("a", "A", "a", "img", "IMG", "link", "area")
ADDRESSES = (
    "b.html", "../c.html", "../../../up/x", "/root/y.html", "/", "", "#here", "?q=1",
    "v.php?a=1&amp;b=2", "v.php?a=1&b=2", "x.html#part", "x.html#a b", "a b.html", "x;y=1", "a//b",
    "http://other.example/z", "//h.example/i", "%7euser/x", "./same", "a/../b", "javascript:go()",
    "mailto:a@b.example", "한글.html", "t&eacute;.html", "a/b/c/", "x.html?u=http://y.example/",
    "...", "x.html?", "&amp;", "a&amp;", "c.html?d&",
)  # fmt: skip
OTHERS = (
    'class="x"', "class='x'", "class=x", 'title="1 > 0"', "rel=nofollow", 'rel="noopener"',
    "disabled", 'onclick="location.href=\'/sent\'"', 'style="background: url(s.png)"',
    'data-href="/late"', 'data-src="/lazy.png"', 'srcset="s2.png 2x"', "TARGET=_top", "alt=''",
    'href="/second"', 'id = "q"', 'xlink:href="/svg"', 'longdesc="/long"', "type=text/css",
    "alt=it's", 'title="a"id="b"', "/",
)  # fmt: skip


def a_tag(rng: random.Random) -> str:
    name = rng.choice(NAMES)
    address = "src" if name.lower() == "img" else "href"
    if name == "A" and rng.random() < 0.5:
        address = address.upper()
    quote = rng.choice(['"', '"', "'", ""])
    parts = [f"{address}{rng.choice(['=', '=', ' = '])}{quote}{rng.choice(ADDRESSES)}{quote}"]
    if name == "link":
        parts.insert(
            0, f'rel="{rng.choice(["next", "stylesheet", "canonical", "pingback", "up"])}"'
        )
    for _ in range(rng.randrange(3)):
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(OTHERS))
    blank, end = rng.choice([" ", "  ", "\n"]), rng.choice([">", " >", "/>", " />"])
    return f"<{name} {blank.join(parts)}{end}"


@pytest.mark.parametrize("charset", ["utf-8", "euc-kr"])
def test_a_glance_sees_what_reading_sees(monkeypatch: pytest.MonkeyPatch, charset: str) -> None:
    rng = random.Random(charset)
    tags = [a_tag(rng) for _ in range(3000)]
    header = {"content-type": f"text/html; charset={charset}"}

    def read(extractor: Extractor, tag: str) -> tuple[list[tuple[str, str]], str, int]:
        body = f"<title>t</title>{tag}text".encode(charset, "replace")
        page = extractor.page("http://h.example/d/e/f.html?g=1", header, body)
        return [(kind, one.url) for kind, one in page.links], page.canonical, page.bad_links

    quick = Extractor(agent="geomi", max_url=2083)
    twice = [(read(quick, tag), read(quick, tag)) for tag in tags]
    monkeypatch.setattr(resolve, "_PLAIN", {})
    monkeypatch.setattr(html, "_GLANCED", rb"(?!)()")
    html._links.cache_clear()
    slow = Extractor(agent="geomi", max_url=2083)
    for tag, (first, again) in zip(tags, twice, strict=True):
        assert first == again == read(slow, tag), tag
    html._links.cache_clear()


def test_usual_tags_are_read_at_a_glance() -> None:
    for tag in (b'<a href="x.html">', b'<a class="n" href="/v.php?a=1&amp;b=2#c" title="d">',
                b"<a href=x.html class=n>", b"<A HREF='x.html' TARGET=_top>"):  # fmt: skip
        assert resolve._PLAIN[tag[:2]].match(tag), tag
    assert resolve._PLAIN[b"<i"].match(b'<img src="/i.png" alt="i" />')
    assert resolve._PLAIN[b"<l"].match(b'<link rel="next" href="n.html" title="n" />')
