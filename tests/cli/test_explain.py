from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from geomi import url as urls
from geomi.cli.explain import app
from geomi.cluster.collection import Collection
from geomi.cluster.coordinator import Coordinator
from geomi.errors import OperatorError, ResourceError
from geomi.seeds.lists import given_seeds

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def show(*words: object) -> str:
        assert app([str(word) for word in words], standalone_mode=False) == 0
        return capsys.readouterr().out

    return show


@pytest.fixture
def run(show: Callable[..., str]) -> Run:
    def run(*words: object) -> list[dict[str, Any]]:
        return [json.loads(line) for line in show(*words, "--json").splitlines()]

    return run


def collection(path: Path, seeds: list[str], settings: dict[str, Any] | None = None) -> Path:
    place = Collection(path)
    place.create(settings)
    store = place.open_store(place.settings())
    coordinator = Coordinator(store, place.settings())
    coordinator.add_seeds(given_seeds(seeds), now=1.0)
    store.close()
    return path


# -- url ---------------------------------------------------------------------------------------


def test_a_url_is_shown_in_all_its_forms(run: Run) -> None:
    text = "HTTP://User:pw@WWW.Example.CO.KR:80/a/../가?b=2&a=1#part"
    canonical = "http://www.example.co.kr/%EA%B0%80?b=2&a=1"
    assert run("url", text) == [
        {
            "url": text,
            "canonical": canonical,
            "site": "www.example.co.kr",
            "domain": "example.co.kr",
            "surt": "kr,co,example)/%ea%b0%80?a=1&b=2",
            "hash": urls.url_hash(canonical),
            "in_scope": None,
            "why": "no collection and no --seed to judge by",
        }
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ftp://a.org/", "bad: no http(s) URL"),
        ("http://", "bad: no http(s) URL"),
        ("a.org/x", "bad: no http(s) URL; perhaps http://a.org/x"),
        ("", "bad: no http(s) URL"),
    ],
)
def test_what_is_no_url_has_no_forms(run: Run, text: str, why: str) -> None:
    (facts,) = run("url", "http://a.org/", text)[1:]
    assert facts["url"] == text
    assert facts["in_scope"] is False
    assert facts["why"] == why
    assert {facts[name] for name in ("canonical", "site", "domain", "surt", "hash")} == {None}


def test_a_link_is_resolved_against_its_base(run: Run) -> None:
    assert [
        facts["canonical"]
        for facts in run("url", "--base", "http://a.org/x/y?z", "../b", "?q", "//c.org")
    ] == ["http://a.org/b", "http://a.org/x/y?q", "http://c.org/"]
    with pytest.raises(OperatorError, match="--base x: no http"):
        run("url", "--base", "x", "y")


@pytest.mark.parametrize(
    ("options", "url", "is_in", "why"),
    [
        ([], "http://a.org/x/y", True, "its site is crawled"),
        ([], "https://a.org/", True, "its site is crawled"),
        ([], "http://a.org/x/", True, "it is a seed"),
        ([], "http://b.a.org/", False, "site: no seed is on it, and no rule"),
        ([], "http://a.org:8080/", False, "site: no seed is on it, and no rule"),
        ([], "http://a.org/" + "x" * 3000, False, "url_length: longer than crawl.max_url"),
        (["--scope", "domain"], "http://b.a.org/", True, "admitted by its domain"),
        (["--scope", "prefix"], "http://a.org/x/y/z", True, "its site is crawled"),
        (["--scope", "prefix"], "http://a.org/y", False, "prefix: not below the directory"),
        (["--include", "/y$"], "http://a.org/y", True, "its site is crawled"),
        (["--include", "/y$"], "http://a.org/z", False, "include: no expression"),
        (["--exclude", "/y$"], "http://a.org/y", False, "exclude: an expression"),
        (["--set", "seeds.admit.tlds=['kr']"], "http://a.kr/", True, "seeds.admit.tlds"),
        (["--set", "seeds.admit.sites=['*.b.org']"], "http://a.b.org/", True, "seeds.admit.sites"),
        (["--set", "seeds.admit.networks=['10.0.0.0/8']"], "http://b.org/", None, "its address"),
        (["--set", "crawl.max_depth=3"], "http://a.org/y", True, "at most 3 links lead to it"),
    ],
)
@pytest.mark.parametrize("is_kept", [True, False])
def test_scope_is_judged_by_seeds_or_a_collection(
    run: Run, tmp_path: Path, is_kept: bool, options: list[str], url: str, is_in: bool | None,
    why: str,
) -> None:  # fmt: skip
    seed = "http://a.org/x/"
    scene: list[object] = ["--seed", seed]
    if is_kept:
        scene = ["--collection", collection(tmp_path / "news", [seed])]
        if why == "it is a seed":
            why = "its site is crawled"  # it is no page before the crawl begins
    (facts,) = run("url", url, *scene, *options)
    assert facts["in_scope"] is is_in
    assert why in facts["why"]


