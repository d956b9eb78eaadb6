"""Index lines with the records they point at: both ways, whatever the order. Decides only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from struct import Struct

from geomi.archive.cdxj import parse_place
from geomi.archive.digests import plain_digest
from geomi.archive.names import date14
from geomi.archive.sorting import Sorted
from geomi.errors import RemoteError

_ENTRY = Struct(">IQBQqqqII")  # file, offset, role, length, URI, date, digest, index, line
_ROLE_AT = 12  # file and offset are before it, what a line says of a record behind
_SAID_TO = 45
_MUST, _MAY, _LINE = range(3)
_SPILL_EVERY = 256
_LENGTH_UNKNOWN = (1 << 64) - 1

#: Adds a problem: name of the file, offset, what.
Add = Callable[[str, int, str], None]


class Indexed:
    """Filled with records and lines, judged at the end."""

    def __init__(self) -> None:
        self._entries = Sorted(_ENTRY.size)
        self._names: list[str] = []  # of indexes
        self.lines = 0

    def record(
        self, file: int, offset: int, length: int, *, uri: str, date: str, digest: str, must: bool
    ) -> None:
        """A record; `must`: an index of its file has a line for it."""
        stamp = date.encode()[:19].translate(None, b"-T:")  # 0.5 us less than date14
        if len(stamp) != 14:
            stamp = date14(date).encode()
        self._entries.add(_ENTRY.pack(
            file, offset, _MUST if must else _MAY, length, hash(uri),
            hash(stamp),
            hash(plain_digest(digest)) if digest else 0, 0, 0,
        ))  # fmt: skip

    def spill(self) -> None:
        self._entries.spill()

    def index(
        self, name: str, lines: Iterable[bytes], sizes: Callable[[str], tuple[int, int] | None],
        add: Add,
    ) -> None:  # fmt: skip
        """One index: in order, whole lines, pointing into files that are there. `sizes` gives
        (number, bytes) of a file by the name in the line; None: there is none."""
        number, after, before = len(self._names), 0, b""
        self._names.append(name)
        for count, raw in enumerate(lines, start=1):
            at, after = after, after + len(raw)
            if not raw.strip() or raw.startswith((b" CDX", b"!")):
                continue
            self.lines += 1
            if raw < before:
                add(name, at, f"line {count} is out of order")
            before = raw
            try:
                time, url, filename, offset, length, digest = parse_place(raw)
            except RemoteError as error:
                add(name, at, f"line {count}: {error}")
                continue
            there = sizes(filename)
            if there is None or not 0 <= offset < offset + max(length, 1) <= there[1]:
                add(name, at, f"line {count} of {url[:200]} {_astray(filename, there)}")
                continue
            self._entries.add(_ENTRY.pack(
                there[0], offset, _LINE, length if length >= 0 else _LENGTH_UNKNOWN,
                hash(url), hash(time),
                hash(plain_digest(digest)) if digest not in ("-", "") else 0,
                number, min(count, 0xFFFF_FFFF),
            ))  # fmt: skip
            if not count % _SPILL_EVERY:
                self._entries.spill()

    def judge(
        self, add: Add, file_name: Callable[[int], str], broken: frozenset[int],
        plain: frozenset[int],
    ) -> None:  # fmt: skip
        """`plain`: files without gzip, of which tools count a record with or without its end."""
        entries = map(_ENTRY.unpack, _odd(self._entries.each()))
        for (file, offset), group in groupby(entries, lambda entry: entry[:2]):
            record: tuple[int, ...] | None = None
            has_line = False
            for entry in group:
                _, _, role, length, uri, date, digest, index, count = entry
                if role != _LINE:
                    record = entry
                    continue
                has_line = True
                if record is None:
                    if file not in broken:
                        add(self._names[index], 0,
                            f"line {count} points at {offset} of {file_name(file)},"
                            " where no record is that could be indexed")  # fmt: skip
                    continue
                length_ok = length in (record[3], _LENGTH_UNKNOWN) or (
                    file in plain and length == record[3] + 4
                )
                wrong = [
                    name for name, ok in (
                        ("length", length_ok), ("URI", uri == record[4]),
                        ("time", date == record[5]),
                        ("digest", not (digest and record[6]) or digest == record[6]),
                    ) if not ok
                ]  # fmt: skip
                if wrong:
                    add(self._names[index], 0,
                        f"line {count}: the record at {offset} of {file_name(file)}"
                        f" has another {', '.join(wrong)}")  # fmt: skip
            if record is not None and record[2] == _MUST and not has_line:
                add(file_name(file), offset, "no index line for this record")

    def close(self) -> None:
        self._entries.close()


def _odd(entries: Iterable[bytes]) -> Iterator[bytes]:
    """Without records that have one line, which says the same of them: nearly all."""
    rest = iter(entries)
    first = next(rest, None)
    while first is not None:
        second = next(rest, None)
        if (
            second is None
            or first[:_ROLE_AT] != second[:_ROLE_AT]
            or first[_ROLE_AT] == _LINE
            or first[_ROLE_AT + 1 : _SAID_TO] != second[_ROLE_AT + 1 : _SAID_TO]
        ):
            yield first
            first = second
            continue
        third = next(rest, None)
        if third is not None and third[:_ROLE_AT] == second[:_ROLE_AT]:
            yield first
            yield second
        first = third


def _astray(filename: str, there: tuple[int, int] | None) -> str:
    """Why a line points at nothing that is given."""
    if there is not None:
        return f"points outside {filename[:200]}, which has {there[1]} bytes"
    parts = filename.split("/")
    why = "leads out of the archive" if ".." in parts or not parts[0] else "is not there"
    return f"names {filename[:200]!r}, which {why}"
