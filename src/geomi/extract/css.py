"""URLs in style sheets: url(...) and @import."""

from __future__ import annotations

import re

#: A string, or a bad one: that ends before the end of its line, as the CSS standard has it. (So
#: that every quote is passed once, however many escaped ones follow it.)
_STRING = (
    r""""(?:[^"\\\n]|\\[\s\S])*+(?:"|\\?\Z|(?=\n))|"""
    r"""'(?:[^'\\\n]|\\[\s\S])*+(?:'|\\?\Z|(?=\n))"""
)
_BARE = r"(?:[^\s\"'()\\]++|\\(?:[0-9a-fA-F]{1,6}\s?+|[^\n]))*+"
_TOKEN = re.compile(
    rf"/\*[\s\S]*?(?:\*/|\Z)"
    rf"|@namespace\b[^;{{]*+"
    rf"|@import\s*+(?P<import>{_STRING})"
    rf"|(?<![\w-])url\(\s*+(?:(?P<quoted>{_STRING})|(?P<bare>{_BARE}))\s*+\)"
    rf"|{_STRING}",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|\s)?|\r\n|([\s\S]))")


def links(text: str) -> list[str]:
    """The URLs of a style sheet or a style attribute as written, in order."""
    if "(" not in text and "@" not in text:
        return []
    urls = []
    for found in _TOKEN.finditer(text):
        quoted = found["import"] or found["quoted"]
        if quoted:
            url = quoted[1:-1] if len(quoted) > 1 and quoted[0] == quoted[-1] else ""
        else:
            url = found["bare"]
        if url:
            urls.append(_ESCAPE.sub(_character, url) if "\\" in url else url)
    return urls


def _character(found: re.Match[str]) -> str:
    if found[1]:
        code = int(found[1], 16)
        return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "�"
    return (found[2] or "").replace("\n", "")  # a backslash before a line end joins the lines
