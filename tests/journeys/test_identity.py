"""Identity and access in the whole program: who the servers see, by which way, and what is kept."""

from __future__ import annotations

import gzip
import sqlite3
import time
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from geomi.world import Params, serve
from geomi.world.doors import password
from geomi.world.features import PLAIN
from journeys.crawling import ENVIRONMENT, FAST, Done, geomi, outcomes, settings, to_world
from journeys.servers import TLS, Headers, links, proxied, served

SECRET = "swordfish-ä7"
BASIC = "Basic " + b64encode(f"visitor:{SECRET}".encode()).decode()


def crawl(place: Path, *words: object, sets: tuple[str, ...] = (), code: int | None = 0) -> Done:
    names = 'dns.hosts={"a.example" = "127.0.0.1", "b.example" = "127.0.0.1"}'
    return geomi("crawl", place, *words, "--allow-network", "127.0.0.1",
                 *settings(*FAST, names, *sets), "--json", code=code)  # fmt: skip


def of_site(host: str, name: str, value: str) -> str:
    return f'site."{host}".{name}={value}'


def everything_kept(collection: Path) -> Iterator[tuple[str, bytes]]:
    """All bytes of a collection; WARC files and tables unpacked."""
    for path in sorted(collection.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        yield str(path), data
        if path.name.endswith(".gz"):
            yield f"{path} unpacked", gzip.decompress(data)
    with sqlite3.connect(collection / "geomi.db") as db:
        yield "dump", "\n".join(db.iterdump()).encode()
    db.close()


def must_not_be_kept(collection: Path, *secrets: str) -> None:
    for where, data in everything_kept(collection):
        for secret in secrets:
            assert secret.encode() not in data, where


def unpacked(collection: Path) -> bytes:
    return b"".join(
        gzip.decompress(path.read_bytes()) for path in sorted(collection.rglob("*.warc.gz"))
    )


def locked(host: str, target: str, headers: Headers) -> tuple[int, Headers, bytes]:
    if target == "/robots.txt":
        return 404, {}, b""
    if headers.get("authorization") != BASIC:
        return 401, {"WWW-Authenticate": 'Basic realm="x"'}, b"who?"
    return 200, {}, links("/", "/one", "/two")


# -- passwords and header lines --------------------------------------------------------------------


@pytest.mark.parametrize("how", ["env", "file", "geomi.toml"])
def test_a_password_opens_its_site_and_is_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    pair = f"visitor:{SECRET}"
    monkeypatch.setitem(ENVIRONMENT, "A_PASSWORD", pair)
    (tmp_path / "password").write_text(pair + "\n")
    place = tmp_path / "c"
    with served(locked) as server:
        host = f"127.0.0.1:{server.port}"
        url = f"http://{host}/"
        if how == "geomi.toml":
            place.mkdir()
            (place / "geomi.toml").write_text(f'[site."{host}"]\nauth = "{pair}"\n')
            sets: tuple[str, ...] = ()
        else:
            text = "env:A_PASSWORD" if how == "env" else f"file:{tmp_path / 'password'}"
            sets = (of_site(host, "auth", text),)
        done = crawl(place, url, sets=sets)
        said = done.out + done.err + geomi("story", place, url, "--json").out
        said += geomi("status", place, "--json").out + geomi("explain", "url", place, url).out
        assert outcomes(place) == {url: "OK", f"{url}one": "OK", f"{url}two": "OK"}
        assert {one.headers.get("authorization") for one in server.asked} == {BASIC}
        assert "/robots.txt" in server.targets()
    if how == "geomi.toml":
        (place / "geomi.toml").unlink()  # the operator's own file, and the one place it may stand
    must_not_be_kept(place, SECRET, BASIC, BASIC.removeprefix("Basic "))
    assert SECRET not in said and BASIC not in said
    assert b"Authorization: Basic withheld\r\n" in unpacked(place)


def test_nothing_of_a_site_goes_to_another_host_by_a_redirect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "A_PASSWORD", f"visitor:{SECRET}")
    monkeypatch.setitem(ENVIRONMENT, "A_KEY", "key-98765")
    (tmp_path / "cookies").write_text("a.example\tFALSE\t/\tFALSE\t0\tgiven\tmine-4711\n")

    def answers(host: str, target: str, headers: Headers) -> tuple[int, Headers, bytes]:
        port = host.partition(":")[2]
        if host.startswith("a."):
            to = f"http://b.example:{port}{target}-there" if target != "/stay" else "/gone"
            return 302, {"Location": to, "Set-Cookie": "own=1"}, b""
        return 200, {}, b"here"

    with served(answers) as server:
        a, b = f"a.example:{server.port}", f"b.example:{server.port}"
        sets = (
            of_site(a, "auth", "env:A_PASSWORD"),
            of_site(a, "headers", '["X-Key: env:A_KEY", "X-Plain: open"]'),
            of_site(a, "user_agent", "geomi-for-a"),
            of_site(a, "cookie_file", f"{tmp_path}/cookies"),
        )
        crawl(tmp_path / "c", f"http://{a}/", f"http://{a}/stay", sets=sets)
        to_a = [one for one in server.asked if one.host == a]
        to_b = [one for one in server.asked if one.host == b]
    assert {one.target for one in to_a} == {"/robots.txt", "/", "/stay", "/gone"}
    for one in to_a:
        assert one.headers["authorization"] == BASIC
        assert (one.headers["x-key"], one.headers["x-plain"]) == ("key-98765", "open")
        assert one.headers["user-agent"] == "geomi-for-a"
        assert "given=mine-4711" in one.headers["cookie"]
    assert "own=1" in to_a[-1].headers["cookie"]
    # robots.txt of a leads to b, and so does its front page: strangers both.
    assert {one.target for one in to_b} >= {"/robots.txt-there", "/-there"}
    for one in to_b:
        assert not {"authorization", "x-key", "x-plain", "cookie"} & one.headers.keys()
        assert one.headers["user-agent"].startswith("geomi/")
    must_not_be_kept(tmp_path / "c", SECRET, "key-98765", "mine-4711")
    assert b"X-Key: withheld\r\n" in unpacked(tmp_path / "c")
    assert b"X-Plain: open\r\n" in unpacked(tmp_path / "c")


