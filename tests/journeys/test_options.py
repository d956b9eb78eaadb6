"""The options of `geomi crawl`, each seen by what was asked for and what was not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from geomi import url as urls
from geomi.world import Running, reachable
from journeys.crawling import FAST, Done, geomi, outcomes, pages, settings, to_world


def crawl(running: Running, collection: Path, *words: object, code: int = 0) -> Done:
    return geomi("crawl", collection, *words, *to_world(running), *settings(*FAST), "--json",
                 code=code)  # fmt: skip


def largest(running: Running, number: int = 1) -> list[str]:
    """Seeds of the sites with the most pages."""
    found = sorted(running.seeds(), key=lambda seed: -len(reachable(running.world, [seed])))
    return found[:number]


def visited(collection: Path) -> set[str]:
    return {row["url"] for row in pages(collection) if row["outcome"] not in ("skip", "NULL")}


def whys(collection: Path) -> dict[str, str]:
    return {row["url"]: row["why"] for row in pages(collection, "--outcome", "skip")}


def everything(running: Running, seeds: list[str], **how: Any) -> set[str]:
    return set(reachable(running.world, seeds, **how))


# -- what is in -------------------------------------------------------------------------------


def test_an_exclude_keeps_pages_out_and_all_else_comes(tmp_path: Path, plain: Running) -> None:
    (seed,) = largest(plain)
    crawl(plain, tmp_path / "c", seed, "--exclude", r"view\.php", "--exclude", "/notice")
    kept_out = re.compile(r"view\.php|/notice")
    assert visited(tmp_path / "c") and not [
        url for url in visited(tmp_path / "c") if kept_out.search(url)
    ]
    refused = whys(tmp_path / "c")
    assert refused and set(refused.values()) == {"exclude"}
    assert all(kept_out.search(url) for url in refused)


def test_an_include_lets_in_what_matches_its_requisites_and_the_seed(
    tmp_path: Path, plain: Running
) -> None:
    (seed,) = largest(plain)
    crawl(plain, tmp_path / "c", seed, "--include", "/(news|about|info)")
    for row in pages(tmp_path / "c"):
        wanted = row["kind"] in ("s", "e") or re.search("/(news|about|info)", row["url"])
        assert (row["outcome"] == "OK") == bool(wanted), row


def test_loosening_the_scope_wants_again_what_was_skipped(tmp_path: Path, plain: Running) -> None:
    (seed,) = largest(plain)
    first = crawl(plain, tmp_path / "c", seed, "--max-depth", "1", "--exclude", r"\.png").facts
    assert 0 < len(visited(tmp_path / "c")) < len(everything(plain, [seed]))
    deeper = crawl(plain, tmp_path / "c", "--set", "crawl.max_depth=2",
                   "--set", "crawl.exclude=[]").facts  # fmt: skip
    assert deeper["run"] == first["run"] + 1
    assert visited(tmp_path / "c") == everything(plain, [seed], max_depth=2)
    (tmp_path / "c" / "geomi.toml").write_text("")
    crawl(plain, tmp_path / "c", "--set", "guard.allow_networks=['127.64.0.0/10']")
    assert visited(tmp_path / "c") == everything(plain, [seed])
    assert whys(tmp_path / "c") == {}


def test_a_wider_scope_takes_in_the_sites_remembered_from_outside(
    tmp_path: Path, web: Running
) -> None:
    seeds = [seed for seed in web.seeds() if everything(web, [seed], scope="domain")
             != everything(web, [seed])][:1] or web.seeds(1)  # fmt: skip
    crawl(web, tmp_path / "c", *seeds)
    assert visited(tmp_path / "c") == everything(web, seeds)
    crawl(web, tmp_path / "c", "--scope", "domain")
    assert visited(tmp_path / "c") == everything(web, seeds, scope="domain")


def test_one_site_may_have_settings_of_its_own(tmp_path: Path, plain: Running) -> None:
    one, two = largest(plain, 2)
    host = one.split("/")[2].partition(":")[0]
    crawl(plain, tmp_path / "c", one, two, "--set", f'site."{host}".max_depth=0',
          "--set", f'site."{host}".requisites=false')  # fmt: skip
    found = visited(tmp_path / "c")
    assert {url for url in found if f"//{host}" in url} == {one}
    assert {url for url in found if f"//{host}" not in url} == everything(plain, [two])


# -- limits -----------------------------------------------------------------------------------


def test_max_pages_is_exact_for_each_seed_and_leaves_requisites_out_of_the_count(
    tmp_path: Path, plain: Running
) -> None:
    seeds = largest(plain, 2)
    for exactness in ("bloom", "exact"):
        collection = tmp_path / exactness
        crawl(plain, collection, *seeds, "--max-pages", "12", "--set", f"crawl.seen={exactness}")
        for seed in seeds:
            site = "/".join(seed.split("/")[:3])
            asked = [row for row in pages(collection) if row["url"].startswith(site + "/")
                     and row["kind"] != "e" and row["outcome"] == "OK"]  # fmt: skip
            assert len(asked) == 12
        assert set(whys(collection).values()) == {"max_pages"}
    crawl(plain, tmp_path / "bloom", "--max-pages", "20")
    crawl(plain, tmp_path / "bloom", "--max-pages", "100000")
    assert visited(tmp_path / "bloom") == everything(plain, seeds)


@pytest.mark.parametrize("number", [1, 37])
def test_max_visits_is_never_passed_and_the_next_crawl_goes_on_without_it(
    tmp_path: Path, plain: Running, number: int
) -> None:
    seeds = largest(plain, 3)
    words = ["--agents", "2", "--set", "crawl.seen=exact"]
    stopped = crawl(plain, tmp_path / "c", *seeds, *words, "--max-visits", number, code=1).facts
    assert (stopped["visits"], stopped["ended"]) == (number, "max_visits")
    again = crawl(plain, tmp_path / "c", *words, "--max-visits", number, code=1).facts
    assert again["visits"] == 2 * number
    rest = crawl(plain, tmp_path / "c", *words).facts
    assert (rest["run"], rest["ended"]) == (1, "by itself")
    assert visited(tmp_path / "c") == everything(plain, seeds)


def test_max_time_and_max_bytes_stop_and_leave_the_rest_waiting(
    tmp_path: Path, plain: Running
) -> None:
    seeds = largest(plain, 2)
    slow = ["--set", "manners.rest_s=0.2"]
    timed = geomi("crawl", tmp_path / "c", *seeds, *to_world(plain), *settings(*FAST), *slow,
                  "--max-time", "1", "--json", code=1).facts  # fmt: skip
    assert timed["ended"] == "max_time_s"
    assert timed["pages"]["pending"] > 0
    sized = geomi("crawl", tmp_path / "c", *slow, "--max-bytes", "20000", "--json", code=1).facts
    assert sized["ended"] == "max_bytes"
    assert sized["bytes"] >= timed["bytes"] + 20_000
    crawl(plain, tmp_path / "c")
    assert visited(tmp_path / "c") == everything(plain, seeds)


# -- again, seeds, manners --------------------------------------------------------------------


def test_again_visits_all_once_more_and_asks_with_validators(tmp_path: Path, web: Running) -> None:
    seeds = web.seeds(5)
    first = crawl(web, tmp_path / "c", *seeds).facts
    before = outcomes(tmp_path / "c")
    nothing = crawl(web, tmp_path / "c").facts
    assert (nothing["visits"], nothing["run"]) == (first["visits"], first["run"] + 1)
    began = len(web.log())
    second = crawl(web, tmp_path / "c", "--again").facts
    after = outcomes(tmp_path / "c")
    assert after.keys() == before.keys()
    same = {url for url, outcome in after.items() if outcome == "same"}
    assert same and all(before[url] == "OK" for url in same)
    assert {url: outcome for url, outcome in after.items() if url not in same} == {
        url: outcome for url, outcome in before.items() if url not in same
    }
    statuses = [row.status for row in web.log()[began:]]
    assert statuses.count(304) == len(same)
    assert second["run"] == first["run"] + 2
    assert geomi("verify", tmp_path / "c", "--json").facts["ok"]


def test_a_file_of_seeds_gives_its_labels_and_comes_back_by_export(
    tmp_path: Path, plain: Running
) -> None:
    one, two, three = plain.seeds(3)
    (tmp_path / "list.txt").write_text(
        f'# institutions\n{one} category=ministry institution="Ministry of Examples"\n{two}\n'
    )
    crawl(plain, tmp_path / "c", three, "--seeds", tmp_path / "list.txt", "--max-depth", "0")
    exported = geomi("seeds", "export", tmp_path / "c").out
    assert 'category=ministry institution="Ministry of Examples"' in exported
    (tmp_path / "again.txt").write_text(exported)
    crawl(plain, tmp_path / "d", "--seeds", tmp_path / "again.txt", "--max-depth", "0")
    assert visited(tmp_path / "d") == visited(tmp_path / "c")


@pytest.mark.parametrize(
    "rule", ['seeds.admit.networks=["127.64.0.0/10"]', 'seeds.admit.tlds=["com", "net", "kr"]']
)
def test_sites_that_a_rule_admits_become_seeds_and_their_export_crawls_the_same(
    tmp_path: Path, plain: Running, rule: str
) -> None:
    crawl(plain, tmp_path / "c", *largest(plain), "--set", rule, "--agents", "2")
    listed = geomi("seeds", "list", tmp_path / "c", "--json").rows
    assert {row["source"] for row in listed} == {"given", "found"}
    assert not [row for row in listed if row["outcome"] in ("NULL", "")], listed
    seeds = [row["url"] for row in listed]
    if "tlds" in rule:
        assert {urls.host_of(row["site"]).rpartition(".")[2] for row in listed[1:]} <= {
            "com", "net", "kr",
        }  # fmt: skip
    assert visited(tmp_path / "c") == everything(plain, seeds)
    geomi("seeds", "export", tmp_path / "c", "-o", tmp_path / "all.txt")
    crawl(plain, tmp_path / "d", "--seeds", tmp_path / "all.txt")
    assert visited(tmp_path / "d") == visited(tmp_path / "c")


def test_what_a_file_of_seeds_says_wrong_is_told_by_line_and_the_rest_is_crawled(
    tmp_path: Path, plain: Running
) -> None:
    (tmp_path / "list.txt").write_text(f"ftp://a.example/\n{plain.seeds(1)[0]}\n")
    done = crawl(plain, tmp_path / "c", "--seeds", tmp_path / "list.txt", "--max-depth", "0")
    assert "list.txt line 1: ftp is neither http nor https: ftp://a.example/" in done.err


def test_own_hosts_are_reached_without_rest_by_name_and_by_pattern(
    tmp_path: Path, plain: Running
) -> None:
    seed = largest(plain)[0]
    host = seed.split("/")[2]
    for number, pattern in enumerate((host, "*." + host.partition(":")[0].partition(".")[2])):
        if pattern.startswith("*") and pattern.count(".") < 2:
            continue
        geomi("crawl", tmp_path / f"c{number}", seed, "--own", pattern,
              "--set", f'dns.servers=["127.0.0.1:{plain.dns_port}"]', "--json")  # fmt: skip
        assert visited(tmp_path / f"c{number}") == everything(plain, [seed])


def test_the_preset_own_needs_a_host_to_be_named(tmp_path: Path, plain: Running) -> None:
    done = geomi("crawl", tmp_path / "c", plain.seeds(1)[0], "--manners", "own", code=2)
    assert "--own HOST[:PORT]" in done.err
    assert not (tmp_path / "c").exists()


def test_loopback_is_refused_unless_allowed_and_then_wanted_again(
    tmp_path: Path, plain: Running
) -> None:
    seed = plain.seeds(1)[0]
    name_server = ["--set", f'dns.servers=["127.0.0.1:{plain.dns_port}"]']
    began = len(plain.log())
    told = geomi("crawl", tmp_path / "c", seed, *name_server).out
    site = seed.removeprefix("http://").removesuffix("/")
    assert f"{seed} was not asked: its address is loopback" in told
    assert f"--own {site}" in told
    (listed,) = geomi("seeds", "list", tmp_path / "c", "--json").rows
    assert listed["outcome"] == "skip"
    (row,) = pages(tmp_path / "c")
    assert (row["outcome"], row["why"]) == ("skip", "guard:loopback")
    assert len(plain.log()) == began
    crawl(plain, tmp_path / "c")
    assert visited(tmp_path / "c") == everything(plain, [seed])


def test_settings_given_when_a_collection_is_made_stay_with_it(
    tmp_path: Path, plain: Running
) -> None:
    seed = largest(plain)[0]
    crawl(plain, tmp_path / "c", seed, "--max-depth", "1", "--exclude", r"\.png")
    kept = (tmp_path / "c" / "geomi.toml").read_text()
    assert "max_depth = 1" in kept
    geomi("crawl", tmp_path / "c", "--again", "--json")
    assert visited(tmp_path / "c") == {
        url for url in everything(plain, [seed], max_depth=1) if ".png" not in url
    }


def test_settings_of_one_site_given_when_a_collection_is_made_stay_with_it(
    tmp_path: Path, plain: Running
) -> None:
    seed = largest(plain)[0]
    host = seed.split("/")[2].partition(":")[0]
    crawl(plain, tmp_path / "c", seed, "--set", f'site."{host}".max_depth=0')
    geomi("crawl", tmp_path / "c", "--again", "--json")
    assert visited(tmp_path / "c") == everything(plain, [seed], max_depth=0)
