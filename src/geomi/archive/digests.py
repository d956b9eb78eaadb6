"""Digests as headers name them, compared by algorithm, in Base32 or hexadecimal. Decides only."""

from __future__ import annotations

from base64 import b32decode, b32encode
from binascii import Error as BinasciiError
from hashlib import new as new_hash
from hashlib import sha1
from typing import Any

from geomi.archive.names import sha1_name

HASHES = {"sha1": 20, "sha256": 32, "sha512": 64, "md5": 16}  # bytes of each


def plain_digest(text: str) -> str:
    """One spelling for digests that mean the same: `sha1:` and Base32 in capitals."""
    if len(text) == 37 and text.startswith("sha1:"):
        return text if text[5:].isupper() else "sha1:" + text[5:].upper()
    if len(text) == 32 and text.isupper() and text.isalnum():  # as index lines have it
        return "sha1:" + text
    algorithm, colon, value = text.partition(":")
    if not colon:
        algorithm, value = "sha1", text
    algorithm = algorithm.lower().replace("-", "")
    raw = _raw(value, HASHES.get(algorithm, 0))
    return f"{algorithm}:{b32encode(raw).decode().rstrip('=') if raw else value}"


def _raw(value: str, size: int) -> bytes:
    """The bytes that a digest of `size` bytes spells; empty if it spells none."""
    try:
        if size and len(value) == 2 * size:
            return bytes.fromhex(value)
        raw = b32decode(value + "=" * (-len(value) % 8), casefold=True)
    except (BinasciiError, ValueError):
        return b""
    return raw if len(raw) == size else b""


class Digest:
    """A digest that a header promises, and what the bytes give. SHA-1 is the quick case."""

    __slots__ = ("_algorithm", "_hash", "_wanted", "update")

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._hash: Any = None
        self._algorithm = "sha1"
        if not wanted:
            return
        if wanted[:5] == "sha1:":
            self._hash = sha1()
        else:
            self._algorithm = wanted.partition(":")[0].lower().replace("-", "")
            if self._algorithm in HASHES:
                self._hash = new_hash(self._algorithm)
        if self._hash is not None:
            self.update = self._hash.update

    @property
    def is_counted(self) -> bool:
        """False: there is nothing to compare with, and no bytes are wanted."""
        return self._hash is not None

    def problem(self) -> str:
        """What is wrong; empty if nothing is, or if no digest was promised."""
        wanted = self._wanted
        if not wanted:
            return ""
        if self._hash is None:
            return f"is {wanted[:80]!r}, wanted sha1, sha256, sha512 or md5"
        seen: bytes = self._hash.digest()
        if self._algorithm == "sha1" and sha1_name(seen) == wanted:
            return ""
        if _raw(wanted.partition(":")[2], len(seen)) == seen:
            return ""
        return f"does not match {wanted[:160]}"
