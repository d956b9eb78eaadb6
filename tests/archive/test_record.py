"""Records are what WARC 1.1 says, to the byte."""

from __future__ import annotations

import zlib
from base64 import b32encode
from hashlib import sha1
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from archive.samples import (
    BODY,
    DATE,
    HEAD,
    INFO_ID,
    PREFIX,
    URL,
    Sample,
    a_capture,
    a_warcinfo,
    some_outlinks,
)
from geomi.archive import fields, record
from geomi.errors import InternalError, ResourceError
from geomi.records import Answer, Spool, Target


def plain(part: bytes | record.SpoolPart) -> bytes:
    """What is in one gzip member, and nothing may be behind it."""
    assert isinstance(part, bytes)
    z = zlib.decompressobj(31)
    data = z.decompress(part)
    assert z.eof and not z.unused_data
    return data


def built(**more: object) -> record.Members:
    capture = more.pop("capture", a_capture())
    arguments = {"date": DATE, "ids": record.Ids(PREFIX), "warcinfo_id": INFO_ID, **more}
    return record.capture_members(capture, **arguments)  # type: ignore[arg-type]


def test_a_response_is_these_bytes() -> None:
    made = built(metadata=some_outlinks())
    assert plain(made.parts[0]) == (
        b"WARC/1.1\r\n"
        b"WARC-Type: response\r\n"
        b"WARC-Record-ID: <urn:uuid:00010203-0405-8607-8809-000000000001>\r\n"
        b"WARC-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Target-URI: http://example.org/a?b=1\r\n"
        b"WARC-Warcinfo-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        b"WARC-IP-Address: 127.64.0.1\r\n"
        b"WARC-Payload-Digest: sha1:Y2NYOTDEZTML3TB7AIYD6N7DC7GI36CE\r\n"
        b"WARC-Block-Digest: sha1:FJ2KS7SZ2AIKHXSHZYYGSGGNMYRXM5BA\r\n"
        b"Content-Type: application/http; msgtype=response\r\n"
        b"Content-Length: 81\r\n\r\n" + HEAD + BODY + b"\r\n\r\n"
    )
    assert made.record_id == "urn:uuid:00010203-0405-8607-8809-000000000001"
    assert made.response_index == 0
    assert made.payload_digest == "sha1:Y2NYOTDEZTML3TB7AIYD6N7DC7GI36CE"
    assert made.block_digest == "sha1:FJ2KS7SZ2AIKHXSHZYYGSGGNMYRXM5BA"


def test_a_request_is_these_bytes() -> None:
    assert plain(built().parts[1]) == (
        b"WARC/1.1\r\n"
        b"WARC-Type: request\r\n"
        b"WARC-Record-ID: <urn:uuid:00010203-0405-8607-8809-000000000002>\r\n"
        b"WARC-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Target-URI: http://example.org/a?b=1\r\n"
        b"WARC-Warcinfo-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        b"WARC-IP-Address: 127.64.0.1\r\n"
        b"WARC-Concurrent-To: <urn:uuid:00010203-0405-8607-8809-000000000001>\r\n"
        b"WARC-Block-Digest: sha1:5UBKPL2VW3OYCY5YT5TQ7DUTTMZD4SDU\r\n"
        b"Content-Type: application/http; msgtype=request\r\n"
        b"Content-Length: 42\r\n\r\n"
        b"GET /a?b=1 HTTP/1.1\r\nHost: example.org\r\n\r\n\r\n\r\n"
    )


def test_metadata_is_these_bytes() -> None:
    assert plain(built(metadata=some_outlinks()).parts[2]) == (
        b"WARC/1.1\r\n"
        b"WARC-Type: metadata\r\n"
        b"WARC-Record-ID: <urn:uuid:00010203-0405-8607-8809-000000000003>\r\n"
        b"WARC-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Target-URI: http://example.org/a?b=1\r\n"
        b"WARC-Warcinfo-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        b"WARC-Concurrent-To: <urn:uuid:00010203-0405-8607-8809-000000000001>\r\n"
        b"WARC-Block-Digest: sha1:LCDBFHQVAHITFOW6DYIXKD5RETUWNSRF\r\n"
        b"Content-Type: application/warc-fields\r\n"
        b"Content-Length: 122\r\n\r\n"
        b"via: http://example.org/\r\ndepth: 1\r\nfetchTimeMs: 12\r\n"
        b"outlink: http://example.org/ a\r\noutlink: http://example.org/x.png e\r\n\r\n\r\n"
    )


