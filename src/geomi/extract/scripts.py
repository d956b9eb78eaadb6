"""URLs in script text: string literals in the few constructs that send a visitor elsewhere."""

from __future__ import annotations

import re

_LITERAL = (
    r"""(?:"((?:[^"\\\n\r]|\\[^\n\r])*+)"|'((?:[^'\\\n\r]|\\[^\n\r])*+)')"""
    r"""(?!\s*+\+)"""  # the first part of a sum is no URL
)
_ASSIGNED = re.compile(rf"(?<![\w$-])location(?:\s*+\.\s*+href)?+\s*+=(?!=)\s*+{_LITERAL}")
_CALLED = re.compile(
    rf"(?<![\w$-])(?:location\s*+\.\s*+(?:replace|assign)|window\s*+\.\s*+open)\s*+\(\s*+{_LITERAL}"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,5})\}|x([0-9a-fA-F]{2})|(.))")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


def links(text: str) -> list[str]:
    """The URLs as written, in order. Cautious: what is computed is left alone."""
    if "location" not in text and "open" not in text:
        return []
    found = [*_ASSIGNED.finditer(text), *_CALLED.finditer(text)]
    found.sort(key=re.Match.start)
    return [unescape(match[1] or match[2] or "") for match in found]


def unescape(literal: str) -> str:
    """A JavaScript string literal's inside as the string it stands for."""
    return _ESCAPE.sub(_character, literal) if "\\" in literal else literal


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        return chr(int(code, 16))
    return _CONTROLS.get(found[4], found[4])