# -- cookies ---------------------------------------------------------------------------------------


def test_behind_a_cookie_wall_is_found_what_is_there_unless_cookies_are_off(tmp_path: Path) -> None:
    shares = {**PLAIN, "corner.lobby": 1.0, "corner.locked": 1.0}
    with serve(Params(seed=5, sites=3, pages=4, shares=shares)) as running:
        site = running.world.sites[1]
        for name, cookies in (("on", "true"), ("off", "false")):
            place = tmp_path / name
            geomi("crawl", place, site.seed, *to_world(running),
                  *settings(*FAST, f"access.cookies={cookies}"))  # fmt: skip
            found = outcomes(place)
            assert found[f"{site.base}/~lobby/"] == "OK"
            rooms = {found[f"{site.base}/~lobby/room{n}"] for n in (1, 2, 3)}
            assert rooms == ({"OK"} if name == "on" else {"code"})
            counters = geomi("status", place, "--json").facts["counters"]
            assert (counters.get("cookies.set", 0) > 0) == (name == "on")
            assert found[f"{site.base}/~locked/"] == "code"
        known = tmp_path / "password"
        known.write_text(password(5, 1))
        host = site.base.partition("://")[2]
        geomi("crawl", tmp_path / "on", "--again", *to_world(running),
              *settings(*FAST, of_site(host, "auth", f"file:{known}")))  # fmt: skip
        found = outcomes(tmp_path / "on")
        assert {found[f"{site.base}/~locked/{room}"] for room in ("", "room1", "room3")} == {"OK"}
    must_not_be_kept(tmp_path / "on", password(5, 1))


# -- certificates ----------------------------------------------------------------------------------


