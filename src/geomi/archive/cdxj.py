"""CDXJ: one line a capture, `SURT timestamp14 {json}`, as pywb's indexer writes it."""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterable, Iterator
from hashlib import sha1
from pathlib import Path
from typing import BinaryIO

import msgspec

from geomi import url as urls
from geomi.archive.names import date14
from geomi.archive.reader import Member, members
from geomi.errors import RemoteError

REVISIT_MIME = "warc/revisit"

_INDEXED = frozenset({"response", "revisit", "resource"})


class CdxLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an index, read. `status` and `digest` are "-" where the line has none."""

    surt: str
    timestamp14: str
    url: str
    mime: str
    status: str
    digest: str  # Base32 of SHA-1 without a prefix, or as the line has it
    length: int
    offset: int
    filename: str


class _Json(msgspec.Struct, frozen=True):
    url: str
    filename: str
    offset: int | str
    length: int | str = -1  # some old indexes have none
    mime: str = "unk"
    status: int | str = "-"
    digest: str = "-"


_DECODER = msgspec.json.Decoder(_Json)


def line(
    surt: str,
    timestamp14: str,
    *,
    url: str,
    mime: str,
    status: str,
    digest: str,
    length: int,
    offset: int,
    filename: str,
) -> bytes:
    """One line with its line end. The digest loses `sha1:`; a status of "" or "-" is left out."""
    shown = f'"status": {_quoted(status)}, ' if status and status != "-" else ""
    return (
        f'{surt} {timestamp14} {{"url": {_quoted(url)}, "mime": {_quoted(mime)}, {shown}'
        f'"digest": {_quoted(digest.removeprefix("sha1:"))}, "length": "{length}", '
        f'"offset": "{offset}", "filename": {_quoted(filename)}}}\n'
    ).encode()


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return json.dumps(text)


def parse_line(raw: bytes) -> CdxLine:
    """Reads a line of ours, pywb's or cdxj-indexer's. RemoteError says what is wrong with it."""
    try:
        surt, stamp, url, filename, offset, length, digest, got = _parse(raw)
        return CdxLine(
            surt=surt.decode(),
            timestamp14=stamp.decode(),
            url=url,
            mime=got.mime,
            status=str(got.status),
            digest=digest,
            length=length,
            offset=offset,
            filename=filename,
        )
    except UnicodeDecodeError as error:
        raise RemoteError(f"index line {raw[:80]!r}: {error}") from error


def parse_place(raw: bytes) -> tuple[bytes, str, str, int, int, str]:
    """(time, url, filename, offset, length, digest) of a line: what a check compares, in half the
    time. RemoteError as parse_line."""
    return _parse(raw)[1:7]


def _parse(raw: bytes) -> tuple[bytes, bytes, str, str, int, int, str, _Json]:
    parts = raw.split(b" ", 2)
    if len(parts) != 3:
        raise RemoteError(f"index line {raw[:80]!r}: {len(parts)} parts, wanted key, time, JSON")
    try:
        got = _DECODER.decode(parts[2])
        return (parts[0], parts[1], got.url, got.filename, int(got.offset), int(got.length),
                got.digest.removeprefix("sha1:"), got)  # fmt: skip
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise RemoteError(f"index line {raw[:80]!r}: {error}") from error


def sort_lines(lines: Iterable[bytes]) -> list[bytes]:
    """In byte order, as `LC_ALL=C sort` does; a line that occurs twice stays once."""
    return sorted(set(lines))


def from_warc(source: str | Path | BinaryIO, filename: str) -> Iterator[bytes]:
    """A line for each response, revisit and resource, in the order of the file."""
    for member in members(source):
        if member.type in _INDEXED and member.target_uri:
            yield _index(member, filename)


def _index(member: Member, filename: str) -> bytes:
    uri = member.target_uri
    mime, status, digest = _payload(member)
    return line(
        key_of(uri),
        date14(member.date),
        url=uri,
        mime=mime,
        status=status,
        digest=digest,
        length=member.length,
        offset=member.offset,
        filename=filename,
    )


def key_of(uri: str) -> str:
    """The SURT of a web address; other URIs (dns:, urn:) are their own key."""
    canonical = urls.canonical(uri)
    return urls.surt(canonical) if canonical is not None else uri.replace(" ", "%20")


def _payload(member: Member) -> tuple[str, str, str]:
    """(mime, status, digest); the digest is computed where the record has none."""
    status, mime = "-", ""
    if member.headers.get("Content-Type").replace(" ", "").startswith("application/http"):
        head = member.http_head().decode("latin-1").split("\n")
        words = head[0].split(None, 2)
        if len(words) > 1 and words[1].isdigit():
            status = words[1]
        for header in head[1:]:
            name, _, value = header.partition(":")
            if name.strip().lower() == "content-type":
                mime = value
                break
    else:
        mime = member.headers.get("Content-Type")
    if member.type == "revisit":
        mime = REVISIT_MIME
    digest = member.headers.get("WARC-Payload-Digest")
    if not digest and member.type != "revisit":
        payload = sha1()
        for chunk in member.chunks():
            payload.update(chunk)
        digest = b32encode(payload.digest()).decode()
    mime = mime.partition(";")[0].strip().partition(" ")[0]
    return mime or "unk", status, digest or "-"