def test_a_collection_may_come_first_and_its_settings_count(run: Run, tmp_path: Path) -> None:
    news = collection(tmp_path / "news", ["a.org/x/"], {"crawl.scope": "prefix"})
    found = run("url", news, "http://a.org/x/1", "http://a.org/2")
    assert [facts["in_scope"] for facts in found] == [True, False]
    with pytest.raises(OperatorError, match="no URL to explain"):
        run("url", news)


def test_a_page_that_is_known_is_shown_with_its_outcome(run: Run, tmp_path: Path) -> None:
    news = collection(tmp_path / "news", ["a.org"])
    place = Collection(news)
    store = place.open_store(place.settings())
    Coordinator(store, place.settings()).deliver(run=1, now=2.0)
    store.close()
    (seed, other) = run("url", news, "http://a.org/", "http://a.org/2")
    assert seed["outcome"] == "NULL"
    assert seed["why"] == "it is a seed"
    assert "outcome" not in other


def test_a_collection_without_a_store_has_no_seeds(run: Run, tmp_path: Path) -> None:
    Collection(tmp_path / "news").create()
    (facts,) = run("url", tmp_path / "news", "http://a.org/")
    assert facts["in_scope"] is False
    assert [path.name for path in (tmp_path / "news").iterdir()] == ["geomi.toml"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["http://a.org/", "--collection", "/no/such"], "no collection here"),
        (["http://a.org/", "--seed", "ftp://x/"], "cannot be a seed"),
        (["http://a.org/", "--seed", "a.org", "--scope", "all"], "crawl.scope"),
        (["http://a.org/", "--collection", "/no/such", "--seed", "a.org"], "--seed goes without"),
    ],
)
def test_a_wrong_command_about_a_url_is_the_operators_error(
    run: Run, words: list[str], what: str
) -> None:
    with pytest.raises(OperatorError, match=what):
        run("url", *words)


def test_people_get_a_line_for_each_fact(show: Callable[..., str]) -> None:
    lines = show("url", "http://a.org/\x1b[31m", "no").splitlines()
    assert lines[0] == "url       http://a.org/\\x1b[31m"
    assert "in scope  -" in lines
    assert "canonical -" in lines[lines.index("") :]


# -- robots ------------------------------------------------------------------------------------

ROBOTS = b"""\
User-agent: *
Disallow: /private
Allow: /private/open

User-agent: other
Disallow: /
"""


@pytest.fixture
def robots(tmp_path: Path) -> Path:
    path = tmp_path / "robots.txt"
    path.write_bytes(ROBOTS)
    return path


def test_each_url_is_judged_with_its_line(run: Run, robots: Path) -> None:
    assert run("robots", robots, "/private/x?y", "http://a.org/private/open", "a.org") == [
        {"url": "/private/x?y", "allowed": False, "line": 2, "rule": "Disallow: /private"},
        {"url": "http://a.org/private/open", "allowed": True, "line": 3,
         "rule": "Allow: /private/open"},
        {"url": "a.org", "allowed": True, "line": 0, "rule": ""},
    ]  # fmt: skip


def test_the_agent_decides_which_group_counts(run: Run, robots: Path) -> None:
    for agent, line in (("other", 6), ("Other/2.0", 6), ("geomi", 0), ("another", 0)):
        (facts,) = run("robots", robots, "/x", "--agent", agent)
        assert (facts["allowed"], facts["line"]) == (line == 0, line)
    (facts,) = run("robots", robots, "/x", "--set", "robots.agent=other")
    assert facts["line"] == 6


def test_two_slashes_of_a_path_are_no_host(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text("User-agent: *\nDisallow: //a")
    assert run("robots", path, "//a/b")[0]["allowed"] is False


def test_people_get_a_table(show: Callable[..., str], robots: Path) -> None:
    lines = show("robots", robots, "/private", "/x").splitlines()
    assert [line.split() for line in lines] == [
        ["url", "allowed", "line", "rule"], ["/private", "no", "2", "Disallow:", "/private"],
        ["/x", "yes", "0"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["/no/such/file", "/x"], "/no/such/file: cannot be read: No such file"),
        (["/", "/x"], "cannot be read: Is a directory"),
        (["http://127.0.0.1:9/", "/x"], "is loopback; if you mean it, give --own 127.0.0.1:9"),
        (["http://[::ffff:127.0.0.1]/", "/x"], "loopback"),
        (["http:///", "/x"], "no http"),
        (["/dev/null", "ftp://a/"], "neither an http"),
    ],
)
def test_a_wrong_command_about_robots_is_the_operators_error(
    run: Run, words: list[str], what: str
) -> None:
    with pytest.raises(OperatorError, match=what):
        run("robots", *words)


