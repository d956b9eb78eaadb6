"""A crawl that is carried by an engine which loses, delays and repeats calls."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from contract.unreliable import Unreliable
from geomi.cluster.collection import Collection
from geomi.cluster.drive import Drive
from geomi.cluster.local import LocalEngine
from geomi.seeds.lists import Seed
from geomi.world import Running, reachable
from journeys.crawling import FAST, geomi, must_be_sound, outcomes


@pytest.mark.parametrize("seed", [2, *(pytest.param(n, marks=pytest.mark.long) for n in range(20))])
def test_a_crawl_does_not_notice_what_its_engine_loses(
    tmp_path: Path, web: Running, seed: int
) -> None:
    place = Collection(tmp_path / "c")
    place.create()
    sets = [
        *FAST, "crawl.seen=exact", f'dns.servers=["127.0.0.1:{web.dns_port}"]', "crawl.agents=3",
        'guard.allow_networks=["127.64.0.0/10", "127.127.0.0/16"]',
    ]  # fmt: skip
    settings = place.settings(sets)
    seeds = web.seeds()
    engine = Unreliable(LocalEngine(), seed=seed)
    with closing(engine), closing(place.open_store(settings)) as store:
        drive = Drive(place, settings, store, engine=engine, warn=lambda text: None)
        ending = drive.crawl(
            [Seed(url=url, source="test") for url in seeds], again=False, options={}
        )
        assert ending.why == ""
        twice = store.all(
            "SELECT p.url, count(*) FROM visits v JOIN pages p ON p.page = v.page"
            " WHERE v.outcome = 'OK' GROUP BY v.page, v.run, p.url HAVING count(*) > 1"
        )
        assert twice == []
    assert engine.lost or engine.unheard
    wanted = {url: one.outcome for url, one in reachable(web.world, seeds).items()}
    assert outcomes(place.path) == wanted
    geomi("crawl", place.path, "--json")  # finishes the files of agents that nobody heard of
    must_be_sound(place.path)
