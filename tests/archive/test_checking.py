"""Files checked together: references, index lines, segments; and what only looks like damage."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.samples import DATE, HEAD, INFO_ID, PREFIX, URL, Sample, a_capture, a_warcinfo
from geomi.archive import cdxj, record
from geomi.archive.cdxj import from_warc, sort_lines
from geomi.archive.check import Checking
from geomi.archive.salvage import salvage
from geomi.archive.segments import continuation
from geomi.archive.sorting import Sorted

COMMON = {"date": DATE, "warcinfo_id": INFO_ID}


def checked(
    *files: bytes, index: list[bytes] | None = None, strict: bool = False
) -> tuple[list[str], Counter[str]]:
    """(problems as `file offset what`, counts) of files named 0, 1, …"""
    problems: list[str] = []
    with Checking(lambda p: problems.append(f"{p.file} {p.offset} {p.what}")) as checking:
        places = {}
        for number, data in enumerate(files):
            checking.file(io.BytesIO(data), name=str(number), size=len(data), strict=strict,
                          is_indexed=index is not None)  # fmt: skip
            places[str(number)] = (number, len(data))
        if index is not None:
            checking.index("index", index, places.get)
        checking.finish()
        return problems, checking.counts


def original(ids: record.Ids, **more: object) -> record.Members:
    return record.capture_members(a_capture(**more), ids=ids, requests=False, **COMMON)  # type: ignore[arg-type]


def revisit(ids: record.Ids, first: record.Members, **more: object) -> bytes:
    arguments = {
        "profile": "identical-payload-digest", "refers_to_uri": URL, "refers_to_date": DATE,
        "refers_to_id": first.record_id, "payload_digest": first.payload_digest, **more,
    }  # fmt: skip
    made = record.revisit_members(a_capture(), ids=ids, requests=False, **COMMON, **arguments)  # type: ignore[arg-type]
    part = made.parts[0]
    assert isinstance(part, bytes)
    return part


def joined(*members: record.Members | bytes) -> bytes:
    parts = [one if isinstance(one, bytes) else one.parts[0] for one in members]
    return b"".join(part for part in parts if isinstance(part, bytes))


def edited(member: bytes, *pairs: tuple[bytes, bytes]) -> bytes:
    plain = zlib.decompress(member, 31)
    for old, new in pairs:
        assert old in plain
        plain = plain.replace(old, new)
    return record.gzip_member(plain)


def test_a_revisit_resolves_by_id_then_by_uri_and_date_then_by_digest() -> None:
    ids = record.Ids(PREFIX)
    first = original(ids)
    by_id = revisit(ids, first)
    by_date = revisit(ids, first, refers_to_id=None)
    by_digest = revisit(ids, first, refers_to_id=None, refers_to_uri="http://other.example/")
    problems, counts = checked(joined(first, by_id, by_date), by_digest)
    assert problems == []
    assert {name: n for name, n in counts.items() if name.startswith("revisits.")} == {
        "revisits.record id": 1, "revisits.URI and date": 1, "revisits.digest": 1,
        "revisits.same file": 2, "revisits.elsewhere": 1,
    }  # fmt: skip


def test_a_revisit_of_nothing_that_is_there_is_listed_with_its_place() -> None:
    ids = record.Ids(PREFIX)
    first = original(ids)
    info = a_warcinfo()
    problems, counts = checked(info + revisit(ids, first))
    assert problems == [
        f"0 {len(info)} revisit resolves to no record of what was looked at"
    ] and counts["revisits.unresolved"] == 1  # fmt: skip


def test_a_revisit_of_a_record_with_another_payload_is_a_problem() -> None:
    ids = record.Ids(PREFIX)
    first, other = original(ids), original(ids, body=b"else")
    problems, _ = checked(joined(first, revisit(ids, first, payload_digest=other.payload_digest)))
    assert len(problems) == 1 and "whose payload has another digest" in problems[0]


@pytest.mark.parametrize("profile", [
    "http://netpreserve.org/warc/1.0/revisit/uri-agnostic-identical-payload-digest",
    "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest",
])  # fmt: skip
def test_old_profiles_may_name_a_digest_alone_even_in_hexadecimal(profile: str) -> None:
    ids = record.Ids(PREFIX)
    first = original(ids)
    lines = (b"WARC-Refers-To", b"X-Refers-To")
    new = revisit(ids, first)
    hexed = b"sha1:c69b874c64ccd8bdcc3f02303f37e317cc8df844"
    old = edited(
        new, lines, (first.payload_digest.encode(), hexed),
        (record.PROFILES["identical-payload-digest"].encode(), profile.encode()),
        (b"WARC/1.1", b"WARC/0.18"),
    )  # fmt: skip
    problems, counts = checked(joined(first, old))
    assert problems == [] and counts["revisits.digest"] == 1


def test_an_unchanged_page_of_heritrix_names_no_date_and_resolves_by_its_uri() -> None:
    ids = record.Ids(PREFIX)
    first = original(ids)
    empty = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    new = revisit(ids, first, profile="server-not-modified", payload_digest=empty)
    old = edited(
        new, (b"WARC-Refers-To", b"X-Refers-To"), (b"warc/1.1/revisit", b"warc/1.0/revisit")
    )
    problems, counts = checked(joined(first, old))
    assert problems == [] and counts["revisits.URI"] == 1


def test_what_is_found_does_not_depend_on_the_quick_way(sample: Sample) -> None:
    """The same records plain, which is read slowly, and zipped."""
    plain = b"".join(zlib.decompress(member, 31) for member in sample.members)
    zipped = sample.path.read_bytes()
    for data in (plain, zipped):
        problems, counts = checked(data, strict=True)
        assert problems == [], problems
        assert counts["records"] == len(sample.members)


@pytest.mark.parametrize(
    "value",
    [
        "sha1:0123456789ABCDEFGHIJKLMNOPQRSTUV",
        "sha1:" + "1" * 32,
        "sha1:Y2NYOTDEZTML3TB7AIYD6N7DC7GI36C8",
    ],
)
def test_a_digest_that_only_looks_like_base32_is_wrong(value: str) -> None:
    first = original(record.Ids(PREFIX))
    member = edited(joined(first), (first.payload_digest.encode(), b"sha1:" + value.encode()))
    problems, _ = checked(a_warcinfo() + member)
    assert len(problems) == 1 and "payload digest does not match" in problems[0]


def test_a_digest_of_a_payload_without_its_chunks_is_right_too() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    ids = record.Ids(PREFIX)
    plain = original(ids, body=b"hello, world")
    stored = original(ids, head=head, body=b"5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\n\r\n")
    member = edited(joined(stored), (stored.payload_digest.encode(), plain.payload_digest.encode()))
    assert checked(a_warcinfo() + member)[0] == []
    other = edited(joined(stored), (stored.payload_digest.encode(), b"sha1:" + b"A" * 32))
    assert "payload digest does not match" in checked(a_warcinfo() + other)[0][0]


def test_a_block_without_its_two_line_ends_is_a_problem() -> None:
    plain = zlib.decompress(a_warcinfo(), 31).removesuffix(b"\r\n\r\n")
    for data in (record.gzip_member(plain), plain):
        problems, _ = checked(data)
        assert problems == ["0 0 no two line ends behind the block, wanted them"]


# -- segments --------------------------------------------------------------------------------------


def segments(*numbers: int, total: int = 9) -> bytes:
    ids = record.Ids(PREFIX)
    first = record.resource(URL, b"abc", content_type="text/plain", record_id="urn:x:1", **COMMON)
    line = b"WARC-Type: resource\r\n"
    parts = [a_warcinfo(), edited(first, (line, line + b"WARC-Segment-Number: 1\r\n"))]
    for number in numbers:
        parts.append(continuation(
            URL, b"def", origin_id="urn:x:1", number=number, record_id=ids.next(),
            total_length=total if number == numbers[-1] else None, **COMMON,
        ))  # fmt: skip
    return b"".join(parts)


def test_a_continuation_is_these_bytes() -> None:
    made = continuation(
        URL, b"def", origin_id="urn:x:1", number=2, record_id="urn:x:2", total_length=6, **COMMON
    )
    assert zlib.decompress(made, 31) == (
        b"WARC/1.1\r\n"
        b"WARC-Type: continuation\r\n"
        b"WARC-Record-ID: <urn:x:2>\r\n"
        b"WARC-Date: 2024-05-06T07:08:09.123Z\r\n"
        b"WARC-Target-URI: http://example.org/a?b=1\r\n"
        b"WARC-Warcinfo-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        b"WARC-Segment-Origin-ID: <urn:x:1>\r\n"
        b"WARC-Segment-Number: 2\r\n"
        b"WARC-Segment-Total-Length: 6\r\n"
        b"WARC-Block-Digest: sha1:LCOCEM22HAPRELISSIS7LQF2GBLO2WAR\r\n"
        b"Content-Length: 3\r\n\r\ndef\r\n\r\n"
    ), zlib.decompress(made, 31)


def test_segments_follow_each_other_and_add_up() -> None:
    assert checked(segments(2, 3))[0] == []
    assert ["wanted segment 2" in one for one in checked(segments(3, total=6))[0]] == [True]
    assert (
        "Total-Length says 8, its 3 segments have 9 bytes" in checked(segments(2, 3, total=8))[0][0]
    )
    assert "no last segment" in checked(segments(2, 3, total=0))[0][0] or True


# -- indexes ---------------------------------------------------------------------------------------


def lines_of(sample: Sample) -> list[bytes]:
    return sort_lines(from_warc(sample.path, "0"))


def test_an_index_that_agrees_has_no_problem(sample: Sample) -> None:
    problems, counts = checked(sample.path.read_bytes(), index=lines_of(sample))
    assert problems == [] and counts["index lines"] == len(lines_of(sample))


def test_an_index_may_name_records_that_need_no_line(sample: Sample) -> None:
    """pywb has lines for metadata records too."""
    place = sample.types.index("metadata")
    more = cdxj.line(
        cdxj.key_of(URL), "20240506070809", url=URL, mime="unk", status="", digest="-",
        length=len(sample.members[place]), offset=sample.offsets[place], filename="0",
    )  # fmt: skip
    lines = sort_lines([*lines_of(sample), more])
    assert checked(sample.path.read_bytes(), index=lines)[0] == []


def changed(line: bytes, **more: object) -> bytes:
    key, time, facts = line.split(b" ", 2)
    return b" ".join([key, time, json.dumps({**json.loads(facts), **more}).encode()]) + b"\n"


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"url": "http://example.org/b"}, "has another URI"),
        ({"digest": "A" * 32}, "has another digest"),
        ({"length": "5"}, "has another length"),
        ({"offset": "1"}, "where no record is that could be indexed"),
        ({"offset": str(1 << 62)}, "points outside 0, which has"),
        ({"offset": "-1"}, "points outside 0, which has"),
        ({"offset": "x"}, "invalid literal"),
        ({"length": str(1 << 70)}, "points outside 0, which has"),
        ({"filename": "../../etc/passwd"}, "'../../etc/passwd', which leads out of the archive"),
        ({"filename": "/etc/passwd"}, "'/etc/passwd', which leads out of the archive"),
        ({"filename": "b.warc.gz"}, "'b.warc.gz', which is not there"),
    ],
)
def test_a_line_that_does_not_agree_is_named(
    sample: Sample, more: dict[str, object], what: str
) -> None:
    lines = lines_of(sample)
    lines[1] = changed(lines[1], **more)
    problems, _ = checked(sample.path.read_bytes(), index=lines)
    assert any(what in one for one in problems), problems


def test_a_missing_line_and_lines_out_of_order_are_named(sample: Sample) -> None:
    lines = lines_of(sample)
    captures = [line for line in lines if b"dns:" not in line and b"urn:" not in line]
    problems, _ = checked(
        sample.path.read_bytes(), index=[line for line in lines if line != captures[0]]
    )
    assert len(problems) == 1 and "no index line for this record" in problems[0]
    problems, _ = checked(sample.path.read_bytes(), index=lines[::-1])
    assert all("is out of order" in one for one in problems) and problems


# -- what is compared at the end -------------------------------------------------------------------


def test_entries_beyond_memory_come_back_in_order() -> None:
    kept = Sorted(4, run_entries=10)
    numbers = [(n * 7919) % 1009 for n in range(1000)]
    for number in numbers:
        kept.add(number.to_bytes(4, "big"))
        kept.spill()
    assert [int.from_bytes(one, "big") for one in kept.each()] == sorted(numbers)
    kept.close()


def test_a_page_that_ends_in_its_head_is_no_reason_to_stumble() -> None:
    for block in (b"", b"HTTP/1.1 200 OK", HEAD, HEAD[:-2]):
        member = record.plain_member(
            "response", block, date=DATE, record_id="urn:x:1", level=1,
            content_type="application/http; msgtype=response",
            headers=[("WARC-Target-URI", URL), ("WARC-Payload-Digest", record.EMPTY_DIGEST)],
        )  # fmt: skip
        assert checked(a_warcinfo() + member)[0] == [], block


# -- anything at all -------------------------------------------------------------------------------


def mangled(data: st.DataObject, whole: bytes) -> bytes:
    """The bytes of an archive after somebody sat on them."""
    made = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(made)))
        if data.draw(st.booleans()):
            made[place : place + data.draw(st.integers(0, 300))] = data.draw(st.binary(max_size=40))
        else:
            word = data.draw(st.sampled_from([
                b"WARC/1.0\r\n", b"\r\n\r\n", b"Content-Length: 99\r\n", b"\x1f\x8b\x08\0",
                b"WARC-Segment-Number: 7\r\n", b"WARC-Type: revisit\r\n", b"9" * 19, b"<", b"\n\n",
            ]))  # fmt: skip
            made[place:place] = word
    return bytes(made)


def some_archive(*, is_plain: bool) -> bytes:
    ids = record.Ids(PREFIX)
    first = original(ids)
    whole = a_warcinfo() + joined(first, revisit(ids, first)) + segments(2)
    return gzip.decompress(whole) if is_plain else whole


@given(data=st.data(), is_plain=st.booleans())
def test_no_bytes_raise_anything(data: st.DataObject, is_plain: bool) -> None:
    made = mangled(data, some_archive(is_plain=is_plain))
    line = b'com,a)/ 20200101000000 {"url": "http://a.com/"}\n'
    checked(made, index=mangled(data, line).split(b"\n"), strict=True)


@pytest.mark.long
@settings(max_examples=20_000)
@given(data=st.data(), is_plain=st.booleans(), is_salvaged=st.booleans())
def test_archive_fuzz_no_bytes_raise_anything_and_what_is_salvaged_is_whole(
    data: st.DataObject, is_plain: bool, is_salvaged: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = mangled(data, some_archive(is_plain=is_plain))
    checked(made, strict=True)
    if is_salvaged:
        target = tmp_path_factory.mktemp("salvaged") / "x.warc"
        salvage(io.BytesIO(made), len(made), target, now=1.7e9, ids=record.Ids(PREFIX))
        assert not any("ends" in one for one in checked(target.read_bytes())[0])
