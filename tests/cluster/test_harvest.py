"""The harvest of a collection: labels, parties, filters, and visits that moved to Parquet."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from cluster.small import SEED, Small
from geomi.archive.files import RealFiles
from geomi.cli.main import run
from geomi.cluster.harvest import NO_LABEL, harvest
from geomi.cluster.mover import Mover
from geomi.history.harvest import Harvest
from geomi.seeds import tables as seeds
from geomi.settings import History

OFFICE = "기상청 | 1"


def labelled(small: Small, **labels: str) -> None:
    with small.store.transaction():
        row = small.store.one("SELECT url, url_hash, site FROM seeds WHERE url = ?", (SEED,))
        assert row is not None
        seeds.add_seed(small.store, row[0], url_hash=row[1], site=row[2], labels=labels,
                       source="given", now=small.now)  # fmt: skip


def visited(path: Path, *, address: str = "", runs: int = 1) -> Small:
    """Front page and /b with one payload, /c with another, /d not there; 304s in later runs."""
    small = Small(path, address=address)
    labelled(small, institution=OFFICE)
    small.robots()
    links = "".join(f"<a href='{name}'>x</a>" for name in "bcd")
    body = f"<p>{links}".encode()
    small.visit(SEED, body=body, head='ETag: "1"\r\n')
    small.visit(f"{SEED}b", body=body)
    small.visit(f"{SEED}c", body=b"c" * 1000, head='ETag: "2"\r\n')
    small.visit(f"{SEED}d", code=404, body=b"no")
    small.end()
    for _ in range(runs):
        small.again()
        small.visit(f"{SEED}c", code=304, body=b"", head='ETag: "2"\r\n')
        small.end()
    return small


def rows(small: Small, **wanted: float) -> list[Harvest]:
    return harvest(small.store, small.place.archive_path, label="institution", **wanted)


def test_a_row_counts_what_its_seeds_parties_found(tmp_path: Path, shared: str) -> None:
    small = visited(tmp_path / "c", address=shared)
    (mine,) = rows(small)
    front = small.store.one("SELECT size FROM pages WHERE url = ?", (SEED,))
    assert front is not None
    assert mine == Harvest(
        name=OFFICE, seeds=1, bytes=2 * front[0] + 1000, found=4, distinct=2,
        stored_bytes=2 * front[0] + 1000, same=1, same_bytes=1000,
    )  # fmt: skip
    assert mine.success == 0.5


def test_visits_that_moved_to_parquet_count_as_before(tmp_path: Path, shared: str) -> None:
    small = visited(tmp_path / "c", address=shared, runs=5)
    before = rows(small)
    mover = Mover(small.store, RealFiles(), where=small.place.archive_path,
                  keep=History(keep_visits=1, keep_requests_s=1e9))  # fmt: skip
    for _ in mover.finish(small.now):
        pass
    moved = small.store.one("SELECT count(*) FROM past")
    assert moved is not None
    assert moved[0] >= 1
    assert rows(small) == before
    assert before[0].same == 5


def test_a_time_chooses_visits(tmp_path: Path) -> None:
    small = visited(tmp_path / "c")
    (first,) = small.store.all("SELECT max(started) FROM visits WHERE outcome = 'OK'")
    (early,), (late,) = rows(small, until=first[0] + 1), rows(small, since=first[0] + 1)
    assert (early.found, late.found, late.same, late.same_bytes) == (3, 1, 1, 0)


def test_pages_of_seeds_without_the_label_come_last(tmp_path: Path) -> None:
    small = visited(tmp_path / "c")
    (mine,) = harvest(small.store, small.place.archive_path, label="category")
    assert (mine.name, mine.found) == (NO_LABEL, 4)


def test_a_report_has_four_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = visited(tmp_path / "c")
    words = ["archive", "report", str(small.place.path)]

    def said(*more: str) -> str:
        assert run([*words, *more]) == 0
        return capsys.readouterr().out

    mine, everything = (json.loads(line) for line in said("--json").splitlines())
    assert (mine["institution"], mine["success"]) == (OFFICE, 0.5)
    assert everything == {**mine, "institution": "total"}
    (line,) = csv.DictReader(io.StringIO(said("--csv")))
    assert {key: str(value) for key, value in mine.items()} == line
    table = said("--markdown").splitlines()
    assert table[1] == "|---|" + "---:|" * 8
    assert table[2].startswith("| 기상청 \\| 1 | 1,")
    assert "| 50.00% | 1 (1000 B) |  |  |" in table[2]
    assert "기상청 | 1" in said()
    assert json.loads(said("--json", "--from", "2050").splitlines()[0])["success"] is None
    assert run([*words, "--json", "--csv"]) == 2
    assert "wanted one of them" in capsys.readouterr().err
