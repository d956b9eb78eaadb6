"""Tells pages that are empty until scripts have run. geomi does not render; it counts them."""

from __future__ import annotations

import re

from geomi.records import Page

#: So much visible text is nearly nothing: "Loading ...", a name, a line of copyright.
_NEARLY_NOTHING_BYTES = 200
#: A longer document is looked at so far; shells are short, only what they carry for scripts is not.
_READ_BYTES = 2 << 20

_SCRIPT = re.compile(rb"<[sS][cC][rR][iI][pP][tT][ \t\n\r\f/>]")
#: Where frameworks put the page: an empty element with one of their ids, or an empty one of their
#: own elements. Or what stands there for those without scripts.
_SIGN = re.compile(
    rb"""<[a-z]++\s[^>]*?\bid\s*+=\s*+["']?(?:app|root|__next|__nuxt|___gatsby|q-app|react-root|"""
    rb"""app-root|vue-app|reactroot|svelte|mount|spa|app-container|root-container)["'\s>]"""
    rb"|<([a-z]++(?:-[a-z0-9]++)++)[^>]*+>\s*+</\1"
    rb"|<noscript[^>]*+>(?:(?!</noscript)[\s\S]){0,1000}?"
    rb"(?:javascript|\xec\x8a\xa4\xed\x81\xac\xeb\xa6\xbd\xed\x8a\xb8|\xbd\xba\xc5\xa9\xb8\xb3\xc6\xae)",
    re.IGNORECASE,
)
_UNSEEN = re.compile(
    rb"<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)|"
    + b"|".join(
        b"<%s(?=[\\s/>])[^<]*+(?:<(?!/%s)[^<]*+)*+(?:</%s[^>]*+>?+|\\Z)" % (name, name, name)
        for name in (b"script", b"style", b"noscript", b"title", b"template", b"svg")
    )
    + rb"|<[^>]*+(?:>|\Z)",
    re.IGNORECASE,
)


def is_script_only(body: bytes, page: Page) -> bool:
    """True of HTML with scripts, hardly any visible text, and a sign that scripts would make it.

    Ask only for pages that lead nowhere: any link of kind a or f says enough, and is False here.
    """
    if any(kind in "af" for kind, _ in page.links):
        return False
    body = body[:_READ_BYTES]
    if not _SCRIPT.search(body) or not _SIGN.search(body):
        return False
    return len(b" ".join(_UNSEEN.sub(b" ", body).split())) <= _NEARLY_NOTHING_BYTES
