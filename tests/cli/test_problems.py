"""Problems are told in a few lines, whatever the file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from geomi.cli.problems import failed_seeds, tell_problems
from geomi.cli.progress import Progress
from geomi.seeds.lists import Problem


def test_a_file_of_another_kind_is_told_in_ten_lines_and_a_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell_problems([("x.txt", Problem(line=n, text="\x1b", what="no URL")) for n in range(1, 31)])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "geomi: x.txt line 1: no URL: \\x1b"
    assert lines[10:] == ["geomi: and 20 more lines that cannot be read"]


class Rows:
    """A store with so many failed seeds."""

    def __init__(self, number: int) -> None:
        self.number = number

    def all(self, _sql: str, _params: object) -> list[tuple[str, str, str, str, int]]:
        return [(f"http://{n}.example/", f"{n}.example", "cErr", "", 0) for n in range(self.number)]


def test_many_failed_seeds_are_told_in_ten_lines_and_where_the_rest_is() -> None:
    lines = failed_seeds(cast(Any, Rows(11)), Path("c"))
    assert lines[0] == "seed http://0.example/: cErr"
    assert lines[10:] == ["and more seeds; see: geomi seeds list c"]


class Closed:
    """A pipe that nobody reads."""

    def isatty(self) -> bool:
        return False

    def write(self, _: str) -> None:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_crawl_goes_on_although_nobody_reads_its_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", Closed())
    progress = Progress(cast(Any, None), cast(Any, None), is_quiet=False)
    progress.warn("pauses")
    progress.warn("goes on")
