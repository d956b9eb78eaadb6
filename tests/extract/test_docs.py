"""On real documentation the links are those that lexbor's tree and selectors give."""

from __future__ import annotations

from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from geomi.extract import Extractor
from geomi.extract.tags import attribute_text
from geomi.url import canonical

SELECTOR = "a[href],area[href],frame[src],iframe[src]"


def _sample(root: Path, count: int) -> list[Path]:
    pages = sorted(path for path in root.rglob("*.html") if path.stat().st_size < 400_000)
    return pages[:: max(1, len(pages) // count)]


def _by_lexbor(text: str, url: str) -> set[str]:
    tree = LexborHTMLParser(text)
    base_element = tree.css_first("base[href]")
    base = url
    if base_element is not None:
        base = canonical(base_element.attributes["href"] or "", url) or url
    links = set()
    for node in tree.css(SELECTOR):
        href = (node.attributes.get("href" if node.tag in ("a", "area") else "src") or "").strip()
        if not href or href.startswith("#"):  # the page itself, which we leave out
            continue
        link = canonical(href, base)
        if link is not None and len(link) <= 2083:
            links.add(link)
    return links


def test_links_of_real_pages_are_those_of_a_browser_engine(documents: Path) -> None:
    extractor = Extractor(obey_nofollow=False)
    differing = []
    for path in _sample(documents, 120):
        url = f"http://docs.test/{path.relative_to(documents).as_posix()}"
        body = path.read_bytes()
        page = extractor.page(url, {"content-type": "text/html"}, body)
        ours = {target.url for kind, target in page.links if kind in "af"}
        theirs = _by_lexbor(body.decode("utf-8", "replace"), url)
        if ours != theirs:
            differing.append((url, ours ^ theirs))
    assert differing == []


def test_the_reference_reads_attributes_as_we_do() -> None:
    tree = LexborHTMLParser('<a href="?a=1&copy=2&amp;b&lt;&#x41;&copy;">')
    node = tree.css_first("a")
    assert node is not None
    assert node.attributes["href"] == attribute_text("?a=1&copy=2&amp;b&lt;&#x41;&copy;")
