"""One file with every record type, and the captures it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path

from geomi.archive import record
from geomi.records import Answer, Capture, Spool, Target
from geomi.states import Outcome

DATE = "2024-05-06T07:08:09.123Z"
URL = "http://example.org/a?b=1"
REQUEST = b"GET /a?b=1 HTTP/1.1\r\nHost: example.org\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
BODY = b"<html>\r\n\r\nhello</html>"
INFO_ID = "urn:uuid:00000000-0000-4000-8000-000000000001"
PREFIX = bytes(range(10))


def a_capture(
    *, head: bytes = HEAD, body: bytes = BODY, code: int = 200, url: str = URL,
    truncated: str = "", spool: Spool | None = None, outcome: Outcome = Outcome.OK,
) -> Capture:  # fmt: skip
    return Capture(
        ticket=1, url=url, address="127.64.0.1", started=1.0, ended=2.0, outcome=outcome,
        code=code, request=REQUEST, head=head, body=body, truncated=truncated, spool=spool,
    )  # fmt: skip


def a_warcinfo() -> bytes:
    return record.warcinfo(
        "a.warc.gz",
        DATE,
        record_id=INFO_ID,
        fields={"software": "geomi/0.1", "format": "WARC File Format 1.1"},
    )


def some_outlinks() -> bytes:
    links = [("a", Target("http://example.org/", "example.org")),
             ("e", Target("http://example.org/x.png", "example.org"))]  # fmt: skip
    return record.outlinks(links, "http://example.org/", depth=1, fetch_time_ms=12)


@dataclass(frozen=True)
class Sample:
    path: Path
    members: list[bytes]  # as written, in order
    types: list[str]

    @property
    def offsets(self) -> list[int]:
        return [sum(map(len, self.members[:i])) for i in range(len(self.members))]


def every_record(spooled: Path) -> list[tuple[str, bytes]]:
    """(type, member) of each; the fourth capture has a spooled body."""
    ids = record.Ids(PREFIX)
    common = {"date": DATE, "ids": ids, "warcinfo_id": INFO_ID}
    found: list[tuple[str, bytes]] = [("warcinfo", a_warcinfo())]

    def add(made: record.Members, first: str) -> None:
        names = [first, "request", "metadata"]
        for name, part in zip(names, made.parts, strict=False):
            if isinstance(part, record.SpoolPart):
                part = b"".join(record.stream_member(part, [Path(part.path).read_bytes()]))
            found.append((name, part))

    first = record.capture_members(a_capture(), metadata=some_outlinks(), **common)
    add(first, "response")
    add(record.capture_members(a_capture(body=b"", code=404,
        head=b"HTTP/1.1 404 Not Found\r\n\r\n"), **common), "response")  # fmt: skip
    revisit = {
        "refers_to_uri": URL,
        "refers_to_date": DATE,
        "refers_to_id": first.record_id,
        "payload_digest": first.payload_digest,
        **common,
    }
    add(record.revisit_members(a_capture(), profile="identical-payload-digest",
                               metadata=some_outlinks(), **revisit), "revisit")  # fmt: skip
    add(record.revisit_members(
        a_capture(head=b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n', body=b"", code=304),
        profile="server-not-modified", **revisit), "revisit")  # fmt: skip
    body = bytes(range(256)) * 1000
    spooled.write_bytes(body)
    spool = Spool(path=str(spooled), size=len(body), payload_sha1=sha1(body).digest(),
                  block_sha1=sha1(HEAD + body).digest())  # fmt: skip
    add(record.capture_members(a_capture(body=body[:100], spool=spool, truncated="length"),
                               metadata=b"depth: 0\r\n", **common), "response")  # fmt: skip
    one = {"date": DATE, "warcinfo_id": INFO_ID}
    answer = Answer(host="example.org", addresses=("127.64.0.1", "::1"), ttl_s=60.0)
    found.append(("resource", record.dns_member(
        "example.org", record.dns_text(answer, DATE), address_of_server="127.0.0.53",
        record_id=ids.next(), **one)))  # fmt: skip
    found.append(("resource", record.resource(
        "urn:x:notice", b"{}", content_type="application/json", record_id=ids.next(),
        **one)))  # fmt: skip
    found.append(("conversion", record.conversion(
        URL, b"hello", content_type="text/plain", record_id=ids.next(),
        refers_to_id=first.record_id, **one)))  # fmt: skip
    return found
