"""IPv6: literal and resolved hosts, requests, pinned sockets, certificates, guard."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from wire import ABC, KEEP, Robot, run, serving

from geomi.fetch.dns import Resolver
from geomi.fetch.guard import Guard
from geomi.fetch.request import host_line, opening
from geomi.states import Outcome

TLS = Path(__file__).with_name("tls")


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="no IPv6 here")


@pytest.mark.parametrize(
    ("host", "port", "line"),
    [
        ("::1", 80, b"Host: [::1]\r\n"),
        ("[::1]", 80, b"Host: [::1]\r\n"),
        ("[2001:db8::1]", 8080, b"Host: [2001:db8::1]:8080\r\n"),
        ("a.example", 80, b"Host: a.example\r\n"),
        ("a.example", 443, b"Host: a.example:443\r\n"),
    ],
)
def test_a_host_line_has_brackets_where_they_belong(host: str, port: int, line: bytes) -> None:
    assert host_line("http", host, port) == line


@needs_ipv6
def test_a_name_is_asked_at_its_ipv6_address(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], address="::1") as wire:
            hosts = {"six.example": ["::1"]}
            async with Resolver(asyncio.get_running_loop(), hosts=hosts, hosts_file="") as names:
                (address,) = (await names.resolve("six.example")).addresses
            with Robot(tmp_path) as robot:
                for _ in range(3):
                    fetch = wire.fetch(host="six.example", address=address)
                    capture = await robot.get(fetch)
                    assert (capture.outcome, capture.address) == (Outcome.OK, "::1")
                    assert capture.request.startswith(opening(fetch))
                assert wire.connections == 1

    run(main())


@needs_ipv6
@pytest.mark.parametrize("address", ["0:0:0:0:0:0:0:1", "::0001"])
def test_every_spelling_of_the_checked_address_is_that_address(
    tmp_path: Path, address: str
) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], address="::1") as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch(address=address))
                assert capture.outcome == Outcome.OK

    run(main())


@needs_ipv6
def test_an_ipv4_address_in_an_ipv6_one_can_be_asked_once_the_guard_lets_it(
    tmp_path: Path,
) -> None:
    for address in ("::ffff:127.0.0.1", "::ffff:7f00:1"):
        assert Guard().refusal(address) == "mapped loopback"

    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                for address in ("::ffff:127.0.0.1", "::ffff:7f00:1"):
                    capture = await robot.get(wire.fetch(address=address))
                    assert capture.outcome == Outcome.OK

    run(main())


@needs_ipv6
def test_a_certificate_of_an_ipv6_address_is_verified(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], tls=str(TLS / "good.pem"), address="::1") as wire:
            with Robot(tmp_path, ca_file=str(TLS / "ca.pem")) as robot:
                for host in ("::1", "[::1]"):
                    assert (await robot.get(wire.fetch(host=host))).outcome == Outcome.OK
                assert (await robot.get(wire.fetch(host="[::2]"))).outcome == Outcome.C_ERR

    run(main())


@needs_ipv6
def test_families_are_not_confused(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as four:
            with Robot(tmp_path) as robot:
                assert (await robot.get(four.fetch())).outcome == Outcome.OK
                capture = await robot.get(four.fetch(address="::1"))
                assert capture.outcome == Outcome.C_ERR  # nobody listens there
                assert (await robot.get(four.fetch())).outcome == Outcome.OK
                assert four.connections == 1

    run(main())
