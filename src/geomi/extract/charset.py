"""Which encoding a document is in, in the order of the WHATWG: BOM, header, meta, then a guess."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote_from_bytes

from geomi.extract import html
from geomi.extract.guess import ISO_2022_KR, guess
from geomi.extract.labels import codec_of, encoding_of

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
#: How far a meta element may name the encoding (HTML standard, "prescan a byte stream").
_PRESCAN_BYTES = 1024
#: And how far one is looked for as a browser's parser does that meets it, where bytes need it.
_HEAD_BYTES = 1 << 16

_VALUE = rb"""(?:"[^"]*+"|'[^']*+'|[^"'> \t\n\r\f][^> \t\n\r\f]*+|(?=>))"""
_REST = rb"[^>=]*+(?:=[ \t\n\r\f]*+" + _VALUE + rb"[^>=]*+)*+>"
_META = re.compile(
    rb"[^<]*+(?:<(?:!--(?:-?>|(?s:.)*?(?:--!?>|\Z))"
    rb"|(?![mM][eE][tT][aA][ \t\n\r\f/])/?+[a-zA-Z][^ \t\n\r\f/>]*+" + _REST
    + rb"|[!?/][^>]*+>|(?![a-zA-Z/!?]))[^<]*+)*+<[mM][eE][tT][aA]([ \t\n\r\f/]" + _REST + rb")"
)  # fmt: skip
_ATTRIBUTE = re.compile(
    rb"""[ \t\n\r\f/]*+(=[^ \t\n\r\f/>=]*+|[^ \t\n\r\f/>=]++)"""
    rb"""(?:[ \t\n\r\f]*+=[ \t\n\r\f]*+(?:"([^"]*+)"|'([^']*+)'|([^> \t\n\r\f]*+)))?+"""
)
_CONTENT = re.compile(
    rb"charset[ \t\n\r\f]*+=[ \t\n\r\f]*+"
    rb"""(?:"([^"]*+)"|'([^']*+)'|([^"' \t\n\r\f;][^ \t\n\r\f;]*+))""",
    re.IGNORECASE,
)
_XML = re.compile(
    rb"""(?:\x1b\$\)C)?<\?xml[ \t\n\r][^>]*?encoding[ \t\n\r]*=[ \t\n\r]*["']([^"'>]*+)["']"""
)
_CSS = re.compile(rb'@charset "([^"]*+)";')
_NOT_ASCII = re.compile(r"[^\0-\x7f]+")
#: What a URL's query leaves as it is (URL standard: special-query percent-encode set).
_QUERY_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\"#<>'")


