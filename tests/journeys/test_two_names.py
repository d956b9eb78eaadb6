"""Sites with two names, with real processes: visited once, listed, explained, taken back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from geomi.world import Params, Running, reachable, serve
from geomi.world.features import PLAIN
from geomi.world.truth import as_one, main_name
from journeys.crawling import FAST, geomi, must_be_sound, outcomes, pages, settings, to_world

#: A site of some hundred pages, and the same under a second name that differs by `www.`.
WORLD = Params(seed=6, sites=1, pages=150, shares={**PLAIN, "habit.alias": 1.0})


def crawl(running: Running, collection: Path, *words: str) -> None:
    geomi("crawl", collection, *words, *to_world(running), "--agents", "2", "--json",
          *settings(*FAST, "crawl.seen=exact", "manners.connections=1", "manners.rest_s=0.03",
                    "alias.detect=true"))  # fmt: skip


def asked(running: Running, name: str) -> Counter[str]:
    return Counter(
        row.target for row in running.log() if row.host.partition(":")[0] == name
    )  # fmt: skip


def test_names_of_one_site_are_visited_once_and_parted_by_hand(tmp_path: Path) -> None:
    place = tmp_path / "c"
    with serve(WORLD) as running:
        seeds = running.seeds(copies=True)
        crawl(running, place, *seeds)
        world = running.world
        truth = reachable(world, seeds)
        rows = {row["url"]: row for row in pages(place)}
        visited = {url for url, row in rows.items() if not row["why"].startswith("alias:")}
        assert {main_name(world, url) for url in visited} == set(as_one(world, truth))
        assert all(rows[url]["outcome"] == truth[url].outcome for url in visited)
        must_be_sound(place)

        found = geomi("seeds", "aliases", place, "--json").rows
        merged = [one for one in found if one["state"] == "merged"]
        assert merged
        for one in merged:
            names = {one["site"].partition(":")[0], one["alias"].partition(":")[0]}
            assert len({world.sites.by_host(name) for name in names}) == 1
        largest = max(merged, key=lambda one: one["skipped"])
        assert largest["skipped"] > 20
        second = largest["alias"]
        host = second.partition(":")[0]
        assert Counter(
            (test["test"], test["verdict"]) for test in largest["evidence"]
        )["sample", "agree"] >= 5  # fmt: skip
        assert "of their URLs were not asked for" in geomi("status", place).out

        url = next(
            url for url, row in rows.items()
            if row["why"].startswith("alias:") and f"//{second}/" in url
        )  # fmt: skip
        twin = rows[url]["why"].removeprefix("alias:")
        told = geomi("story", place, url, "--json").facts
        assert told["events"][-1]["page"] == twin
        explained = geomi("explain", "url", place, url, "--json").facts
        assert explained["visited_as"] == twin
        assert host in geomi("seeds", "aliases", place, second).out

        before = asked(running, host)
        said = geomi("seeds", "aliases", place, "--undo", second, "--json").facts
        assert said["decided"] == f"{second} is no other name of {largest['site']}"
        crawl(running, place)
        after = asked(running, host)
        own = {url for url in truth if f"//{second}/" in url}
        assert {url: outcomes(place)[url] for url in own} == {
            url: truth[url].outcome for url in own
        }
        assert sum(after.values()) - sum(before.values()) >= largest["skipped"]
        (one,) = [
            one for one in geomi("seeds", "aliases", place, "--json").rows
            if one["alias"] == second and one["site"] == largest["site"]
        ]  # fmt: skip
        assert one["state"] == "undone"
        must_be_sound(place)


def test_wrong_orders_are_one_sentence_and_change_nothing(tmp_path: Path) -> None:
    place = tmp_path / "c"
    geomi("init", place)
    geomi("seeds", "add", place, "http://a.example/", "http://b.example/")
    for words, said in (
        (["--undo", "a.example"], "a.example: no other name of a site"),
        (["--merge", "a.example", "c.example"], "c.example: no such site in the collection"),
        (["--merge", "a.example", "a.example"], "a.example: give two names"),
        (["--undo", "a.example", "--never", "a.example", "b.example"], "give one of them"),
        (["c.example"], "c.example: no such site"),
    ):
        done = geomi("seeds", "aliases", place, *words, code=2)
        assert said in done.err
        assert len(done.err.splitlines()) == 1
    assert geomi("seeds", "aliases", place, "--json").rows == []
