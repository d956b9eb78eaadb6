"""Rewriting and deleting in a process of their own, killed with -9 at many moments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import geomi
from cluster.rewritten import TEXT, Replayed, doubled, not_modified, problems_of, replay
from geomi.archive.names import sha1_b32
from geomi.cluster.collection import Collection
from geomi.store import open_store

KILLS = 200
_CLI = "import sys; from geomi.cli.main import run; sys.exit(run(sys.argv[1:]))"


def geomi_killed(words: list[str], after_s: float | None) -> int:
    """Its exit code; killed after so long if it lives then."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CLI, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(Path(geomi.__file__).parents[1])},
    )  # fmt: skip
    try:
        return process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def replayed_in(folder: Path) -> dict[int, Replayed]:
    place = Collection(folder)
    store = open_store(str(folder / "geomi.db"))
    try:
        assert problems_of(store, place, quick=True) == []
        return replay(store, where=place.archive_path, path_of=lambda path: path)
    finally:
        store.close()


@pytest.mark.long
@pytest.mark.parametrize("work", ["rewrite", "delete"])
def test_killed_again_and_again_it_comes_to_the_same_end(tmp_path: Path, work: str) -> None:
    small = doubled(tmp_path / "c", runs=8)
    not_modified(small)
    small.store.close()
    before = replayed_in(tmp_path / "c")
    digest = sha1_b32(TEXT)
    first = {"rewrite": ["rewrite", "{}"], "delete": ["delete", "{}", digest, "--yes", "--purge"]}
    again = {"rewrite": ["rewrite", "{}"], "delete": ["delete", "{}", "--resume"]}
    stays = {
        visit: one for visit, one in before.items() if work == "rewrite" or one.payload != TEXT
    }

    def words(some: list[str], folder: Path) -> list[str]:
        return ["archive", *(word.format(folder) for word in some)]

    shutil.copytree(tmp_path / "c", tmp_path / "whole")
    began = time.monotonic()
    assert geomi_killed(words(first[work], tmp_path / "whole"), None) == 0
    took_s = time.monotonic() - began
    at_the_end = replayed_in(tmp_path / "whole")
    assert at_the_end == stays
    for kill in range(KILLS // 4):
        folder = tmp_path / f"copy-{kill}"
        shutil.copytree(tmp_path / "c", folder)
        code = geomi_killed(words(first[work], folder), took_s * (0.2 + 0.8 * kill * 4 / KILLS))
        for more in range(3):
            if code == 0:
                break
            found = replayed_in(folder)
            assert {visit: found[visit] for visit in stays} == stays
            delay = None if more == 2 else took_s * (0.3 + 0.2 * more)
            code = geomi_killed(words(again[work], folder), delay)
            if code == 2:  # it was killed before it had begun
                code = geomi_killed(words(first[work], folder), None)
        assert code == 0
        assert replayed_in(folder) == at_the_end
        shutil.rmtree(folder)
