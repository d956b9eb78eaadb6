"""A restored copy needs nothing but itself, and holds every payload byte for byte."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.rewritten import doubled, moved, not_modified, replayed, rewriting_of
from geomi.archive.cdxj import parse_line
from geomi.archive.check import check_file
from geomi.archive.reader import members, read_at
from geomi.cli.main import run
from geomi.cluster.rewriting import Wish


def payloads(folder: Path) -> list[tuple[str, str, bytes, bytes]]:
    """(URI, date, HTTP head, payload) of every response; there is no revisit."""
    found = []
    for path in sorted(folder.rglob("*.warc.gz")):
        for member in members(path):
            assert member.type != "revisit"
            if member.type == "response":
                http = member.http_head()
                found.append((member.target_uri, member.date, http, member.read_all()))
    return sorted(found)


@pytest.mark.parametrize("paper", [False, True])
def test_every_capture_is_there_as_it_replayed(
    tmp_path: Path, shared: str, paper: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    small = doubled(tmp_path / "c", address=shared, runs=4)
    not_modified(small)
    moved(small)
    before = sorted((one.url, one.date, one.head, one.payload) for one in replayed(small).values())
    rewriting_of(small).run(Wish(paper=paper))
    out = tmp_path / "restored"
    assert run(["archive", "restore", str(tmp_path / "c"), str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["files"], facts["left"]) == (5, [])
    assert payloads(out) == before
    for path in out.rglob("*.warc.gz"):
        assert check_file(path) == []
    checked = subprocess.run(
        [sys.executable, "-m", "warcio.cli", "check", *map(str, out.rglob("*.warc.gz"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout) == (0, "")


def test_its_index_points_at_its_records(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    rewriting_of(small).run(Wish())
    out = tmp_path / "restored"
    assert run(["archive", "restore", str(tmp_path / "c"), str(out)]) == 0
    lines = 0
    for path in out.rglob("*.cdxj"):
        for raw in path.read_bytes().splitlines():
            line = parse_line(raw)
            member = read_at(path.parent / line.filename, line.offset, line.length)
            assert (member.target_uri, line.mime) != (line.url, "warc/revisit")
            assert member.target_uri == line.url
            lines += 1
    assert lines == len(replayed(small))


def test_a_stopped_restore_goes_on_with_the_next_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = doubled(tmp_path / "c", runs=3)
    rewriting_of(small).run(Wish())
    out, again = tmp_path / "restored", tmp_path / "again"
    assert run(["archive", "restore", str(tmp_path / "c"), str(out)]) == 0
    shutil.copytree(out, again)
    last = max(again.rglob("*.warc.gz"))
    last.with_name(last.name + ".open").write_bytes(last.read_bytes()[:1000])
    last.unlink()
    capsys.readouterr()
    assert run(["archive", "restore", str(tmp_path / "c"), str(again), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["files"], facts["there"]) == (1, 2)
    assert {path.name: path.read_bytes() for path in again.rglob("*.*") if path.is_file()} == {
        path.name: path.read_bytes() for path in out.rglob("*.*") if path.is_file()
    }


def test_a_revisit_without_an_original_is_told_and_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = doubled(tmp_path / "c", runs=1)
    rewriting_of(small).run(Wish())
    with small.store.transaction():  # as after a file was lost
        small.store.run("UPDATE visits SET digest = 'sha1:X' WHERE revisit = 0")
    assert run(["archive", "restore", str(tmp_path / "c"), str(tmp_path / "out")]) == 1
    assert "its payload is nowhere" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["c/archive/copy", "c", "."])
def test_it_does_not_write_into_the_collection(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    doubled(tmp_path / "c", runs=1)
    assert run(["archive", "restore", str(tmp_path / "c"), str(tmp_path / name)]) == 2
    assert "wanted a directory elsewhere" in capsys.readouterr().err
