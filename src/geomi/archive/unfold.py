"""A revisit made into a response again: its own head, the payload of its original."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha1

from geomi.archive.names import EMPTY_DIGEST, sha1_name
from geomi.archive.reader import Member
from geomi.archive.record import SpoolPart, stream_member
from geomi.errors import RemoteError

_GOES = frozenset({"warc-type", "warc-profile", "warc-refers-to", "warc-refers-to-target-uri",
                   "warc-refers-to-date", "warc-block-digest", "warc-payload-digest",
                   "content-length", "content-type"})  # fmt: skip


def as_response(
    revisit: Member, original: Callable[[], Member], *, level: int = 1
) -> Iterator[bytes]:
    """One gzip member, in pieces. `original` opens the record anew each time it is called.

    Keeps id, date, target URI, address and whatever else the revisit says. RemoteError if the
    original's payload is not what the revisit promises. The original is read twice: a header says
    what comes behind it.
    """
    head = revisit.http_head() if revisit.content_length else b""
    first = original()
    theirs = first.http_head()
    head = head or theirs
    size = first.content_length - len(theirs)
    block, payload = sha1(head), sha1()
    for chunk in first.chunks():
        block.update(chunk)
        payload.update(chunk)
    digest = sha1_name(payload.digest()) if size else EMPTY_DIGEST
    promised = revisit.headers.get("WARC-Payload-Digest")
    is_like = promised.lower().startswith("sha1:") and len(promised) == len(digest)
    if is_like and promised.upper() != digest.upper():
        raise RemoteError(
            f"{revisit.file} at {revisit.offset}: the payload of {first.file} at"
            f" {first.offset} is {digest}, wanted {promised}"
        )
    kept = "".join(
        f"{name}: {value}\r\n" for name, value in revisit.headers.lines if name.lower() not in _GOES
    )
    header = (
        f"{revisit.version}\r\nWARC-Type: response\r\n{kept}"
        f"WARC-Payload-Digest: {digest}\r\nWARC-Block-Digest: {sha1_name(block.digest())}\r\n"
        "Content-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(head) + size}\r\n\r\n"
    ).encode()
    again = original()
    again.http_head()
    part = SpoolPart(header=header + head, path=again.file, size=size)
    yield from stream_member(part, again.chunks(), level=level)
