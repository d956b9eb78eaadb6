from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from publicsuffixlist import PublicSuffixList

import geomi
from geomi.errors import OperatorError
from geomi.world import Params, World, reachable
from geomi.world.features import CHARSETS, PLAIN, ROBOTS, ROLES, SITE_KINDS

DIGEST = """
import hashlib
from geomi.world import Params, World, reachable
world = World(Params(seed=4, sites=12, pages=15, changes=True))
digest = hashlib.sha256()
for at in (0.0, 3e6):
    for url, expected in reachable(world, world.seeds(), at=at).items():
        host, _, path = url.partition("://")[2].partition("/")
        answer = world.answer(host, "/" + path, at=at)
        digest.update(repr((url, expected, answer, world.changes(url, at))).encode())
print(digest.hexdigest())
"""


def answers(world):
    for url in reachable(world, world.seeds()):
        host, _, path = url.partition("://")[2].partition("/")
        yield url, world.answer(host, "/" + path)


def test_equal_parameters_give_equal_worlds_in_every_process():
    source = str(Path(geomi.__path__[0]).parent)
    results = set()
    for hash_seed in ("0", "1", "77"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": source}
        results.add(subprocess.check_output([sys.executable, "-c", DIGEST], env=env))
    assert len(results) == 1


def test_the_order_of_questions_changes_nothing():
    params = Params(seed=6, sites=8, pages=20, changes=True)
    urls = list(reachable(World(params), World(params).seeds()))
    one, two = World(params), World(params)
    forward = [one.changes(url, 5e6) for url in urls]
    for url in reversed(urls):
        two.changes(url, 1e5)
    assert [two.changes(url, 5e6) for url in urls] == forward


def test_a_million_sites_cost_nothing_until_they_are_looked_at():
    world = World(Params(seed=1, sites=1_000_000))
    assert len(world.sites) == 1_000_000
    site = world.sites[987_654]
    assert world.sites.by_host(site.host) is site
    assert world.answer(site.host, "/").status in (200, 302, 404)


def test_names_are_distinct_registrable_domains():
    world = World(Params(seed=3, sites=400))
    suffixes = PublicSuffixList()
    for site in world.sites:
        assert suffixes.privatesuffix(site.host) == site.domain
        for host in site.hosts:
            assert world.sites.by_host(host) is site
    assert len({host for site in world.sites for host in site.hosts}) >= 400
    assert len({site.domain for site in world.sites}) > 350
    assert any(site.domain.endswith(".co.kr") for site in world.sites)
    assert world.sites.by_host("nobody1.example") is None


def test_addresses_lie_in_the_reserved_block_and_nobody_listens_at_cErr():
    world = World(Params(seed=3, sites=600, addresses=100))
    assert len(world.addresses()) <= 100
    for site in world.sites:
        for address in site.addresses:
            _, second, _, _ = map(int, address.split("."))
            assert 64 <= second <= 127
            assert (second == 127) == (site.kind.name == "cErr")
    assert any(len(site.addresses) == 2 for site in world.sites)


def test_an_unknown_share_is_refused_with_a_suggestion():
    with pytest.raises(OperatorError, match=r"redirekt; did you mean redirect\?"):
        World(Params(seed=1, shares={"redirekt": 0.1}))
    with pytest.raises(OperatorError, match="wanted 0 to 1"):
        World(Params(seed=1, shares={"redirect": 2}))


def test_names_in_the_tables_are_unique():
    for table in (ROLES, SITE_KINDS, ROBOTS, CHARSETS):
        assert len({entry.name for entry in table}) == len(table)
    assert not {role.name for role in ROLES} & {kind.name for kind in SITE_KINDS}


def test_every_url_of_the_world_is_canonical():
    ada_url = pytest.importorskip("ada_url")
    world = World(Params(seed=11, sites=60, port=8100))
    for url, answer in answers(world):
        assert ada_url.URL(url).href == url
        for name, value in answer.headers:
            if name == "Location":
                assert ada_url.URL(value).href == value


def test_pages_decode_in_the_charset_they_name():
    world = World(Params(seed=8, sites=80, pages=6))
    seen = set()
    for url, answer in answers(world):
        site = world.find(url)[0]
        if answer.status == 200 and site and answer.headers[0][1].startswith("text/html"):
            seen.add(site.charset.name)
            text = answer.body.decode(site.charset.codec)
            label = site.charset.header or site.charset.meta
            assert label in dict(answer.headers)["Content-Type"] or label in text[:1024]
            if site.charset.codec == "cp949" and "<frameset" not in text:
                with pytest.raises(UnicodeDecodeError):
                    answer.body.decode("euc_kr")
    assert {"utf8-both", "euckr-meta", "cp949-meta", "en-utf8"} <= seen


def test_html_pages_have_a_real_size():
    world = World(Params(seed=8, sites=40))
    sizes = sorted(len(a.body) for _, a in answers(world) if a.body.startswith(b"<!doctype"))
    assert sizes[len(sizes) // 10] > 3_000
    assert 5_000 < sizes[len(sizes) // 2] < 20_000
    assert sizes[-1] < 60_000


def test_duplicates_repeat_the_bytes_and_nothing_else_does():
    world = World(Params(seed=8, sites=40, shares={**PLAIN, "duplicate": 0.2}))
    by_digest: dict[bytes, set[tuple[str, int]]] = {}
    copies = 0
    for url, answer in answers(world):
        site, _, page = world.find(url)
        if page is not None and page.number >= 0 and site is not None and answer.status == 200:
            number = page.number if page.same_as < 0 else page.same_as
            copies += page.same_as >= 0
            key = hashlib.sha1(answer.body).digest()
            by_digest.setdefault(key, set()).add((site.host, number))
    assert copies > 20
    assert all(len(pages) == 1 for pages in by_digest.values())


def test_validators_are_honoured():
    world = World(Params(seed=4, sites=40))
    kept = {"ETag": 0, "Last-Modified": 0}
    for url, answer in answers(world):
        host, _, path = url.partition("://")[2].partition("/")
        have = dict(answer.headers)
        for name, ask in (("ETag", "if-none-match"), ("Last-Modified", "if-modified-since")):
            if name in have:
                kept[name] += 1
                again = world.answer(host, "/" + path, headers={ask: have[name]})
                assert (again.status, again.body) == (304, b"")
        if "ETag" in have:
            assert world.answer(host, "/" + path, headers={"if-none-match": '"x"'}) == answer
    assert min(kept.values()) > 50


def test_links_follow_a_power_law():
    world = World(Params(seed=5, sites=300, pages=10, shares=PLAIN))
    degree: dict[str, int] = {}
    for url in reachable(world, world.seeds()):
        for link in world.links(url):
            host = link.url.split("/")[2]
            if host != url.split("/")[2]:
                degree[host] = degree.get(host, 0) + 1
    ranked = sorted(degree.values(), reverse=True)
    assert ranked[0] > 8 * ranked[len(ranked) // 4]
