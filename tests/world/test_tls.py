"""https of the world: certificates made by hand, verified by OpenSSL."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

import pytest

from geomi.world import Params, reachable, serve
from geomi.world.features import PLAIN
from geomi.world.wire import LogRow

SHARES = {**PLAIN, "habit.https": 0.8, "secure": 0.15, "habit.six": 0.2, "habit.dual": 0.2,
          "habit.literal": 0.3,
          "tls.expired": 0.2, "tls.name": 0.2, "tls.self": 0.2}  # fmt: skip


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on loopback")


@pytest.fixture(scope="module")
def running():
    with serve(Params(seed=3, sites=30, pages=3, shares=SHARES)) as running:
        yield running


def ask(running, url, context=None):
    """The whole answer; `context` verifies."""
    parts = urlsplit(url)
    site = running.world.find(url)[0]
    with socket.create_connection((site.addresses[-1], parts.port), timeout=10) as sock:
        if context:
            sock = context.wrap_socket(sock, server_hostname=parts.hostname)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        sock.sendall(
            f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode()
        )
        data = b""
        while part := sock.recv(65_536):
            data += part
        if context:
            sock.close()
    return data


def test_good_certificates_are_verified_and_bad_ones_say_why(running):
    context = ssl.create_default_context(cafile=str(running.ca_file))
    said = {}
    for site in running.world.sites:
        if not site.tls:
            continue
        base = next(b for b in (site.base, *site.copies) if b.startswith("https:"))
        try:
            head, _, body = ask(running, base + "/", context).partition(b"\r\n\r\n")
        except ssl.SSLCertVerificationError as error:
            said.setdefault(site.tls, set()).add(error.verify_message)
        else:
            said.setdefault(site.tls, set()).add("")
            assert head.startswith(b"HTTP/1.1 200 ")
            parts = urlsplit(base)
            assert body == running.world.answer(parts.netloc, "/", scheme="https").body
    assert said["good"] == {""}
    assert said["expired"] == {"certificate has expired"}
    assert said["self"] == {"self-signed certificate"}
    assert "Hostname mismatch" in "".join(said["name"])


def test_the_truth_of_bad_certificates_is_that_nobody_connects(running):
    found = reachable(running.world, running.seeds(copies=True))
    for site in running.world.sites:
        for base in site.copies:
            bad = base.startswith("https:") and site.tls != "good"
            assert found[base + "/"].outcome == ("cErr" if bad else "OK")


def test_http_of_a_secure_site_sends_everything_to_its_https(running):
    site = next(site for site in running.world.sites if site.kind.name == "secure")
    head = ask(running, site.bare_base + "/a?b").partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 301 ") and f"Location: {site.base}/a?b".encode() in head


def test_ipv6_sites_answer_by_name_and_by_address(running):
    site = next(site for site in running.world.sites if "[::1]" in site.aliases)
    assert site.addresses == ("::1",)
    for url in (site.home, f"http://[::1]:{running.port}/"):
        assert ask(running, url).startswith(b"HTTP/1.1 200 ")
    assert any(row.address == "::1" and row.host.startswith("[::1]:") for row in running.log())


def test_the_log_tells_the_schemes_apart(running):
    schemes = {row.scheme for row in running.log()}
    assert schemes <= {"http", "https"}
    row = LogRow(1.0, 2.0, "::1", "a:1", "GET", "/x", 200, 3, "https")
    assert LogRow.parse("\t".join(map(str, row)) + "\n") == row
    assert row.url == "https://a:1/x"
