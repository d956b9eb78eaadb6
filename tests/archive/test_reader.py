"""The reader takes what others wrote, whole or in crumbs, and says where a file is broken."""

from __future__ import annotations

import gzip
import io
import subprocess
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.samples import BODY, HEAD, URL, Sample, a_warcinfo
from geomi.archive import record
from geomi.archive.reader import Headers, members, read_at
from geomi.errors import RemoteError, ResourceError

Told = tuple[int, int, str, str, bytes]


class Crumbs(io.BytesIO):
    """A file that gives one byte at a time."""

    def read(self, most: int | None = -1) -> bytes:
        return super().read(1)


def told(source: Path | io.BytesIO) -> Iterator[Told]:
    for member in members(source):
        block = b"".join(member.chunks())
        yield member.offset, member.length, member.type, member.record_id, block


def test_each_member_is_found_with_its_exact_place(sample: Sample) -> None:
    got = list(told(sample.path))
    assert [g[0] for g in got] == sample.offsets
    assert [g[1] for g in got] == [len(m) for m in sample.members]
    assert [g[2] for g in got] == sample.types
    assert got[1][4] == HEAD + BODY


def test_a_plain_file_gives_the_same_records(sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(zlib.decompress(m, 31) for m in sample.members))
    got = list(told(path))
    assert [g[2:] for g in got] == [g[2:] for g in told(sample.path)]
    data = path.read_bytes()
    for offset, length, *_ in got:
        assert data[offset : offset + 5] == b"WARC/"
        assert data[offset + length : offset + length + 4] == b"\r\n\r\n"


def test_a_block_that_nobody_reads_is_skipped(sample: Sample) -> None:
    assert [m.offset for m in members(sample.path)] == sample.offsets


@pytest.mark.parametrize("plain", [False, True])
def test_byte_by_byte_it_reads_the_same(sample: Sample, plain: bool) -> None:
    data = sample.path.read_bytes()[: sample.offsets[12]]
    if plain:
        data = gzip.decompress(data)
    assert list(told(Crumbs(data))) == list(told(io.BytesIO(data)))


def test_every_cut_inside_a_record_is_an_error_after_the_whole_ones(sample: Sample) -> None:
    data = b"".join(sample.members[:4])
    ends = {0, *sample.offsets[1:5]}
    for cut in range(len(data)):
        got = []
        try:
            for one in told(io.BytesIO(data[:cut])):
                got.append(one[0])
        except RemoteError as error:
            assert cut not in ends, error
        else:
            assert cut in ends, cut
        assert got == [o for o in sample.offsets if o < cut and o + 1 <= cut][: len(got)]
        assert len(got) == sum(1 for end in ends if 0 < end <= cut)


def test_every_cut_in_a_plain_record_is_an_error(sample: Sample) -> None:
    data = zlib.decompress(sample.members[1], 31)
    for cut in range(1, len(data) - 4):
        with pytest.raises(RemoteError):
            list(told(io.BytesIO(data[:cut])))


def test_a_record_is_read_at_its_place(sample: Sample) -> None:
    for index in (0, 1, len(sample.members) - 1):
        offset, length = sample.offsets[index], len(sample.members[index])
        member = read_at(sample.path, offset, length)
        assert (member.offset, member.length, member.type) == (
            offset, length, sample.types[index])  # fmt: skip
    member = read_at(sample.path, sample.offsets[1])
    assert member.target_uri == URL and member.version == "WARC/1.1"
    assert member.http_head() == HEAD
    assert member.read() == BODY and member.read() == b""


def test_a_wrong_place_is_an_error_that_says_so(sample: Sample) -> None:
    with pytest.raises(RemoteError, match=r"a\.warc\.gz at 259: record is 380 bytes, wanted 379"):
        read_at(sample.path, 259, 379)
    with pytest.raises(RemoteError, match=r"at 260: starts with .* wanted gzip or WARC/"):
        read_at(sample.path, 260)
    end = sample.path.stat().st_size
    with pytest.raises(RemoteError, match=f"at {end}: the file ends, wanted a record"):
        read_at(sample.path, end)
    with pytest.raises(RemoteError, match="block is 81 bytes, wanted at most 80"):
        read_at(sample.path, 259, most_bytes=80)
    with pytest.raises(ResourceError, match="cannot be opened"):
        read_at(sample.path.with_name("none"), 0)


