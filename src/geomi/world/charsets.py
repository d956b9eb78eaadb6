"""How a site writes and labels its text: one table, with what a careful reader makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote_from_bytes

#: Python's codec: the name of the WHATWG for what it writes.
_ENCODINGS: Mapping[str, str] = {
    "utf-8": "utf-8", "utf-8-sig": "utf-8", "euc_kr": "euc-kr", "cp949": "euc-kr",
    "latin-1": "windows-1252", "iso2022_kr": "replacement",
}  # fmt: skip
#: What a query leaves as it is (URL standard, special-query percent-encode set).
_QUERY_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\"#<>'")


@dataclass(frozen=True, slots=True, kw_only=True)
class CharsetKind:
    """How a site writes and labels its text. An entry may be unlabelled or tell a lie."""

    name: str
    share: float
    codec: str  # Python's name
    header: str = ""
    meta: str = ""
    korean: bool = True

    @property
    def encoding(self) -> str:
        """What the bytes really are, by the name of the WHATWG."""
        return _ENCODINGS[self.codec]

    @property
    def labelled(self) -> bool:
        return bool(self.header or self.meta) or self.codec == "utf-8-sig"

    @property
    def honest(self) -> bool:
        """True if a reader of the label finds the bytes; then paths may be written raw."""
        label = (self.header or self.meta).lower()
        if self.codec == "iso2022_kr":  # browsers do not read it, so nothing raw is safe
            return False
        return bool(label) and (label == "utf-8") == (self.codec == "utf-8")

    @property
    def asks(self) -> bool:
        """True if pages may hold raw queries whose encoding a reader can get right."""
        return self.honest or (self.korean and not self.labelled)

    def query(self, text: str) -> str:
        """Text in a query as a browser encodes it on pages of this site."""
        codec = {"euc-kr": "cp949", "windows-1252": "cp1252"}.get(self.encoding, "utf-8")
        return "".join(_escaped(character, codec) for character in text)


def _escaped(character: str, codec: str) -> str:
    try:
        return quote_from_bytes(character.encode(codec), safe=_QUERY_SAFE)
    except UnicodeEncodeError:
        return f"%26%23{ord(character)}%3B"


CHARSETS: tuple[CharsetKind, ...] = (
    CharsetKind(name="utf8-both", share=0.25, codec="utf-8", header="utf-8", meta="utf-8"),
    CharsetKind(name="utf8-header", share=0.15, codec="utf-8", header="UTF-8"),
    CharsetKind(name="utf8-meta", share=0.15, codec="utf-8", meta="utf-8"),
    CharsetKind(name="euckr-header", share=0.13, codec="euc_kr", header="EUC-KR"),
    CharsetKind(name="euckr-meta", share=0.17, codec="euc_kr", meta="euc-kr"),
    CharsetKind(name="cp949-header", share=0.07, codec="cp949", header="ks_c_5601-1987"),
    CharsetKind(name="cp949-meta", share=0.08, codec="cp949", meta="euc-kr"),
    CharsetKind(name="utf8-none", share=0.0, codec="utf-8"),
    CharsetKind(name="euckr-none", share=0.0, codec="euc_kr"),
    CharsetKind(name="cp949-none", share=0.0, codec="cp949"),
    CharsetKind(name="euckr-as-utf8", share=0.0, codec="euc_kr", header="utf-8"),
    CharsetKind(name="utf8-as-euckr", share=0.0, codec="utf-8", meta="euc-kr"),
    CharsetKind(name="utf8-bom", share=0.0, codec="utf-8-sig", header="euc-kr", meta="euc-kr"),
    CharsetKind(name="iso2022kr", share=0.0, codec="iso2022_kr", header="iso-2022-kr"),
    # Header and meta element disagree; the header is right, as the standard has it.
    CharsetKind(name="euckr-over-utf8", share=0.0, codec="cp949", header="euc-kr", meta="utf-8"),
    CharsetKind(name="utf8-over-euckr", share=0.0, codec="utf-8", header="utf-8", meta="euc-kr"),
    # The header is wrong, and the standard believes it.
    CharsetKind(
        name="euckr-under-utf8", share=0.0, codec="euc_kr", header="utf-8", meta="euc-kr"
    ),
    CharsetKind(name="en-utf8", share=0.8, codec="utf-8", header="utf-8", korean=False),
    CharsetKind(
        name="en-latin", share=0.2, codec="latin-1", meta="iso-8859-1", korean=False
    ),
    CharsetKind(name="en-none", share=0.0, codec="latin-1", korean=False),
)  # fmt: skip
