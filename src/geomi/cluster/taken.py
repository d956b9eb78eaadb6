"""What a record of another archive is here: a capture of a page, or none. Decides only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha1

from msgspec import Struct

from geomi import url as urls
from geomi.archive.chunked import Dechunked
from geomi.archive.digests import plain_digest
from geomi.archive.names import sha1_name
from geomi.archive.reader import Member
from geomi.extract import Extractor
from geomi.extract.head import parse_head
from geomi.states import Outcome

_PAGE_MAX_BYTES = 10 << 20  # as crawls keep them; the links of longer ones are those before
_KINDS = frozenset({"response", "revisit", "resource"})


class Taken(Struct, frozen=True, kw_only=True):
    """A capture that somebody else made. Made by: take.   Taken by: cluster.imports."""

    url: str  # canonical
    site: str
    offset: int
    length: int
    at: float  # seconds since 1970, UTC
    date: str  # to the letter
    record_id: str
    outcome: Outcome
    code: int
    mime: str
    size: int  # of the payload
    digest: str
    etag: str
    last_modified: str
    is_revisit: bool
    is_robots: bool
    links: tuple[tuple[str, str], ...] = ()  # (kind, URL) within the site


def is_capture(member: Member) -> bool:
    """True for what an index would have a line for."""
    return member.type in _KINDS


def take(member: Member, extractor: Extractor) -> Taken | None:
    """Reads a record to its end. None: its URI is no web address, or its date no date."""
    url = urls.canonical(member.target_uri)
    at = seconds(member.date)
    media = member.headers.get("Content-Type").lower()
    head = member.http_head() if media.startswith("application/http") else b""
    payload = sha1()
    size = 0
    body = bytearray()
    fields = parse_head(head) if head else {}
    keep: Callable[[memoryview], object] | None
    keep = body.extend if "html" in fields.get("content-type", "") else None
    if keep and "chunked" in fields.get("transfer-encoding", ""):
        keep = Dechunked(keep).update
    for piece in member.pieces():
        payload.update(piece)
        size += len(piece)
        if keep and len(body) < _PAGE_MAX_BYTES:
            keep(piece)
    length = member.length
    if url is None or at is None or not urls.site_of(url):
        return None
    code = _code(head)
    site, outcome = urls.site_of(url), _outcome(member, code)
    is_revisit = member.type == "revisit"
    said = member.headers.get("WARC-Payload-Digest")
    digest = plain_digest(said) if said else "" if is_revisit else sha1_name(payload.digest())
    mime = fields.get("content-type", "") if head else "" if is_revisit else media
    return Taken(
        url=url, site=site, offset=member.offset, length=length, at=at,
        date=member.date, record_id=member.record_id, outcome=outcome, code=code,
        mime=mime.partition(";")[0].strip().lower()[:100], size=0 if is_revisit else size,
        digest=digest, etag=fields.get("etag", "")[:200],
        last_modified=fields.get("last-modified", "")[:100], is_revisit=is_revisit,
        is_robots=urls.target_of(url) == "/robots.txt",
        links=tuple(
            (kind, target.url)
            for kind, target in extractor.page(url, fields, bytes(body)).links
            if target.site == site and target.url != url
        ) if body and outcome is Outcome.OK else (),
    )  # fmt: skip


def seconds(date: str) -> float | None:
    """A WARC-Date, with or without fractions; None: it is none."""
    try:
        at = datetime.fromisoformat(date)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _code(head: bytes) -> int:
    words = head[:200].split(b"\n", 1)[0].split()
    if len(words) > 1 and words[0].startswith(b"HTTP/") and len(words[1]) == 3:
        return int(words[1]) if words[1].isdigit() else 0
    return 0


def _outcome(member: Member, code: int) -> Outcome:
    if member.type == "revisit":
        if member.headers.get("WARC-Profile").strip("<>").endswith("server-not-modified"):
            return Outcome.SAME
        return Outcome.OK if code in (0, 200) else Outcome.CODE
    if member.type == "resource":
        return Outcome.OK
    if code == 200:
        is_cut = member.headers.get("WARC-Truncated") or member.headers.get("WARC-Segment-Number")
        return Outcome.CUT if is_cut else Outcome.OK
    return Outcome.CODE if code else Outcome.H_NPR