def sniff_bom(body: bytes) -> str:
    """The encoding its byte order mark names; empty if it has none."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    return ""


def sniff_html(body: bytes, *, tld: str = "") -> str:
    """The encoding of an HTML document whose server named none and that has no BOM.

    `us-ascii` means: nothing named and nothing but ASCII, so any guess would be as good.
    """
    name = _named_inside(body[:_PRESCAN_BYTES])
    if name:
        return name
    if body.isascii() and b"\x1b" not in body:
        return "us-ascii"
    return _named_later(body[:_HEAD_BYTES]) or guess(body, tld=tld)


def sniff_xml(body: bytes) -> str:
    """The encoding an XML declaration names, else UTF-8."""
    return _plain(_xml_label(body[:_PRESCAN_BYTES])) or "utf-8"


def sniff_css(body: bytes) -> str:
    """The encoding an @charset rule names, else UTF-8."""
    found = _CSS.match(body, 0, _PRESCAN_BYTES)
    return (_plain(found[1]) if found else "") or "utf-8"


def decode(data: bytes, charset: str) -> str:
    """The text; what is not valid in the encoding becomes U+FFFD. Never raises."""
    if data.isascii() and charset not in _NOT_OVER_ASCII:
        return data.decode("ascii")
    if charset == "replacement":
        if ISO_2022_KR in data:
            return data.decode("iso2022_kr", "replace")
        return "�" if data else ""
    try:
        return data.decode(codec_of(charset), "replace")
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace")


#: Encodings in which ASCII bytes may mean something else.
_NOT_OVER_ASCII = frozenset({"utf-16le", "utf-16be", "iso-2022-jp", "replacement"})
_SHIFTED = re.compile(rb"\x0e[^\x0f]*+(?:\x0f|\Z)")


def to_utf8(body: bytes, charset: str) -> bytes | None:
    """The document in UTF-8 if its markup cannot be read byte by byte; None if it can.

    Browsers show nothing at all of a `replacement` document. One in ISO-2022-KR is read here as
    what it is. Of any other the ASCII parts are right, so its links are read, and what is shifted
    out of ASCII becomes U+FFFD.
    """
    if charset == "replacement" and ISO_2022_KR not in body:
        return _SHIFTED.sub(b"\xef\xbf\xbd", body)
    if charset in _NOT_OVER_ASCII:
        return decode(body, charset).encode("utf-8", "replace")
    return None


def charset_of_document(charset: str) -> str:
    """What the bytes that the tokenizer gets are in, for a document in this charset."""
    return "utf-8" if charset in _NOT_OVER_ASCII else charset


def query_in(text: str, charset: str) -> str:
    """A link with the non-ASCII part of its query percent-encoded in the document's charset.

    As in browsers; the path stays as it is, since it is always UTF-8. A character the charset
    lacks becomes its decimal reference, percent-encoded.
    """
    text = text.partition("#")[0]
    path, mark, query = text.partition("?")
    if not mark or query.isascii():
        return text
    codec = codec_of(charset)
    query = mend(query)
    return f"{path}?{_NOT_ASCII.sub(lambda found: _escaped(found[0], codec), query)}"


def mend(text: str) -> str:
    """Surrogates in pairs become the character they stand for, lone ones U+FFFD: as browsers do."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _escaped(text: str, codec: str) -> str:
    try:
        return quote_from_bytes(text.encode(codec), safe=_QUERY_SAFE)
    except UnicodeEncodeError:
        if len(text) > 1:
            return "".join(_escaped(character, codec) for character in text)
        return f"%26%23{ord(text)}%3B"


def _named_inside(start: bytes) -> str:
    if start.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if start.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    position = 0
    while found := _META.match(start, position):
        name = _meta_charset(found[1])
        if name:
            return name
        position = found.end()
    return _plain(_xml_label(start))


@lru_cache(maxsize=1024)
def _meta_charset(attributes: bytes) -> str:
    """What the inside of one meta element names; empty if nothing known."""
    named: dict[bytes, bytes] = {}
    for found in _ATTRIBUTE.finditer(attributes):
        named.setdefault(found[1].lower(), found[2] or found[3] or found[4] or b"")
    label = named.get(b"charset")
    if label is None and named.get(b"http-equiv", b"").lower() == b"content-type":
        content = _CONTENT.search(named.get(b"content", b""))
        label = content and (content[1] or content[2] or content[3])
    if not label:
        return ""
    return "windows-1252" if encoding_of(_text(label)) == "x-user-defined" else _plain(label)


def _named_later(start: bytes) -> str:
    """What the first meta element that names a known encoding says, wherever it stands."""
    for tag in html.each_tag(start):
        if tag[:5].lower() == b"<meta" and tag.endswith(b">"):
            name = _meta_charset(tag[5:])
            if name:
                return name
    return ""


def _xml_label(start: bytes) -> bytes:
    found = _XML.match(start)
    return found[1] if found else b""


def _plain(label: bytes) -> str:
    """A label read byte by byte cannot name UTF-16: the standard takes UTF-8 then."""
    name = encoding_of(_text(label))
    return "utf-8" if name.startswith("utf-16") else name


def _text(label: bytes) -> str:
    return label.decode("latin-1")
