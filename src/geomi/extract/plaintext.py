"""Title and text of an HTML document as a reader sees them, for packages. Decides only.

Linear in the length of the document: what is looked at is never given back.
"""

from __future__ import annotations

import re
from html import unescape

from geomi.extract.charset import decode, sniff_bom, sniff_html
from geomi.extract.head import charset_of, parse_head
from geomi.extract.unpack import unpack

#: Of a longer document the beginning counts, and of a longer text too.
MOST_BYTES = 1 << 20
TEXT_MOST, TITLE_MOST = 100_000, 500
_TITLE = re.compile(r"<title(?:\s[^>]*+)?>([^<]*+)", re.IGNORECASE)
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|noscript|template|title|svg|textarea|select|iframe)(?=[\s/>]).*?"
    r"(?:</\1(?=[\s/>])[^>]*+>?+|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"<[/!?]?[a-zA-Z!?/][^>]*+(?:>|\Z)")
_SPACE = re.compile(r"\s++")


def document_of(head: bytes, body: bytes) -> str:
    """The first part of a document, unpacked and decoded."""
    fields = parse_head(head)
    body = body[:MOST_BYTES]
    encoding = fields.get("content-encoding", "")
    if encoding and encoding != "identity":
        body = unpack(body, encoding, limit_bytes=MOST_BYTES, ratio=1000.0) or b""
    charset = sniff_bom(body) or charset_of(fields) or sniff_html(body)
    return decode(body, charset or "utf-8")


def title_of(document: str) -> str:
    """Empty if it has none."""
    found = _TITLE.search(document)
    return _plain(found[1])[:TITLE_MOST] if found else ""


def text_of(document: str) -> str:
    """Words with single spaces between them; the title is none of them."""
    return _plain(_TAG.sub(" ", _HIDDEN.sub(" ", document)))[:TEXT_MOST]


def _plain(text: str) -> str:
    return _SPACE.sub(" ", unescape(text)).strip()
