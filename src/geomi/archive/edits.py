"""A record made into another: a response into a revisit, a revisit into a response. Decides only.

All that is not about the payload stays: record id, date, target URI, payload digest, address, and
every line that is not known here. Length and block digest are computed anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from geomi.archive.names import header_uri
from geomi.archive.record import PROFILES
from geomi.errors import RemoteError

NOT_MODIFIED = PROFILES["server-not-modified"]
IDENTICAL = PROFILES["identical-payload-digest"]
#: What a record of an older version says, since it knows no other.
_OLD_IDENTICAL = IDENTICAL.replace("/1.1/", "/1.0/")

_PROFILE = "warc-profile"
_REFERS = frozenset({"warc-refers-to", "warc-refers-to-target-uri", "warc-refers-to-date"})
_LINES = tuple[tuple[str, str], ...]


class Action(StrEnum):
    """What happens to a record of a file on its way into the next generation."""

    REVISIT = "revisit"  # a response whose payload is kept elsewhere
    POINT = "point"  # a revisit that refers to another record from now on
    RESPONSE = "response"  # a revisit that gets the payload, since its original goes
    DROP = "drop"  # deleted
    ORPHAN = "orphan"  # of no visit: left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The record that holds a payload, as a revisit names it."""

    uri: str  # as its header has it
    date: str  # its WARC-Date, to the letter
    record_id: str  # without angle brackets


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A record up to its block. Made by: the reader.   Taken by: the functions here."""

    version: str
    lines: _LINES

    def get(self, name: str) -> str:
        name = name.lower()
        return next((value for other, value in self.lines if other.lower() == name), "")

    def bytes(self) -> bytes:
        text = "".join(f"{name}: {value}\r\n" for name, value in self.lines)
        return f"{self.version}\r\n{text}\r\n".encode()


def as_revisit(head: Head, original: Original, *, block_length: int, block_digest: str) -> Head:
    """The header of a response whose payload is left out."""
    profile = IDENTICAL if head.version == "WARC/1.1" else _OLD_IDENTICAL
    told = [("WARC-Profile", profile), *_refers(original)]
    return _changed(head, kind="revisit", length=block_length, block_digest=block_digest, told=told)


def pointed(head: Head, original: Original) -> Head:
    """The header of a revisit that refers to another record; its block stays as it is."""
    told = [("WARC-Profile", head.get("WARC-Profile") or IDENTICAL), *_refers(original)]
    return Head(version=head.version, lines=tuple(_told(head, told, drop=_REFERS | {_PROFILE})))


def as_response(head: Head, *, block_length: int, block_digest: str) -> Head:
    """The header of a revisit that holds its payload itself again."""
    return _changed(head, kind="response", length=block_length, block_digest=block_digest, told=())


def _refers(original: Original) -> list[tuple[str, str]]:
    found = [
        ("WARC-Refers-To-Target-URI", header_uri(original.uri)),
        ("WARC-Refers-To-Date", original.date),
    ]
    if original.record_id:
        found.append(("WARC-Refers-To", f"<{original.record_id}>"))
    return found


def _changed(
    head: Head, *, kind: str, length: int, block_digest: str, told: _LINES | list[tuple[str, str]]
) -> Head:
    drop = _REFERS | {_PROFILE, "warc-block-digest", "content-length", "warc-type"}
    lines = _told(head, told, drop=drop)
    lines.insert(0, ("WARC-Type", kind))
    lines += [("WARC-Block-Digest", block_digest), ("Content-Length", str(length))]
    return Head(version=head.version, lines=tuple(lines))


def _told(
    head: Head, told: _LINES | list[tuple[str, str]], *, drop: frozenset[str] | set[str]
) -> list[tuple[str, str]]:
    """Its lines without some; what is told comes behind the target URI."""
    lines: list[tuple[str, str]] = []
    place = 0
    for name, value in head.lines:
        if name.lower() not in drop:
            lines.append((name, value))
            if name.lower() == "warc-target-uri":
                place = len(lines)
    place = place or len(lines)
    return [*lines[:place], *told, *lines[place:]]


# -- the HTTP head ---------------------------------------------------------------------------------


def status_of(http: bytes) -> str:
    """The three digits of a status line; empty if there are none."""
    words = http.split(b"\n", 1)[0].split(None, 2)
    code = words[1].decode("latin-1") if len(words) > 1 else ""
    return code if code.isdigit() else ""


def field_of(http: bytes, name: str) -> str:
    """The first header line of that name; empty if there is none."""
    wanted = name.lower().encode()
    for line in http.split(b"\n")[1:]:
        key, colon, value = line.partition(b":")
        if colon and key.strip().lower() == wanted:
            return value.strip().decode("latin-1")
    return ""


def paper_head(http: bytes) -> bytes:
    """The form of paper 004: status 304, without Last-Modified. Replay shows a 304 then."""
    first, _, rest = http.partition(b"\n")
    words = first.split(None, 2)
    if len(words) < 2:
        return http
    lines = [line for line in rest.split(b"\n")
             if line.partition(b":")[0].strip().lower() != b"last-modified"]  # fmt: skip
    return b"\n".join([words[0] + b" 304 Not Modified\r", *lines])


def whole_head(own: bytes, original: bytes, *, profile: str) -> bytes:
    """The HTTP head of a response made of a revisit.

    A server that said "not modified" meant the answer it had given before; a 304 that a filter
    wrote (paper 004) had the original's status.
    """
    if not own or "server-not-modified" in profile:
        return original
    if status_of(own) == "304":
        return original.partition(b"\n")[0] + b"\n" + own.partition(b"\n")[2]
    return own


def must_be_http(head: Head, where: str) -> None:
    """RemoteError if the payload cannot be told from the block."""
    kind = head.get("Content-Type").replace(" ", "")
    if not kind.startswith("application/http"):
        raise RemoteError(f"{where}: Content-Type is {kind[:40]!r}, wanted application/http")
