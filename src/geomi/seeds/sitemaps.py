"""Sitemaps, sitemap indexes, RSS and Atom feeds: the URLs they name. Fetches nothing.

A linear tokenizer over bytes, no XML parser: no entity is ever expanded, nothing outside is ever
read, and the two faults that break most feeds (a bare `&`, an undefined `&nbsp;`) do no harm.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from geomi import url as urls
from geomi.seeds.dates import timestamp
from geomi.seeds.text import gunzip, is_gzip, xml_in_utf8

#: What sitemaps.org allows in one file, unpacked.
MOST_URLS = 50_000
MOST_BYTES = 50 * 2**20
#: 50,000 URLs with their dates take 300,000 tags; hostile files have millions.
_MOST_TAGS = 2_000_000
_LONGEST_URL = 65_536
_MOST_PROBLEMS = 100
_MOST_LAYERS = 2  # a .gz that its server packs once more
_SHOWN = 80  # characters of a bad text in its problem
_END_BYTES = 1024  # comments and blanks may stand after the last tag


class Kind(StrEnum):
    """What a file turned out to be."""

    SITEMAP = "sitemap"
    INDEX = "index"
    RSS = "rss"
    ATOM = "atom"
    TEXT = "text"
    NONE = "none"  # nothing of the kind; its problems say what was seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a file that could not be used. Line 0: the file as a whole."""

    line: int
    text: str  # the beginning of what stood there
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A page that a sitemap or feed names."""

    url: str  # canonical
    lastmod: float | None = None  # seconds since 1970, UTC; None: not said, or no date


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one file says. An index has children, to be fetched by the caller; others entries."""

    kind: Kind
    entries: tuple[Entry, ...] = ()
    children: tuple[Entry, ...] = ()
    elsewhere: int = 0  # URLs of other sites, left out because `site` was given
    problems: tuple[Problem, ...] = ()


def parse_sitemap(body: bytes, *, base: str = "", site: str = "") -> Listing:
    """Reads a sitemap, index, feed or text sitemap, plain or gzipped. Never fails.

    `base` is the file's own URL: feeds may name pages relative to it. With `site` only pages of
    that site count, which is the rule for a sitemap that its robots.txt does not name. What is
    torn or too long gives what comes before.
    """
    reader = _Reader(base=base, site=site)
    body = reader.unpacked(body)
    text = xml_in_utf8(body)
    start = text.lstrip()[:1]
    if start == b"<":
        reader.xml(text)
    elif start:
        reader.lines(text)
    else:
        reader.problem(0, b"", "the file is empty")
    return reader.listing()


