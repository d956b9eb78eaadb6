"""What is whole in a damaged file is found again, and nothing else is touched."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.samples import PREFIX, Sample, a_warcinfo
from geomi.archive.check import check_file
from geomi.archive.names import Ids
from geomi.archive.reader import members
from geomi.archive.record import gzip_member
from geomi.archive.salvage import Salvaged, salvage
from geomi.errors import OperatorError


def salvaged(data: bytes, target: Path) -> Salvaged:
    return salvage(io.BytesIO(data), len(data), target, now=1.7e9, ids=Ids(PREFIX))


def ids_in(path: Path) -> list[str]:
    return [member.record_id for member in members(path)]


def test_a_flipped_bit_costs_one_record(sample: Sample, tmp_path: Path) -> None:
    data = bytearray(sample.path.read_bytes())
    data[sample.offsets[3] + 40] ^= 8
    target = tmp_path / "out" / "a.warc.gz"
    made = salvaged(bytes(data), target)
    kept = sample.members[:3] + sample.members[4:]
    assert target.read_bytes() == b"".join(kept)
    assert (made.records, made.gaps, made.lost_bytes) == (len(kept), 1, len(sample.members[3]))


def test_bytes_between_records_and_a_torn_end_are_left_out(sample: Sample, tmp_path: Path) -> None:
    parts = [*sample.members[:4], b"\0" * 3000, *sample.members[4:6], sample.members[6][:-9]]
    target = tmp_path / "a.warc.gz.whole"
    made = salvaged(b"".join(parts), target)
    assert target.read_bytes() == b"".join(sample.members[:6])
    assert made.records == 6 and made.gaps == 2


def test_a_plain_file_goes_on_at_the_next_version_line(sample: Sample, tmp_path: Path) -> None:
    plain = [zlib.decompress(member, 31) for member in sample.members]
    plain[2] = plain[2].replace(b"Content-Length: ", b"Content-Length: 9223372036854775")
    target = tmp_path / "b.warc"
    made = salvaged(b"".join(plain), target)
    assert target.read_bytes() == b"".join(plain[:2] + plain[3:])
    assert (made.records, made.gaps) == (len(plain) - 1, 1)


def test_a_file_zipped_as_a_whole_becomes_a_member_a_record(sample: Sample, tmp_path: Path) -> None:
    plain = b"".join(zlib.decompress(member, 31) for member in sample.members)
    whole = tmp_path / "whole.warc.gz"
    whole.write_bytes(gzip.compress(plain))
    assert "--salvage" in check_file(whole)[0].what
    target = tmp_path / "out.warc.gz"
    assert salvaged(whole.read_bytes(), target).records == len(sample.members)
    assert check_file(target) == []
    assert gzip.decompress(target.read_bytes()) == plain
    torn = tmp_path / "torn.warc.gz"
    made = salvaged(whole.read_bytes()[: whole.stat().st_size // 2], torn)
    assert 0 < made.records < len(sample.members) and made.gaps == 1
    assert ids_in(torn) == ids_in(target)[: made.records]


def test_a_file_without_its_first_record_gets_one(sample: Sample, tmp_path: Path) -> None:
    target = tmp_path / "c.warc.gz"
    salvaged(b"".join(sample.members[1:4]), target)
    assert next(members(target)).type == "warcinfo"
    assert target.read_bytes().endswith(b"".join(sample.members[1:4]))


def test_a_record_without_line_ends_gets_them(tmp_path: Path) -> None:
    bare = gzip_member(zlib.decompress(a_warcinfo(), 31).removesuffix(b"\r\n\r\n"))
    target = tmp_path / "d.warc.gz"
    salvaged(bare + a_warcinfo(), target)
    assert gzip.decompress(target.read_bytes()) == gzip.decompress(a_warcinfo()) * 2


def test_nothing_is_written_over(sample: Sample, tmp_path: Path) -> None:
    before = sample.path.read_bytes()
    with pytest.raises(OperatorError, match="is there already"):
        salvaged(before, sample.path)
    assert sample.path.read_bytes() == before and [*tmp_path.glob("*.salvaging")] == []


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x1f\x8b\x08" * 99, b"\nWARC/1.0\r\n" * 99])
def test_of_garbage_nothing_is_left(data: bytes, tmp_path: Path) -> None:
    made = salvaged(data, tmp_path / "e.warc.gz")
    assert made.records == 0 and made.lost_bytes == len(data)


@given(data=st.data())
def test_whatever_is_damaged_what_is_written_is_sound(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    info = a_warcinfo()
    whole = bytearray(info * 4)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    target = tmp_path_factory.mktemp("salvaged") / "x.warc.gz"
    made = salvaged(bytes(whole), target)
    read = [member.read_all() for member in members(target)]
    assert len(read) in (made.records, made.records + 1)
