"""From tags to targets: each tag is read once a directory, and then costs one look into a dict.

The answer for a tag depends on the directory of the page (or on its base element) and on the
charset, so there is one `Memo` for each pair of them. All memos and all targets of a `Library`
are dropped together when it is full: a target kept in one place and made anew in another would
be two objects for one URL.
"""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import unquote

from geomi.extract import forms, scripts, tags
from geomi.extract.charset import charset_of_document, decode, query_in
from geomi.extract.tags import Decode, Item, Rules
from geomi.records import Target
from geomi.url import canonical, directory_of, site_of

BAD = "bad"
#: (kind, target) is a link; (BASE, TITLE, ROBOTS, CANONICAL or BAD, text) is a note.
Found = tuple[str, Target] | tuple[str, str]

#: Tags longer than this (inline scripts, data URLs) are read anew each time.
_KEPT_BYTES = 2048
#: New tags of one page that are kept, so that one page cannot fill memory.
_KEPT_TAGS = 10_000
#: A link as written may be this many times as long as a URL and still become one.
_SLACK = 8
_CONTROLS_AND_BLANK = "".join(map(chr, range(0x21)))
_LINE_ENDS = str.maketrans("", "", "\t\n\r")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*+):")
#: Resolved against the whole URL of the page, not only its directory.
_WHOLE = re.compile(r"(?:https?:)?+(?:\?|#|\Z)", re.IGNORECASE)
#: Encodings whose queries are in UTF-8 (Encoding standard, "get an output encoding").
_QUERY_IN_UTF8 = frozenset({"utf-8", "us-ascii", "replacement", "utf-16le", "utf-16be"})
#: An anchor of nothing but ASCII, without references and without attributes that matter; then the
#: fragment. Read so in a tenth of the time.
_QUIET = rb'(?: (?:class|id|name|title|target|accesskey|hreflang|type|role|lang|dir)="[^"]*+")*+'
_PLAIN = re.compile(
    rb"<[aA]" + _QUIET + rb' href="([^"#&\0-\x20\x7f-\xff]++)(#[^"]*+)?+"' + _QUIET + rb">\Z"
)
#: The like for link elements, which differ from page to page where they name the next one.
_PLAIN_LINK = re.compile(
    rb'<link rel="([a-z]++)" href="([^"#&\0-\x20\x7f-\xff]++)"' + _QUIET + rb" ?/?>\Z"
)
#: A relative path without dots to resolve but those it begins with, and nothing to escape.
_SIMPLE = re.compile(
    rb"((?:\.\./)*+)([A-Za-z0-9_-][A-Za-z0-9_.-]*+(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*+)*+/?+)\Z"
)


class Rebase(Exception):
    """A base element was met: what was resolved for this page has to be resolved again."""

    def __init__(self, base: str) -> None:
        self.base = base


class Library:
    """All memos of one extractor and the targets they share."""

    def __init__(self, rules: Rules, *, cache_targets: int, max_url: int) -> None:
        self.rules = rules
        self.cache_targets = cache_targets
        self.max_url = max_url
        #: Tags held by all memos together, a memo itself counted as one.
        self.held = 0
        self._memos: dict[tuple[str, str, bool], Memo] = {}
        self._targets: dict[str, Target] = {}
        self._sites: dict[str, str] = {}

    def memo(self, base: str, charset: str, *, is_whole: bool) -> Memo:
        """The memo for a directory, or for a base element's URL. Forgets all first if full."""
        if self.held > self.cache_targets or len(self._targets) > self.cache_targets:
            self.held = 0
            self._memos = {}
            self._targets = {}
            self._sites = {}
        key = (base, charset, is_whole)
        memo = self._memos.get(key)
        if memo is None:
            memo = self._memos[key] = Memo(self, base, charset=charset, is_whole=is_whole)
            self.held += 1
        return memo

    def target(self, url: str) -> Target:
        target = self._targets.get(url)
        if target is None:
            site = site_of(url)
            site = self._sites.setdefault(site, site)
            target = self._targets[url] = Target(url, site)
        return target