def test_the_body_follows_the_http_head_in_pieces_of_any_size(sample: Sample) -> None:
    data = sample.members[1]
    for source in (io.BytesIO(data), Crumbs(zlib.decompress(data, 31))):
        member = next(members(source))
        assert member.http_head() == HEAD
        got = []
        while piece := member.read(3):
            assert len(piece) <= 3
            got.append(piece)
        assert b"".join(got) == BODY
        assert member.length > 0


def record_bytes(block: bytes, *, length: str | None = None, version: str = "WARC/1.0",
                 eol: bytes = b"\r\n", more: bytes = b"") -> bytes:  # fmt: skip
    claim = str(len(block)) if length is None else length
    lines = [version.encode(), b"warc-type: resource", b"WARC-Target-URI: <http://x/a>",
             b"CONTENT-LENGTH: " + claim.encode(), more]  # fmt: skip
    return eol.join(line for line in lines if line) + eol + eol + block + b"\r\n\r\n"


@pytest.mark.parametrize("version", ["WARC/0.17", "WARC/0.18", "WARC/1.0", "WARC/1.1"])
@pytest.mark.parametrize("eol", [b"\r\n", b"\n"])
def test_every_version_and_sloppy_line_ends_are_read(version: str, eol: bytes) -> None:
    data = record_bytes(b"one\r\n\r\ntwo", version=version, eol=eol)
    for whole in (data + data, gzip.compress(data) + gzip.compress(data)):
        got = list(members(io.BytesIO(whole)))
        assert len(got) == 2
        member = next(members(io.BytesIO(whole)))
        assert (member.version, member.target_uri) == (version, "http://x/a")
        assert member.read_all() == b"one\r\n\r\ntwo"


@pytest.mark.parametrize("eol", ["\r\n", "\n"])
def test_header_names_have_no_case_and_repeats_are_kept(eol: str) -> None:
    headers = Headers(eol.join(["X: 1", "x:2 ", "Y : a", "empty:", "no colon", "X: 3"]))
    assert headers.get("X") == "1" and headers.get_all("x") == ["1", "2", "3"]
    assert headers.get("y") == "a" and "y" in headers and "no" not in headers
    assert headers.get("empty", "none") == "" and headers.get("z", "none") == "none"
    assert headers.get("colon", "none") == "none" and headers.get("a", "none") == "none"


def test_a_folded_header_value_is_one_line() -> None:
    data = record_bytes(b"", more=b"Y: a\r\n b\r\n\tc")
    assert next(members(io.BytesIO(data))).headers.get("Y") == "a b c"


@pytest.mark.parametrize("length", ["", "-1", "x", "1_0", "٣", "9" * 20, "9" * 5000])
def test_a_length_that_is_no_number_is_an_error(length: str) -> None:
    with pytest.raises(RemoteError, match=r"stream at 0: Content-Length is .* wanted digits"):
        list(members(io.BytesIO(record_bytes(b"abc", length=length))))


@pytest.mark.parametrize("zipped", [False, True])
def test_a_gigantic_length_costs_nothing_and_is_an_error(zipped: bool) -> None:
    data = record_bytes(b"abc", length="9" * 18)
    data = gzip.compress(data) if zipped else data
    wanted = r"Content-Length says 999999999999999999 bytes, the record ends after 7"
    with pytest.raises(RemoteError, match=wanted):
        list(members(io.BytesIO(data)))
    with pytest.raises(RemoteError, match="wanted at most"):
        read_at(io.BytesIO(data), 0)


def test_a_length_too_small_is_an_error() -> None:
    data = record_bytes(b"abcdef", length="3")
    with pytest.raises(RemoteError, match=r"7 bytes behind the block of 3 bytes"):
        list(members(io.BytesIO(gzip.compress(data))))
    with pytest.raises(RemoteError, match="record starts with 'def', wanted WARC/"):
        list(members(io.BytesIO(data)))


