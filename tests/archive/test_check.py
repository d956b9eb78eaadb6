"""Every kind of damage to a file is found and named with its place."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest

from archive.samples import Sample
from geomi.archive.check import check_file
from geomi.archive.record import gzip_member


def test_a_sound_file_has_no_problem(sample: Sample) -> None:
    assert check_file(sample.path) == []
    assert check_file(sample.path, expect_length=sample.path.stat().st_size) == []


def test_bytes_behind_the_committed_length_are_a_problem(sample: Sample) -> None:
    end = sample.path.stat().st_size
    with open(sample.path, "ab") as file:
        file.write(b"torn")
    assert [str(p) for p in check_file(sample.path, expect_length=end)] == [
        f"{sample.path} at {end}: 4 bytes behind the committed length"
    ]
    assert [p.offset for p in check_file(sample.path)] == [end]


def test_a_file_shorter_than_committed_is_a_problem(sample: Sample) -> None:
    end = sample.path.stat().st_size
    found = check_file(sample.path, expect_length=end + 1)
    assert [(p.offset, p.what) for p in found] == [
        (end, f"file ends, wanted {end + 1} committed bytes")
    ]


def test_a_committed_length_inside_a_record_is_a_problem(sample: Sample) -> None:
    found = check_file(sample.path, expect_length=sample.offsets[2] - 5)
    assert found[0].offset == sample.offsets[1] and "ends early" in found[0].what


def test_a_broken_checksum_is_a_problem_at_its_record(sample: Sample) -> None:
    data = bytearray(sample.path.read_bytes())
    data[sample.offsets[3] - 6] ^= 1
    sample.path.write_bytes(data)
    found = check_file(sample.path)
    assert [p.offset for p in found] == [sample.offsets[2]]
    assert "broken gzip member" in found[0].what


def rewritten(sample: Sample, index: int, old: bytes, new: bytes) -> list[str]:
    """The problems after one record is changed, its member made anew."""
    plain = zlib.decompress(sample.members[index], 31)
    assert old in plain
    changed = [*sample.members]
    changed[index] = gzip_member(plain.replace(old, new, 1))
    sample.path.write_bytes(b"".join(changed))
    found = check_file(sample.path)
    assert {p.offset for p in found} <= {sum(map(len, changed[:i])) for i in range(len(changed))}
    return [p.what for p in found]


@pytest.mark.parametrize(
    ("index", "old", "new", "what"),
    [
        (1, b"hello", b"hallo", "payload digest does not match"),
        (1, b"200 OK", b"200 KO", "block digest does not match"),
        (1, b"sha1:Y2", b"sha9:Y2", "payload digest is 'sha9:"),
        (1, b"sha1:Y2", b"sha1:0!", "payload digest does not match"),
        (1, b"WARC-Date:", b"X-Date:", "no WARC-Date"),
        (1, b"WARC-Target-URI:", b"X-URI:", "no WARC-Target-URI"),
        (1, b"Content-Type: application/http; msgtype=response\r\n", b"", "no Content-Type"),
        (1, b"WARC-Type: response", b"WARC-Type: answer", "WARC-Type is 'answer'"),
        (1, b"Content-Length: 81", b"Content-Length: 80", "behind the block"),
        (1, b"Content-Length: 81", b"Content-Length: 86", "Content-Length says 86 bytes"),
        (2, b"8809-000000000002", b"8809-000000000001", "occurs twice"),
        (2, b"000000000001>\r\nWARC-Block", b"0000000000ff>\r\nWARC-Block", "not in the file"),
        (2, b"WARC-Concurrent-To:", b"X:", "request has no WARC-Concurrent-To"),
        (6, b"WARC-Refers-To-Date:", b"X:", "no WARC-Refers-To-Date in a revisit"),
        (6, b"WARC-Profile:", b"X:", "no WARC-Profile in a revisit"),
        (0, b"WARC-Type: warcinfo", b"WARC-Type: metadata", "wanted 'warcinfo'"),
    ],
)
def test_a_changed_record_is_found(
    sample: Sample, index: int, old: bytes, new: bytes, what: str
) -> None:
    assert any(what in problem for problem in rewritten(sample, index, old, new))


def test_digests_compare_by_algorithm_in_base32_or_hex(sample: Sample) -> None:
    old = b"sha1:Y2NYOTDEZTML3TB7AIYD6N7DC7GI36CE"
    digest = zlib.decompress(sample.members[1], 31)
    assert old in digest
    assert rewritten(sample, 1, old, b"sha1:c69b874c64ccd8bdcc3f02303f37e317cc8df844") == []
    assert rewritten(sample, 1, old, old.lower()) == []


def test_an_empty_file_is_sound_and_garbage_is_not(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"")
    assert check_file(path) == []
    path.write_bytes(b"garbage")
    assert [p.offset for p in check_file(path)] == [0]


def test_what_wget_writes_is_sound(wget: tuple[str, str], tmp_path: Path) -> None:
    command, url = wget
    subprocess.run([command, "-q", "-O", str(tmp_path / "out"), f"--warc-file={tmp_path / 'w'}",
                    url], check=True, cwd=tmp_path)  # fmt: skip
    assert check_file(tmp_path / "w.warc.gz") == []
