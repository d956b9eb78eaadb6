"""Microseconds of CPU a page: geomi.extract against lexbor's selectors joined by ada.

Run: python bench/extract.py [pages a set]. Documents are those of Debian's doc packages.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser

from geomi.extract import Extractor, html

DOCUMENTS = {
    "python3-doc": Path("/usr/share/doc/python3/html"),
    "postgresql-doc-15": Path("/usr/share/doc/postgresql-doc-15/html"),
    "openjdk-17-doc": Path("/usr/share/doc/openjdk-17-doc/api"),
}
SELECTOR = "a[href],area[href],frame[src],iframe[src]"
HEAD = {"content-type": "text/html"}
Document = tuple[str, bytes]


def load(root: Path, count: int) -> list[Document]:
    root = root.resolve()
    paths = sorted(root.rglob("*.html"))
    chosen = paths[:: max(1, len(paths) // count)][:count]
    return [(f"http://docs.test/{path.relative_to(root)}", path.read_bytes()) for path in chosen]


def by_lexbor(url: str, body: bytes) -> set[str]:
    links = set()
    for node in LexborHTMLParser(body).css(SELECTOR):
        attributes = node.attributes
        href = attributes.get("href") or attributes.get("src")
        if href and not href.startswith("#"):
            try:
                links.add(join_url(url, href))
            except ValueError:
                pass
    return links


def us_a_page(work: Callable[[str, bytes], object], documents: list[Document], runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        started = time.process_time()
        for url, body in documents:
            work(url, body)
        best = min(best, time.process_time() - started)
    return best / len(documents) * 1e6


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print(f"{'documents':18} {'pages':>5} {'KB':>5} {'tags':>5} {'links':>5}", end=" ")
    print(f"{'tokens':>7} {'cold':>6} {'warm':>6} {'lexbor':>6}  us a page")
    for name, root in DOCUMENTS.items():
        if not root.exists():
            print(f"{name:18} not installed")
            continue
        documents = load(root, count)
        extractor = Extractor()

        def ours(url: str, body: bytes, extractor: Extractor = extractor) -> object:
            return extractor.page(url, HEAD, body)

        cold = us_a_page(ours, documents, 1)
        warm = us_a_page(ours, documents, 5)
        tokens = us_a_page(lambda _, body: html.glances(body), documents, 5)
        theirs = us_a_page(by_lexbor, documents, 3)
        size = sum(len(body) for _, body in documents) / len(documents) / 1e3
        tags = sum(len(html.glances(body)) for _, body in documents) / len(documents)
        links = sum(len(extractor.page(*d[:1], HEAD, d[1]).links) for d in documents)
        print(f"{name:18} {len(documents):5} {size:5.1f} {tags:5.0f}", end=" ")
        print(f"{links / len(documents):5.0f} {tokens:7.0f} {cold:6.0f} {warm:6.0f} {theirs:6.0f}")


if __name__ == "__main__":
    main()