def test_warcinfo_is_these_bytes() -> None:
    assert plain(a_warcinfo()) == (
        b"WARC/1.1\r\n"
        b"WARC-Type: warcinfo\r\n"
        b"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        b"WARC-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Filename: a.warc.gz\r\n"
        b"WARC-Block-Digest: sha1:3HDPIBOOU2MKK37PDH7NF3WTCOP6PNP3\r\n"
        b"Content-Type: application/warc-fields\r\n"
        b"Content-Length: 51\r\n\r\n"
        b"software: geomi/0.1\r\nformat: WARC File Format 1.1\r\n\r\n\r\n"
    )


def test_a_revisit_with_the_same_payload_keeps_the_new_head_and_no_body() -> None:
    made = record.revisit_members(
        a_capture(), profile="identical-payload-digest", refers_to_uri="http://example.org/old",
        refers_to_date="2020-01-02T03:04:05Z", refers_to_id=INFO_ID, payload_digest="sha1:X",
        date=DATE, ids=record.Ids(PREFIX), warcinfo_id=INFO_ID,
    )  # fmt: skip
    assert plain(made.parts[0]) == (
        b"WARC/1.1\r\n"
        b"WARC-Type: revisit\r\n"
        b"WARC-Record-ID: <urn:uuid:00010203-0405-8607-8809-000000000001>\r\n"
        b"WARC-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Target-URI: http://example.org/a?b=1\r\n"
        b"WARC-Warcinfo-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        b"WARC-IP-Address: 127.64.0.1\r\n"
        b"WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"
        b"WARC-Refers-To-Target-URI: http://example.org/old\r\n"
        b"WARC-Refers-To-Date: 2020-01-02T03:04:05Z\r\n"
        b"WARC-Refers-To: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        b"WARC-Payload-Digest: sha1:X\r\n"
        b"WARC-Block-Digest: sha1:CZ6E5LXK37HHABZFKRF4PMJFHUGAGIOG\r\n"
        b"Content-Type: application/http; msgtype=response\r\n"
        b"Content-Length: 59\r\n\r\n" + HEAD + b"\r\n\r\n"
    )
    assert len(made.parts) == 2


def test_a_304_has_no_block_and_its_head_goes_into_the_metadata() -> None:
    head = b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'
    made = record.revisit_members(
        a_capture(head=head, body=b"", code=304), profile="server-not-modified",
        refers_to_uri=URL, refers_to_date=DATE, refers_to_id=None, payload_digest="sha1:X",
        date=DATE, ids=record.Ids(PREFIX), warcinfo_id=INFO_ID, metadata=b"depth: 3\r\n",
    )  # fmt: skip
    assert plain(made.parts[0]) == (
        b"WARC/1.1\r\n"
        b"WARC-Type: revisit\r\n"
        b"WARC-Record-ID: <urn:uuid:00010203-0405-8607-8809-000000000001>\r\n"
        b"WARC-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Target-URI: http://example.org/a?b=1\r\n"
        b"WARC-Warcinfo-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        b"WARC-IP-Address: 127.64.0.1\r\n"
        b"WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n"
        b"WARC-Refers-To-Target-URI: http://example.org/a?b=1\r\n"
        b"WARC-Refers-To-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Payload-Digest: sha1:X\r\n"
        b"WARC-Block-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\n"
        b"Content-Type: application/http; msgtype=response\r\n"
        b"Content-Length: 0\r\n\r\n\r\n\r\n"
    )
    block = plain(made.parts[2]).partition(b"\r\n\r\n")[2]
    assert block == (
        b'depth: 3\r\nhttp-header: HTTP/1.1 304 Not Modified\r\nhttp-header: ETag: "x"\r\n\r\n\r\n'
    )


