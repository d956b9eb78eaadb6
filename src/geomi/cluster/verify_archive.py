"""The store with the archive: files on disk, records in them, index lines. Part of verify.

One file at a time, its records in order beside its visits in order: memory is that of one file's
list of captures.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from io import BytesIO
from itertools import zip_longest
from tempfile import NamedTemporaryFile
from typing import BinaryIO, NamedTuple, Protocol

from geomi.archive import tables
from geomi.archive.check import Problem, check_file
from geomi.archive.names import header_uri
from geomi.archive.reader import Member, members
from geomi.cluster import compared
from geomi.cluster.ledger import OPEN, index_of
from geomi.cluster.node import here
from geomi.cluster.simfiles import scratch_of, unpacked
from geomi.cluster.verify_rewrites import of_other_generations
from geomi.errors import RemoteError, ResourceError
from geomi.history.past import Past
from geomi.store import Store

#: Records of one file that a quick look reads.
SAMPLED = 50
_BEHIND = "bytes behind the committed length"
_REVISIT = b'"mime": "warc/revisit"'
_STATUS = re.compile(rb'"status": "[^"]*", ')

Add = Callable[[str, str, str], None]  # kind, what, where
Where = Callable[[str], str]


class Disk(Protocol):
    """The files of an archive, as verify needs them. None: there is no such file."""

    def size(self, path: str) -> int | None: ...
    def open(self, path: str) -> BinaryIO: ...
    def names(self, directory: str) -> Iterable[str]: ...
    def readable(self, path: str) -> str: ...
    def check(self, path: str, length: int) -> list[Problem]: ...
    def is_here(self, node: str) -> bool: ...


class RealDisk:
    """The operating system's."""

    def size(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except OSError:
            return None

    def open(self, path: str) -> BinaryIO:
        try:
            return open(path, "rb")
        except OSError as error:
            raise ResourceError(f"{path}: {error.strerror or error}") from error

    def names(self, directory: str) -> Iterator[str]:
        """Paths of all files below, relative."""
        for path, _, names in os.walk(directory):
            for name in names:
                yield os.path.relpath(os.path.join(path, name), directory)

    def readable(self, path: str) -> str:
        """Where a library finds the file."""
        return path

    def check(self, path: str, length: int) -> list[Problem]:
        """archive.check: structure, digests, links of the first `length` bytes."""
        return check_file(path, expect_length=length, strict=not compared.is_imported(path))

    def is_here(self, node: str) -> bool:
        """True if files of that node lie on this one."""
        return node in ("", here())


class BytesDisk:
    """Files in memory, path -> bytes, as the simulator keeps them."""

    def __init__(self, files: Mapping[str, bytes | bytearray]) -> None:
        self._files = files
        self._folder = scratch_of(self)

    def size(self, path: str) -> int | None:
        data = self._files.get(path)
        return None if data is None else len(data)

    def open(self, path: str) -> BinaryIO:
        file = BytesIO(self._files[path])
        file.name = path  # errors say where
        return file

    def names(self, directory: str) -> Iterator[str]:
        start = directory.rstrip("/") + "/"
        for path in sorted(self._files):
            if path.startswith(start):
                yield path.removeprefix(start)

    def readable(self, path: str) -> str:
        return unpacked(self._files, path, self._folder)

    def check(self, path: str, length: int) -> list[Problem]:
        with NamedTemporaryFile() as copy:
            copy.write(self._files[path])
            copy.flush()
            return check_file(copy.name, expect_length=length)

    def is_here(self, node: str) -> bool:
        return True


class File(NamedTuple):
    file: int
    directory: str
    name: str
    committed: int
    state: str
    node: str = ""
    base: str = ""


#: Columns of a moved visit, for _Kept and for archive.tables.captures_of.
_MOVED = '"offset", length, url, stored_date, digest, code, revisit, visit'
_CAPTURE = 'url, stored_date, mime, code, digest, "offset", length, revisit'


class _Kept(NamedTuple):
    """A visit's record, as the store has it."""

    offset: int
    length: int
    url: str
    date: str
    digest: str
    code: int
    revisit: int
    visit: int


def check_archive(
    store: Store,
    add: Add,
    counts: Counter[str],
    *,
    where: Where,
    disk: Disk,
    directories: Sequence[str],
    quick: bool,
) -> None:
    """Every file the store knows, and that there is no other."""
    _check_places(store, add)
    # Disk first, store then: a file has its row before it exists.
    there = _on_disk(store, where, disk, directories)
    files = [File(*row) for row in tables.all_files(store)]
    expected = of_other_generations(store, counts)
    _check_strangers(files, there, expected, add, counts, where=where, disk=disk)
    counts["files"] = len(files)
    counts["files.open"] = sum(1 for file in files if file.state == "open")
    for file in files:
        with store.image():  # no visit of it moves meanwhile
            _check_one(store, file, add, counts, where=where, disk=disk, quick=quick)


def _check_places(store: Store, add: Add) -> None:
    """Visits outside what their file's row vouches for."""
    for visit, file, name in store.each(
        "SELECT v.visit, v.file, f.name FROM visits v LEFT JOIN files f ON f.file = v.file"
        " WHERE v.file > 0 AND (f.file IS NULL"
        " OR v.visit NOT BETWEEN f.first_visit AND f.last_visit"
        ' OR v.length <= 0 OR v."offset" < 0 OR v."offset" + v.length > f.committed)'
    ):
        what = "which is not in the store" if name is None else "beyond what is committed of it"
        add("place", f"kept in file {file}, {what}", f"visit {visit}")


def _on_disk(store: Store, where: Where, disk: Disk, directories: Sequence[str]) -> dict[str, str]:
    """Path -> path below its archive directory, of all WARC files and their indexes."""
    known = [row[0] for row in store.all("SELECT DISTINCT directory FROM files")]
    found: dict[str, str] = {}
    for directory in dict.fromkeys((*directories, *known)):
        path = where(directory)
        for name in disk.names(path):
            if ".warc" in name or name.endswith(".cdxj"):
                found[os.path.join(path, name)] = name
    return found


def _check_strangers(
    files: list[File], there: dict[str, str], expected: set[str], add: Add, counts: Counter[str],
    *, where: Where, disk: Disk,
) -> None:  # fmt: skip
    mine = set()
    for file in files:
        path = os.path.join(where(file.directory), file.name)
        mine |= {path, path + OPEN, _index_path(path)}
    names = {name for file in files for name in (file.name, _index_path(file.name))}
    for path, name in there.items():
        if path not in mine and name in names:
            counts["files.copies"] += 1  # left behind when it was gathered
        elif path not in mine and name not in expected and disk.size(path) is not None:
            add("stranger", "a file the store does not know", name)


def _is_there(disk: Disk, path: str) -> bool:
    return disk.size(path) is not None or disk.size(path + OPEN) is not None


def _index_path(path: str) -> str:
    return path.removesuffix(".warc.gz") + ".cdxj"


def _check_one(
    store: Store, file: File, add: Add, counts: Counter[str], *, where: Where, disk: Disk,
    quick: bool,
) -> None:  # fmt: skip
    final = os.path.join(where(file.directory), file.name)
    if file.base and disk.is_here(file.node) and not _is_there(disk, final):
        final = os.path.join(file.base, file.name)  # where this node's agents keep theirs
    path, size = final, disk.size(final)
    if file.state == "open" and size is None:
        path, size = final + OPEN, disk.size(final + OPEN)
    if size is None:
        again = store.one("SELECT committed, state FROM files WHERE file = ?", (file.file,))
        if again is None or (file.committed == 0 and file.state == "open"):
            return  # registered, not made yet; or removed since
        if not disk.is_here(file.node):
            counts["files.elsewhere"] += 1  # what lies on other nodes is not looked at
            return
        if tuple(again) != (file.committed, file.state):
            _check_one(store, file._replace(committed=again[0], state=again[1]), add, counts,
                       where=where, disk=disk, quick=quick)  # fmt: skip
            return
        add("missing", f"no such file, wanted {file.committed} bytes ({file.state})", file.name)
        return
    if size < file.committed or (file.state == "closed" and size > file.committed):
        add("size", f"{size} bytes, wanted {file.committed} ({file.state})", file.name)
        return
    past = Past.of(store, lambda name: disk.readable(where(name)))
    if file.state == "closed":
        _check_index(store, file, _index_path(final), add, past, disk=disk)
    try:
        if quick:
            _sample(store, file, path, add, counts, past, disk=disk)
            return
        for problem in disk.check(path, file.committed):
            if not (problem.what.endswith(_BEHIND) and file.state == "open"):
                add("records", problem.what, f"{file.name} at {problem.offset}")
        _walk(store, file, path, add, counts, past, disk=disk)
    except RemoteError as error:
        add("records", str(error).removeprefix(f"{path} "), file.name)


def kept_in(store: Store, file: File, past: Past) -> Iterator[_Kept]:
    """What visits put into the committed part of a file, by offset."""
    moved = past.of_file(_MOVED, file.file)
    yield from merge(
        (_Kept(*row) for row in moved if row[0] < file.committed),
        _kept_here(store, file),
        key=_place,
    )


def _place(one: _Kept) -> tuple[int, int]:
    return one.offset, one.visit


def _kept_here(store: Store, file: File) -> Iterator[_Kept]:
    for row in store.each(
        'SELECT v."offset", v.length, coalesce(p.url, v.url), v.stored_date, v.digest, v.code,'
        " v.revisit, v.visit FROM files f JOIN visits v"
        " ON v.visit BETWEEN f.first_visit AND f.last_visit AND v.file = f.file"
        " LEFT JOIN pages p ON p.page = v.page AND v.page > 0 WHERE f.file = ?"
        ' AND v."offset" < ? ORDER BY v."offset", v.visit',
        (file.file, file.committed),
    ):
        yield _Kept(*row)


def _committed(source: BinaryIO, length: int) -> Iterator[Member]:
    """The records of the first `length` bytes; what lies behind them is not even looked at."""
    end = 0
    records = members(source)
    while end < length and (member := next(records, None)) is not None:
        yield member
        end = member.offset + member.length


def _walk(
    store: Store, file: File, path: str, add: Add, counts: Counter[str], past: Past, *, disk: Disk
) -> None:
    """Each response and revisit belongs to exactly one visit, or to an orphan; and the reverse."""
    kept = kept_in(store, file, past)
    want = next(kept, None)
    orphans = iter(tables.orphans_of(store, file.file))
    orphan = next(orphans, None)
    with disk.open(path) as source:
        for member in _committed(source, file.committed):
            at = member.offset
            while want is not None and want.offset < at:
                add("no record", f"visit {want.visit} says a record is here, there is none",
                    f"{file.name} at {want.offset}")  # fmt: skip
                want = next(kept, None)
            counts["records"] += 1
            if want is not None and want.offset == at:
                counts["captures"] += 1
                _compare(file, member, want, add, is_whole=True)
                this, want = want, next(kept, None)
                while want is not None and want.offset == at:
                    add("twice kept", f"visits {this.visit} and {want.visit} have one record",
                        f"{file.name} at {at}")  # fmt: skip
                    want = next(kept, None)
                continue
            while orphan is not None and orphan[0] + orphan[1] <= at:
                orphan = next(orphans, None)
            if orphan is not None and orphan[0] <= at:
                counts["records.orphaned"] += 1
            elif member.type in ("response", "revisit"):
                add("no visit", f"a {member.type} of {member.target_uri} that no visit names",
                    f"{file.name} at {at}")  # fmt: skip
    while want is not None:
        add("no record", f"visit {want.visit} says a record is here, the file ends",
            f"{file.name} at {want.offset}")  # fmt: skip
        want = next(kept, None)


def _sample(
    store: Store, file: File, path: str, add: Add, counts: Counter[str], past: Past, *, disk: Disk
) -> None:
    """The heads of some records, evenly spread over the file's visits; the last one too."""
    kept = list(kept_in(store, file, past))
    step = max(1, len(kept) // SAMPLED)
    chosen = kept[::step]
    if kept and chosen[-1] is not kept[-1]:
        chosen.append(kept[-1])
    with disk.open(path) as source:
        for want in chosen:
            source.seek(want.offset)
            member = next(members(source, want.offset), None)
            counts["captures"] += 1
            if member is None:
                add("no record", f"visit {want.visit} says a record is here, there is none",
                    f"{file.name} at {want.offset}")  # fmt: skip
            else:
                _compare(file, member, want, add, is_whole=False)


def _compare(file: File, member: Member, want: _Kept, add: Add, *, is_whole: bool) -> None:
    """A record with the visit that names it. Reads its block only if `is_whole`."""
    pairs: list[tuple[str, object, object]] = [
        ("type", compared.type_of(member, want.code), "revisit" if want.revisit else "response"),
        ("Target-URI", compared.uri_of(member, want.url), header_uri(want.url)),
        ("Payload-Digest", compared.digest_of(member, want.digest), want.digest),
        ("date", member.date, want.date),
    ]
    if is_whole:
        if not want.revisit and want.code:
            words = member.http_head().split(b"\r\n", 1)[0].split()
            code = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
            pairs.append(("status", code, want.code))
        pairs.append(("length", member.length, want.length))
    for name, seen, wanted in pairs:
        if seen != wanted:
            add(f"record {name}", f"{name} is {seen!r}, visit {want.visit} says {wanted!r}",
                f"{file.name} at {want.offset}")  # fmt: skip


def _check_index(store: Store, file: File, path: str, add: Add, past: Past, *, disk: Disk) -> None:
    """The index beside a closed file says what the store says."""
    name = _index_path(file.name)
    if disk.size(path) is None:
        add("index", "no such index", name)
        return
    moved = past.of_file(_CAPTURE, file.file)
    wanted = index_of(store, file.file, os.path.basename(file.name), moved)
    with disk.open(path) as source:
        pairs = zip_longest(map(_comparable, source), map(_comparable, wanted))
        for number, (seen, line) in enumerate(pairs, start=1):
            if seen != line:
                add("index", f"{_shown(seen)}, wanted {_shown(line)}", f"{name} line {number}")
                return


def _comparable(line: bytes) -> bytes:
    """Tools differ in the status they write for a revisit."""
    return _STATUS.sub(b"", line, count=1) if _REVISIT in line else line


def _shown(line: bytes | None) -> str:
    return "no line" if line is None else repr(line[:200].decode("utf-8", "replace"))
