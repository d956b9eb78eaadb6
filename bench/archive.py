"""What a page costs the archive: three members built against the bare calls, a file read back.

    python bench/archive.py [FOLDER of .html]

Builds in memory; nothing is written. Each figure is the best of several rounds.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path

from isal import isal_zlib

from geomi.archive import record
from geomi.archive.reader import members
from geomi.records import Capture, Target
from geomi.states import Outcome

DOCUMENTS = "/usr/share/doc/python3.11/html/library"
PAGE_BYTES = 35_000
LINKS = 95
REQUEST = (
    b"GET /library/page.html HTTP/1.1\r\nHost: docs.example.org\r\n"
    b"User-Agent: geomi/0.1 (+http://example.org/robot)\r\nAccept: */*\r\n"
    b"Accept-Encoding: identity\r\n\r\n"
)
HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 06 May 2024 07:08:09 GMT\r\n"
    b"Content-Type: text/html\r\nContent-Length: 35000\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00"
    b' GMT\r\nConnection: keep-alive\r\nETag: "6593f000-88b8"\r\nAccept-Ranges: bytes\r\n\r\n'
)


def best_us(work: Callable[[], object], pages: int, rounds: int = 7) -> float:
    """Microseconds a page of the quickest round."""
    quickest = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        quickest = min(quickest, time.perf_counter() - begun)
    return quickest / pages * 1e6


def captures(folder: Path) -> list[Capture]:
    """Every document whose size allows a page of 35 KB."""
    made = []
    for path in sorted(folder.glob("**/*.html")):
        body = path.read_bytes()[:PAGE_BYTES]
        if len(body) == PAGE_BYTES:
            made.append(Capture(ticket=1, url=f"http://docs.example.org/library/{path.name}",
                                address="127.0.0.1", started=1.0, ended=1.1, outcome=Outcome.OK,
                                code=200, request=REQUEST, head=HEAD, body=body))  # fmt: skip
    return made


def main(folder: str = DOCUMENTS) -> None:
    pages = captures(Path(folder))
    if not pages:
        raise SystemExit(f"no .html of {PAGE_BYTES} bytes under {folder}")
    count = len(pages)
    there = "http://docs.example.org/library/module"
    links = [("a", Target(f"{there}{i}.html#top", "docs.example.org")) for i in range(LINKS)]
    block = record.outlinks(links, pages[0].url, depth=1)
    header = b"x" * 400
    blocks = [header + c.head + c.body for c in pages]
    members_of: list[bytes] = []

    def bare() -> None:
        members_of.clear()
        for capture, data in zip(pages, blocks, strict=True):
            sha1(capture.body).digest()
            sha1(data).digest()
            for each in (data, header + REQUEST, header + block):
                members_of.append(isal_zlib.compress(each, 1, 31))

    def build() -> None:
        members_of.clear()
        ids = record.Ids(bytes(10))
        info = ids.next()
        for capture in pages:
            metadata = record.outlinks(links, capture.url, depth=1, fetch_time_ms=3)
            made = record.capture_members(capture, date=record.warc_date(1714979289.1), ids=ids,
                                          warcinfo_id=info, metadata=metadata)  # fmt: skip
            members_of.extend(part for part in made.parts if isinstance(part, bytes))

    bare_us, build_us = best_us(bare, count), best_us(build, count)
    outlinks_us = best_us(lambda: [record.outlinks(links, "x") for _ in pages], count)
    size = sum(map(len, members_of))
    print(f"{count} pages of {PAGE_BYTES} bytes with {LINKS} links, level 1")
    print(f"write: bare {bare_us:.1f} us a page, built {build_us:.1f} with {outlinks_us:.1f} for "
          f"outlinks; {size / count:.0f} bytes a page kept")  # fmt: skip

    data = b"".join(members_of)

    def inflate() -> None:
        for part in members_of:
            sha1(isal_zlib.decompress(part, 31)).digest()

    def read() -> None:
        for member in members(io.BytesIO(data)):
            digest = sha1()
            for chunk in member.chunks():
                digest.update(chunk)

    def fastwarc_read() -> None:
        from fastwarc.warc import ArchiveIterator

        for one in ArchiveIterator(io.BytesIO(data), parse_http=False):
            sha1(one.reader.read()).digest()

    bare_us, read_us = best_us(inflate, count), best_us(read, count)
    print(f"read:  bare {bare_us:.1f} us a page, members() {read_us:.1f} ({bare_us / read_us:.0%})")
    try:
        print(f"       fastwarc {best_us(fastwarc_read, count):.1f}")
    except ImportError:
        print("       fastwarc is not installed")


if __name__ == "__main__":
    main(*sys.argv[1:])