def open_to_all(host: str, target: str, headers: Headers) -> tuple[int, Headers, bytes]:
    return (404, {}, b"") if target == "/robots.txt" else (200, {}, links("/", "/more"))


def test_a_bad_certificate_is_named_and_counted_and_may_be_passed_for_one_site_alone(
    tmp_path: Path,
) -> None:
    with served(open_to_all, certificate="expired") as server:
        host = f"a.example:{server.port}"
        url = f"https://{host}/"
        ca = f"fetch.ca_file={TLS / 'ca.pem'}"
        crawl(tmp_path / "no", url, sets=(ca,))
        assert outcomes(tmp_path / "no") == {url: "cErr"}
        assert "tls:expired" in geomi("story", tmp_path / "no", url).out
        assert geomi("status", tmp_path / "no", "--json").facts["counters"]["tls.expired"] == 3
        assert server.asked == []
        crawl(tmp_path / "yes", url, sets=(ca, of_site(host, "verify", "false")))
        assert outcomes(tmp_path / "yes") == {url: "OK", f"{url}more": "OK"}
        assert "tls not verified" in geomi("story", tmp_path / "yes", url).out
        assert geomi("status", tmp_path / "yes", "--json").facts["counters"]["tls.unverified"] == 3
    records = unpacked(tmp_path / "yes")
    assert records.count(b"X-Geomi-TLS: not verified\r\n") == 2 * 3  # request and response
    assert geomi("verify", tmp_path / "yes", "--json").facts["ok"]


def test_a_certificate_of_ours_is_shown_where_the_site_wants_one(tmp_path: Path) -> None:
    with served(open_to_all, certificate="good", client_ca="ca") as server:
        host = f"a.example:{server.port}"
        url = f"https://{host}/"
        sets = (f"fetch.ca_file={TLS / 'ca.pem'}",)
        crawl(tmp_path / "no", url, sets=sets)
        assert outcomes(tmp_path / "no")[url] not in ("OK", "code")
        sets += (of_site(host, "client_cert", str(TLS / "client.pem")),)
        crawl(tmp_path / "yes", url, sets=sets)
        assert outcomes(tmp_path / "yes") == {url: "OK", f"{url}more": "OK"}


# -- proxies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["http", "socks5h"])
def test_a_proxy_is_asked_for_addresses_that_were_resolved_and_checked_here(
    tmp_path: Path, kind: str
) -> None:
    with served(open_to_all) as server, proxied(kind) as proxy:
        url = f"http://a.example:{server.port}/"
        sets = (f"access.proxy={kind}://localhost:{proxy.port}",)
        crawl(tmp_path / "c", url, sets=sets)
        assert outcomes(tmp_path / "c") == {url: "OK", f"{url}more": "OK"}
        assert proxy.asked
        target = f"127.0.0.1:{server.port}"
        for words in proxy.asked:
            assert words == target or words.startswith(f"CONNECT {target} HTTP/1.1\r\n")
        # What may not be visited here may not be visited through a proxy either.
        asked = len(proxy.asked)
        geomi("crawl", tmp_path / "d", f"http://127.0.0.1:{server.port}/",
              *settings(*FAST, *sets))  # fmt: skip
        rows = geomi("pages", tmp_path / "d", "--json").rows
        assert [row["why"] for row in rows] == ["guard:loopback"]
        assert len(proxy.asked) == asked


# -- hours and rate --------------------------------------------------------------------------------


def clock(hours: float) -> str:
    return datetime.fromtimestamp(time.time() + hours * 3600, UTC).strftime("%H:%M")