class _Reader:
    """Filled by one of xml() and lines()."""

    def __init__(self, *, base: str, site: str) -> None:
        self._base = base
        self._site = site
        self._kind = Kind.NONE
        self._found: dict[str, float | None] = {}  # canonical URL -> lastmod, in order
        self._elsewhere = 0
        self._problems: list[Problem] = []
        # The last place whose line was counted, so that all counting together is linear.
        self._counted = (0, 1)

    def listing(self) -> Listing:
        found = tuple(Entry(url=url, lastmod=date) for url, date in self._found.items())
        is_index = self._kind is Kind.INDEX
        return Listing(
            kind=self._kind,
            entries=() if is_index else found,
            children=found if is_index else (),
            elsewhere=self._elsewhere,
            problems=tuple(self._problems),
        )

    def problem(self, line: int, text: bytes, what: str) -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            shown = text[: 4 * _SHOWN].decode("utf-8", "replace").strip()[:_SHOWN]
            self._problems.append(Problem(line=line, text=shown, what=what))

    def unpacked(self, body: bytes) -> bytes:
        for _ in range(_MOST_LAYERS):
            if not is_gzip(body):
                break
            body, what = gunzip(body[:MOST_BYTES], limit_bytes=MOST_BYTES)
            if what:
                self.problem(0, b"", what)
        if len(body) > MOST_BYTES:
            self.problem(0, b"", f"more than {MOST_BYTES >> 20} MiB; the rest is left out")
        return body[:MOST_BYTES]

    # -- XML -----------------------------------------------------------------------------------

    def xml(self, text: bytes) -> None:
        root = _ROOT.match(text)
        name = root[2] if root else b""
        self._kind = _KINDS.get(name, Kind.NONE)
        if root is None or self._kind is Kind.NONE:
            seen = f"its root element is {name.decode()!r}" if name else "no XML element"
            self.problem(0, text, f"no sitemap and no feed: {seen}")
            return
        # Only names with the prefix of the root count: <image:loc> is no <loc>.
        prefix = b"" if name == b"RDF" else root[1] or b""
        if self._kind in (Kind.SITEMAP, Kind.INDEX):
            self._sitemap(text, root.end(), prefix)
        else:
            self._feed(text, root.end(), prefix)
        end = b"</" + (root[1] + b":" if root[1] else b"") + name
        if end not in text[-_END_BYTES:]:
            self.problem(self._line(text, len(text)), b"", f"no {end.decode()}> at the end")

    def _sitemap(self, text: bytes, at: int, prefix: bytes) -> None:
        record = b"sitemap" if self._kind is Kind.INDEX else b"url"
        inside = False
        url = date = b""
        place = 0
        for start, is_end, name, _attributes, content in self._elements(
            text, at, prefix, _SITEMAP_TAGS
        ):
            if name == record:
                if inside and (is_end or url) and not self._add(text, place, url, date):
                    return
                inside, place = not is_end, start
                url = date = b""
            elif not inside or not is_end:
                continue
            elif name == b"loc":
                url = url or content
            elif name == b"lastmod":
                date = date or content
        if url:  # torn within the record, but its URL was whole
            self._add(text, place, url, date)

    def _feed(self, text: bytes, at: int, prefix: bytes) -> None:
        is_atom = self._kind is Kind.ATOM
        record = b"entry" if is_atom else b"item"
        inside = in_source = is_permalink = False
        url = guess = date = b""
        place = 0
        for start, is_end, name, attributes, content in self._elements(
            text, at, prefix, _FEED_TAGS
        ):
            if name == record:
                if is_end and inside and not self._add(text, place, url or guess, date):
                    return
                inside, in_source, place = not is_end, False, start
                url = date = b""
                guess = _attribute(attributes, b"rdf:about")
            elif not inside:
                continue
            elif name == b"source":
                in_source = not is_end
            elif in_source:
                continue
            elif name == b"link" and is_atom:
                if not (is_end or url) and _attribute(attributes, b"rel") in (b"", b"alternate"):
                    url = _attribute(attributes, b"href")
            elif name == b"link":
                url = url or content
            elif name == b"guid" and not is_end:
                is_permalink = _attribute(attributes, b"isPermaLink") != b"false"
            elif name == b"guid":
                if is_permalink and not guess and content.startswith((b"http:", b"https:")):
                    guess = content
            elif is_end and (not date or name == b"updated"):
                date = content
        if url and inside:
            self._add(text, place, url, date)

    def _elements(
        self, text: bytes, at: int, prefix: bytes, names: tuple[bytes, ...]
    ) -> Iterator[_Element]:
        for number, element in enumerate(_elements(text, at, prefix, names)):
            if number >= _MOST_TAGS:
                self.problem(0, b"", f"more than {_MOST_TAGS} tags; the rest is left out")
                return
            yield element

    # -- text ----------------------------------------------------------------------------------

    def lines(self, text: bytes) -> None:
        self._kind = Kind.TEXT
        for number, line in enumerate(re.split(rb"\r\n?|\n", text), 1):
            if line.strip() and not self._add(text, 0, line.strip(), b"", line=number):
                break
        if not self._found and not self._elsewhere:
            self._kind = Kind.NONE

    def _add(self, text: bytes, at: int, raw: bytes, date: bytes, *, line: int = 0) -> bool:
        """False if the file has had its share."""
        if not raw:
            self.problem(self._line(text, at), b"", "an entry without URL")
            return True
        words = raw[: _LONGEST_URL + 1].decode("utf-8", "replace").strip()
        url = None
        if len(raw) <= _LONGEST_URL:
            base = self._base if self._kind in (Kind.RSS, Kind.ATOM) else ""
            url = urls.canonical(words, base or None)
        if url is None:
            self.problem(line or self._line(text, at), raw, "no http(s) URL")
        elif self._site and urls.site_of(url) != self._site:
            self._elsewhere += 1
        elif url in self._found:
            before, after = self._found[url], timestamp(date)
            if after is not None and (before is None or after > before):
                self._found[url] = after
        elif len(self._found) >= MOST_URLS:
            self.problem(line or self._line(text, at), raw, f"more than {MOST_URLS} URLs; cut here")
            return False
        else:
            self._found[url] = timestamp(date)
        return True

    def _line(self, text: bytes, at: int) -> int:
        """The line of a place; places are asked for in order, so the counting goes on."""
        if len(self._problems) >= _MOST_PROBLEMS:
            return 0
        place, line = self._counted
        if at > place:
            line += text.count(b"\n", place, at)
            self._counted = (at, line)
        return line


