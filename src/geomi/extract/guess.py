"""What bytes tell of their encoding: a guess where there is no label, a doubt where one is wrong.

Browsers guess too (chardetng is the detector of one of them); here Korean is asked for first, since
that detector is often wrong about short Korean pages.
"""

from __future__ import annotations

import codecs
import re

from chardetng_py import EncodingDetector

from geomi.extract.labels import codec_of, encoding_of

#: More text than this makes no guess better; chardetng reads some 50 MB/s.
_GUESS_BYTES = 1 << 20
#: Where a label is doubted: so much from near the first byte that is not ASCII. (1 us a page.)
_WINDOW_BYTES = 4096
_MORE_BYTES = 1024
_WORDS = re.compile(rb"(?:[\x81-\xfe][\x41-\xfe])++")
#: Korean puts blanks between words, Chinese and Japanese do not.
_LETTERS_A_WORD = 6
_LETTERS_A_SPOILT_WORD = 3
#: One of so many letters in UTF-8 may be broken: boards cut titles at a byte, not a character.
_LETTERS_A_FAULT = 4
#: A syllable that EUC-KR lacks, as KS X 1001 spells it: a filler and three jamo.
_SPELT = re.compile(rb"\xa4\xd4(?:\xa4[\xa1-\xd4]){3}")
_HAN_TLDS = frozenset({"cn", "tw", "hk", "mo", "sg", "jp"})
#: What announces KS X 1001 in ISO-2022-KR; a browser has no use for that encoding and detects none.
ISO_2022_KR = b"\x1b$)C"
#: Labels whose bytes can be anything, or are judged by their byte order mark.
_UNDOUBTED = frozenset({"replacement", "utf-16le", "utf-16be", "x-user-defined", "iso-2022-jp"})


def guess(body: bytes, *, tld: str = "") -> str:
    """What the bytes look like: UTF-8 or Korean if they are that, else as chardetng says."""
    part = body[:_GUESS_BYTES]
    if b"\x1b" not in part:
        if is_utf8(part):
            return "utf-8"
    elif ISO_2022_KR in part and b"\x0e" in part:
        return "replacement"
    if tld not in _HAN_TLDS and _is_hangul(part):
        return "euc-kr"
    detector = EncodingDetector()
    detector.feed(part, last=len(part) == len(body))
    hint = tld.encode("ascii", "ignore") if tld.isascii() and tld.islower() else None
    return encoding_of(detector.guess(tld=hint, allow_utf8=True)) or "windows-1252"


def doubted(body: bytes, named: str, *, tld: str = "") -> str:
    """The encoding a label names, or what the bytes are where they cannot be that.

    A label that is possible is obeyed, as browsers do, however unlikely it is. Only two cases
    differ: named UTF-8, but broken as such and clearly Korean in EUC-KR; named otherwise, broken
    as such, and flawless UTF-8.
    """
    if body.isascii() or named in _UNDOUBTED:
        return named
    start = 0
    while body[start : start + _WINDOW_BYTES].isascii():
        start += _WINDOW_BYTES
    window = body[start : start + _WINDOW_BYTES + _MORE_BYTES]
    looks_utf8 = True
    try:
        window.decode()
    except UnicodeDecodeError as error:
        looks_utf8 = error.start > len(window) - 4  # a character is cut at its end
    if named == "utf-8":
        if looks_utf8:
            return named
        if tld not in _HAN_TLDS and guess(body, tld=tld) == "euc-kr":
            return "euc-kr"
    elif looks_utf8 and is_strict(body, "utf-8", is_part=True) and not is_strict(body, named):
        return "utf-8"
    return named


def is_utf8(part: bytes) -> bool:
    """True of UTF-8 whose end may be cut off, and of long text with very few faults."""
    if is_strict(part, "utf-8", is_part=True):
        return True
    text = part.decode("utf-8", "replace")
    faults = text.count("�")
    letters = len(text) - len(text.encode("ascii", "ignore")) - faults
    return faults * _LETTERS_A_FAULT <= letters


def is_strict(data: bytes, charset: str, *, is_part: bool = False) -> bool:
    """True if no byte is invalid in the encoding; a character cut off at the end is, if whole."""
    try:
        codecs.getincrementaldecoder(codec_of(charset))().decode(data, final=not is_part)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _is_hangul(part: bytes) -> bool:
    """True if the bytes are code page 949, nearly all of it common syllables, with few faults.

    chardetng takes one short Korean page in eighty for Japanese or Chinese, and far more where rare
    syllables are spelt as jamo, unless the host ends in .kr. In the encodings of those languages a
    third and more of the lead bytes are outside this range, and words do not end.
    """
    faults = 0
    if not is_strict(part, "euc-kr", is_part=True):
        text = part.decode("cp949", "replace")
        faults = text.count("�")
        part = text.replace("�", " ").encode("cp949", "replace")
    words = _WORDS.findall(_SPELT.sub(b"\xb0\xa1", part))
    leads = [lead for word in words for lead in word[::2] if not 0xA1 <= lead <= 0xA3]
    syllables = sum(0xB0 <= lead <= 0xC8 for lead in leads)
    # A byte lost spoils the rest of its word, which then pairs up wrongly. Chinese read as Korean
    # has many faults, not one or two.
    return (
        syllables >= max(4, 0.9 * len(leads) - _LETTERS_A_SPOILT_WORD * faults)
        and len(leads) <= _LETTERS_A_WORD * len(words)
        and faults <= 1 + len(leads) // 100
    )
