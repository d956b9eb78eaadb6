"""What records are called and stamped with: ids, dates, digests, header values."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha1
from time import gmtime
from urllib.parse import quote

from geomi.errors import InternalError

#: Digest of no bytes at all.
EMPTY_DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


class Ids:
    """Record ids of one incarnation: 10 random bytes and a counter, as UUIDs of version 8.

    Unique as long as the prefix is; the same prefix gives the same ids in the same order.
    """

    __slots__ = ("_count", "_prefix")

    def __init__(self, prefix: bytes) -> None:
        if len(prefix) != 10:
            raise InternalError(f"record id prefix: {len(prefix)} bytes, wanted 10")
        raw = bytearray(prefix)
        raw[6] = raw[6] & 0x0F | 0x80  # version 8 (RFC 9562: made as we like)
        raw[8] = raw[8] & 0x3F | 0x80  # variant
        h = raw.hex()
        self._prefix = f"urn:uuid:{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-"
        self._count = 0

    def next(self) -> str:
        """A new id, without angle brackets."""
        self._count += 1
        return f"{self._prefix}{self._count:012x}"


def warc_date(t: float) -> str:
    """UTC with milliseconds, as Browsertrix and Heritrix write; warcio and pywb read it."""
    seconds, ms = divmod(round(t * 1000), 1000)
    return f"{_second(seconds)}.{ms:03d}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    g = gmtime(seconds)
    return f"{g[0]:04d}-{g[1]:02d}-{g[2]:02d}T{g[3]:02d}:{g[4]:02d}:{g[5]:02d}"


def date14(date: str) -> str:
    """The 14 digits CDXJ wants, from a WARC-Date; fractions are cut, as pywb does."""
    if date[4:5] + date[7:8] + date[10:11] + date[13:14] + date[16:17] == "--T::":
        made = date[:4] + date[5:7] + date[8:10] + date[11:13] + date[14:16] + date[17:19]
        if len(made) == 14 and made.isdigit():
            return made
    return "".join([c for c in date if c.isdigit()])[:14].ljust(14, "0")


def _spread_steps() -> list[tuple[int, int]]:
    """Masks of the halves that stay and that move, for 160 bits spread to 32 groups of 5."""
    steps = []
    for groups in (16, 8, 4, 2, 1):
        low = sum(((1 << 5 * groups) - 1) << 16 * groups * i for i in range(16 // groups))
        steps.append((low, low << 5 * groups))
    return steps


(_L1, _H1), (_L2, _H2), (_L3, _H3), (_L4, _H4), (_L5, _H5) = _spread_steps()
_B32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".ljust(256, b"\0")


def sha1_name(digest: bytes) -> str:
    """`sha1:` and Base32 of a raw digest; 0.6 us (base64.b32encode: 1.7), four times a page."""
    x = int.from_bytes(digest, "big")
    x = (x & _L1) | (x & _H1) << 48
    x = (x & _L2) | (x & _H2) << 24
    x = (x & _L3) | (x & _H3) << 12
    x = (x & _L4) | (x & _H4) << 6
    x = (x & _L5) | (x & _H5) << 3
    return "sha1:" + x.to_bytes(32, "big").translate(_B32).decode()


def sha1_b32(data: bytes | bytearray) -> str:
    """The digest of `data` as WARC headers carry it."""
    return sha1_name(sha1(data).digest())


def header_uri(url: str) -> str:
    """The URL as a header value: canonical ones pass as they are, the rest is escaped."""
    if url.isprintable() and " " not in url:
        return url
    return "".join(c if c.isprintable() and c != " " else quote(c, errors="replace") for c in url)


def header_line(text: str) -> str:
    """Free text as one header line: control characters become spaces."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
