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

from geomi.extract import forms, html, scripts, tags
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


def _plain(
    start: bytes, address: bytes, loud: bytes, flags: re.RegexFlag = re.NOFLAG
) -> re.Pattern[bytes]:
    """A tag whose only say is one plain address; then its fragment. Read so in a tenth of the
    time. Anchors in double quotes are glanced at before they come here."""
    return re.compile(
        start + html.quiet(loud) + rb"[ \t\n\r\f]++" + address + rb"""=(?P<quote>["']?+)(?P<url>"""
        + html.PLAIN_ADDRESS + rb""")(?P<fragment>#[^"'<> \t\n\r\f]*+)?+(?P=quote)"""
        rb"(?=[> \t\n\r\f])" + html.quiet(loud) + rb"[ \t\n\r\f]*+(?<!=)/?+>\Z",
        flags,
    )  # fmt: skip


#: By how a tag begins. In capitals apart: the engine is half as fast where case does not count.
#: Link elements differ from page to page where they name the next one.
_PLAIN = {
    b"<a": _plain(rb"<a", rb"href", html.LOUD_IN_ANCHOR),
    b"<A": _plain(rb"<a", rb"href", html.LOUD_IN_ANCHOR, re.IGNORECASE),
    b"<i": _plain(rb"<img", rb"src", rb"src|data|longdesc|poster"),
    b"<I": _plain(rb"<img", rb"src", rb"src|data|longdesc|poster", re.IGNORECASE),
    b"<l": _plain(rb'<link rel="(?P<rel>[a-z]++)"', rb"href", rb"rel|href|image|xlink"),
}
#: A path from the root or a relative one, without dots to resolve but those it begins with, and
#: nothing to escape.
_SIMPLE = re.compile(
    rb"(/|(?:\.\./)*+)((?:[A-Za-z0-9_-][A-Za-z0-9_.-]*+(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*+)*+/?+)?+)"
    rb"((?:\?[A-Za-z0-9_.=&;/-]*+)?+)\Z"
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


class Memo(dict[html.Glance, tuple[Found, ...]]):
    """glance -> what it says, filled by asking. Call `start` for each page."""

    def __init__(self, library: Library, base: str, *, charset: str, is_whole: bool) -> None:
        super().__init__()
        self.page = ""  # canonical URL of the page in hand
        self.has_base = False  # a base element of it was seen
        self._room = 0  # answers that may still be kept of this page
        self._library = library
        self._above = _above(directory_of(base))
        #: What other plain tags name, by address without fragment and kind.
        self._plain: dict[html.Glance, tuple[Found, ...]] = {}
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

    def __missing__(self, glance: html.Glance) -> tuple[Found, ...]:
        address, tag = glance
        if address:
            return self._named("a", address, self, glance)
        start = tag[:2]
        pattern = _PLAIN.get(start)
        plain, kind = pattern.match(tag) if pattern else None, "e"
        if start in (b"<a", b"<A"):
            kind = "a"
        elif plain is not None and start == b"<l":
            kind = tags.kind_of_link({plain["rel"].decode("ascii")})
        if plain is not None and len(kind) == 1:
            # What a plain tag says, without the fragment; it is kept itself once that comes twice.
            address = plain["url"]
            named = (address, kind.encode())
            again = self._plain.get(named)
            if again is None:
                return self._named(kind, address, self._plain, named)
            if plain["fragment"] or self._room <= 0 or len(tag) > _KEPT_BYTES:
                return again
            found = again
        else:
            items = tags.read_tag(tag, self._decode, self._library.rules)
            found, is_lasting = self.resolve(items)
            if not is_lasting or self._room <= 0 or len(tag) > _KEPT_BYTES:
                return found
        self[glance] = found
        self._room -= 1
        self._library.held += 1
        return found

    def _named(
        self, kind: str, address: bytes, kept: dict[html.Glance, tuple[Found, ...]],
        under: html.Glance,
    ) -> tuple[Found, ...]:  # fmt: skip
        """What the address of a plain tag comes to; kept, if that holds for every page here."""
        url = address.replace(b"&amp;", b"&") if b"&" in address else address
        found: tuple[Found, ...]
        if target := self._joined(url):
            found, is_lasting = ((kind, target),), True
        else:
            found, is_lasting = self.resolve([(kind, url.decode("ascii"))])
        if is_lasting and self._room > 0 and len(address) <= _KEPT_BYTES:
            kept[under] = found
            self._room -= 1
            self._library.held += 1
        return found

    def _joined(self, address: bytes) -> Target | None:
        """A path of plain names, put together here: a third of what the parser takes."""
        simple = _SIMPLE.match(address)
        if not simple:
            return None
        start, path, query = simple.groups()
        if start == b"/":
            above = self._above[-1]
        elif path or start:
            above = self._above[min(len(start) // 3, len(self._above) - 1)]
        else:
            return None  # a query alone goes to the page itself
        url = above + (path + query).decode("ascii")
        return self._library.target(url) if len(url) <= self._library.max_url else None

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
        if text.isascii() and (target := self._joined(text.encode("ascii"))):
            found.append((kind, target))
            return True
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
