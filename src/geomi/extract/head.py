"""The head of an HTTP answer, and what its fields say about the body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from geomi.extract.labels import encoding_of

#: Fields whose repeated lines stay lines: a comma is part of a cookie's date, and an agent named
#: in one X-Robots-Tag line says nothing about the next line.
_LINES = frozenset({"set-cookie", "x-robots-tag"})
_BLANKS = " \t\r\n\v\f\0"
_CHARSET = re.compile(r""";\s*charset\s*=\s*(?:"([^"]*+)|'([^']*+)|([^\s;,]++))""", re.IGNORECASE)
_INNER_BLANK = re.compile(r"\s")
#: Directives of X-Robots-Tag that contain a colon themselves, so no agent stands before it.
_VALUED = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview", "content-usage"}
)


@lru_cache(maxsize=2)  # one answer is looked at by several, one after the other
def parse_head(head: bytes) -> Mapping[str, str]:
    """Header fields by lower-case name; repeated ones joined with ", " (cookies with a newline).

    Takes the status line and header lines with or without the blank line. Folded lines are
    unfolded; a line that is no field is left out. Text is latin-1, byte for byte.
    """
    fields: dict[str, str] = {}
    name = ""
    first = True
    for line in head.decode("latin-1").split("\n"):
        if first:
            first = False
            continue
        if line[:1] in (" ", "\t"):
            more = line.strip(_BLANKS)
            if name and more:
                fields[name] = f"{fields[name]} {more}".strip()
            continue
        label, colon, value = line.partition(":")
        if not colon:
            if not line.strip(_BLANKS):
                break
            name = ""
            continue
        name = label.strip(_BLANKS).lower()
        value = value.strip(_BLANKS)
        if not name:
            continue
        before = fields.get(name)
        if before is None:
            fields[name] = value
        else:
            fields[name] = f"{before}\n{value}" if name in _LINES else f"{before}, {value}"
    return fields


def mime_of(head: Mapping[str, str]) -> str:
    """The media type in lower case without parameters; empty if the server named none."""
    return _content_type(head.get("content-type", ""))[0]


def charset_of(head: Mapping[str, str]) -> str:
    """The encoding the server names, by its standard name; empty if none that is known."""
    return _content_type(head.get("content-type", ""))[1]


@lru_cache(maxsize=1024)
def _content_type(value: str) -> tuple[str, str]:
    mime = value.partition(";")[0].partition(",")[0].strip(_BLANKS).lower()
    found = _CHARSET.search(value)
    label = (found[1] or found[2] or found[3] or "") if found else ""
    return mime, encoding_of(label)


#: The HTML standard's "shared declarative refresh steps"; what is quoted ends with its quote.
_REFRESH = re.compile(
    r"""[ \t\n\r\f]*+(?=[0-9.])[0-9]*+[0-9.]*+(?=[;, \t\n\r\f])[ \t\n\r\f]*+[;,]?+[ \t\n\r\f]*+"""
    r"""(?:url[ \t\n\r\f]*+=[ \t\n\r\f]*+)?+(?:"([^"]*+)|'([^']*+)|([\s\S]++))""",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"""<([^<>]*+)>((?:\s*+;\s*+[\w*!#$%&'+.^`|~-]++(?:\s*+=\s*+(?:"(?:[^"\\]|\\.)*+"|[^\s",;]++))?+)*+)"""
)
_LINK_PARAMETER = re.compile(r""";\s*+([\w*-]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s",;]++))""")


def refresh_url(value: str) -> str:
    """Where a refresh element or a Refresh field leads; empty if to the same page or nowhere."""
    found = _REFRESH.match(value)
    return (found[1] or found[2] or found[3] or "").strip(_BLANKS) if found else ""


def link_fields(value: str) -> list[tuple[str, frozenset[str]]]:
    """The URLs of a Link field as written, each with its relations in lower case (RFC 8288).

    Links whose context is another resource (anchor) are left out.
    """
    links = []
    for found in _LINK.finditer(value.encode("latin-1", "replace").decode("utf-8", "replace")):
        named: dict[str, str] = {}
        for parameter in _LINK_PARAMETER.finditer(found[2]):
            named.setdefault(parameter[1].lower(), parameter[2] or parameter[3] or "")
        if "anchor" not in named:
            links.append((found[1].strip(_BLANKS), frozenset(named.get("rel", "").lower().split())))
    return links


def robots_words(directives: str) -> frozenset[str]:
    """The words of a robots meta element, `none` spelt out."""
    words = {word.strip(_BLANKS).lower() for word in directives.split(",")} - {""}
    if "none" in words:
        words |= {"noindex", "nofollow"}
    return frozenset(words)


@lru_cache(maxsize=1024)
def robots_tag(value: str, agent: str) -> frozenset[str]:
    """The words of X-Robots-Tag that hold for everybody or for `agent` (a product token)."""
    said: list[str] = []
    # What has blanks before its colon is no agent: `unavailable_after: Sat, 25 Jun 2050 15:00:00`.
    for line in value.split("\n"):
        ours = True
        for part in line.split(","):
            name, colon, rest = part.partition(":")
            name = name.strip(_BLANKS).lower()
            if colon and name not in _VALUED and not _INNER_BLANK.search(name):
                ours = name in ("robots", "*", agent)
                part = rest
            if ours:
                said.append(part)
    return robots_words(",".join(said))
