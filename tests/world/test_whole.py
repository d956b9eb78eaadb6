"""Everything switched on: what the world says of itself is what a careful reader finds."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

import pytest

from geomi.errors import OperatorError
from geomi.extract import Extractor
from geomi.world import Params, World, reachable
from geomi.world.charsets import CHARSETS
from geomi.world.features import CORNERS, PLAIN, ROBOTS, TLS, WHOLE

from .naive import Naive


def reader(*, nofollow=True):
    extractor = Extractor(obey_nofollow=nofollow, obey_meta=nofollow)

    def read(url, fields, body):
        page = extractor.page(url, fields, body)
        return [(kind, target.url) for kind, target in page.links]

    return read


def outcomes(found):
    return {url: expected.outcome for url, expected in found.items()}


def only(**shares):
    """Shares of a world where nothing occurs but these."""
    return {**PLAIN, **{name.replace("__", "."): share for name, share in shares.items()}}


def differences(one, other):
    return {url: (one.get(url), other.get(url)) for url in one | other
            if one.get(url) != other.get(url)}  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_truth_is_what_a_careful_reader_finds(seed):
    world = World(
        Params(seed=seed, sites=30, pages=8, shares=WHOLE, trap_steps=3,
               **({"port": 8100, "tls_port": 8143} if seed % 2 else {}))
    )  # fmt: skip
    seeds = world.seeds(copies=True)
    truth = outcomes(reachable(world, seeds, traps=True))
    assert differences(truth, Naive(world, reader=reader()).crawl(seeds)) == {}
    without = outcomes(reachable(world, seeds))
    assert without == {url: what for url, what in truth.items() if not world.trap(url)}


@pytest.mark.parametrize("name", CORNERS)
def test_a_corner_agrees_alone_in_every_charset(name):
    shares = {**only(**{f"corner__{name}": 1.0}), **{f"charset.{k.name}": 0.1 for k in CHARSETS}}
    world = World(Params(seed=3, sites=25, pages=1, shares=shares, trap_steps=2))
    for nofollow in (True, False):
        truth = outcomes(reachable(world, world.seeds(), traps=True, nofollow=nofollow))
        found = Naive(world, reader=reader(nofollow=nofollow)).crawl(world.seeds())
        assert differences(truth, found) == {}
    assert any(f"/~{name}/" in url for url in truth)


@pytest.mark.parametrize("kind", [kind.name for kind in ROBOTS])
def test_every_robots_txt_denies_what_it_says(kind):
    shares = {**PLAIN, "robots.none": 0.0, f"robots.{kind}": 1.0, "private": 0.2, "cgi": 0.2}
    world = World(Params(seed=4, sites=6, pages=20, shares=shares))
    for agent in ("geomi", "other"):
        truth = outcomes(reachable(world, world.seeds(), agent=agent))
        assert truth == Naive(world, agent=agent).crawl(world.seeds())


def test_a_world_with_everything_has_everything():
    world = World(Params(seed=0, sites=900, pages=4, shares=WHOLE, trap_steps=1))
    sites = world.sites[:]
    assert {site.robots.name for site in sites} == {kind.name for kind in ROBOTS}
    assert {site.charset.name for site in sites} == {kind.name for kind in CHARSETS}
    # The lobby needs a visitor with a memory: one that is killed on the way must not fail for it.
    assert {corner for site in sites for corner in site.corners} == set(CORNERS) - {"lobby"}
    assert {site.tls for site in sites} == {"", *TLS}
    assert {"secure", "www", "plain", "moved"} <= {site.kind.name for site in sites}
    assert any("[::1]" in site.aliases for site in sites)
    literal = [a for site in sites for a in site.aliases if a.replace(".", "").isdigit()]
    assert literal and all(world.sites.by_host(a).addresses[0] == a for a in literal)


def test_other_names_of_a_site_answer_with_equal_bytes():
    shares = only(habit__alias=0.5, habit__domain=0.5, habit__literal=0.5, habit__six=0.3,
                  habit__https=0.5, tls__expired=0.0, tls__name=0.0, tls__self=0.0)  # fmt: skip
    world = World(Params(seed=5, sites=12, pages=6, shares=shares, port=8100, tls_port=8143))
    compared = Counter()
    for site in world.sites:
        for base in site.copies:
            compared[urlsplit(base).scheme] += 1
            for url in world.urls(site):
                target = url[len(site.base) :]
                parts = urlsplit(base + target)
                main = world.answer(urlsplit(site.base).netloc, target)
                copy = world.answer(parts.netloc, target, scheme=parts.scheme)
                assert main == copy
                assert world.original(base + target) == site.base + target
    assert min(compared["http"], compared["https"]) > 3


def test_variants_name_their_original_and_tell_its_story():
    shares = only(corner__tracking=1.0, corner__order=1.0, corner__session=1.0,
                  corner__pathsession=1.0)  # fmt: skip
    world = World(Params(seed=6, sites=1, pages=1, shares=shares))
    bodies: dict[str, set[bytes]] = {}
    names = Counter()
    for url in reachable(world, world.seeds()):
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        first = world.original(url)
        names[first] += 1
        bodies.setdefault(first, set()).add(world.answer(parts.netloc, target).body)
    assert sum(names.values()) > 3 * len([first for first in names if "/~" in first]) / 2
    for first, texts in bodies.items():
        if "/~tracking/" in first or "/~order/" in first:
            assert len(texts) == 1


def test_walls_have_one_content_and_say_what_it_means():
    shares = only(corner__members=1.0, corner__door=1.0, corner__realname=1.0,
                  corner__apology=1.0, corner__app=1.0, habit__soft404=1.0)  # fmt: skip
    world = World(Params(seed=7, sites=4, pages=3, shares=shares))
    bodies: dict[tuple[str, str], set[bytes]] = {}
    for url, expected in reachable(world, world.seeds()).items():
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        meaning = world.meaning(url)
        if expected.outcome == "OK" and meaning:
            body = world.answer(parts.netloc, target).body
            bodies.setdefault((parts.netloc, meaning), set()).add(body)
    assert {meaning for _, meaning in bodies} == {
        "login", "realname", "error", "script", "missing"
    }  # fmt: skip
    assert all(len(texts) == 1 for texts in bodies.values())


@pytest.mark.parametrize("charset", [k.name for k in CHARSETS if k.korean and k.asks])
def test_queries_lead_to_the_right_page_only_in_the_charset_of_the_page(charset):
    shares = {**only(corner__search=1.0), **{f"charset.{k.name}": 0.0 for k in CHARSETS}}
    world = World(Params(seed=8, sites=1, pages=1, korean=1.0,
                         shares={**shares, f"charset.{charset}": 1.0}))  # fmt: skip
    found = reachable(world, world.seeds())
    asked = [url for url in found if "/~search/?q=" in url]
    assert len(asked) == 6 and all(found[url].outcome == "OK" for url in asked)
    site = world.sites[0]
    wrong = "%ED%95%9C%EA%B8%80" if site.charset.encoding == "euc-kr" else "%C7%D1%B1%DB"
    answer = world.answer(site.host, f"/~search/?q={wrong}")
    assert (answer.status, answer.body[:14]) == (404, b"wrong encoding")


def test_endless_traps_have_no_end_and_no_whole_truth():
    traps = [name for name, c in CORNERS.items() if name in (
        "calendar", "deep", "lost", "growing", "visits")]  # fmt: skip
    world = World(Params(seed=9, sites=1, pages=1, shares=only(**{
        f"corner__{name}": 1.0 for name in traps})))  # fmt: skip
    with pytest.raises(OperatorError, match="trap_steps"):
        reachable(world, world.seeds(), traps=True)
    read = reader()
    for name in traps:
        url = f"{world.sites[0].base}/~{name}/"
        for step in range(60):
            parts = urlsplit(url)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            answer = world.answer(parts.netloc, target)
            fields = {key.lower(): value for key, value in answer.headers}
            links = [link for _, link in read(url, fields, answer.body)]
            into = [link for link in links if f"/~{name}/" in link and "event-" not in link]
            url = into[-1]
            assert step < 2 or world.trap(url) == name


def test_nothing_that_is_no_link_is_in_the_truth():
    world = World(Params(seed=1, sites=2, pages=1, shares=only(corner__zoo=1.0)))
    assert not [url for url in reachable(world, world.seeds()) if "not-" in url or "ghost" in url]
