"""Bytes of lists and sitemaps to text: gzip within bounds, byte order marks, encodings."""

from __future__ import annotations

import codecs
import re
import zlib

_PIECE_BYTES = 16 * 1024
#: bgzip writes a member for each 64 KiB; a file of nothing but empty members would never end.
_MOST_MEMBERS = 100_000
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_DECLARED = re.compile(rb"""\s*+<\?xml[^>]*?encoding\s*+=\s*+["']([A-Za-z0-9._:-]{1,40})["']""")
#: Python's codecs that only map characters; some of its others unpack, or take quadratic time.
_MAPPING = (
    "cp949", "euc", "big5", "gb", "shift_jis", "iso", "cp12", "cp8", "koi8", "johab", "mac", "tis",
    "ascii", "latin",
)  # fmt: skip


def is_gzip(data: bytes) -> bool:
    return data[:2] == b"\x1f\x8b"


def gunzip(packed: bytes, *, limit_bytes: int) -> tuple[bytes, str]:
    """All members, at most `limit_bytes`, and what is wrong with them (empty: nothing).

    What cannot be read whole is given as far as it goes.
    """
    parts: list[bytes] = []
    room = limit_bytes + 1
    at = members = 0
    while is_gzip(packed[at : at + 2]):
        members += 1
        stream = zlib.decompressobj(wbits=31)
        try:
            while not stream.eof and room > 0 and at < len(packed):
                piece = packed[at : at + _PIECE_BYTES]
                part = stream.decompress(piece, room)
                at += len(piece) - len(stream.unused_data)
                room -= len(part)
                parts.append(part)
        except zlib.error:
            return b"".join(parts), "the gzip data is damaged"
        if room <= 0 or members > _MOST_MEMBERS:
            said = f"more than {limit_bytes >> 20} MiB unpacked; the rest is left out"
            return b"".join(parts)[:limit_bytes], said
        if not stream.eof:
            return b"".join(parts), "the gzip data ends too early"
    return b"".join(parts), ""


def xml_in_utf8(body: bytes) -> bytes:
    """An XML or text document in UTF-8 without mark. What is no UTF-8 stays as it is."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            body = body[len(mark) :]
            return body if name == "utf-8" else _again(body, name)
    for start, name in ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be")):
        if body.startswith(start):
            return _again(body, name)
    declared = _DECLARED.match(body, 0, 1024)
    if declared is None:
        return body
    try:
        name = codecs.lookup(declared[1].decode()).name
    except LookupError:
        return body
    if name == "euc_kr":
        name = "cp949"  # browsers read it so, and Korean servers write it so
    return _again(body, name) if name.startswith(_MAPPING) else body


def _again(body: bytes, name: str) -> bytes:
    return body.decode(name, "replace").encode("utf-8", "replace")


def list_lines(data: bytes) -> list[str | None]:
    """The lines of a list in UTF-8 (with or without mark), UTF-16 with mark, or CP949 (EUC-KR).

    None is a line that is neither UTF-8 nor CP949 in a file that is neither as a whole.
    """
    for mark, name in _BOMS:
        if data.startswith(mark) and name != "utf-8":
            return text_lines(data[len(mark) :].decode(name, "replace"))
    data = data.removeprefix(codecs.BOM_UTF8)
    for name in ("utf-8", "cp949"):
        try:
            return text_lines(data.decode(name))
        except UnicodeDecodeError:
            pass
    return [_line(raw) for raw in re.split(rb"\r\n?|\n", data)]


def text_lines(text: str) -> list[str | None]:
    """Lines end with LF, CR LF or CR, and nothing else: labels may hold any other character."""
    return list(re.split(r"\r\n?|\n", text))


def _line(raw: bytes) -> str | None:
    for name in ("utf-8", "cp949"):
        try:
            return raw.decode(name)
        except UnicodeDecodeError:
            pass
    return None
