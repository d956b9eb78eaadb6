"""What one tag says: the links it holds, by kind, as they are written.

Kinds: f, a, h, e as everywhere; besides links, `BASE`, `TITLE`, `ROBOTS` and `CANONICAL` are what
the document says of itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from html.entities import html5

from geomi.extract import css, html, scripts
from geomi.extract.charset import decode as decode_in
from geomi.extract.head import refresh_url, robots_words

BASE, TITLE, ROBOTS, CANONICAL, NOFOLLOW = "base", "title", "robots", "canonical", "nofollow"

#: (kind, text): the text is decoded and without entities, but neither trimmed nor resolved.
Item = tuple[str, str]
Decode = Callable[[bytes], str]

#: A title is cut to this many characters; enough bytes for them are read, and no more.
TITLE_CHARACTERS = 500
_TITLE_BYTES = 4096
#: What no honest page exceeds, so that a hostile one cannot hold up the others: a value is read to
#: this length, inline scripts and styles to that, and a tag with more attributes is not read.
_VALUE_BYTES = 1 << 16
_INSIDE_BYTES = 1 << 18
_MOST_ATTRIBUTES = 1000

_NAME = re.compile(rb"<(/?[a-zA-Z][^ \t\n\r\f/>]*+)")
_ATTRIBUTE = re.compile(
    rb"""[ \t\n\r\f/]*+(?:(=[^ \t\n\r\f/>=]*+|[^ \t\n\r\f/>=]++)"""
    rb"""(?:[ \t\n\r\f]*+=[ \t\n\r\f]*+"""
    rb"""(?:"([^"]*+)("|\Z)|'([^']*+)('|\Z)|([^> \t\n\r\f]*+)))?+|(>))"""
)
_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[a-zA-Z][a-zA-Z0-9]*+;?=?)")
#: The HTML standard's "parse a srcset attribute": what ends with a comma has no descriptors.
_CANDIDATE = re.compile(
    r"[ \t\n\r\f,]++|([^ \t\n\r\f,][^ \t\n\r\f]*+)(?:(?<=,)|(?:[^,(]|\([^)]*+\)?+)*+)"
)
#: What scripts that load late put into data attributes instead of an address.
_NO_ADDRESS = re.compile(r"[\s{}<>\[\]]|\A(?i:true|false|auto|none|null|undefined|[0-9]*)\Z")
#: Documents inside documents inside documents are not read.
_MOST_INNER = 2


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Kinds of link elements by rel; what stands for nothing to fetch (dns-prefetch, preconnect,
#: pingback, profile ...) and what is unknown is in neither.
_REL_REQUISITE = _words(
    """stylesheet icon apple-touch-icon apple-touch-icon-precomposed apple-touch-startup-image
    mask-icon fluid-icon manifest preload modulepreload prefetch image_src"""
)
_REL_PAGE = _words(
    """alternate next prev previous first last start begin end up top home contents content toc
    index chapter section subsection appendix glossary copyright help author license search
    bookmark amphtml shortlink sitemap archives collection first-page parent"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is read and obeyed."""

    agent: str = "geomi"  # a product token in lower case
    obey_nofollow: bool = True
    scripts: bool = False  # literals of scripts that look like addresses, too
    inner: int = 0  # how many documents (srcdoc) this one is inside of


def read_tag(tag: bytes, decode: Decode, rules: Rules) -> list[Item]:
    """The links of one tag that `geomi.extract.html` found, in order; none if it never ends.

    Links of kinds a and h of an element with rel=nofollow become notes where that is obeyed.
    """
    if tag.startswith(b"<title>"):  # on every page, and each time another
        return [(TITLE, _title_text(tag[7:], decode))]
    if tag.startswith(b"<meta "):  # the same of descriptions
        lower = tag.lower()
        if not any(word in lower for word in (b"robots", b"refresh", b"&", rules.agent.encode())):
            return []
    name, attributes, end = read_attributes(tag)
    if end < 0:
        return []
    said = Element(attributes, decode)
    items = list(_READERS[name](said, tag[end:], rules)) if name in _READERS else []
    for attribute in attributes:
        if attribute == b"style":
            items += [("e", url) for url in css.links(said.text(b"style"))]
        elif attribute.startswith(b"on"):
            items += [("h", url) for url in scripts.links(said.text(attribute))]
        elif attribute == b"data-href":
            items += _late("h", said, attribute)
    if rules.obey_nofollow and name in ("a", "area") and "nofollow" in said.words(b"rel"):
        items = [item if item[0] == "e" else (NOFOLLOW, item[1]) for item in items]
    return items


def read_attributes(tag: bytes) -> tuple[str, dict[bytes, bytes], int]:
    """The tag's name; names in lower case and raw values, the first of equals; where it ends.

    The end is -1 if the document ended first: such a tag is no tag. So is one without end.
    """
    attributes: dict[bytes, bytes] = {}
    named = _NAME.match(tag)
    if not named:
        return "", attributes, -1
    element, position = named[1].lower().decode("latin-1"), named.end()
    for _ in range(_MOST_ATTRIBUTES):
        found = _ATTRIBUTE.match(tag, position)
        if not found:
            break
        name, double, closed, single, shut, bare, end = found.groups()
        position = found.end()
        if end:
            return element, attributes, position
        if closed == b"" or shut == b"":
            break
        name = name.lower()
        if name not in attributes:
            value = double if double is not None else single if single is not None else bare
            attributes[name] = value[:_VALUE_BYTES] if value else b""
    return element, attributes, -1


def attribute_text(text: str) -> str:
    """Character references undone as in attributes: `&copy=1` of a query stays what it is."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    token = found[0]
    if token[1] == "#":
        return unescape(token) if len(token) < 64 else "�"
    if token[-1] == "=":
        return token
    return html5.get(token[1:], token)


class Element:
    """The attributes of one tag, decoded when asked for."""

    def __init__(self, attributes: dict[bytes, bytes], decode: Decode) -> None:
        self.attributes = attributes
        self.decode = decode

    def text(self, name: bytes) -> str:
        value = self.attributes.get(name, b"")
        text = value.decode("ascii") if value.isascii() else self.decode(value)
        return attribute_text(text.replace("\0", "�") if "\0" in text else text)

    def words(self, name: bytes) -> set[str]:
        return set(self.text(name).lower().split()) if name in self.attributes else set()

    def links(self, kind: str, *names: bytes) -> Iterator[Item]:
        for name in names:
            if name in self.attributes:
                yield kind, self.text(name)


_Reader = Callable[[Element, bytes, Rules], Iterator[Item]]


def _anchor(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    return said.links("a", b"href" if b"href" in said.attributes else b"xlink:href")


def _frame(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    yield from said.links("f", b"src")
    yield from _late("f", said, b"data-src")
    yield from said.links("h", b"longdesc")
    if b"srcdoc" in said.attributes and rules.inner < _MOST_INNER:
        yield from _document(said.text(b"srcdoc"), replace(rules, inner=rules.inner + 1))


def _document(text: str, rules: Rules) -> Iterator[Item]:
    """The links of a document in an attribute; they are relative to the page around it."""
    decode = partial(decode_in, charset="utf-8")
    for tag in html.each_tag(text.encode("utf-8", "replace")):
        if tag:
            yield from (item for item in read_tag(tag, decode, rules) if len(item[0]) == 1)


def _late(kind: str, said: Element, *names: bytes) -> Iterator[Item]:
    """Attributes from which a script sets the real one once it is needed."""
    for item in said.links(kind, *names):
        if not _NO_ADDRESS.search(item[1].strip()):
            yield item


def _media(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    yield from said.links("e", b"src", b"poster")
    for name in (b"srcset", b"data-srcset", b"data-lazy-srcset"):
        if name in said.attributes:
            yield from _srcset(said.text(name))
    yield from _late("e", said, b"data-src", b"data-original", b"data-lazy-src", b"data-poster")
    yield from said.links("h", b"longdesc")


def _graphic(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    yield from said.links("e", b"src", b"href" if b"href" in said.attributes else b"xlink:href")


def _object(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    return said.links("e", b"data")


def _input(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    if said.text(b"type").strip().lower() == "image":
        yield from said.links("e", b"src")


def _background(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    return said.links("e", b"background")


def _base(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    return said.links(BASE, b"href")


def _link(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    kind = kind_of_link(said.words(b"rel"))
    if kind:
        yield from said.links(kind, b"href")
    if kind == "e" and b"imagesrcset" in said.attributes:
        yield from _srcset(said.text(b"imagesrcset"))


def kind_of_link(rel: Set[str]) -> str:
    """The kind of a link element or Link field by its relations; empty if nothing to fetch."""
    if "canonical" in rel:
        return CANONICAL
    return "e" if rel & _REL_REQUISITE else "h" if rel & _REL_PAGE else ""


def _meta(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    if said.text(b"http-equiv").strip().lower() == "refresh":
        url = refresh_url(said.text(b"content"))
        if url:
            yield "h", url
    elif said.text(b"name").strip().lower() in ("robots", rules.agent):
        yield ROBOTS, " ".join(sorted(robots_words(said.text(b"content"))))


def _script(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    yield from said.links("e", b"src", b"href", b"xlink:href")
    kind = said.text(b"type").strip().lower() or said.text(b"language").strip().lower()
    if not kind or kind == "module" or "script" in kind:
        text = said.decode(inside[:_INSIDE_BYTES])
        for url in scripts.links(text):
            yield "h", url
        if rules.scripts:
            for url in scripts.addresses(text):
                yield "h", url


def _style(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    for url in css.links(said.decode(inside[:_INSIDE_BYTES])):
        yield "e", url


def _title(said: Element, inside: bytes, rules: Rules) -> Iterator[Item]:
    yield TITLE, _title_text(inside, said.decode)


def _title_text(inside: bytes, decode: Decode) -> str:
    text = " ".join(unescape(decode(inside[:_TITLE_BYTES])).replace("\0", "").split())
    return text[:TITLE_CHARACTERS].rstrip()


def _srcset(text: str) -> Iterator[Item]:
    for found in _CANDIDATE.finditer(text):
        if found[1]:
            yield "e", found[1].rstrip(",")


_READERS: dict[str, _Reader] = {
    "a": _anchor,
    "area": _anchor,
    "audio": _media,
    "base": _base,
    "bgsound": _media,
    "body": _background,
    "embed": _media,
    "frame": _frame,
    "iframe": _frame,
    "image": _graphic,
    "img": _media,
    "input": _input,
    "link": _link,
    "meta": _meta,
    "object": _object,
    "script": _script,
    "source": _media,
    "style": _style,
    "table": _background,
    "tbody": _background,
    "td": _background,
    "tfoot": _background,
    "th": _background,
    "thead": _background,
    "title": _title,
    "tr": _background,
    "track": _media,
    "use": _graphic,
    "video": _media,
}