#: Place, is it an end tag, name, attributes of a start tag, text before an end tag.
_Element = tuple[int, bool, bytes, bytes, bytes]

_KINDS = {
    b"urlset": Kind.SITEMAP, b"sitemapindex": Kind.INDEX, b"rss": Kind.RSS, b"RDF": Kind.RSS,
    b"feed": Kind.ATOM,
}  # fmt: skip
_SITEMAP_TAGS = (b"url", b"sitemap", b"loc", b"lastmod")
_DATES = (b"pubDate", b"date", b"updated", b"published", b"modified", b"issued")
_FEED_TAGS = (b"item", b"entry", b"link", b"guid", b"source", *_DATES)

# No part of an expression may pass a `<` twice: a tag holds none (XML forbids it in attributes), so
# each failed attempt ends at the next one, and the whole search is linear.
_ATTRIBUTES = rb"""((?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+)>"""
_SKIPPED = rb"<!--(?s:.*?)(?:-->|\Z)|<\?(?s:.*?)(?:\?>|\Z)"
_DOCTYPE = rb"<!DOCTYPE[^<>\[]*+(?:\[(?s:.*?)(?:\]\s*>|\Z)|>)"
_ROOT = re.compile(
    rb"(?:\s++|" + _SKIPPED + rb"|" + _DOCTYPE + rb")*+"
    rb"<(?:([\w.-]++):)?([A-Za-z_][\w.-]*+)(?=[\s/>])" + _ATTRIBUTES
)
_ATTRIBUTE = re.compile(rb"""(?<![\w.:-])([\w.:-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_CDATA = re.compile(rb"<!\[CDATA\[((?s:.*?))(?:\]\]>|\Z)|<!--(?s:.*?)(?:-->|\Z)|<[^<>]*+>")


def _elements(text: bytes, at: int, prefix: bytes, names: tuple[bytes, ...]) -> Iterator[_Element]:
    """The tags with these names. A tag that closes itself comes as a start and an end.

    Comments, CDATA and instructions are passed over, whatever is in them.
    """
    allowed = rb"|".join(names)
    shown = re.escape(prefix) + rb":" if prefix else rb""
    token = re.compile(
        _SKIPPED + rb"|<!\[CDATA\[(?s:.*?)(?:\]\]>|\Z)"
        rb"|<(/?)(?:" + shown + rb"(" + allowed + rb")|dc:(date))(?=[\s/>])" + _ATTRIBUTES
    )
    opened = b""
    content_at = 0
    for found in token.finditer(text, at):
        name = found[2] or found[3]
        if name is None:
            continue
        place = found.start()
        if found[1]:
            inner = text[content_at:place] if opened == name else b""
            yield place, True, name, b"", _plain(inner)
            opened = b""
            continue
        attributes = found[4]
        yield place, False, name, attributes, b""
        opened, content_at = name, found.end()
        if attributes.endswith(b"/"):
            yield place, True, name, b"", b""
            opened = b""


def _plain(raw: bytes) -> bytes:
    """Text content: CDATA unwrapped, references undone, other markup gone, outer space off."""
    if len(raw) > 2 * _LONGEST_URL:
        return raw[: _LONGEST_URL + 1]
    if b"<" not in raw:
        return _references(raw).strip()
    parts: list[bytes] = []
    at = 0
    for found in _CDATA.finditer(raw):
        parts.append(_references(raw[at : found.start()]))
        parts.append(found[1] or b"")
        at = found.end()
    parts.append(_references(raw[at:]))
    return b"".join(parts).strip()


def _references(raw: bytes) -> bytes:
    if b"&" not in raw:
        return raw
    return _REFERENCE.sub(
        lambda found: html.unescape(found[0].decode()).encode("utf-8", "replace"), raw
    )


#: The references of XML alone, with their semicolon: `&copy=1` in a URL is a parameter.
_REFERENCE = re.compile(rb"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")


def _attribute(attributes: bytes, name: bytes) -> bytes:
    for found in _ATTRIBUTE.finditer(attributes):
        if found[1] == name:
            return _references(found[2] if found[2] is not None else found[3]).strip()
    return b""
