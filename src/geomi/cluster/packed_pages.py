"""The pages of a package: HTML documents among its captures, with title and text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from geomi import url as urls
from geomi.archive import cdxj
from geomi.archive.reader import members
from geomi.archive.sorted import Runs
from geomi.cluster.outside import Place
from geomi.extract.plaintext import MOST_BYTES, document_of, text_of, title_of
from geomi.frontier import tables
from geomi.store import Store

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_HEADER = {"format": "json-pages-1.0", "id": "pages", "title": "All pages"}


class Pages:
    """Filled by see(), completed by read(), written by lines(): in the order of their times."""

    def __init__(self, store: Store, scratch: str, *, with_text: bool) -> None:
        self._store = store
        self._with_text = with_text
        self._done = Runs(scratch, "pages")  # time, key, tab, JSON
        self._todo = Runs(scratch, "texts")  # Place, its rest a line of the above
        self.number = 0
        self.first: tuple[str, str] | None = None  # (url, time) of the earliest

    def see(self, line: bytes) -> None:
        """A capture, by its index line: a page if it is HTML that came, or a revisit of such."""
        found = cdxj.parse_line(line)
        is_revisit = found.mime == cdxj.REVISIT_MIME
        if not is_revisit and not (found.mime in _HTML and found.status == "200"):
            return
        title, mime = self._known(found.url)
        if (is_revisit or found.url.endswith("/robots.txt")) and mime not in _HTML:
            return
        ts = moment(found.timestamp14)
        if self.first is None or (ts, found.url) < (self.first[1], self.first[0]):
            self.first = (found.url, ts)
        self.number += 1
        page = {"id": f"{found.timestamp14}/{found.url}", "url": found.url, "ts": ts}
        if title:
            page["title"] = title
        entry = f"{found.timestamp14} {found.surt}\t{msgspec.json.encode(page).decode()}"
        if not is_revisit and (self._with_text or not title):
            self._todo.add(Place(found.filename, found.offset, entry).line())
        else:
            self._done.add(entry.encode() + b"\n")

    def read(self, opened: Callable[[str], BinaryIO]) -> None:
        """Adds what only the records say, file by file: text, and titles the store has not."""
        for line in self._todo:
            place = Place.of(line)
            key, _, raw = place.rest.partition("\t")
            page = msgspec.json.decode(raw.encode())
            file = opened(place.name)
            file.seek(place.offset)
            member = next(members(file, place.offset))
            head, body = member.http_head(), bytearray()
            while len(body) < MOST_BYTES and (piece := member.read()):
                body += piece
            document = document_of(head, bytes(body))
            if title := page.get("title") or title_of(document):
                page["title"] = title
            if self._with_text and (text := text_of(document)):
                page["text"] = text
            self._done.add(f"{key}\t".encode() + msgspec.json.encode(page) + b"\n")

    def lines(self) -> Iterator[bytes]:
        """pages.jsonl."""
        header = {**_HEADER, "hasText": True} if self._with_text else _HEADER
        yield msgspec.json.encode(header) + b"\n"
        for line in self._done:
            yield line.partition(b"\t")[2]

    def _known(self, url: str) -> tuple[str, str]:
        """(title, mime) of a page as the store has it; empty where it does not know the page."""
        canonical = urls.canonical(url)
        if canonical is None:
            return "", ""
        return tables.title_of(
            self._store, urls.site_of(canonical), canonical, urls.url_hash(canonical)
        )


def moment(timestamp14: str) -> str:
    """As RFC 3339 has it."""
    t = timestamp14
    return f"{t[:4]}-{t[4:6]}-{t[6:8]}T{t[8:10]}:{t[10:12]}:{t[12:14]}Z"
