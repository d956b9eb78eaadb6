"""IPv6 and https in the whole program: names with AAAA alone, both families, literals, bad TLS."""

from __future__ import annotations

import gzip
import socket
from pathlib import Path

import pytest

from geomi.world import Params, Running, reachable, serve
from geomi.world.features import PLAIN
from journeys.crawling import FAST, geomi, must_be_sound, outcomes, settings, to_world
from journeys.servers import Headers, links, served

SHARES = {
    **PLAIN, "habit.https": 0.7, "secure": 0.2, "habit.six": 0.25, "habit.dual": 0.2,
    "habit.literal": 0.3, "tls.expired": 0.15, "tls.name": 0.15, "tls.self": 0.15,
}  # fmt: skip


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on loopback")


def with_six(running: Running) -> list[str]:
    return [*to_world(running), "--allow-network", "::1", *settings(
        *FAST, "crawl.seen=exact", f"fetch.ca_file={running.ca_file}",
    )]  # fmt: skip


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_every_family_scheme_and_literal_is_visited_completely(tmp_path: Path, seed: int) -> None:
    with serve(Params(seed=seed, sites=24, pages=5, shares=SHARES)) as running:
        seeds = running.seeds(copies=True)
        geomi("crawl", tmp_path / "c", *seeds, *with_six(running), "--agents", "2", "--json")
        wanted = {u: one.outcome for u, one in reachable(running.world, seeds).items()}
        assert outcomes(tmp_path / "c") == wanted
    must_be_sound(tmp_path / "c")


def open_to_all(host: str, target: str, headers: Headers) -> tuple[int, Headers, bytes]:
    return (404, {}, b"") if target == "/robots.txt" else (200, {}, links("/", "/more", "/much"))


def test_a_literal_address_is_a_site_like_any_other(tmp_path: Path) -> None:
    with served(open_to_all, address="::1") as server:
        host = f"[::1]:{server.port}"
        spelt = f"http://[0:0:0:0:0:0:0:1]:{server.port}/"
        # Spelt as one likes, in seeds and patterns.
        place = tmp_path / "c"
        geomi("crawl", place, spelt, "--allow-network", "::1/128",
              *settings(f'site."[0::1]:{server.port}".user_agent=six/1', "manners.rest_s=0.2",
                        "manners.rest_factor=0", "manners.address_rest_s=0.3"))  # fmt: skip
        assert {one.headers["user-agent"] for one in server.asked} == {"six/1"}
        assert {one.host for one in server.asked} == {host}
    url = f"http://{host}/"
    assert outcomes(place) == {url: "OK", f"{url}more": "OK", f"{url}much": "OK"}
    must_be_sound(place)
    records = b"".join(gzip.decompress(path.read_bytes()) for path in place.rglob("*.warc.gz"))
    assert b"\r\nWARC-IP-Address: ::1\r\n" in records
    assert b"text/dns" not in records  # nobody was asked for an address that stands in the URL
    judged = geomi("verify", place, "--politeness", "--json").facts
    assert judged["ok"], judged
    (facts,) = geomi("explain", "url", place, spelt, "--json").rows
    assert (facts["canonical"], facts["site"], facts["outcome"]) == (url, host, "OK")
    assert facts["in_scope"] is True
    assert "from ::1" in geomi("story", place, f"{host}/more").out


def test_no_form_of_a_private_address_is_visited(tmp_path: Path) -> None:
    forms = {
        "mapped": ("::ffff:10.0.0.1", "mapped private"),
        "nat64": ("64:ff9b::127.0.0.1", "nat64 loopback"),
        "sixtofour": ("2002:a00:1::1", "6to4 private"),
        "ula": ("fd00::1", "unique-local"),
        "link": ("fe80::1", "link-local"),
        "loop": ("::1", "loopback"),
    }
    names = ", ".join(f'"{name}.example" = "{address}"' for name, (address, _) in forms.items())
    seeds = [f"http://{name}.example/" for name in forms]
    literals = ["http://[::ffff:127.0.0.1]/", "http://[fe80::1]/", "http://[fd00::1]:8080/"]
    geomi("crawl", tmp_path / "c", *seeds, *literals, *settings(*FAST, f"dns.hosts={{{names}}}"))
    rows = geomi("pages", tmp_path / "c", "--json").rows
    whys = {row["url"]: (row["outcome"], row["why"]) for row in rows}
    assert whys == {
        **{f"http://{name}.example/": ("skip", f"guard:{why}") for name, (_, why) in forms.items()},
        "http://[::ffff:7f00:1]/": ("skip", "guard:mapped loopback"),
        "http://[fe80::1]/": ("skip", "guard:link-local"),
        "http://[fd00::1]:8080/": ("skip", "guard:unique-local"),
    }
    # A zone is no part of a URL.
    assert geomi("crawl", tmp_path / "d", "http://[fe80::1%25eth0]/", code=2).err.count("\n") == 1
    facts = geomi("explain", "url", "http://[fe80::1%25eth0]/", "--json").rows
    assert facts[0]["canonical"] is None
