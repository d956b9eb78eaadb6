"""The evil table: every entry does on the wire what it says, and a visitor who leaves is let go."""

from __future__ import annotations

import gzip
import socket
from itertools import islice
from urllib.parse import urlsplit

import pytest

from geomi.states import Outcome
from geomi.world import Params, World, evil, serve
from geomi.world.evil_words import STALL, Say

_ENOUGH = 200_000


@pytest.fixture(scope="module")
def running():
    with serve(Params(seed=1, sites=1, pages=1, evil=True, pause_s=3600.0)) as running:
        yield running


def ask(running, entry, target, *, most=_ENOUGH):
    """(first bytes, did the server end) of an answer; silence is an answer too."""
    with socket.create_connection((evil.address(entry), running.port), timeout=10) as sock:
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: {entry.host}\r\n\r\n".encode())
        data, ended = b"", False
        wanted = expected(entry, target, most=most)
        while len(data) < len(wanted) and not ended:
            part = sock.recv(65_536)
            data, ended = data + part, not part
        return data[: len(wanted)], wanted


def expected(entry, target, *, most):
    data = b""
    for step in evil.script(entry, Say(target=target, page=entry.target, pause_s=3600.0)):
        if not isinstance(step, bytes):
            break
        data += step
        if len(data) >= most:
            break
    return data[:most]


@pytest.mark.parametrize("entry", [e for e in evil.EVILS if not e.url and not e.addresses],
                         ids=lambda entry: entry.name)  # fmt: skip
def test_the_wire_shows_the_script(running, entry):
    got, wanted = ask(running, entry, entry.target)
    assert got == wanted
    got, wanted = ask(running, entry, "/robots.txt")
    assert got == wanted


def test_every_request_to_an_evil_host_is_logged(running):
    entry = evil.find("no-colon.evil.test")
    ask(running, entry, "/evil/no-colon")
    rows = [row for row in running.log() if row.host == f"{entry.host}:{running.port}"]
    assert "/evil/no-colon" in [row.target for row in rows]
    assert {row.address for row in rows} == {evil.address(entry)}


def test_names_are_unique_and_outcomes_are_outcomes():
    names = [entry.name for entry in evil.EVILS]
    assert len(set(names)) == len(names)
    known = {str(outcome) for outcome in Outcome}
    for entry in evil.EVILS:
        assert entry.expect and set(entry.expect) <= known
        assert evil.find(f"{entry.host.upper()}:8080") is entry
        assert entry.host == urlsplit(evil.url(entry, 80)).hostname or entry.url


def test_scripts_are_equal_each_time_and_endless_ones_have_no_end():
    for entry in evil.EVILS:
        say = Say(target=entry.target, page=entry.target, pause_s=1.0)
        first, second = (list(islice(evil.script(entry, say), 50)) for _ in range(2))
        assert first == second
        assert STALL not in first[:-1]
    endless = [e for e in evil.EVILS if e.name.startswith("endless") or e.name == "flood-1xx"]
    for entry in endless:
        say = Say(target=entry.target, page=entry.target, pause_s=1.0)
        assert len(list(islice(evil.script(entry, say), 1_000))) == 1_000


def test_bombs_are_small_on_the_wire_and_large_inside():
    entry = evil.find("gzip-thrice.evil.test")
    data = expected(entry, entry.target, most=1 << 30).partition(b"\r\n\r\n")[2]
    assert len(data) < 100_000
    middle = gzip.decompress(data)
    inside = gzip.decompress(middle[: len(middle) // 10])
    assert len(gzip.decompress(inside[: len(inside) // 100])) == 10 << 20


def test_names_resolve_as_the_table_says_and_may_change_their_mind():
    world = World(Params(seed=1, sites=1, evil=True))
    assert world.resolve("to-loopback.evil.test") == (("127.0.0.1",), 300)
    rebinding = evil.find("rebinding.evil.test")
    assert world.resolve(rebinding.host) == ((evil.address(rebinding),), 1)
    assert world.resolve(rebinding.host, asked=1) == (("127.0.0.1",), 1)
    assert world.resolve("nobody.evil.test") == ((), 60)
    assert world.dns_code("nobody.evil.test") == "NXDOMAIN"
    assert World(Params(seed=1, sites=1)).resolve(rebinding.host) == ((), 60)
