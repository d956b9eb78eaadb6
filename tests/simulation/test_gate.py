"""robots.txt as an agent meets it: sizes, encodings, hops, schemes that fail. In virtual time."""

from __future__ import annotations

import gzip

import pytest
from made import EXPIRED, NOT_THERE, Made, anchors, counters, crawl, html, simulate

from geomi.cluster.simweb import Reply
from geomi.fetch.request import Fetch
from geomi.states import Outcome

LIMIT = 512_000
PAGES = ("/", "/a", "/b", "/secret/x")


class Ruled(Made):
    """One site of four pages, and its robots.txt."""

    def __init__(self, *robots: Reply) -> None:
        super().__init__(lambda fetch: html(anchors(*PAGES)))
        self.robots = {f"/robots{n or ''}.txt": reply for n, reply in enumerate(robots)}

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        self.asked.append((at, fetch))
        if fetch.target in self.robots:
            reply = self.robots[fetch.target]
            if 0 < fetch.limit_bytes < len(reply.body):
                body = reply.body[: fetch.limit_bytes]
                return Reply(outcome=Outcome.CUT, code=200, head=reply.head, body=body)
            return reply
        return self.answer(fetch)


def robots(body: bytes, *lines: str) -> Reply:
    fields = "".join(f"{line}\r\n" for line in lines)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{fields}\r\n".encode()
    return Reply(outcome=Outcome.OK, code=200, head=head, body=body)


def onward(location: str) -> Reply:
    head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n".encode()
    return Reply(outcome=Outcome.CODE, code=302, head=head)


def outcomes(web: Made) -> dict[str, str]:
    found = crawl(simulate(web, "http://a.example/"))
    return {url.removeprefix("http://a.example"): outcome for url, (outcome, _) in found.items()}


ALL = dict.fromkeys(PAGES, "OK")
NO_SECRETS = {**ALL, "/secret/x": "deny"}


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip", "gzip, gzip"])
def test_a_robots_txt_in_a_content_encoding_is_read(encoding: str) -> None:
    body = b"User-agent: *\nDisallow: /secret/\n"
    for _ in encoding.split(","):
        body = gzip.compress(body)
    web = Ruled(robots(body, f"Content-Encoding: {encoding}"))
    assert outcomes(web) == NO_SECRETS


def test_a_robots_txt_that_cannot_be_unpacked_has_no_rule_and_is_counted() -> None:
    web = Ruled(robots(b"\xff" * 100, "Content-Encoding: compress"))
    sim = simulate(web, "http://a.example/")
    assert {outcome for outcome, _ in crawl(sim).values()} == {"OK"}
    assert counters(sim)["robots.unreadable"] == 1


def test_a_bomb_of_a_robots_txt_is_read_up_to_the_limit() -> None:
    bomb = b"User-agent: *\nDisallow: /secret/\n" + b"#\n" * 30_000_000
    web = Ruled(robots(gzip.compress(bomb, 1), "Content-Encoding: gzip"))
    assert outcomes(web) in (ALL, NO_SECRETS)  # more than a thousandfold is no robots.txt


def test_no_more_of_a_robots_txt_is_asked_for_than_is_read() -> None:
    body = b"User-agent: *\nDisallow: /secret/\n" + b"# more\n" * 1_000_000
    web = Ruled(robots(body))
    sim = simulate(web, "http://a.example/")
    assert [outcome for outcome, _ in crawl(sim).values()].count("deny") == 1
    assert {fetch.limit_bytes for _, fetch in web.asked if fetch.target == "/robots.txt"} == {
        LIMIT + 1
    }
    assert counters(sim)["robots.cut"] == 1


def test_the_line_that_the_limit_tears_is_no_rule() -> None:
    start = b"User-agent: *\nDisallow: /secret/\n"
    last = b"Disallow: /elsewhere/\n"
    for kept in range(len(last)):
        filler = b"#" * (LIMIT - len(start) - kept - 1) + b"\n"
        web = Ruled(robots(start + filler + last * 3))
        assert outcomes(web) == NO_SECRETS, kept


def test_a_redirected_robots_txt_keeps_its_limit() -> None:
    web = Ruled(onward("/robots1.txt"), robots(b"User-agent: *\nDisallow: /secret/\n"))
    assert outcomes(web) == NO_SECRETS
    asked = [fetch for _, fetch in web.asked if fetch.target.startswith("/robots")]
    assert [fetch.limit_bytes for fetch in asked] == [LIMIT + 1] * 2


def test_pages_of_a_scheme_that_was_not_tried_outlive_the_other_one() -> None:
    """The seed is the https of a bad certificate; only later is a page of http found."""

    class Late(Made):
        def ask(self, fetch: Fetch, *, at: float) -> Reply:
            self.asked.append((at, fetch))
            if fetch.scheme == "https" and fetch.host == "a.example":
                return EXPIRED
            if fetch.target == "/robots.txt":
                return NOT_THERE
            return self.answer(fetch)

    def answer(fetch: Fetch) -> Reply:
        if fetch.host == "b.example":
            return html(anchors("http://a.example/", "https://a.example/x"))
        return html(anchors("/y"))

    found = crawl(simulate(Late(answer), "https://a.example/", "http://b.example/"))
    assert {url: outcome for url, (outcome, _) in found.items()} == {
        "https://a.example/": "cErr", "https://a.example/x": "cErr", "http://b.example/": "OK",
        "http://a.example/": "OK", "http://a.example/y": "OK",
    }  # fmt: skip
