"""What the libraries alone cost a page: where the plain loop's time goes, and so the floor.

    bare.py URL      crawls the URL's folder once, then times each library over what came

Prints one JSON object: CPU microseconds a page of each, over all pages (gzip, SHA-1, libcurl) or
over html pages (lexbor, ada-url).
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable

import ada_url
import pycurl
from isal import isal_zlib
from selectolax.lexbor import LexborHTMLParser

from plain_loop import GZIP, LINKS


def fetched(url: str, handle: pycurl.Curl) -> tuple[bytes, bytes]:
    head: list[bytes] = []
    body: list[bytes] = []
    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.HEADERFUNCTION, head.append)
    handle.setopt(pycurl.WRITEFUNCTION, body.append)
    handle.perform()
    return b"".join(head), b"".join(body)


def links_of(body: bytes) -> list[str]:
    found = (
        node.attributes.get("href") or node.attributes.get("src")
        for node in LexborHTMLParser(body).css(LINKS)
    )
    return list(dict.fromkeys(link for link in found if link))


def joined(url: str, links: list[str]) -> list[str]:
    found = []
    for link in links:
        try:
            found.append(ada_url.join_url(url, link).partition("#")[0])
        except ValueError:
            continue
    return found


def main() -> None:
    seed = sys.argv[1]
    prefix = seed[: seed.index("/", 8) + 1]
    handle = pycurl.Curl()
    pages: dict[str, tuple[bytes, bytes]] = {}
    html: dict[str, list[str]] = {}
    queue = [seed]
    while queue:
        url = queue.pop()
        if url in pages:
            continue
        pages[url] = fetched(url, handle)
        if b"text/html" in pages[url][0].lower():
            html[url] = links_of(pages[url][1])
            queue += [link for link in joined(url, html[url]) if link.startswith(prefix)]
    told: dict[str, float] = {}

    def measure(name: str, work: Callable[[], object], number: int) -> None:
        began = time.process_time()
        work()
        told[name] = round(1e6 * (time.process_time() - began) / max(number, 1), 1)

    bodies = [body for _, body in pages.values()]
    measure("libcurl", lambda: [fetched(url, handle) for url in pages], len(pages))
    measure("lexbor", lambda: [links_of(pages[url][1]) for url in html], len(html))
    measure("ada-url", lambda: [joined(url, links) for url, links in html.items()], len(html))
    measure("SHA-1, twice", lambda: [hashlib.sha1(body) for body in bodies * 2], len(pages))
    measure("ISA-L 1", lambda: [isal_zlib.compress(body, 1, GZIP) for body in bodies], len(pages))
    print(json.dumps({"pages": len(pages), "html": len(html), "us_a_page": told}))


if __name__ == "__main__":
    main()
