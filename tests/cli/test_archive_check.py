"""geomi archive check and import, as their user meets them: words, facts, exit codes."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from archive.samples import PREFIX, Sample, a_warcinfo, every_record
from geomi.archive.cdxj import from_warc, sort_lines
from geomi.archive.record import gzip_member
from geomi.cli.main import run


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    pairs = every_record(tmp_path / "body.spool")
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(member for _, member in pairs))
    return Sample(path=path, members=[m for _, m in pairs], types=[t for t, _ in pairs])


def facts(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> dict[str, Any]:
    assert run(["archive", "check", *map(str, words), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_sound_file_is_counted(sample: Sample, capsys: pytest.CaptureFixture[str]) -> None:
    found = facts(capsys, sample.path)
    assert found["ok"] and found["problems"] == []
    assert found["counts"]["records"] == len(sample.members)
    assert found["counts"]["revisits.record id"] == 2
    assert run(["archive", "check", str(sample.path)]) == 0
    text = capsys.readouterr().out
    assert "2 by record id resolved; 2 within their file" in text and text.endswith("ok\n")


def test_an_index_beside_a_file_is_held_against_it(
    sample: Sample, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = sort_lines(from_warc(sample.path, sample.path.name))
    index = sample.path.with_name("a.cdxj")
    index.write_bytes(b"".join(lines))
    assert facts(capsys, sample.path)["counts"]["index lines"] == len(lines)
    assert facts(capsys, sample.path.parent)["counts"]["index lines"] == len(lines)
    index.write_bytes(b"".join(lines[1:]).replace(b'"offset": "', b'"offset": "9'))
    assert "which has" in str(facts(capsys, sample.path, code=1)["problems"])


def plain(**fields: str) -> bytes:
    head = {
        "WARC-Type": "resource", "WARC-Record-ID": "<urn:x:1>", "WARC-Date": "2020-01-01T00:00:00Z",
        "WARC-Target-URI": "http://example.org/", "Content-Type": "text/plain",
        "Content-Length": "3", **{name.replace("_", "-"): text for name, text in fields.items()},
    }  # fmt: skip
    lines = "".join(f"{name}: {text}\r\n" for name, text in head.items())
    return f"WARC/1.0\r\n{lines}\r\nabc\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x1f\x8b\x08\x00", "gzip member ends early"),
        (gzip.compress(b"no archive at all"), "record starts with 'no archive at all'"),
        (b"<html>", "wanted gzip or WARC/"),
        (plain(Content_Length=str(2**63)), "Content-Length says 9223372036854775808 bytes"),
        (gzip.compress(plain(Content_Length=str(2**63))), "Content-Length says 92233720368547758"),
        (plain(Content_Length="2") + plain(), "record starts with 'c'"),
        (gzip.compress(plain(Content_Length="2")), "5 bytes behind the block of 2 bytes"),
        (gzip.compress(plain()[:-4]), "no two line ends behind the block"),
        (plain().replace(b"\r\n\r\n", b"", 1), "Content-Length is '3abc', wanted digits"),
        (plain()[:-11], "wanted the blank line behind the WARC header"),
        (plain(WARC_Block_Digest="blake3:abc"), "digest is 'blake3:abc', wanted sha1, sha256"),
        (gzip.compress(plain(WARC_Block_Digest="md5:xyz")), "block digest does not match md5:xyz"),
        (gzip.compress(plain() + plain()), "--salvage"),
        (b"\r\n" * 10, "no record in 20 bytes"),
    ],
)
def test_bad_input_is_one_sentence_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, what: str
) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(data)
    before = {*tmp_path.rglob("*")}
    found = facts(capsys, path, code=1)
    assert any(what in problem["what"] for problem in found["problems"]), found
    assert all(problem["offset"] >= 0 and problem["file"] == str(path)
               for problem in found["problems"])  # fmt: skip
    assert {*tmp_path.rglob("*")} == before


def test_an_empty_file_is_sound_and_a_folder_without_archives_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"")
    assert facts(capsys, path)["counts"]["records"] == 0
    (tmp_path / "empty").mkdir()
    for wrong in (tmp_path / "empty", tmp_path / "none"):
        assert run(["archive", "check", str(wrong)]) == 2
        assert str(wrong) in capsys.readouterr().err


def test_salvage_writes_what_is_whole_and_says_so(
    sample: Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(sample.path.read_bytes())
    data[sample.offsets[2] + 30] ^= 1
    sample.path.write_bytes(data)
    out = tmp_path / "out"
    found = facts(capsys, sample.path, "--salvage", out, code=1)
    assert found["problems"][0]["offset"] == sample.offsets[2]
    assert found["salvaged"] == [{
        "file": str(out / "a.warc.gz"), "records": len(sample.members) - 1, "gaps": 1,
        "lost_bytes": len(sample.members[2]),
    }]  # fmt: skip
    assert facts(capsys, out)["ok"] and sample.path.read_bytes() == data
    assert run(["archive", "check", str(sample.path), "--salvage", str(out)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_files_named_together_are_one_archive(
    sample: Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = sample.types.index("revisit")
    other = tmp_path / "b.warc.gz"
    other.write_bytes(a_warcinfo() + sample.members[place])
    assert facts(capsys, other, code=1)["counts"]["revisits.unresolved"] == 1
    assert facts(capsys, sample.path, other)["counts"]["revisits.elsewhere"] == 1


def test_what_cannot_be_imported_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = tmp_path / "news"
    assert run(["init", str(collection)]) == 0
    path = tmp_path / "x.warc.gz"
    path.write_bytes(gzip_member(zlib.decompress(a_warcinfo(), 31)[:-9]))
    capsys.readouterr()
    assert run(["archive", "import", str(collection), str(path)]) == 1
    assert "refused: " in (text := capsys.readouterr().out) and "--salvage" in text
    assert run(["archive", "import", str(collection), str(tmp_path / "none")]) == 2
    assert run(["archive", "import", str(tmp_path / "no"), str(path)]) == 2
    assert PREFIX and run(["archive", "check", str(collection)]) == 0