class Server(http.server.BaseHTTPRequestHandler):
    """Answers by path."""

    answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
    asked: list[tuple[str, str]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["User-Agent"]))
        code, headers, body = self.answers.get(self.path, (404, {}, b""))
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    Server.answers, Server.asked = {}, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


OWN = ("--own", "127.0.0.1")


def test_a_robots_txt_is_asked_for_at_its_place(run: Run, site: str) -> None:
    Server.answers["/robots.txt"] = (200, {}, ROBOTS)
    for where in (site, f"{site}/", f"{site}/robots.txt"):
        (facts,) = run("robots", where, "/private", *OWN)
        assert (facts["allowed"], facts["line"]) == (False, 2)
    assert {path for path, _ in Server.asked} == {"/robots.txt"}
    assert all(agent.startswith("geomi/") for _, agent in Server.asked)
    (facts,) = run("robots", site, "/private", "--allow-network", "127.0.0.0/8")
    assert facts["line"] == 2


def test_a_robots_txt_is_asked_for_as_the_settings_say_who_we_are(run: Run, site: str) -> None:
    Server.answers["/robots.txt"] = (200, {}, ROBOTS)
    host = site.partition("://")[2]
    run("robots", site, "/private", *OWN, "--set", f'site."{host}".user_agent=somebody/1')
    assert Server.asked == [("/robots.txt", "somebody/1")]


def test_rules_do_not_speak_for_another_host(run: Run, site: str) -> None:
    Server.answers["/robots.txt"] = (200, {}, ROBOTS)
    own, other = run("robots", site, f"{site}/private", "http://other.org/private", *OWN)
    assert own["allowed"] is False
    assert other["allowed"] is None
    assert other["rule"] == f"{site} does not speak for http://other.org"


@pytest.mark.parametrize(
    ("code", "allowed", "what"),
    [
        (404, True, "answered 404: no rules"),
        (403, True, "answered 403: no rules"),
        (503, False, "answered 503: nothing may be fetched"),
        (429, False, "answered 429: nothing may be fetched"),
        (301, True, "answered 301: no rules"),
    ],
)
def test_an_answer_without_rules_decides_by_its_code(
    run: Run, site: str, code: int, allowed: bool, what: str
) -> None:
    Server.answers["/robots.txt"] = (code, {}, b"User-agent: *\nDisallow: /")
    (facts,) = run("robots", site, "/x", *OWN)
    assert (facts["allowed"], facts["line"]) == (allowed, 0)
    assert what in facts["rule"]


def test_five_redirects_are_followed_and_the_rules_are_those_of_the_first(
    run: Run, site: str
) -> None:
    Server.answers["/robots.txt"] = (301, {"Location": "/1"}, b"")
    for hop in range(1, 5):
        Server.answers[f"/{hop}"] = (302, {"Location": f"{site}/{hop + 1}"}, b"")
    Server.answers["/5"] = (200, {}, ROBOTS)
    assert run("robots", site, f"{site}/private", *OWN)[0]["line"] == 2
    Server.answers["/5"] = (302, {"Location": "/6"}, b"")
    Server.answers["/6"] = (200, {}, ROBOTS)
    assert run("robots", site, "/private", *OWN)[0]["allowed"] is True
    assert "/6" not in {path for path, _ in Server.asked}


def test_a_redirect_to_a_private_address_is_refused(run: Run, site: str) -> None:
    Server.answers["/robots.txt"] = (301, {"Location": "http://10.0.0.1/robots.txt"}, b"")
    with pytest.raises(OperatorError, match=r"10\.0\.0\.1 is private"):
        run("robots", site, "/x", *OWN)


def test_a_long_robots_txt_is_read_to_its_limit(run: Run, site: str) -> None:
    body = b"User-agent: *\nDisallow: /a\n" + b"# filler\n" * 60_000 + b"Disallow: /b\n"
    Server.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, body)
    first, last = run("robots", site, "/a", "/b", *OWN)
    assert (first["allowed"], last["allowed"]) == (False, True)


def test_a_server_that_does_not_answer_leaves_the_question_open(run: Run) -> None:
    with pytest.raises(ResourceError, match=r"robots\.txt: cErr.*nothing there may be fetched"):
        run("robots", "http://127.0.0.1:1/", "/x", *OWN)
    with pytest.raises(ResourceError, match=r"none\.example has no address"):
        run("robots", "http://none.example/", "/x", "--set", "dns.servers=['127.0.0.1:1']",
            "--set", "dns.timeout_s=0.1")  # fmt: skip
