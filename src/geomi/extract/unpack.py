"""Content-encoding that nobody asked for, undone within limits."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import Any

from isal import isal_zlib

#: A small body may grow to this whatever its ratio: a page of blanks is no bomb yet.
_ALLOWED_BYTES = 1 << 20
#: More layers than this is an attack or a mistake.
_MAX_LAYERS = 3
_GZIP = 31
_ZLIB = 15
_RAW = -15
_BROKEN: tuple[Any, ...] = (isal_zlib.IsalError, zlib.error, ValueError)


def unpack(body: bytes, encoding: str, *, limit_bytes: int, ratio: float) -> bytes | None:
    """The body without its content-encoding, cut at `limit_bytes`.

    None if it cannot be undone, or grows to more than `ratio` times itself (and over 1 MiB). What
    ends too early is returned as far as it goes. A body that is no gzip although the server says
    so is returned as it is, which is what servers that lie so mean.
    """
    names = [name.strip().lower() for name in encoding.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > _MAX_LAYERS:
        return None
    for name in reversed(names):
        allowed = int(max(_ALLOWED_BYTES, len(body) * ratio))
        unpacked = _one(body, name, min(limit_bytes, allowed) + 1)
        if unpacked is None or len(unpacked) > allowed:
            return None
        body = unpacked[:limit_bytes]
    return body


def _one(body: bytes, name: str, room: int) -> bytes | None:
    """One layer off, at most `room` bytes of it."""
    if name in ("gzip", "x-gzip"):
        if body[:2] != b"\x1f\x8b":
            return body if body.lstrip()[:1] == b"<" else None
        return _inflate(body, _GZIP, room)
    if name == "deflate":  # a zlib stream by the standard, a raw one by some servers
        unpacked = _inflate(body, _ZLIB, room)
        return _inflate(body, _RAW, room) if unpacked is None else unpacked
    if name == "br":
        return _brotli(body, room)
    return None


def _inflate(body: bytes, window_bits: int, room: int) -> bytes | None:
    """All members one after another. None if the first gives nothing but an error."""
    parts: list[bytes] = []
    while room > 0:
        stream = isal_zlib.decompressobj(wbits=window_bits)
        try:
            part = stream.decompress(body, max_length=room)
        except _BROKEN:
            break
        parts.append(part)
        room -= len(part)
        body = stream.unused_data
        if not stream.eof or window_bits != _GZIP or body[:2] != b"\x1f\x8b":
            break
    return b"".join(parts) if parts else None


def _brotli(body: bytes, room: int) -> bytes | None:
    """Only where a brotli package is installed that can be stopped at a size (1.2 and later)."""
    try:
        brotli: Any = import_module("brotli")
    except ImportError:
        return None
    stream = brotli.Decompressor()
    if not hasattr(stream, "process"):  # brotlipy, an older library of the same name
        return None
    parts: list[bytes] = []
    try:
        while room > 0:
            part = stream.process(body, output_buffer_limit=room)
            parts.append(part)
            room -= len(part)
            body = b""
            if not part or stream.is_finished():
                break
    except Exception as error:  # brotli.error, or a TypeError of a version without the limit
        if not isinstance(error, (TypeError, brotli.error)):
            raise
        return None
    return b"".join(parts)