def test_dns_resource_and_conversion_are_these_bytes() -> None:
    answer = Answer(host="example.org", addresses=("127.64.0.1", "::1"), ttl_s=60.5)
    text = record.dns_text(answer, DATE)
    assert text == (
        b"20240506070809\nexample.org.\t60\tIN\tA\t127.64.0.1\nexample.org.\t60\tIN\tAAAA\t::1\n"
    )
    one = {"date": DATE, "warcinfo_id": INFO_ID, "record_id": "urn:uuid:1"}
    first = (
        b"WARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Target-URI: %b\r\n"
        b"WARC-Warcinfo-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
    )
    digests = b"WARC-Payload-Digest: %b\r\nWARC-Block-Digest: %b\r\n"
    digest = record.sha1_b32(text).encode()
    assert plain(record.dns_member("example.org", text, address_of_server="127.0.0.53", **one)) == (
        b"WARC/1.1\r\nWARC-Type: resource\r\n" + first % b"dns:example.org"
        + b"WARC-IP-Address: 127.0.0.53\r\n" + digests % (digest, digest)
        + b"Content-Type: text/dns\r\nContent-Length: %d\r\n\r\n" % len(text) + text + b"\r\n\r\n"
    )  # fmt: skip
    hi = b"sha1:YIVV7ELYGQTASQUNN5I3FRNPJQF542SC"
    assert record.sha1_b32(b"hi").encode() == hi
    assert plain(record.conversion(URL, b"hi", content_type="text/plain", refers_to_id="urn:2",
                                   **one)) == (
        b"WARC/1.1\r\nWARC-Type: conversion\r\n" + first % URL.encode()
        + b"WARC-Refers-To: <urn:2>\r\n" + digests % (hi, hi)
        + b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n"
    )  # fmt: skip


def test_equal_records_give_equal_members_with_no_time_in_them() -> None:
    one, two = built(metadata=some_outlinks()), built(metadata=some_outlinks())
    assert one == two
    for part in one.parts:
        assert isinstance(part, bytes)
        assert part[:8] == b"\x1f\x8b\x08\0\0\0\0\0"


def test_a_member_is_these_bytes() -> None:
    assert record.gzip_member(b"WARC/1.1\r\n").hex() == (
        "1f8b08000000000000ff0b770c72d637d433e4e50200709fcf490a000000"
    )


@pytest.mark.parametrize("level", [0, 1, 2, 3, 4, 6, 9])
def test_every_level_gives_the_same_record(level: int) -> None:
    assert plain(built(level=level).parts[0]) == plain(built().parts[0])


def test_a_truncated_capture_says_why_and_a_detected_type_is_named() -> None:
    made = built(capture=a_capture(truncated="length"), identified_type="text/html")
    head = plain(made.parts[0])
    assert b"\r\nWARC-Truncated: length\r\n" in head
    assert b"\r\nWARC-Identified-Payload-Type: text/html\r\n" in head


def test_a_capture_without_a_head_has_no_records() -> None:
    made = built(capture=a_capture(head=b"", body=b""))
    assert made.parts == [] and made.record_id == ""


def test_requests_and_metadata_can_be_left_out() -> None:
    assert len(built(requests=False).parts) == 1
    assert len(built(requests=False, metadata=b"depth: 0\r\n").parts) == 2


def test_a_known_payload_digest_is_taken_as_it_is() -> None:
    assert built(payload_digest="sha1:KNOWN").payload_digest == "sha1:KNOWN"


def test_no_value_can_begin_a_header_of_its_own() -> None:
    made = built(capture=a_capture(url="http://example.org/a b\r\nWARC-Type: request\udc80"))
    head = plain(made.parts[0]).partition(b"\r\n\r\n")[0]
    assert b"\r\nWARC-Target-URI: http://example.org/a%20b%0D%0AWARC-Type:%20request%3F" in head
    info = record.warcinfo("x", DATE, record_id="y", fields={"a": "b\nc: d"})
    assert b"\r\na: b c: d\r\n" in plain(info)


