"""Many crawls of one small site: the store keeps the last visits, the story tells them all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from geomi.world import Params, serve
from geomi.world.features import PLAIN
from journeys.crawling import FAST, geomi, must_be_sound, settings, to_world


@pytest.mark.parametrize(("runs", "kept"), [(7, 4), pytest.param(25, 20, marks=pytest.mark.long)])
def test_a_site_that_was_crawled_often_keeps_its_history(
    tmp_path: Path, runs: int, kept: int
) -> None:
    collection = tmp_path / "c"
    with serve(Params(seed=9, sites=1, pages=3, shares=PLAIN)) as running:
        words = ["crawl", collection, *running.seeds(), *to_world(running), *settings(*FAST)]
        words += settings(*(() if kept == 20 else (f"history.keep_visits={kept}",)))
        geomi(*words)
        for _ in range(runs - 1):
            geomi("crawl", collection, "--again")
    with sqlite3.connect(f"file:{collection}/geomi.db?mode=ro", uri=True) as db:
        pages = db.execute("SELECT url, visits, moved FROM pages WHERE visits > 0").fetchall()
        most = db.execute(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM visits WHERE page > 0 GROUP BY page)"
        ).fetchone()[0]
    assert pages
    assert most in (kept, kept + 1)
    assert list(collection.glob("history/*/*.parquet"))
    for url, visits, moved in pages:
        assert visits >= runs
        assert moved >= runs - kept - 1
        events = geomi("story", collection, url, "--json").facts["events"]
        asked = [one for one in events if one["what"] == "asked"]
        assert len(asked) == visits
        assert {one["run"] for one in asked} == set(range(1, runs + 1))
        times = [one["time"] for one in asked]
        assert times == sorted(times)
        assert all(one["place"] for one in events if one["what"] == "stored")
    seen = geomi("verify", collection, "--politeness", "--json", code=None).facts
    assert seen["requests"] >= sum(visits for _, visits, _ in pages)
    must_be_sound(collection)
