"""Proves a WARC file: structure, checksums, lengths, digests, headers, links of records."""

from __future__ import annotations

import os
from base64 import b32decode
from binascii import Error as BinasciiError
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import new as new_hash
from pathlib import Path
from typing import Any, BinaryIO, cast

from geomi.archive.reader import Member, members
from geomi.archive.source import opened
from geomi.errors import RemoteError

TYPES = frozenset({"warcinfo", "response", "request", "metadata", "resource", "revisit",
                   "conversion", "continuation"})  # fmt: skip
_ALWAYS = ("WARC-Type", "WARC-Record-ID", "WARC-Date")
_HASHES = frozenset({"sha1", "sha256", "sha512", "md5"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a file that is not as it must be."""

    file: str
    offset: int
    what: str  # what was seen, what was wanted

    def __str__(self) -> str:
        return f"{self.file} at {self.offset}: {self.what}"


def check_file(path: str | Path, *, expect_length: int | None = None) -> list[Problem]:
    """Every problem of the file, in order; empty if it is sound.

    With `expect_length` (what the store says is committed) the records must end exactly there and
    nothing may follow. Behind a broken record nothing can be read: that is the last problem of the
    structure. Memory: 64 KiB of a block, and about 100 bytes a record for the ids.
    """
    checker = _Checker(str(path))
    with opened(path) as (file, _):
        size = os.fstat(file.fileno()).st_size
        committed = size if expect_length is None else expect_length
        part = _First(file, committed, name=str(path))
        checker.run(cast(BinaryIO, part), committed)
    if size < committed:
        checker.add(size, f"file ends, wanted {committed} committed bytes")
    elif size > committed:
        checker.add(committed, f"{size - committed} bytes behind the committed length")
    return checker.problems


class _First:
    """The first bytes of a file, as a file."""

    def __init__(self, file: BinaryIO, size: int, *, name: str) -> None:
        self._file = file
        self._left = size
        self.name = name

    def read(self, most: int) -> bytes:
        got = self._file.read(min(most, self._left))
        self._left -= len(got)
        return got


class _Checker:
    def __init__(self, file: str) -> None:
        self._file = file
        self.problems: list[Problem] = []
        self._ids: set[int] = set()  # hashes of the record ids seen
        self._requests: dict[int, int] = {}  # id of an unlinked request -> its offset
        self._named: dict[int, int] = {}  # id named by Concurrent-To -> offset of who names it

    def add(self, offset: int, what: str) -> None:
        self.problems.append(Problem(file=self._file, offset=offset, what=what))

    def run(self, file: BinaryIO, committed: int) -> None:
        count = 0
        try:
            for member in members(file):
                if not count and member.type != "warcinfo":
                    self.add(0, f"first record is {member.type!r}, wanted 'warcinfo'")
                count += 1
                self._record(member)
        except RemoteError as error:
            where, _, what = str(error).removeprefix(f"{self._file} at ").partition(": ")
            self.add(int(where) if where.isdigit() else 0, what or str(error))
            return  # links may point behind the break
        if not count and committed:
            self.add(0, f"no record in {committed} bytes")
        for named, offset in self._named.items():
            self._requests.pop(named, None)
            if named not in self._ids:
                self.add(offset, "WARC-Concurrent-To names a record that is not in the file")
        for offset in self._requests.values():
            self.add(offset, "request has no WARC-Concurrent-To, and no record names it")

    def _record(self, member: Member) -> None:
        for what in _header_problems(member):
            self.add(member.offset, what)
        record_id = hash(member.record_id)
        if record_id in self._ids:
            self.add(member.offset, f"WARC-Record-ID {member.record_id} occurs twice")
        self._ids.add(record_id)
        links = member.headers.get_all("WARC-Concurrent-To")
        for link in links:
            self._named.setdefault(hash(link.strip("<>")), member.offset)
        if member.type == "request" and not links:
            self._requests[record_id] = member.offset
        for what in _digest_problems(member):
            self.add(member.offset, what)
        _ = member.length  # the end of the record, its checksum


def _header_problems(member: Member) -> Iterator[str]:
    headers = member.headers
    for name in _ALWAYS:
        if not headers.get(name):
            yield f"no {name}"
    kind = member.type
    if kind and kind not in TYPES:
        yield f"WARC-Type is {kind[:40]!r}, wanted one of {', '.join(sorted(TYPES))}"
    if kind not in ("warcinfo", "metadata") and kind in TYPES and not member.target_uri:
        yield "no WARC-Target-URI"
    if kind == "revisit":
        wanted = ["WARC-Profile"]
        if "/1.1/" in headers.get("WARC-Profile"):  # the old profiles ask for less
            wanted += ["WARC-Payload-Digest", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date"]
        yield from (f"no {name} in a revisit" for name in wanted if not headers.get(name))
    if member.content_length and not headers.get("Content-Type") and kind != "continuation":
        yield "no Content-Type"


def _digest_problems(member: Member) -> Iterator[str]:
    """Reads the block once and compares both digests."""
    block = _Digest(member.headers.get("WARC-Block-Digest"))
    wanted = member.headers.get("WARC-Payload-Digest")
    segmented = member.headers.get("WARC-Segment-Number")
    payload = _Digest("" if member.type == "revisit" or segmented else wanted)
    if "application/http" in member.headers.get("Content-Type"):
        head = member.http_head()
        block.update(head)
        if b"transfer-encoding: chunked" in head.lower():
            payload = _Digest("")  # of the payload without chunks, which this does not undo
    for chunk in member.chunks():
        block.update(chunk)
        payload.update(chunk)
    for name, digest in (("block", block), ("payload", payload)):
        if what := digest.problem():
            yield f"{name} digest {what}"


class _Digest:
    """A digest as a header names it, and what the bytes give."""

    def __init__(self, wanted: str) -> None:
        algorithm, _, self._value = wanted.partition(":")
        self._wanted = wanted
        self._known = algorithm.lower().replace("-", "") in _HASHES
        self._hash: Any = new_hash(algorithm.lower().replace("-", "")) if self._known else None

    def update(self, data: bytes) -> None:
        if self._hash is not None:
            self._hash.update(data)

    def problem(self) -> str:
        """What is wrong; empty if nothing is, or if no digest was promised."""
        if not self._wanted:
            return ""
        if not self._known:
            return f"is {self._wanted[:80]!r}, wanted sha1, sha256, sha512 or md5"
        seen: bytes = self._hash.digest()
        return "" if _same(seen, self._value) else f"does not match {self._wanted[:160]}"


def _same(seen: bytes, value: str) -> bool:
    if len(value) == 2 * len(seen):
        return seen.hex() == value.lower()
    try:
        return b32decode(value + "=" * (-len(value) % 8), casefold=True) == seen
    except (BinasciiError, ValueError):
        return False
