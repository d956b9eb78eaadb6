"""One content under many names: sessions, tracking, order of parameters, encodings of queries."""

from __future__ import annotations

import re
from html import escape
from itertools import permutations
from urllib.parse import quote

from geomi.world.corners import Asked, Corner, Found, document, html_type, page

_ITEMS = 4
_QUERY_SESSION = re.compile(r"&?PHPSESSID=([0-9a-f]{32})")
_PATH_SESSION = re.compile(r";jsessionid=([0-9a-f]{32})")
_ASP_SESSION = re.compile(r"\(S\(([0-9a-f]{24})\)\)/")


def _session(asked: Asked) -> Found | None:
    """The session is in the query; who comes without one gets one."""
    known = _QUERY_SESSION.search(asked.rest)
    plain = _QUERY_SESSION.sub("", asked.rest).rstrip("?").replace("?&", "?")
    names = [f"item.php?no={k}" for k in range(_ITEMS)]
    if plain not in ("", *names):
        return None
    key = known[1] if known else asked.key("session", plain)
    targets = [f"{asked.folder}{name}&PHPSESSID={key}" for name in names]
    return page(asked, f"session {plain}", targets, original=asked.folder + plain)


def _pathsession(asked: Asked) -> Found | None:
    """The session is in the path, as Java and ASP.NET write it."""
    java, asp = _PATH_SESSION.search(asked.rest), _ASP_SESSION.match(asked.rest)
    plain = _ASP_SESSION.sub("", _PATH_SESSION.sub("", asked.rest))
    does = [f"item{k}.do" for k in range(_ITEMS)]
    pages = [f"item{k}.aspx" for k in range(_ITEMS)]
    if plain not in ("", *does, *pages):
        return None
    key = java[1] if java else asp[1] if asp else asked.key("session", plain)
    targets: list[str] = []
    if not plain or java or plain in does:
        targets += [f"{asked.folder}{name};jsessionid={key:0>32}" for name in does]
    if not plain or asp or plain in pages:
        targets += [f"{asked.folder}(S({key[:24]}))/{name}" for name in pages]
    return page(asked, f"path session {plain}", targets, original=asked.folder + plain)


_TRACKS = (
    "utm_source=letter&utm_medium=mail&utm_campaign=s1", "fbclid=IwAR0x", "gclid=Cj0K",
    "utm_source=feed", "ref=main", "_ga=1.2.3",
)  # fmt: skip


def _tracking(asked: Asked) -> Found | None:
    """Parameters that change nothing: equal bytes."""
    names = [f"story-{k}.html" for k in range(_ITEMS)]
    if not asked.rest:
        tracked = [f"{asked.folder}{name}?{track}" for name in names for track in _TRACKS]
        return page(asked, "stories", [*(asked.folder + name for name in names), *tracked])
    path, mark, query = asked.rest.partition("?")
    if path not in names or (mark and query not in _TRACKS):
        return None
    return page(asked, path, ["/"], original=asked.folder + path)


def _order(asked: Asked) -> Found | None:
    """Parameters in any order: equal bytes."""
    pairs = ("area=3", "kind=old", "page=1")
    if not asked.rest:
        orders = [f"{asked.folder}list?{'&'.join(order)}" for order in permutations(pairs)]
        return page(asked, "lists", [*orders, f"{asked.folder}list?{'&'.join(pairs)}&empty="])
    path, _, query = asked.rest.partition("?")
    said = sorted(pair for pair in query.split("&") if pair != "empty=")
    if path != "list" or said != sorted(pairs):
        return None
    return page(asked, "list", ["/"], original=f"{asked.folder}list?{'&'.join(pairs)}")


#: What is asked for on Korean pages: a common word, syllables and a letter that EUC-KR has only
#: as code page 949, hanja, something no Korean charset has, and an ASCII mix.
_WORDS_KO = ("한글", "거미 그물", "똠방각하", "大韓民國", "거미🕷", "a+b&c=강")
_WORDS_EN = ("café", "naïve 100%", "smile🙂")


def _search(asked: Asked) -> Found | None:
    """Raw words in queries: whoever encodes them like a browser finds the page, others a 404."""
    charset = asked.charset
    words = _WORDS_KO if asked.korean else _WORDS_EN
    if not charset.asks:
        return page(asked, "search", []) if not asked.rest else None
    # The ampersand of the ASCII mix separates parameters, as it does in a browser.
    right = {f"?q={charset.query(word)}": word for word in words}
    if not asked.rest:
        lines = [
            f'<p>{word}에 대한 소식 <a href="{asked.folder}?q={escape(word)}">{word}</a>\n'
            if asked.korean
            else f'<p>news on {word} <a href="{asked.folder}?q={escape(word)}">{word}</a>\n'
            for word in words
        ]
        body = "".join(_NOT_IN_EUC_KR.sub(_reference, line) for line in lines)
        return Found(
            headers=(html_type(charset),),
            body=document(charset, "search", body),
            links=tuple(("a", asked.folder + query) for query in right),
        )
    if asked.rest in right:
        title = escape(_NOT_IN_EUC_KR.sub("", right[asked.rest]))
        return page(asked, f"found {title}", ["/"])
    if asked.rest.startswith("?q="):
        return Found(
            status=404, headers=(("Content-Type", "text/plain"), ("X-World", "wrong encoding")),
            body=b"wrong encoding " + quote(asked.rest).encode(),
        )  # fmt: skip
    return None


#: Python's EUC-KR spells these syllables as jamo, which no browser reads back.
_NOT_IN_EUC_KR = re.compile("[똠🕷🙂]")


def _reference(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


CORNERS: tuple[Corner, ...] = (
    Corner(name="session", find=_session),
    Corner(name="pathsession", find=_pathsession),
    Corner(name="tracking", find=_tracking),
    Corner(name="order", find=_order),
    Corner(name="search", find=_search),
)
