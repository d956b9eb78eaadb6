"""Proves WARC files: structure, checksums, lengths, digests, headers, what records refer to.

Files that are checked together are one archive: a revisit may refer from one to another. Memory: a
block's 256 KiB, some 40 MiB for what is compared at the end (more of it goes to a temporary file),
and a name for each file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import BinaryIO, cast

from geomi.archive.chunked import Dechunked
from geomi.archive.digests import Digest, plain_digest
from geomi.archive.indexed import Indexed
from geomi.archive.links import Links
from geomi.archive.names import sha1_name
from geomi.archive.quick import Quick, records, slow
from geomi.archive.reader import Headers, Member
from geomi.archive.sight import accepted
from geomi.archive.source import Broken, opened

TYPES = frozenset({"warcinfo", "response", "request", "metadata", "resource", "revisit",
                   "conversion", "continuation"})  # fmt: skip
_ORIGINALS = frozenset({"response", "resource"})
_WITHOUT_URI = frozenset({"warcinfo", "metadata", "continuation"})
_INDEXED = frozenset({"response", "revisit", "resource", "metadata", "conversion"})
_CAPTURES = frozenset({"response", "revisit"})
_SPILL_EVERY = 256  # records
_TOTAL_MAX = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a file that is not as it must be."""

    file: str
    offset: int
    what: str  # what was seen, what was wanted

    def __str__(self) -> str:
        return f"{self.file} at {self.offset}: {self.what}"


#: (bytes of the archive that were read, the file): called every some hundred records.
Tell = Callable[[int, str], None]


def check_file(
    path: str | Path, *, expect_length: int | None = None, strict: bool = True
) -> list[Problem]:
    """Every problem of one file; empty if it is sound. What its revisits refer to is not asked.

    With `expect_length` (what the store says is committed) the records must end exactly there and
    nothing may follow. Behind a broken record nothing can be read: that is the last problem of the
    structure. `strict`: it also keeps what geomi promises of its own files.
    """
    problems: list[Problem] = []
    with Checking(problems.append, resolve=False) as checking, opened(path) as (file, name):
        size = os.fstat(file.fileno()).st_size
        checking.file(file, name=name, size=size, committed=expect_length, strict=strict)
        checking.finish()
    return problems


