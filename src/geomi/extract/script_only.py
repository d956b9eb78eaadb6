"""Tells pages that are empty until scripts have run. geomi does not render; it counts them."""

from __future__ import annotations

import re

from geomi.records import Page

#: So much visible text is nearly nothing: "Loading ...", a name, a line of copyright.
_NEARLY_NOTHING_BYTES = 200
#: A longer document is looked at so far; shells are short, only what they carry for scripts is not.
_READ_BYTES = 1 << 20

_SCRIPT = re.compile(rb"<[sS][cC][rR][iI][pP][tT][ \t\n\r\f/>]")
#: Where frameworks put the page: an element with one of their ids, or an empty one of their own.
#: (Each begins with letters that are searched for without a step for every tag: 184 us before, 40
#: now, for 36 KB without a link.)
_MOUNT = re.compile(
    rb"""id(?<=[\s"']id)\s?=\s?["']?(?:app|root|__next|__nuxt|___gatsby|q-app|react-root|app-root|"""
    rb"""vue-app|reactroot|svelte|mount|spa|app-container|root-container)["'\s>]"""
)
_OWN_END = re.compile(rb"</([a-zA-Z][a-zA-Z0-9]*+-[a-zA-Z0-9-]*+)")
_LONGEST_TAG_BYTES = 300
#: What stands there for those without scripts speaks of them; Korean in UTF-8 and in EUC-KR.
_NOSCRIPT = re.compile(rb"<noscript[^<>]{0,200}+>((?:[^<]|<(?!/noscript)){0,1000}+)", re.IGNORECASE)
_SPEAKS = re.compile(
    b"javascript|" + "스크립트".encode() + b"|" + "스크립트".encode("euc-kr"), re.IGNORECASE
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
    if not _SCRIPT.search(body) or not _has_sign(body):
        return False
    return len(b" ".join(_UNSEEN.sub(b" ", body).split())) <= _NEARLY_NOTHING_BYTES


def _has_sign(body: bytes) -> bool:
    if _MOUNT.search(body):
        return True
    for found in _OWN_END.finditer(body):
        before = body[max(0, found.start() - _LONGEST_TAG_BYTES) : found.start()].rstrip()
        tag = before[before.rfind(b"<") :].lower()
        if before.endswith(b">") and tag.startswith(b"<" + found[1].lower()):
            return True
    return any(_SPEAKS.search(found[1]) for found in _NOSCRIPT.finditer(body))