def test_outside_its_hours_a_site_waits_and_the_crawl_ends(tmp_path: Path) -> None:
    place = tmp_path / "c"
    with served(open_to_all) as server:
        url = f"http://127.0.0.1:{server.port}/"
        later = f'access.hours=["{clock(3)}-{clock(5)}"]'
        done = crawl(place, url, sets=(later,))
        assert server.asked == []
        assert done.facts["pages"]["pending"] == 1
        status = geomi("status", place, "--json").facts
        assert status["counters"]["hours.closed"] == 1
        (waits,) = status["sites"]["later"]
        assert waits["why"] == "it is outside its hours"
        assert 2.9 * 3600 < waits["not_before"] - time.time() <= 3 * 3600
        assert "when its hours begin" in geomi("story", place, url).out
        # Nothing changed: it goes on waiting. Hours that are now: it is visited.
        crawl(place, sets=(later,))
        assert server.asked == []
        crawl(place, sets=(f'access.hours=["{clock(-2)}-{clock(2)}"]',))
        assert outcomes(place) == {url: "OK", f"{url}more": "OK"}


def test_a_rate_holds_over_many_small_answers_and_all_connections(tmp_path: Path) -> None:
    size = 20_000

    def answers(host: str, target: str, headers: Headers) -> tuple[int, Headers, bytes]:
        if target == "/robots.txt":
            return 404, {}, b""
        more = links(*(f"/{n}" for n in range(12))) if target == "/" else b""
        return 200, {}, more.ljust(size)

    with served(answers) as server:
        began = time.monotonic()
        crawl(tmp_path / "c", f"http://127.0.0.1:{server.port}/", sets=("access.rate_bytes=100kB",))
        took = time.monotonic() - began
        assert len(server.asked) == 14
    # The last ones under way, four connections, are not waited for.
    assert took >= (13 - 4) * size / 100_000


# -- what is wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("access.verify=false", 'in a table [site."host"]'),
        ('site."*.co.kr".verify=false', 'in a table [site."host"]'),
        ("access.auth=env:HOME", "would be sent to every server"),
        ('site."a.example".auth=user:hunter2', "give a secret as env:NAME or file:PATH"),
        ('site."a.example".auth=env:NOT_SET_ANYWHERE', "the environment has no NOT_SET_ANYWHERE"),
        ('site."a.example".auth=file:/nowhere/secret', "/nowhere/secret: No such file"),
        ('site."a.example".auth=env:NO_COLON', "a user and a password with a colon"),
        ("access.hours=25:00-26:00", "access.hours is '25:00-26:00'; wanted hours, as"),
        ("access.hours=Someday 09:00-10:00", "access.hours"),
        ("access.timezone=Asia/Atlantis", "access.timezone is 'Asia/Atlantis'; wanted a time zone"),
        ('access.headers=["X: a\\nEvil: b"]', "access.headers cannot be used"),
        ('access.headers=["no colon"]', "a line is no `Name: value`"),
        ('access.headers=["Host: other"]', "Host cannot be given"),
        ('access.headers=["Cookie: a=b"]', "remembered"),
        ("access.proxy=ftp://x:1", "'ftp://x:1' is not http://host:port"),
        ("access.proxy=http://u:hunter2@x:1", "give a secret as env:NAME or file:PATH"),
        ("access.proxy=env:BAD_PROXY", "what is given is not http://host:port"),
        ("access.client_cert=/nowhere/me.pem", "/nowhere/me.pem: No such file"),
        ("access.client_cert=/etc/hostname", "no certificate with its key"),
        ("access.cookie_file=/etc/hostname", "line 1 is no cookie"),
        ("fetch.ca_file=/etc/hostname", "/etc/hostname: no certificates in PEM"),
        ("access.rate_bytes=-5", "access.rate_bytes"),
        ("agent.user_agent=거미", "agent.user_agent: it has characters that cannot be sent"),
    ],
)  # fmt: skip
def test_a_bad_access_is_one_sentence_without_secrets_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "NO_COLON", "hunter2")
    monkeypatch.setitem(ENVIRONMENT, "BAD_PROXY", "hunter2://u:hunter2@x")
    done = geomi("crawl", tmp_path / "c", "http://127.0.0.1:9/", "--set", text, code=2)
    assert said in done.err
    assert done.err.startswith("geomi: ") and done.err.count("\n") == 1
    assert "hunter2" not in done.err.replace(text, "")
    assert list(tmp_path.iterdir()) == []
