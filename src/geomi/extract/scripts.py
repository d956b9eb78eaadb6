"""URLs in script text: string literals in the few constructs that send a visitor elsewhere.

And, where that is asked for, any literal that is written like an address.
"""

from __future__ import annotations

import re

from geomi.extract.charset import mend

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

#: Comments, regular expressions (where one may begin) and templates are passed over, so that their
#: quotes open nothing. A string that its line does not close is passed over up to there.
_TOKEN = re.compile(
    r"//[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
    r"|(?<=[(,=:\[!&|?{};\n])/(?:[^/\\\[\n\r]|\\[^\n\r]|\[(?:[^\]\\\n\r]|\\[^\n\r])*+\]?+)++/?+"
    r"|`(?:[^`\\]|\\[\s\S])*+(?:`|\\?\Z)"
    r"""|(\+\s*+)?+(?:"((?:[^"\\\n\r]|\\[^\n\r])*+)"?+|'((?:[^'\\\n\r]|\\[^\n\r])*+)'?+)"""
    r"(\s*+\+)?+"
)
#: A path from the root, or a whole address. What is relative would be relative to an unknown page.
_ADDRESS = re.compile(
    r"(?:https?:)?//[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]+)?(?:[/?][^\s<>\"'`{}|\\^]*)?"
    r"|/(?=[^?#]*[^\W\d_])[\w%.~@,;:!=&()+\-]+(?:/[\w%.~@,;:!=&()+\-]*)*(?:\?[^\s<>\"'`{}|\\^]*)?"
)
_LONGEST_ADDRESS = 500
#: Written like addresses, but names: of namespaces, schemas and the like.
_NAMES_ONLY = re.compile(r"https?://(?:www\.w3\.org|schema\.org|json-schema\.org|ns\.adobe\.com)/")


def links(text: str) -> list[str]:
    """The URLs as written, in order. Cautious: what is computed is left alone."""
    if "location" not in text and "open" not in text:
        return []
    found = [*_ASSIGNED.finditer(text), *_CALLED.finditer(text)]
    found.sort(key=re.Match.start)
    return [unescape(match[1] or match[2] or "") for match in found]


def addresses(text: str) -> list[str]:
    """String literals that look like a path from the root or like a whole URL, each once.

    Parts of a sum are left alone, and so are relative paths: a script does not know its page.
    """
    found: dict[str, None] = {}
    for token in _TOKEN.finditer(text):
        literal = token[2] or token[3]
        if not literal or token[1] or token[4] or len(literal) > _LONGEST_ADDRESS:
            continue
        if "/" in literal:
            literal = unescape(literal)
            if _ADDRESS.fullmatch(literal) and not _NAMES_ONLY.match(literal):
                found[literal] = None
    return list(found)


def unescape(literal: str) -> str:
    """A JavaScript string literal's inside as the string it stands for."""
    return mend(_ESCAPE.sub(_character, literal)) if "\\" in literal else literal


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        return chr(int(code, 16))
    return _CONTROLS.get(found[4], found[4])
