"""How records name each other: what a revisit refers to, requests, segments. Decides only.

Each record leaves a few entries of fixed length, each reference one more; sorted, those that belong
together stand together. So memory does not grow with the archive. Ids, URIs and digests are
compared by 64-bit hashes: of a thousand million records two are taken for one with a chance of 3 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from struct import Struct

from geomi.archive.sorting import Sorted

#: Adds a problem: file, offset, what.
Add = Callable[[int, int, str], None]

_MOST = (1 << 64) - 1
_LAST = -1  # no hash is, and it sorts behind every date
# Roles, in the order in which they stand within one key.
_ORIGINAL, _OTHER, _NAMED, _REQUEST, _BY_ID, _BY_DATE, _BY_DIGEST, _BY_URI = range(8)
#: What a revisit resolved by, best first; places within ANSWERS.
_HOW = {_BY_ID: 0, _BY_DATE: 1, _BY_DIGEST: 2, _BY_URI: 3}
ANSWERS = ("record id", "URI and date", "digest", "URI")
_MISMATCH, _UNRESOLVED = 8, 9

_NOT_THERE = "WARC-Concurrent-To names a record that is not in the file"
_ALONE = "request has no WARC-Concurrent-To, and no record names it"

_QUIET = bytes([_OTHER])  # roles that ask for nothing end here

_NAME = Struct(">qqBIQq")  # key, second key, role, file, offset, digest
_ANSWER = Struct(">IQB")
_SEGMENT = Struct(">qIIQQQ")  # origin, number, file, offset, bytes of the block, total or 0


class Links:
    """Filled record by record, judged at the end."""

    def __init__(self) -> None:
        self._ids = Sorted(_NAME.size)
        self._originals = Sorted(_NAME.size)
        self._answers = Sorted(_ANSWER.size)
        self._segments = Sorted(_SEGMENT.size)
        self._all = (self._ids, self._originals, self._answers, self._segments)
        self._revisits = 0

    def record(self, file: int, offset: int, record_id: str) -> None:
        """Any record that is no original."""
        self._ids.add(_NAME.pack(hash(record_id), 0, _OTHER, file, offset, 0))

    def original(
        self, file: int, offset: int, record_id: str, *, uri: str, date: str, digest: str
    ) -> None:
        """A response or resource: what revisits may refer to. `digest`: as `plain_digest` gives."""
        payload = hash(digest)
        uri_key = hash(uri)
        self._ids.add(_NAME.pack(hash(record_id), 0, _ORIGINAL, file, offset, payload))
        self._originals.add(_NAME.pack(uri_key, hash(date[:19]), _ORIGINAL, file, offset, payload))
        if digest:
            self._originals.add(_NAME.pack(payload, 0, _ORIGINAL, file, offset, payload))

    def revisit(
        self, file: int, offset: int, record_id: str, *, refers_to: str, uri: str, date: str,
        digest: str, must_equal: bool,
    ) -> None:  # fmt: skip
        """`uri` and `date` are those it refers to, empty where it does not say; `must_equal`: what
        it refers to has its digest."""
        self._revisits += 1
        self.record(file, offset, record_id)
        self._answers.add(_ANSWER.pack(file, offset, _UNRESOLVED))
        payload = hash(digest) if digest and must_equal else 0
        if refers_to:
            self._ids.add(_NAME.pack(hash(refers_to), 0, _BY_ID, file, offset, payload))
        if uri and date:
            self._originals.add(
                _NAME.pack(hash(uri), hash(date[:19]), _BY_DATE, file, offset, payload)
            )
        elif uri:
            self._originals.add(_NAME.pack(hash(uri), _LAST, _BY_URI, file, offset, 0))
        if digest and must_equal:
            self._originals.add(_NAME.pack(payload, 0, _BY_DIGEST, file, offset, payload))

    def named(self, file: int, offset: int, record_id: str) -> None:
        """A record of the same file by that id must be there."""
        self._ids.add(_NAME.pack(hash(record_id), 0, _NAMED, file, offset, 0))

    def lone_request(self, file: int, offset: int, record_id: str) -> None:
        """A request that names nothing: another record of the file must name it."""
        self._ids.add(_NAME.pack(hash(record_id), 0, _REQUEST, file, offset, 0))

    def segment(
        self, file: int, offset: int, origin: str, *, number: int, size: int, total: int
    ) -> None:
        number = min(number, 0xFFFF_FFFF)
        self._segments.add(
            _SEGMENT.pack(hash(origin), number, file, offset, size, min(total, _MOST))
        )

    def spill(self) -> None:
        """To be called every some hundred records."""
        for one in self._all:
            one.spill()

    def judge(self, add: Add, broken: frozenset[int]) -> Counter[str]:
        """All problems; how many revisits resolved how. Of broken files the end is not known, so
        that nothing is said to be missing from them."""
        self._judge_ids(add, broken)
        if self._revisits:
            self._judge_originals()
        self._judge_segments(add, broken)
        return self._judge_revisits(add)

    def close(self) -> None:
        for one in self._all:
            one.close()

    def _judge_ids(self, add: Add, broken: frozenset[int]) -> None:
        for _, group in _groups(_shared(self._ids.each())):
            there: dict[int, int] = {}  # file -> where the record of this id is
            originals: set[int] = set()
            digests: set[int] = set()
            named: set[int] = set()  # files in which somebody names it
            for _, _, role, file, offset, digest in group:
                if role <= _OTHER:
                    if file in there:
                        add(file, offset, f"WARC-Record-ID occurs twice, first at {there[file]}")
                    there.setdefault(file, offset)
                    if role == _ORIGINAL:
                        originals.add(file)
                        digests.add(digest)
                elif role == _NAMED:
                    named.add(file)
                    if file not in there and file not in broken:
                        add(file, offset, _NOT_THERE)
                elif role == _REQUEST:
                    if file not in named and file not in broken:
                        add(file, offset, _ALONE)
                elif originals:
                    self._answer(role, file, offset, digest, files=originals, digests=digests)

    def _judge_originals(self) -> None:
        for _, group in _groups(self._originals.each()):
            ever: set[int] = set()  # files with an original of this URI, whatever its date
            for _, same in groupby(group, lambda entry: entry[1]):
                files: set[int] = set()
                digests: set[int] = set()
                for _, _, role, file, offset, digest in same:
                    if role == _ORIGINAL:
                        files.add(file)
                        if len(digests) < 1000:  # copies of one capture: one, nearly always
                            digests.add(digest)
                    elif role == _BY_URI:
                        if ever:
                            self._answer(role, file, offset, 0, files=ever, digests=digests)
                    elif files:
                        self._answer(role, file, offset, digest, files=files, digests=digests)
                ever |= files

    def _answer(
        self, role: int, file: int, offset: int, digest: int, *, files: set[int], digests: set[int]
    ) -> None:
        rank = 2 * _HOW[role] + (file not in files)
        if digest and role != _BY_DIGEST and digest not in digests:
            rank = _MISMATCH
        self._answers.add(_ANSWER.pack(file, offset, rank))
        self._answers.spill()

    def _judge_revisits(self, add: Add) -> Counter[str]:
        counts: Counter[str] = Counter()
        entries = map(_ANSWER.unpack, self._answers.each())
        for (file, offset), group in groupby(entries, lambda entry: entry[:2]):
            ranks = {entry[2] for entry in group}
            best = min(ranks)
            if _MISMATCH in ranks:
                add(file, offset, "revisit names a record whose payload has another digest")
            if best >= _MISMATCH:
                counts["unresolved"] += 1
                if best == _UNRESOLVED:
                    add(file, offset, "revisit resolves to no record of what was looked at")
                continue
            counts[ANSWERS[best // 2]] += 1
            counts["elsewhere" if best % 2 else "same file"] += 1
        return counts

    def _judge_segments(self, add: Add, broken: frozenset[int]) -> None:
        entries = map(_SEGMENT.unpack, self._segments.each())
        for _, group in groupby(entries, lambda entry: entry[0]):
            wanted, seen, last = 1, 0, 0
            for _, number, file, offset, size, total in group:
                last = total
                if number != wanted and file not in broken:
                    add(file, offset, f"segment {number} of a record, wanted segment {wanted}")
                wanted = number + 1
                seen += size
            if file not in broken and last != seen:
                what = f"WARC-Segment-Total-Length says {last}" if last else "no last segment"
                add(file, offset, f"{what}, its {wanted - 1} segments have {seen} bytes")


def _shared(entries: Iterable[bytes]) -> Iterator[bytes]:
    """Without records whose id nobody else has or names: nearly all of them."""
    before, was_shared = b"", False
    for entry in entries:
        is_shared = entry[:8] == before[:8]
        if is_shared or was_shared or before[16:17] > _QUIET:
            yield before
        before, was_shared = entry, is_shared
    if was_shared or before[16:17] > _QUIET:
        yield before


def _groups(entries: Iterable[bytes]) -> Iterator[tuple[int, Iterator[tuple[int, ...]]]]:
    return groupby(map(_NAME.unpack, entries), lambda entry: entry[0])
