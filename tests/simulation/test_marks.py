"""What pages say beside their links: obeyed as set, recorded with the capture, counted."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pytest
from made import NOT_THERE, Made, anchors, counters, crawl, html, simulate

from geomi.archive.fields import parse_fields
from geomi.cluster.simulate import Simulation
from geomi.cluster.simweb import Reply
from geomi.fetch.request import Fetch
from geomi.states import Outcome

SEED = "http://a.example/"


class Pages(Made):
    """One site of pages by target, and its robots.txt."""

    def __init__(self, pages: dict[str, Reply], robots: str = "") -> None:
        super().__init__(lambda fetch: pages.get(fetch.target, NOT_THERE))
        self.robots = robots

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        if fetch.target == "/robots.txt" and self.robots:
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
            return Reply(outcome=Outcome.OK, code=200, head=head, body=self.robots.encode())
        return super().ask(fetch, at=at)

    @property
    def order(self) -> list[str]:
        return [fetch.target for _, fetch in self.asked if fetch.target != "/robots.txt"]


def recorded(sim: Simulation, url: str) -> dict[str, str]:
    """The fields of the metadata record of a page, its links left out."""
    line = f"Target-URI: {url}\r\n".encode()
    for path, data in sim.files.data.items():
        whole = gzip.decompress(bytes(data)) if path.endswith(".gz") else b""
        for record in whole.split(b"\r\n\r\nWARC/1.1\r\n"):
            head, _, block = record.partition(b"\r\n\r\n")
            if b"WARC-Type: metadata" in head and line in head + b"\r\n":
                return {name: value for name, value in parse_fields(block) if name != "outlink"}
    raise AssertionError(f"no metadata of {url}")


def visited(web: Made, sets: Sequence[str] = ()) -> tuple[dict[str, str], Simulation]:
    sim = simulate(web, SEED, sets=sets)
    found = crawl(sim)
    return {url.removeprefix(SEED): outcome for url, (outcome, _) in found.items()}, sim


# -- hints -----------------------------------------------------------------------------------------


def scripts(*targets: str) -> str:
    return "".join(f"<script>location.href = '{target}'</script>" for target in targets)


def hinting(good: int) -> Pages:
    """A page whose scripts name 60 addresses, `good` of them pages, and a chain of ten links."""
    hints = [f"/h{n}" for n in range(60)]
    pages = {"/": html(scripts(*hints) + anchors("/1"))}
    pages |= {f"/{n}": html(anchors(f"/{n + 1}")) for n in range(1, 11)}
    pages |= {hint: html("x") for hint in hints[:good]}
    return Pages(pages)


def test_hints_that_mostly_lead_nowhere_are_tried_when_nothing_else_is_left() -> None:
    web = hinting(4)
    found, _ = visited(web)
    assert len(found) == 1 + 60 + 11
    tail = web.order[-40:]
    assert all(target.startswith("/h") for target in tail)
    assert web.order.index("/10") < 30


def test_hints_that_mostly_lead_somewhere_keep_their_place() -> None:
    web = hinting(60)
    found, _ = visited(web)
    assert set(found.values()) == {"OK", "code"}
    assert web.order[1:61] == [f"/h{n}" for n in range(60)]  # breadth first


def test_what_was_learnt_of_hints_is_known_to_the_next_run() -> None:
    web = hinting(4)
    found, sim = visited(web)
    web.asked.clear()
    sim.begin(again=True)
    assert sim.advance(until=sim.now + 86_400)
    sim.finish()
    assert sorted(web.order) == sorted(f"/{target}" for target in found)
    assert all(target.startswith("/h") for target in web.order[-50:])


def test_where_depths_are_limited_hints_keep_their_place() -> None:
    web = hinting(4)
    visited(web, ["crawl.max_depth=20"])
    assert web.order[1:61] == [f"/h{n}" for n in range(60)]


# -- canonical -------------------------------------------------------------------------------------


def naming(canonical: str, *links: str) -> Reply:
    return html(f"<link rel=canonical href='{canonical}'>{anchors(*links)}<img src=/i.png>")


CANONICAL = {
    "/": html(anchors("/p?session=1", "/p?session=2")),
    "/p?session=1": naming("/p", "/p?session=3"),
    "/p?session=2": naming("/p", "/p?session=4"),
    "/p": naming("/p", "/q"),
    "/q": html("x"),
    "/i.png": html("x"),
}


def test_a_canonical_name_is_recorded_and_not_obeyed_unless_set() -> None:
    found, sim = visited(Pages(CANONICAL))
    assert set(found) == {"", "p?session=1", "p?session=2", "p?session=3", "p?session=4", "i.png"}
    assert recorded(sim, f"{SEED}p?session=1")["canonical"] == f"{SEED}p"
    assert counters(sim)["marks.canonical"] == 2


def test_where_it_is_obeyed_the_canonical_page_is_taken_instead() -> None:
    found, sim = visited(Pages(CANONICAL), ["extract.obey_canonical=true"])
    assert found == dict.fromkeys(("", "p?session=1", "p?session=2", "p", "q", "i.png"), "OK")
    assert counters(sim)["canonical.obeyed"] == 2


def test_two_pages_that_call_each_other_canonical_are_not_both_left() -> None:
    web = Pages({
        "/": html(anchors("/a")), "/a": naming("/b", "/1"), "/b": naming("/a", "/2"),
        "/2": html("x"),
    })  # fmt: skip
    found, _ = visited(web, ["extract.obey_canonical=true"])
    assert found["2"] == "OK"


@pytest.mark.parametrize("canonical", ["http://b.example/", "mailto:x", "http://[", "/"])
def test_a_canonical_name_elsewhere_or_none_costs_no_link(canonical: str) -> None:
    web = Pages({"/": naming(canonical, "/x"), "/x": html("x")})
    found, _ = visited(web, ["extract.obey_canonical=true"])
    assert found["x"] == "OK"


# -- wishes ----------------------------------------------------------------------------------------


def test_wishes_to_robots_are_recorded_and_counted() -> None:
    web = Pages({
        "/": html("<a href=/a rel=nofollow>x</a><a href=/b>x</a><a href=/c>x</a>"),
        "/b": html("<meta name=robots content='noindex, nofollow'>" + anchors("/d")),
        "/c": html(anchors("/e"), "X-Robots-Tag: otherbot: nofollow", "X-Robots-Tag: noarchive"),
        "/e": html("x"),
    })  # fmt: skip
    found, sim = visited(web)
    assert set(found) == {"", "b", "c", "e"}
    assert recorded(sim, f"{SEED}b")["robots"] == "nofollow, noindex"
    assert recorded(sim, f"{SEED}c")["robots"] == "noarchive"
    count = counters(sim)
    assert count["links.nofollow"] == 1
    assert [count[f"marks.{word}"] for word in ("nofollow", "noindex", "noarchive")] == [1, 1, 1]


def test_what_is_not_obeyed_is_recorded_all_the_same() -> None:
    web = Pages({
        "/": html("<a href=/a rel=nofollow>x</a>"),
        "/a": html("<meta name=robots content=none>" + anchors("/b")),
        "/b": html("x"),
    })  # fmt: skip
    sets = ["extract.obey_nofollow=false", "extract.obey_meta=false"]
    found, sim = visited(web, sets)
    assert set(found) == {"", "a", "b"}
    assert recorded(sim, f"{SEED}a")["robots"] == "nofollow, noindex"


USAGE = """\
User-agent: *
Content-Signal: search=yes, ai-train=no
Content-Usage: train-ai=n
Content-Usage: /open/ train-ai=y, search=y
Disallow: /secret
"""


def test_what_may_be_done_with_content_is_recorded_with_each_capture() -> None:
    web = Pages({
        "/": html(anchors("/open/x", "/y")),
        "/open/x": html("x"),
        "/y": html("x", "Content-Usage: train-ai=n;exp=1"),
    }, robots=USAGE)  # fmt: skip
    found, sim = visited(web)
    assert set(found.values()) == {"OK"}
    signal = {"robots-content-signal": "search=yes, ai-train=no"}
    for path, fields in {
        "": signal | {"robots-content-usage": "train-ai=n"},
        "open/x": signal | {"robots-content-usage": "train-ai=y, search=y"},
        "y": signal | {"robots-content-usage": "train-ai=n", "content-usage": "train-ai=n;exp=1"},
    }.items():
        got = recorded(sim, f"{SEED}{path}")
        assert {name: value for name, value in got.items() if "content-" in name} == fields
    assert counters(sim)["marks.usage"] == 3


def test_the_charset_that_was_found_is_recorded() -> None:
    _, sim = visited(Pages({"/": html("<meta charset=ks_c_5601-1987>\ud55c")}))
    assert recorded(sim, SEED)["charset"]


def test_a_page_that_only_scripts_would_fill_is_marked_and_counted() -> None:
    web = Pages({"/": html("<title>x</title><div id=app></div><script src=/a.js></script>")})
    _, sim = visited(web)
    assert recorded(sim, SEED)["script-only"] == "yes"
    assert counters(sim)["scripts.only"] == 1
    assert sim.store.all("SELECT why FROM pages WHERE url = ?", (SEED,)) == [("script_only",)]


def test_every_refusal_is_counted_by_its_reason() -> None:
    long = "/" + "x" * 3000
    deep = "".join(f"/{name}" for name in "aaaaaaaa")
    many = "/?" + "&".join(f"p{n}={n}" for n in range(40))
    web = Pages({"/": html(anchors(deep, many, "/secret") + f"<a href='{long}'>")}, robots=USAGE)
    _, sim = visited(web)
    count = counters(sim)
    assert (count["refused.trap_path"], count["refused.trap_query"]) == (1, 1)
    assert count["refused.robots"] == 1
    assert count["links.bad"] == 1
