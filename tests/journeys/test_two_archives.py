"""Nodes with archives of their own: what they have is found, counted, and brought together."""

from __future__ import annotations

from pathlib import Path

from geomi.world import Params, reachable, serve
from geomi.world.features import PROMPT
from journeys.crawling import (
    geomi,
    must_be_sound,
    outcomes,
    settings,
    to_world,
    warcio_agrees,
)
from rays import cluster

#: Long enough that agents on both nodes take part.
SLOWLY = (
    "manners.rest_s=0.1", "manners.rest_factor=0", "manners.address_rest_s=0", "retry.gap_s=0.05",
    "fetch.connect_s=2", "agent.batch_s=0.1", "agent.contexts=5", "crawl.seen=exact",
)  # fmt: skip


def test_archives_of_two_nodes_are_gathered_into_one(tmp_path: Path) -> None:
    collection, archives = tmp_path / "news", {"one": tmp_path / "d1", "two": tmp_path / "d2"}
    with serve(Params(seed=73, sites=10, pages=24, shares=PROMPT)) as web, \
         cluster(archives=archives) as nodes:  # fmt: skip
        found = geomi("cluster", "status", "--address", nodes.address, "--json").facts["nodes"]
        assert sorted(node["name"] for node in found) == ["one", "two"]
        geomi("crawl", collection, *web.seeds(), *to_world(web),
              *settings(*SLOWLY), "--agents", "2", "--engine", "ray",
              "--address", nodes.address, "--json", timeout_s=120)  # fmt: skip
        wanted = {url: one.outcome for url, one in reachable(web.world, web.seeds()).items()}
        assert outcomes(collection) == wanted
        there = {name: sorted(folder.glob("news/**/*.warc.gz")) for name, folder in
                 archives.items()}  # fmt: skip
        assert there["one"] and there["two"] and not list(collection.glob("archive/**/*.warc.gz"))

        report = geomi("verify", collection, "--json").facts
        assert report["counts"]["files.elsewhere"] == sum(map(len, there.values()))
        assert "lie on other nodes and were not looked at" in geomi("verify", collection).out

        alone = geomi("cluster", "gather", collection, "--json", code=1).facts
        assert alone["files"] == 0 and "no node one" in str(alone["left"])
        first = geomi("cluster", "gather", collection, "--from", "one", "--address", nodes.address,
                      "--json", timeout_s=120).facts  # fmt: skip
        assert (first["files"], first["left"]) == (len(there["one"]), [])
        done = geomi("cluster", "gather", collection, "--address", nodes.address, "--remove",
                     timeout_s=120)  # fmt: skip
        assert f"{len(there['two'])} files" in done.out
    assert not list(archives["two"].glob("news/**/*.warc.gz"))
    counts = geomi("verify", collection, "--json").facts["counts"]
    assert "files.elsewhere" not in counts
    must_be_sound(collection)
    warcio_agrees(sorted(collection.glob("archive/**/*.warc.gz")))
