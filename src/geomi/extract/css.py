"""URLs in style sheets: url(...), @import and image-set(...)."""

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
    rf"|(?<![\w-])(?:-webkit-)?image-set\((?P<set>(?:[^()\"'{{}};]|\((?:[^()\"'{{}}]|{_STRING})*+\)"
    rf"|{_STRING})*+)"
    rf"|{_STRING}",
    re.IGNORECASE,
)
#: What an image-set holds: url(...), the types of its images, and URLs as plain strings.
_IN_SET = re.compile(
    rf"(?<![\w-])url\(\s*+(?:(?P<quoted>{_STRING})|(?P<bare>{_BARE}))\s*+\)"
    rf"|type\(\s*+(?:{_STRING})|(?P<import>{_STRING})",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|\s)?|\r\n|([\s\S]))")


def links(text: str) -> list[str]:
    """The URLs of a style sheet or a style attribute as written, in order."""
    if "(" not in text and "@" not in text:
        return []
    urls: list[str] = []
    _gather(_TOKEN, text, urls)
    return urls


def _gather(tokens: re.Pattern[str], text: str, urls: list[str]) -> None:
    for found in tokens.finditer(text):
        said = found.groupdict()
        if said.get("set"):
            _gather(_IN_SET, said["set"], urls)
            continue
        quoted = said["import"] or said["quoted"]
        if quoted:
            url = quoted[1:-1] if len(quoted) > 1 and quoted[0] == quoted[-1] else ""
        else:
            url = said["bare"]
        if url:
            urls.append(_ESCAPE.sub(_character, url) if "\\" in url else url)


def _character(found: re.Match[str]) -> str:
    if found[1]:
        code = int(found[1], 16)
        return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "�"
    return (found[2] or "").replace("\n", "")  # a backslash before a line end joins the lines
