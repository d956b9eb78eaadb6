"""archive pack, cdx and replay as a user calls them."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from cluster.small import SEED, Small, some
from geomi.cli.main import run
from journeys.crawling import end, start
from replaying import needs_pywb


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return some(tmp_path / "c")


Out = pytest.CaptureFixture[str]


def fact(capsys: Out, *words: object, code: int = 0) -> dict[str, Any]:
    assert run([*map(str, words), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def wrong(capsys: Out, *words: object) -> str:
    assert run(list(map(str, words))) == 2
    return capsys.readouterr().err


def test_pack_says_what_it_wrote(small: Small, tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "a.wacz"
    told = fact(capsys, "archive", "pack", small.place.path, path, "--created", "20260101")
    assert (told["captures"], told["pages"], told["warc_files"], told["requires"]) == (4, 2, 1, [])
    assert told["bytes"] == path.stat().st_size
    assert "there is a file already; --replace" in wrong(
        capsys, "archive", "pack", small.place.path, path
    )
    assert run(["archive", "pack", str(small.place.path), str(path), "--replace"]) == 0
    assert "4 captures, 2 pages" in capsys.readouterr().out


def test_pack_refuses_what_is_no_order(small: Small, tmp_path: Path, capsys: Out) -> None:
    place = small.place.path
    assert "ends with .wacz" in wrong(capsys, "archive", "pack", place, tmp_path / "a.zip")
    assert "no capture is selected" in wrong(
        capsys, "archive", "pack", place, tmp_path / "a.wacz", "--site", "b.example"
    )
    assert "--created: 'soon'" in wrong(
        capsys, "archive", "pack", place, tmp_path / "a.wacz", "--created", "soon"
    )
    assert not list(tmp_path.glob("a.*"))


def test_pack_tells_that_a_part_requires_more(small: Small, tmp_path: Path, capsys: Out) -> None:
    small.again()
    small.visit(f"{SEED}b", code=304, body=b"")
    small.end()
    since = small.store.one("SELECT max(stored_date) FROM visits")
    assert since is not None
    words = ["archive", "pack", str(small.place.path), str(tmp_path / "a.wacz"), "--from", since[0]]
    told = fact(capsys, *words[:-1], since[0][:19])
    assert (told["captures"], told["outside"], len(told["requires"])) == (1, 1, 1)
    told = fact(capsys, *words[:-1], since[0][:19], "--self-contained", "--replace")
    assert (told["unfolded"], told["outside"], told["requires"]) == (1, 0, [])


def test_one_query_is_answered_on_the_command_line(small: Small, capsys: Out) -> None:
    place = small.place.path
    assert run(["archive", "cdx", str(place), "--query", f"url={SEED}*&fl=url,status"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{SEED} 200", f"{SEED}b 200", f"{SEED}moved 301", f"{SEED}robots.txt 200",
    ]  # fmt: skip
    assert fact(capsys, "archive", "cdx", place, "--query", f"url={SEED}")["url"] == SEED
    assert "limit: '0x', wanted a number" in wrong(
        capsys, "archive", "cdx", place, "--query", "url=a.org&limit=0x"
    )
    assert run(["archive", "cdx", str(place), "--query", f"url={SEED}*&limit=1"]) == 0
    assert "there is more: add showResumeKey=1" in capsys.readouterr().err


def test_the_server_serves_until_it_is_told_to_stop(small: Small) -> None:
    process = start("archive", "cdx", small.place.path, "--port", "0", "--json")
    assert process.stdout is not None
    at = json.loads(process.stdout.readline())
    with urllib.request.urlopen(f"{at['cdx']}?url={SEED}&output=json", timeout=30) as answer:
        assert json.loads(answer.read())["url"] == SEED
    process.send_signal(signal.SIGTERM)
    assert end(process).code == 0


def test_replay_shows_the_archive_until_it_is_told_to_stop(small: Small) -> None:
    needs_pywb()
    process = start("archive", "replay", small.place.path, "--port", "0", "--json")
    assert process.stdout is not None
    at = json.loads(process.stdout.readline())
    with urllib.request.urlopen(f"{at['replay']}2023id_/{SEED}", timeout=30) as answer:
        assert b"<title>Seed</title>" in answer.read()
    process.send_signal(signal.SIGINT)
    done = end(process)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("command", ["cdx", "replay"])
def test_where_no_collection_is_nothing_is_served(
    command: str, tmp_path: Path, capsys: Out
) -> None:
    if command == "replay":
        needs_pywb()
    assert "no collection here" in wrong(capsys, "archive", command, tmp_path)