def test_a_spooled_body_streams_into_one_member(tmp_path: Path) -> None:
    body = bytes(range(256)) * 2000
    path = tmp_path / "spool"
    spool = Spool(path=str(path), size=len(body), payload_sha1=sha1(body).digest(),
                  block_sha1=sha1(HEAD + body).digest())  # fmt: skip
    made = built(capture=a_capture(body=body[:10], spool=spool))
    part = made.parts[0]
    assert isinstance(part, record.SpoolPart)
    whole = plain(built(capture=a_capture(body=body)).parts[0])
    for size in (1000, 70000, len(body)):
        chunks = [body[i : i + size] for i in range(0, len(body), size)]
        assert plain(b"".join(record.stream_member(part, chunks))) == whole
        assert plain(b"".join(record.stream_member(part, chunks, level=6))) == whole
    with pytest.raises(ResourceError, match="spooled body is 3 bytes, wanted 512000"):
        list(record.stream_member(part, [b"abc"]))


def test_ids_are_uuids_that_never_repeat_and_follow_from_the_prefix() -> None:
    ids = record.Ids(b"\xff" * 10)
    made = [ids.next() for _ in range(1000)]
    assert len(set(made)) == 1000
    for name in made:
        uuid = UUID(name)
        assert name == uuid.urn and uuid.version == 8 and uuid.variant == "specified in RFC 4122"
    assert record.Ids(b"\xff" * 10).next() == made[0]
    assert record.Ids(b"\xfe" * 10).next() != made[0]
    with pytest.raises(InternalError):
        record.Ids(b"short")


@given(st.binary(min_size=20, max_size=20))
def test_a_digest_is_base32_as_the_library_writes_it(digest: bytes) -> None:
    assert record.sha1_name(digest) == "sha1:" + b32encode(digest).decode()


@pytest.mark.parametrize(
    ("t", "date"),
    [(0.0, "1970-01-01T00:00:00.000Z"), (1714979289.123, "2024-05-06T07:08:09.123Z"),
     (1714979289.9999, "2024-05-06T07:08:10.000Z"), (1714979289.0004, "2024-05-06T07:08:09.000Z")],
)  # fmt: skip
def test_a_date_is_utc_with_milliseconds(t: float, date: str) -> None:
    assert record.warc_date(t) == date
    assert record.date14(date) == date[:19].replace("-", "").replace("T", "").replace(":", "")


def test_outlinks_are_read_back_and_other_fields_with_them() -> None:
    links = [(kind, Target(f"http://example.org/{i}", "example.org"))
             for i, kind in enumerate("fahe")]  # fmt: skip
    block = record.outlinks(links, depth=2, fields=[("title", "두 줄\r\noutlink: http://evil/ a")])
    assert fields.parse_outlinks(block) == [(kind, target.url) for kind, target in links]
    assert fields.parse_fields(block)[:2] == [
        ("depth", "2"), ("title", "두 줄  outlink: http://evil/ a")]  # fmt: skip
    assert fields.parse_fields(b"a: b\r\n c\r\nnothing\r\nd:e\n") == [("a", "b c"), ("d", "e")]


def test_the_sample_holds_every_type_that_is_written(sample: Sample) -> None:
    assert set(sample.types) == {"warcinfo", "response", "request", "metadata", "revisit",
                                 "resource", "conversion"}  # fmt: skip


def test_all_records_of_an_unverified_server_say_so_and_no_others() -> None:
    for unverified in (False, True):
        members = built(capture=replace(a_capture(), is_unverified=unverified), metadata=b"")
        texts = [plain(part) for part in members.parts]
        assert len(texts) == 3
        line = b"\r\nX-Geomi-TLS: not verified\r\n"
        assert [line in text for text in texts] == [unverified, unverified, False]
