"""What the bench of a million pages crawls on is a collection like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.filled import fill, visit_again

from geomi.cluster.collection import Collection
from geomi.cluster.verify import verify


@pytest.mark.parametrize("waiting", [True, False])
def test_a_filled_collection_is_sound(tmp_path: Path, *, waiting: bool) -> None:
    sites = [f"h{n}.bench.test:8000" for n in range(7)]
    fill(tmp_path / "c", sites=sites, known=1000, waiting=waiting, settings={})
    assert found_wrong(tmp_path / "c") == []


def test_so_is_one_whose_pages_were_visited_often(tmp_path: Path) -> None:
    fill(tmp_path / "c", sites=["h0.bench.test"], known=300, waiting=False, settings={})
    visit_again(tmp_path / "c", known=300, times=3)
    assert found_wrong(tmp_path / "c") == []


def found_wrong(path: Path) -> list[str]:
    place = Collection(path)
    store = place.read_store(place.settings())
    try:
        report = verify(store, where=place.archive_path)
    finally:
        store.close()
    return [f"{one.where}: {one.what}" for one in report.problems]
