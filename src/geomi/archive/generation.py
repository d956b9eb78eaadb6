"""A file's next generation: written from the last one and a list of edits, then proved. Shell.

Untouched records are copied as they are, without being inflated; `Recompress` is the exception. The
proof reads both files anew and trusts nothing but the list: every copied byte is compared, every
edited record is taken apart and its digests are computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha1
from typing import Any, BinaryIO, NamedTuple

from isal import isal_zlib
from zlib_ng import zlib_ng

from geomi.archive import edits as changes
from geomi.archive.edits import Action, Head
from geomi.archive.names import EMPTY_DIGEST, sha1_b32, sha1_name
from geomi.archive.reader import Member, members
from geomi.archive.rewrite_tables import Edit
from geomi.archive.shifts import Kind, Shifts
from geomi.archive.source import Gzip, Plain, opened
from geomi.errors import RemoteError, ResourceError

_PIECE = 1 << 20
_GZIP = 31
_ISAL_LEVEL_MAX = 3
_END = b"\r\n\r\n"
_ONE_SHOT = 1 << 20  # records up to here are deflated in one call


class Form(NamedTuple):
    """How edited records are written. `dense`: of all records, 0: they are copied."""

    level: int = 1
    dense: int = 0
    paper: bool = False  # status 304 and no Last-Modified in revisits, as paper 004 has it


#: The path and offset of the record that holds an edit's payload.
Source = Callable[[Edit], tuple[str, int]]


def no_source(edit: Edit) -> tuple[str, int]:
    raise ResourceError(f"file {edit.file} at {edit.offset}: no payload to restore it from")


def written(
    old: str, committed: int, edits: Iterable[Edit], *, form: Form, source: Source = no_source,
    tally: Counter[str],
) -> Iterator[bytes]:  # fmt: skip
    """The bytes of the next generation. `tally` counts what was done, by action; `left`: a
    duplicate that is none on a closer look stays as it is."""
    with opened(old) as (file, name):
        at = 0
        for edit in edits:
            _must_follow(edit, at, committed, name)
            yield from _untouched(file, name, at, edit.offset, form)
            at = edit.offset + edit.length
            made = _edited(file, name, edit, form, source)
            if made is None:
                tally["left"] += 1
                yield from _untouched(file, name, edit.offset, at, form)
                continue
            tally[edit.action] += 1
            tally["removed_bytes"] += edit.length
            for piece in made:
                tally["added_bytes"] += len(piece)
                yield piece
        yield from _untouched(file, name, at, committed, form)


def _must_follow(edit: Edit, at: int, committed: int, name: str) -> None:
    if edit.offset < at or edit.length <= 0 or edit.offset + edit.length > committed:
        raise RemoteError(
            f"{name} at {edit.offset}: {edit.length} bytes to {edit.action}, wanted them between"
            f" {at} and {committed}"
        )


def _untouched(file: BinaryIO, name: str, start: int, end: int, form: Form) -> Iterator[bytes]:
    if not form.dense:
        yield from _raw(file, name, start, end)
        return
    for pieces in _inflated(file, name, start, end):
        yield from _deflated(pieces, form.dense)


def _raw(file: BinaryIO, name: str, start: int, end: int) -> Iterator[bytes]:
    file.seek(start)
    while start < end:
        piece = file.read(min(_PIECE, end - start))
        if not piece:
            raise ResourceError(f"{name}: ends at {start}, wanted {end} bytes")
        start += len(piece)
        yield piece


def _inflated(file: BinaryIO, name: str, start: int, end: int) -> Iterator[Iterator[bytes]]:
    """For each gzip member in a part of a file, its content piece by piece."""
    if start >= end:
        return
    file.seek(start)
    source = Gzip(Plain(file, name, start))
    while True:
        yield iter(source.pull, b"")
        while source.pull():  # what was not asked for
            pass
        if source.offset >= end or not source.next_member():
            break
    if source.offset != end:
        raise RemoteError(
            f"{name} at {source.start}: a record ends at {source.offset}, wanted {end}"
        )


def _packed(data: bytes, level: int) -> bytes:
    """One gzip member. ISA-L has no level beyond 3; zlib-ng takes half of zlib's time for the same
    density (docs/design/archive.md)."""
    if level <= _ISAL_LEVEL_MAX:
        return isal_zlib.compress(data, level, _GZIP)
    return zlib_ng.compress(data, level, _GZIP)


def _deflated(pieces: Iterator[bytes], level: int) -> Iterator[bytes]:
    """One gzip member of a record that may be large."""
    first: list[bytes] = []
    size = 0
    for piece in pieces:
        first.append(piece)
        size += len(piece)
        if size > _ONE_SHOT:
            break
    if size <= _ONE_SHOT:
        yield _packed(b"".join(first), level)
        return
    z = (
        isal_zlib.compressobj(level, isal_zlib.DEFLATED, _GZIP)
        if level <= _ISAL_LEVEL_MAX
        else zlib_ng.compressobj(level, zlib_ng.DEFLATED, _GZIP)
    )
    for piece in first:
        yield z.compress(piece)
    for piece in pieces:
        yield z.compress(piece)
    yield z.flush()


# -- one edit --------------------------------------------------------------------------------------


def _edited(
    file: BinaryIO, name: str, edit: Edit, form: Form, source: Source
) -> Iterator[bytes] | None:
    """The record that takes its place, deflated; None: it stays."""
    if edit.action in (Action.DROP, Action.ORPHAN):
        return iter(())
    member = record_at(file, name, edit.offset)
    head = head_of(member)
    if edit.action == Action.REVISIT:
        block = _block_of_duplicate(member, head, edit, form)
        if block is None:
            return None
        head = changes.as_revisit(
            head, edit.refers_to, block_length=len(block), block_digest=sha1_b32(block)
        )
        made = _packed(head.bytes() + block + _END, form.dense or form.level)
        # Of what deflates to next to nothing a revisit would only be longer.
        return iter([made]) if len(made) < edit.length else None
    if member.type != "revisit":
        raise RemoteError(f"{name} at {edit.offset}: a {member.type!r}, wanted a revisit")
    block = member.read_all()
    if edit.action == Action.POINT:
        head = changes.pointed(head, edit.refers_to)
        return iter([_packed(head.bytes() + block + _END, form.dense or form.level)])
    return _with_payload(head, block, *source(edit), level=form.dense or form.level)


def _block_of_duplicate(member: Member, head: Head, edit: Edit, form: Form) -> bytes | None:
    """The HTTP head of a response that can do without its payload. None: it cannot.

    Its payload is hashed: what does not hold what it promises is no duplicate.
    """
    promised = head.get("WARC-Payload-Digest")
    if member.type != "response" or head.get("WARC-Truncated") or not promised:
        return None
    if head.get("WARC-Segment-Number"):
        return None
    changes.must_be_http(head, f"{member.file} at {edit.offset}")
    http, digest = _read(member)
    if digest != promised or member.length != edit.length:
        return None
    if b"transfer-encoding:" in http.lower().replace(b"x-geomi-transfer-encoding:", b""):
        return None  # its payload is not what follows the head
    return changes.paper_head(http) if form.paper else http


def _with_payload(head: Head, own: bytes, path: str, offset: int, *, level: int) -> Iterator[bytes]:
    """A response made of a revisit and the record that has its payload: read twice, hashed once."""
    with opened(path) as (file, name):
        original = record_at(file, name, offset)
        if original.type != "response":
            raise RemoteError(f"{name} at {offset}: a {original.type!r}, wanted a response")
        if original.headers.get("WARC-Truncated"):
            raise RemoteError(f"{name} at {offset}: is truncated, wanted a whole payload")
        http = changes.whole_head(
            own, original.http_head(), profile=head.get("WARC-Profile")
        )  # fmt: skip
        block, payload, size = sha1(http), sha1(), len(http)
        for piece in original.chunks():
            block.update(piece)
            payload.update(piece)
            size += len(piece)
        wanted = head.get("WARC-Payload-Digest")
        if wanted.startswith("sha1:") and sha1_name(payload.digest()) != wanted:
            raise RemoteError(f"{name} at {offset}: its payload is not {wanted}")
        head = changes.as_response(
            head, block_length=size, block_digest=sha1_name(block.digest())
        )  # fmt: skip

        def pieces() -> Iterator[bytes]:
            yield head.bytes() + http
            again = record_at(file, name, offset)
            again.http_head()
            yield from again.chunks()
            yield _END

        yield from _deflated(pieces(), level)


def record_at(file: BinaryIO, name: str, offset: int) -> Member:
    """The record there, its block unread."""
    file.seek(offset)
    member = next(members(file, offset), None)
    if member is None:
        raise RemoteError(f"{name} at {offset}: the file ends, wanted a record")
    return member


def head_of(member: Member) -> Head:
    return Head(version=member.version, lines=tuple(member.headers.lines))


def _read(member: Member) -> tuple[bytes, str]:
    """(HTTP head, SHA-1 of what follows it); reads the block to its end."""
    http = member.http_head()
    payload = sha1()
    for piece in member.chunks():
        payload.update(piece)
    return http, sha1_name(payload.digest())


# -- the proof -------------------------------------------------------------------------------------


def proved(
    old: str, new: str, committed: int, edits: Iterable[Edit], *, form: Form,
    source: Source = no_source,
) -> Shifts:  # fmt: skip
    """Where every record lies now. RemoteError: the new file is not the old one with its edits."""
    shifts = Shifts()
    with opened(old) as (was, name), opened(new) as (now, new_name):
        at = place = 0
        for edit in edits:
            _must_follow(edit, at, committed, name)
            place = _same(was, name, at, edit.offset, now, new_name, place, form, shifts)
            at = edit.offset + edit.length
            if edit.action in (Action.DROP, Action.ORPHAN):
                shifts.add(edit.offset, -1, 0, Kind.GONE)
                continue
            member = record_at(now, new_name, place)
            if edit.action == Action.REVISIT and member.type == "response":
                place = _same(was, name, edit.offset, at, now, new_name, place, form, shifts)
                continue
            before = record_at(was, name, edit.offset)
            length = _must_be_made(before, member, edit, form, source)
            shifts.add(edit.offset, place, length, Kind(edit.action))
            place += length
        place = _same(was, name, at, committed, now, new_name, place, form, shifts)
        now.seek(0, 2)
        if now.tell() != place:
            raise RemoteError(f"{new_name}: {now.tell()} bytes, wanted {place}")
    return shifts


def _same(
    was: BinaryIO, name: str, start: int, end: int, now: BinaryIO, new_name: str, place: int,
    form: Form, shifts: Shifts,
) -> int:  # fmt: skip
    """What was not edited is the same in both; the place behind it in the new file."""
    if start >= end:
        return place
    if not form.dense:
        shifts.add(start, place, -1, Kind.COPY)
        for one in _raw(was, name, start, end):
            now.seek(place)
            if now.read(len(one)) != one:
                raise RemoteError(f"{new_name} at {place}: not the bytes of {name} at {start}")
            place += len(one)
            start += len(one)
        return place
    was.seek(start)
    now.seek(place)
    a, b = Gzip(Plain(was, name, start)), Gzip(Plain(now, new_name, place))
    while True:
        if _digest(a) != _digest(b):
            raise RemoteError(f"{new_name} at {b.start}: not the record of {name} at {a.start}")
        shifts.add(a.start, b.start, b.offset - b.start, Kind.COPY)
        if a.offset >= end:
            return b.offset
        a.next_member()
        b.next_member()


def _digest(member: Gzip) -> bytes:
    found: Any = sha1()
    while piece := member.pull():
        found.update(piece)
    digest: bytes = found.digest()
    return digest


def _must_be_made(before: Member, made: Member, edit: Edit, form: Form, source: Source) -> int:
    """Length of an edited record that is what it must be."""
    where = f"{made.file} at {made.offset}"
    was, head = head_of(before), head_of(made)
    for line in ("WARC-Record-ID", "WARC-Date", "WARC-Target-URI", "WARC-Payload-Digest",
                 "WARC-IP-Address", "WARC-Warcinfo-ID", "WARC-Concurrent-To"):  # fmt: skip
        if was.get(line) != head.get(line):
            raise RemoteError(f"{where}: {line} is {head.get(line)!r}, was {was.get(line)!r}")
    wanted = "response" if edit.action == Action.RESPONSE else "revisit"
    if made.type != wanted:
        raise RemoteError(f"{where}: a {made.type!r}, wanted a {wanted}")
    if edit.action == Action.RESPONSE:
        http, payload = made.http_head(), sha1()
        block = sha1(http)
        for piece in made.chunks():
            block.update(piece)
            payload.update(piece)
        digest, path = sha1_name(block.digest()), source(edit)
        promised = head.get("WARC-Payload-Digest")
        if promised.startswith("sha1:") and sha1_name(payload.digest()) != promised:
            raise RemoteError(f"{where}: its payload is not {promised}")
        with opened(path[0]) as (file, name):
            _, original = _read(record_at(file, name, path[1]))
        if original != sha1_name(payload.digest()):
            raise RemoteError(f"{where}: its payload is not that of {path[0]} at {path[1]}")
    else:
        refers = head.get("WARC-Refers-To-Target-URI"), head.get("WARC-Refers-To-Date")
        if refers != (edit.uri, edit.date):
            raise RemoteError(f"{where}: refers to {refers}, wanted {(edit.uri, edit.date)}")
        seen = made.read_all()
        own = before.http_head() if edit.action == Action.REVISIT else before.read_all()
        if form.paper and edit.action == Action.REVISIT:
            own = changes.paper_head(own)
        if seen != own:
            raise RemoteError(f"{where}: its block is not that of the record it was made of")
        digest = sha1_b32(seen) if seen else EMPTY_DIGEST
    if head.get("WARC-Block-Digest") not in (digest, was.get("WARC-Block-Digest")) or (
        edit.action != Action.POINT and head.get("WARC-Block-Digest") != digest
    ):
        raise RemoteError(f"{where}: block digest {head.get('WARC-Block-Digest')}, wanted {digest}")
    return made.length