class Checking:
    """Files checked together. Problems are added as they are found."""

    def __init__(
        self, add: Callable[[Problem], None], *, tell: Tell = lambda *_: None, resolve: bool = True
    ) -> None:
        self._add = add
        self._tell = tell
        self._resolve = resolve
        self._names: list[str] = []
        self._broken: set[int] = set()
        self._plain: set[int] = set()
        self._links = Links()
        self._index = Indexed()
        self._number = -1  # of the file under way
        self._strict = self._is_indexed = False
        self._left_out: Iterator[tuple[int, int]] = iter(())
        self._gap: tuple[int, int] | None = None
        self._uri_of: Callable[[str], str] = str
        self._recent = ("", "")  # ids of records just before: what is named there is in the file
        self._read = 0  # bytes of the files before
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> Checking:
        return self

    def __exit__(self, *_: object) -> None:
        self._links.close()
        self._index.close()

    def add(self, name: str, offset: int, what: str) -> None:
        self._add(Problem(file=name, offset=offset, what=what))

    def file(
        self,
        file: BinaryIO,
        *,
        name: str,
        size: int,
        committed: int | None = None,
        strict: bool = False,
        is_indexed: bool = False,
        left_out: Iterable[tuple[int, int]] = (),
        uri_of: Callable[[str], str] = str,
    ) -> int:
        """Every record of one file; the file's number.

        `is_indexed`: lines will be given with `index`; none are wanted for records in `left_out`
        ((offset, length), in order), and the URI in a line is `uri_of` that of the record.
        """
        self._number = len(self._names)
        self._names.append(name)
        self._strict, self._is_indexed = strict, is_indexed
        wanted = size if committed is None else committed
        part = _First(file, wanted, name=name)
        self._left_out, self._uri_of = iter(left_out), uri_of
        self._gap = next(self._left_out, None)
        self._recent = ("", "")
        self._records(cast(BinaryIO, part), wanted)
        if size < wanted:
            self._broken.add(self._number)
            self.add(name, size, f"file ends, wanted {wanted} committed bytes")
        elif size > wanted:
            self.add(name, wanted, f"{size - wanted} bytes behind the committed length")
        self._read += wanted
        self.counts["files"] += 1
        self.counts["bytes"] += wanted
        return self._number

    def index(
        self, name: str, lines: Iterable[bytes], sizes: Callable[[str], tuple[int, int] | None]
    ) -> None:
        """An index of files that were given with `is_indexed`; see Indexed.index."""
        self._index.index(name, lines, sizes, self.add)

    def finish(self) -> None:
        """What can be said once all records are known: references and index lines."""
        broken = frozenset(self._broken)

        def add(file: int, offset: int, what: str) -> None:
            if self._resolve or not what.startswith("revisit"):
                self.add(self._names[file], offset, what)

        for name, number in self._links.judge(add, broken).items():
            self.counts[f"revisits.{name}"] = number
        self.counts["index lines"] = self._index.lines
        self._index.judge(self.add, self._names.__getitem__, broken, frozenset(self._plain))

    # -- one file ----------------------------------------------------------------------------------

    def _records(self, file: BinaryIO, committed: int) -> None:
        name = self._names[self._number]
        types: Counter[str] = Counter()
        count = 0
        try:
            for one in records(file, name):
                if not count % _SPILL_EVERY:
                    self._links.spill()
                    self._index.spill()
                    offset = one[0] if isinstance(one, tuple) else one.offset
                    self._tell(self._read + offset, name)
                count += 1
                if isinstance(one, tuple):
                    if count > 1 and (kind := accepted(one)) and self._take(one, kind):
                        types[kind] += 1
                        continue
                    one = slow(one, name)
                kind = one.type
                if count == 1:
                    self._first(one)
                types[kind if kind in TYPES else "other"] += 1
                self._record(one, kind)
        except Broken as error:
            self._broken.add(self._number)
            self.add(name, error.offset, error.what)
        if not count and committed and self._number not in self._broken:
            self.add(name, 0, f"no record in {committed} bytes")
        self.counts["records"] += count
        for kind, seen in types.items():
            self.counts[f"records.{kind}"] += seen

    def _first(self, member: Member) -> None:
        if self._strict and member.type != "warcinfo":
            self.add(member.file, 0, f"first record is {member.type!r}, wanted 'warcinfo'")
        if member.is_plain:
            self._plain.add(self._number)

    def _take(self, quick: Quick, kind: str) -> bool:
        """What a sound record leaves for the end. The same as `_record` does for a Member; False:
        leave it to that."""
        offset, length, fields, *_ = quick
        digest = fields.get("WARC-Payload-Digest", "")
        if self._is_indexed and (
            (not digest and kind in _ORIGINALS)
            or (not self._strict and kind in _INDEXED and kind not in _ORIGINALS)
        ):
            return False  # an index may name it, or its digest
        number = self._number
        record_id = fields["WARC-Record-ID"][1:-1]
        if kind in _ORIGINALS:
            uri, date = fields["WARC-Target-URI"], fields["WARC-Date"]
            if uri[0] == "<":
                uri = uri[1:-1]
            self._links.original(number, offset, record_id, uri=uri, date=date, digest=digest)
            if self._is_indexed:
                self._indexed(offset, length, kind, uri=uri, date=date, digest=digest)
        else:
            self._links.record(number, offset, record_id)
        if self._strict:
            named = fields.get("WARC-Concurrent-To", "")[1:-1]
            if named:
                if named not in self._recent:
                    self._links.named(number, offset, named)
            elif kind == "request":
                self._links.lone_request(number, offset, record_id)
            if kind == "response":
                self._recent = (record_id, "")
        return True

    def _indexed(
        self, offset: int, length: int, kind: str, *, uri: str, date: str, digest: str
    ) -> None:
        """For the comparison with an index."""
        gap = self._gap
        while gap is not None and gap[0] + gap[1] <= offset:
            gap = self._gap = next(self._left_out, None)
        must = kind in _CAPTURES and not (gap is not None and gap[0] <= offset)
        self._index.record(
            self._number, offset, length, uri=self._uri_of(uri), date=date, digest=digest, must=must
        )

    def _record(self, member: Member, kind: str) -> None:
        """Everything about one record."""
        headers, offset, number = member.headers, member.offset, self._number
        get = headers.get
        record_id, date, uri = member.record_id, get("WARC-Date"), member.target_uri
        is_sound = (
            record_id and date and kind in TYPES and (uri or kind in _WITHOUT_URI)
            and (not member.content_length or get("Content-Type"))
        )  # fmt: skip
        if not is_sound:
            for what in _header_problems(member):
                self.add(member.file, offset, what)
        digest = self._digests(member, kind)
        links = self._links
        if kind == "revisit":
            self._revisit(member, record_id, digest)
        elif kind in _ORIGINALS:
            links.original(
                number, offset, record_id, uri=uri, date=date,
                digest=plain_digest(digest) if digest else "",
            )  # fmt: skip
        else:
            links.record(number, offset, record_id)
        if self._strict:
            named = headers.get_all("WARC-Concurrent-To")
            for one in named:
                links.named(number, offset, one.strip("<>"))
            if kind == "request" and not named:
                links.lone_request(number, offset, record_id)
        if get("WARC-Segment-Number") or kind == "continuation":
            self._segment(member, kind, record_id)
        length = member.length  # the end of the record, its checksum
        if not member.is_closed:
            self.add(member.file, offset, "no two line ends behind the block, wanted them")
        if self._is_indexed and uri and kind in _INDEXED:
            self._indexed(offset, length, kind, uri=uri, date=date, digest=digest)
        self._recent = (record_id, self._recent[0])

    def _revisit(self, member: Member, record_id: str, digest: str) -> None:
        headers = member.headers
        profile = headers.get("WARC-Profile").strip("<>")
        uri = headers.get("WARC-Refers-To-Target-URI").strip("<>")
        not_modified = profile.endswith("server-not-modified")
        for what in _revisit_problems(headers, profile):
            self.add(member.file, member.offset, what)
        self._links.revisit(
            self._number, member.offset, record_id,
            refers_to=headers.get("WARC-Refers-To").strip("<>"),
            uri=uri or (member.target_uri if not_modified else ""),
            date=headers.get("WARC-Refers-To-Date"),
            digest=plain_digest(digest) if digest else "",
            # Of an unchanged page many tools write the digest of the empty answer.
            must_equal=not not_modified,
        )  # fmt: skip

    def _segment(self, member: Member, kind: str, record_id: str) -> None:
        headers = member.headers
        numbers = [headers.get(name) for name in ("WARC-Segment-Number",
                                                  "WARC-Segment-Total-Length")]  # fmt: skip
        origin = headers.get("WARC-Segment-Origin-ID").strip("<>")
        first, total = (int(n) if n.isascii() and n.isdigit() and len(n) < 20 else 0
                        for n in numbers)  # fmt: skip
        if not first or total > _TOTAL_MAX or (kind == "continuation" and not origin):
            self.add(member.file, member.offset,
                     f"segment number {numbers[0][:40]!r} of {origin[:80]!r}, wanted a number and,"
                     " behind the first, WARC-Segment-Origin-ID")  # fmt: skip
            return
        self._links.segment(
            self._number, member.offset, origin or record_id, number=first,
            size=member.content_length, total=total,
        )  # fmt: skip

    def _digests(self, member: Member, kind: str) -> str:
        """Reads the block once and compares both digests; the payload's."""
        headers = member.headers
        block = Digest(headers.get("WARC-Block-Digest"))
        wanted = headers.get("WARC-Payload-Digest")
        is_part = kind == "revisit" or kind == "continuation" or headers.get("WARC-Segment-Number")
        payload = Digest("" if is_part else wanted)
        sinks = [one.update for one in (block, payload) if one.is_counted]
        own = None
        if self._is_indexed and not wanted and kind in _ORIGINALS and not is_part:
            own = sha1()  # an index names it even so
            sinks.append(own.update)
        chunked = None
        if headers.get("Content-Type").startswith(("application/http", "Application/http")):
            head = member.http_head()
            if block.is_counted:
                block.update(head)
            if payload.is_counted and b"chunked" in head.lower():
                chunked = Digest(wanted)
                sinks.append(Dechunked(chunked.update).update)
        for piece in member.pieces():
            for sink in sinks:
                sink(piece)
        if what := block.problem():
            self.add(member.file, member.offset, f"block digest {what}")
        if (what := payload.problem()) and (chunked is None or chunked.problem()):
            self.add(member.file, member.offset, f"payload digest {what}")
        return sha1_name(own.digest()) if own is not None else wanted


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


def _header_problems(member: Member) -> Iterator[str]:
    headers, kind = member.headers, member.type
    for name in ("WARC-Type", "WARC-Record-ID", "WARC-Date"):
        if not headers.get(name):
            yield f"no {name}"
    if kind and kind not in TYPES:
        yield f"WARC-Type is {kind[:40]!r}, wanted one of {', '.join(sorted(TYPES))}"
    if kind in TYPES and kind not in _WITHOUT_URI and not member.target_uri:
        yield "no WARC-Target-URI"
    if member.content_length and not headers.get("Content-Type") and kind != "continuation":
        yield "no Content-Type"


def _revisit_problems(headers: Headers, profile: str) -> Iterator[str]:
    if not profile:
        yield "no WARC-Profile in a revisit"
    if "/1.1/" in profile:  # the old profiles ask for less
        for name in ("WARC-Payload-Digest", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date"):
            if not headers.get(name):
                yield f"no {name} in a revisit"