def test_one_gzip_member_over_all_records_names_the_cure() -> None:
    data = gzip.compress(record_bytes(b"one") * 2)
    with pytest.raises(RemoteError, match=r"several records in one gzip member.*--salvage"):
        list(members(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"GIF89a", "starts with b'GIF89', wanted gzip or WARC/"),
        (b"\x28\xb5\x2f\xfd0", "wanted gzip or WARC/"),
        (b"WARC/2.0\r\n\r\n", "record starts with 'WARC/2.0'"),
        (gzip.compress(b"garbage" * 99999), "record starts with 'garbage"),
        (b"\x1f\x8b\x08garbage in a member", "gzip member"),
        (b"WARC/1.0\r\n" + b"a: b\r\n" * 200_000, "WARC header over 1048576 bytes"),
        (gzip.compress(b"WARC/1.0\r\n" + b"a" * (1 << 24)), "WARC header over 1048576 bytes"),
    ],
)
def test_garbage_is_an_error_with_what_was_seen(data: bytes, what: str) -> None:
    with pytest.raises(RemoteError) as caught:
        list(members(io.BytesIO(data)))
    assert what in str(caught.value) and str(caught.value).startswith("stream at 0: ")


@pytest.mark.parametrize("data", [b"", b"\r\n\r\n", gzip.compress(b""), gzip.compress(b"\r\n")])
def test_nothing_holds_no_records(data: bytes) -> None:
    assert list(members(io.BytesIO(data))) == []


@given(st.binary(max_size=200), st.integers(0, 2))
def test_no_bytes_raise_anything_but_a_remote_error(noise: bytes, way: int) -> None:
    start = [b"", b"WARC/1.0\r\nContent-Length: 3\r\n", b""][way]
    data = start + noise
    if way == 2:
        data = gzip.compress(b"WARC/1.0\r\n" + noise)
    try:
        for member in members(io.BytesIO(data)):
            member.http_head()
    except RemoteError:
        pass


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_flipped_bit_is_found(place: int, bit: int) -> None:
    whole = a_warcinfo() + record.gzip_member(record_bytes(b"abc" * 99))
    data = bytearray(whole)
    data[place % len(data)] ^= 1 << bit
    # Five bytes of a gzip header mean nothing: flags of time, speed and system.
    meaningless = {*range(4, 10), *range(len(a_warcinfo()) + 4, len(a_warcinfo()) + 10)}
    try:
        got = list(told(io.BytesIO(bytes(data))))
    except RemoteError:
        return
    assert place % len(data) in meaningless or got == list(told(io.BytesIO(whole)))


def test_memory_stays_bounded_however_large_the_block() -> None:
    size = 64 << 20
    zipped = zlib.compressobj(1, zlib.DEFLATED, 31)
    head = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: %d\r\n\r\n" % size
    parts = [zipped.compress(head)]
    parts += [zipped.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    parts += [zipped.compress(b"\r\n\r\n"), zipped.flush()]
    file = io.BytesIO(b"".join(parts))
    del parts
    tracemalloc.start()
    try:
        total = sum(len(chunk) for member in members(file) for chunk in member.chunks())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == size
    assert peak < 2 << 20


def test_fastwarc_reads_what_we_write(sample: Sample) -> None:
    fastwarc = pytest.importorskip("fastwarc")
    with open(sample.path, "rb") as file:
        seen = []
        for one in fastwarc.ArchiveIterator(file, parse_http=False):
            assert one.verify_block_digest(), one.record_id
            seen.append((one.headers["WARC-Type"], one.stream_pos))
    assert [name for name, _ in seen] == sample.types
    assert [place for _, place in seen] == sample.offsets


def test_warcio_check_passes(sample: Sample) -> None:
    warcio = pytest.importorskip("warcio.checker")

    class Command:
        inputs = (str(sample.path),)
        verbose = False

    assert warcio.Checker(Command()).process_all() == 0


@pytest.mark.parametrize("options", [[], ["--no-warc-compression"]])
def test_what_wget_writes_is_read(
    wget: tuple[str, ...], tmp_path: Path, options: list[str]
) -> None:
    command, url = wget
    base = tmp_path / "w"
    subprocess.run(
        [command, "-q", "-O", str(tmp_path / "out"), f"--warc-file={base}", *options, url],
        check=True, cwd=tmp_path,
    )  # fmt: skip
    path = base.with_suffix(".warc" if options else ".warc.gz")
    got = {}
    for member in members(path):
        if member.type in ("request", "response"):
            assert member.target_uri == url
            got[member.type] = (member.http_head(), member.read_all())
        read_at(path, member.offset, member.length)
    assert got["request"][0].startswith(b"GET / HTTP/1.1\r\n")
    assert got["response"][0].startswith(b"HTTP/1.0 200 OK\r\n")
    assert got["response"][1] == BODY