class Memo(dict[bytes, tuple[Found, ...]]):
    """tag -> what it says, filled by asking. Call `start` for each page."""

    def __init__(self, library: Library, base: str, *, charset: str, is_whole: bool) -> None:
        super().__init__()
        self.page = ""  # canonical URL of the page in hand
        self.has_base = False  # a base element of it was seen
        self._room = 0  # tags that may still be kept of this page
        self._library = library
        self._above = _above(directory_of(base))
        #: The same for what plain anchors name, without fragment: titles and fragments differ
        #: where the link is one.
        self._plain: dict[bytes, tuple[Found, ...]] = {}
        self._base = base
        self.is_whole = is_whole
        self._charset = charset
        self._decode: Decode = partial(decode, charset=charset_of_document(charset))
        self._is_utf8 = charset in _QUERY_IN_UTF8

    def start(self, page: str) -> None:
        """The next tags are those of this page."""
        self.page = page
        self.has_base = False
        self._room = _KEPT_TAGS

    def __missing__(self, tag: bytes) -> tuple[Found, ...]:
        library = self._library
        plain = _PLAIN.match(tag)
        if plain:
            return self._anchor(tag, plain)
        if (plain := _PLAIN_LINK.match(tag)) and (quick := self._plain_link(plain)) is not None:
            return quick
        items = tags.read_tag(tag, self._decode, library.rules)
        found, is_lasting = self.resolve(items)
        if is_lasting and self._room > 0 and len(tag) <= _KEPT_BYTES:
            self[tag] = found
            self._room -= 1
            library.held += 1
        return found

    def _anchor(self, tag: bytes, plain: re.Match[bytes]) -> tuple[Found, ...]:
        """The answer for a plain anchor; its tag is kept once its link comes a second time."""
        href = plain[1]
        found = self._plain.get(href)
        if found is None:
            found, is_lasting = self._joined(href) or self.resolve([("a", href.decode("ascii"))])
            if not is_lasting or self._room <= 0 or len(href) > _KEPT_BYTES:
                return found
            self._plain[href] = found
        elif plain[2] or self._room <= 0 or len(tag) > _KEPT_BYTES:
            return found
        else:
            self[tag] = found
        self._room -= 1
        self._library.held += 1
        return found

    def _plain_link(self, plain: re.Match[bytes]) -> tuple[Found, ...] | None:
        """The answer for a plain link element; None: it has to be read word by word."""
        kind = tags.kind_of_link({plain[1].decode("ascii")})
        if not kind:
            return ()
        joined = self._joined(plain[2], kind) if len(kind) == 1 else None
        return None if joined is None else joined[0]

    def _joined(self, href: bytes, kind: str = "a") -> tuple[tuple[Found, ...], bool] | None:
        """A relative path of plain names, put together here: a third of what the parser takes."""
        simple = _SIMPLE.match(href)
        if not simple:
            return None
        climbs = len(simple[1]) // 3
        url = self._above[min(climbs, len(self._above) - 1)] + simple[2].decode("ascii")
        if len(url) > self._library.max_url:
            return None
        return ((kind, self._library.target(url)),), True

    def resolve(self, items: list[Item]) -> tuple[tuple[Found, ...], bool]:
        """What the items come to, and whether that holds for every page of this memo."""
        found: list[Found] = []
        is_lasting = True
        for kind, text in items:
            if len(kind) == 1:
                is_lasting &= self._link(kind, text, found)
            elif kind == tags.ROBOTS:
                found.append((kind, text))
            elif kind == tags.NOFOLLOW:
                found.append((kind, _mark(text)))
            else:
                is_lasting = False
                self._note(kind, text, found)
        return tuple(found), is_lasting

    def forms(self, document: bytes, *, is_xml: bool, obey_nofollow: bool) -> list[Found]:
        """The addresses of forms that ask with GET. The query of an action gives way to theirs."""
        found: list[Found] = []
        each = forms.candidates(
            document, self._decode, self._charset, is_xml=is_xml, obey_nofollow=obey_nofollow
        )
        for action, query in each:
            action = action.strip(_CONTROLS_AND_BLANK)
            url = canonical(self._spelt(action), self._base if self.is_whole else self.page)
            if not action:
                url = self.page
            if url is None:
                continue
            url = url.partition("?")[0] + (f"?{query}" if query else "")
            if len(url) <= self._library.max_url:
                found.append(("h", self._library.target(url)))
        return found

    def _note(self, kind: str, text: str, found: list[Found]) -> None:
        if kind == tags.TITLE:
            found.append((kind, text))
        elif kind == tags.CANONICAL:
            url = canonical(self._spelt(text), self._base if self.is_whole else self.page)
            if url is not None and len(url) <= self._library.max_url:
                found.append((kind, url))
        elif not self.is_whole and not self.has_base:
            self.has_base = True
            url = canonical(self._spelt(text), self.page)
            if url is not None and url != self.page:
                raise Rebase(url)

    def _spelt(self, text: str) -> str:
        return text if self._is_utf8 or text.isascii() else query_in(text, self._charset)

    def _link(self, kind: str, text: str, found: list[Found]) -> bool:
        """Appends what one link comes to; False if that depends on the page's whole URL."""
        text = text.strip(_CONTROLS_AND_BLANK)
        if len(text) > self._library.max_url * _SLACK:
            if text[:5].lower() != "data:":
                found.append((BAD, _mark(text)))
            return True
        if "\n" in text or "\t" in text or "\r" in text:
            text = text.translate(_LINE_ENDS)
        scheme = _SCHEME.match(text)
        if scheme and scheme[1].lower() not in ("http", "https"):
            if scheme[1].lower() == "javascript" and kind in ("a", "f"):
                lasting = [self._link("h", url, found) for url in _script_urls(text)]
                return all(lasting)
            return True
        base, is_lasting = self._base, True
        if _WHOLE.match(text):
            if not self.is_whole:
                if not text or text[0] == "#":  # the page itself
                    return True
                base, is_lasting = self.page, False
            elif not text or text[0] == "#":
                # The page the base element names; the same for every page but that one.
                is_lasting = False
                if base == self.page:
                    return False
        url = canonical(self._spelt(text), base)
        if url is None or len(url) > self._library.max_url:
            found.append((BAD, _mark(text)))
        else:
            found.append((kind, self._library.target(url)))
        return is_lasting


def _above(directory: str) -> list[str]:
    """The directory, the one that holds it, and so on to the root."""
    above = [directory]
    root = directory.find("/", 8)
    while len(directory) > root + 1:
        directory = directory[: directory.rfind("/", 0, -1) + 1]
        above.append(directory)
    return above


def _mark(text: str) -> str:
    """What tells bad links of one page apart, however long they are."""
    return text if len(text) <= 200 else f"{text[:200]} {len(text)}"


def _script_urls(text: str) -> list[str]:
    """The URLs a `javascript:` link goes to, none of them such a link itself."""
    return [url for url in scripts.links(unquote(text)) if url[:11].lower() != "javascript:"]
