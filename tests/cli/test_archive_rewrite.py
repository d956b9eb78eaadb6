"""`geomi archive rewrite` as a person meets it: report, exit codes, back and for good."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.rewritten import doubled, problems, replayed
from geomi.cli.main import run


def test_it_reports_rewrites_and_purges(
    tmp_path: Path, shared: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = doubled(tmp_path / "c", address=shared)
    before = replayed(small)
    path = str(tmp_path / "c")
    assert run(["archive", "rewrite", path, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "nothing was changed" in said
    assert "duplicates" in said
    assert run(["archive", "rewrite", path, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["files"] == 2
    assert facts["saved"] == facts["bytes_before"] - facts["bytes_after"] > 0
    assert replayed(small) == before
    assert run(["archive", "rewrite", path, "--purge"]) == 0
    assert "2 old files removed" in capsys.readouterr().out
    assert problems(small) == []
    assert run(["archive", "rewrite", path, "--recompress", "--level", "9"]) == 0
    assert replayed(small) == before
    assert problems(small) == []


def test_it_leaves_a_collection_alone_that_is_being_crawled(
    tmp_path: Path, shared: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = doubled(tmp_path / "c", address=shared, runs=1)
    helm = small.place.coordinate(small.settings)
    try:
        assert run(["archive", "rewrite", str(tmp_path / "c")]) == 2
        assert "another geomi works on it (process " in capsys.readouterr().err
        assert run(["archive", "rewrite", str(tmp_path / "c"), "--dry-run"]) == 0
    finally:
        helm.release()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--abort"], "nothing to take back"),
        (["--abort", "--purge"], "wanted one of them at most"),
    ],
)
def test_what_makes_no_sense_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    doubled(tmp_path / "c", runs=1)
    assert run(["archive", "rewrite", str(tmp_path / "c"), *words]) == 2
    assert said in capsys.readouterr().err


def test_no_collection_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["archive", "rewrite", str(tmp_path / "c")]) == 2
    assert "no collection here" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
