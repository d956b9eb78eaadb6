"""Rewriting a finished archive saves what the filters would have saved while crawling."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomi.keys import KEYS
from geomi.store import open_store
from geomi.world import Params, serve
from journeys.crawling import FAST, geomi, settings, to_world


def archived(collection: Path) -> tuple[int, int]:
    """(captures, bytes) of the files that count."""
    store = open_store(str(collection / "geomi.db"))
    try:
        captures = store.one("SELECT count(*) FROM visits WHERE file > 0")
        size = store.one("SELECT sum(committed) FROM files")
        assert captures is not None
        assert size is not None
        return int(captures[0]), int(size[0])
    finally:
        store.close()


@pytest.mark.skipif(
    "archive.duplicates" not in KEYS, reason="filters while crawling are no setting"
)
def test_rewritten_it_is_as_small_as_one_that_was_filtered(tmp_path: Path) -> None:
    found = {}
    with serve(Params(seed=81, sites=6, pages=10, crawl_delay_s=0.05)) as running:
        for name, wanted in (("filtered", "true"), ("whole", "false")):
            collection = tmp_path / name
            words = [*to_world(running), *settings(*FAST, f"archive.duplicates={wanted}"), "--json"]
            geomi("crawl", collection, *running.seeds(), *words, timeout_s=120)
            geomi("crawl", collection, "--again", *words, timeout_s=120)
            found[name] = archived(collection)
    geomi("archive", "rewrite", tmp_path / "whole", timeout_s=120)
    captures, size = archived(tmp_path / "whole")
    assert captures == found["filtered"][0] == found["whole"][0]
    assert size < found["whole"][1]
    assert abs(size - found["filtered"][1]) <= 0.02 * found["filtered"][1]
