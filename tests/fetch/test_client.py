"""What libcurl makes of every kind of server, byte for byte."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from wire import (
    ABC,
    CERTIFICATE,
    CLOSE,
    HANG,
    KEEP,
    OK,
    Robot,
    once,
    run,
    serving,
)

from geomi.errors import OperatorError
from geomi.fetch.limits import Limits
from geomi.records import Capture
from geomi.states import Outcome

# -- the request -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["/", "/a?b=1&c=2", "/%EA%B1%B0?q=%B0%C5", "/../a/./b//c", "/?", "/a?b?c#d", "/'\"<>|\\^{}"],
)
@pytest.mark.parametrize("headers", [(), ('If-None-Match: W/"x y"', "If-Modified-Since: a")])
def test_the_request_in_the_capture_is_what_was_sent(
    tmp_path: Path, target: str, headers: tuple[str, ...]
) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path, contact="robot@a.example") as robot:
                capture = await robot.get(wire.fetch(target, headers=headers))
                assert wire.requests == [capture.request]
                assert (
                    capture.request
                    == (
                        f"GET {target} HTTP/1.1\r\nHost: a.example:{wire.port}\r\n"
                        "User-Agent: geomi/test\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
                        "From: robot@a.example\r\n"
                        + "".join(f"{line}\r\n" for line in headers)
                        + "\r\n"
                    ).encode()
                )

    run(main())


def test_extra_header_lines_belong_to_one_request_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                for headers in ((), ("X-A: 1",), (), ("user-agent: other", "Accept: a/b"), ()):
                    await robot.get(wire.fetch(headers=headers))
                assert [capture.request for capture in robot.captures] == wire.requests
                assert [b"X-A: 1" in request for request in wire.requests] == [0, 1, 0, 0, 0]
                assert [b"geomi/test" in request for request in wire.requests] == [1, 1, 1, 0, 1]

    run(main())


def test_a_line_that_is_no_header_line_is_left_out(tmp_path: Path) -> None:
    bad = (
        "X: a\r\nY: b",
        "no colon",
        "Z: \0",
        "Host: b.example",
        "Content-Length: 9",
        "E:",
        "K: é",
    )

    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch(headers=bad))
                assert wire.requests == [capture.request]
                added = capture.request.partition(b"identity\r\n")[2]
                assert added == "K: é\r\n\r\n".encode("latin-1")

    run(main())


@pytest.mark.parametrize(
    "change",
    [{"target": "/a b"}, {"target": "a"}, {"target": "/\r\nX: y"}, {"target": "/é"},
     {"host": "a\nb"}, {"host": ""}, {"scheme": "file"}, {"scheme": "ftp"}],
)  # fmt: skip
def test_what_cannot_stand_in_a_request_is_bad_and_never_sent(
    tmp_path: Path, change: dict[str, str]
) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch(**{"target": "/", **change}))
                assert (capture.outcome, capture.request) == (Outcome.BAD, b"")
                assert wire.connections == 0

    run(main())


def test_ipv6_hosts_stand_in_brackets(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], address="::1") as wire:
            with Robot(tmp_path) as robot:
                for host in ("::1", "[::1]"):
                    capture = await robot.get(wire.fetch(host=host))
                    assert capture.outcome == Outcome.OK
                    assert f"\r\nHost: [::1]:{wire.port}\r\n".encode() in capture.request
                assert wire.requests == [capture.request for capture in robot.captures]

    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    run(main())


def test_nothing_of_the_environment_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / ".netrc").write_text("machine a.example login x password y\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    capture = once(tmp_path, OK + b"Set-Cookie: a=b\r\nContent-Length: 3\r\n\r\nabc", KEEP)
    assert capture.outcome == Outcome.OK
    assert b"Authorization" not in capture.request


def test_no_cookie_comes_back_and_no_redirect_is_followed(tmp_path: Path) -> None:
    async def main() -> None:
        away = b"HTTP/1.1 302 Found\r\nSet-Cookie: a=b\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"
        async with serving([away, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                first = await robot.get(wire.fetch())
                await robot.get(wire.fetch())
                assert (first.outcome, first.code) == (Outcome.CODE, 302)
                assert len(wire.requests) == 2
                assert wire.requests[0] == wire.requests[1]

    run(main())


# -- connections -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loops", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_is_used_again(tmp_path: Path, loops: Callable[[], Any]) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                for _ in range(5):
                    assert (await robot.get(wire.fetch())).body == b"abc"
                assert wire.connections == 1

    run(main(), loops)


def test_hosts_on_one_address_share_no_connection(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                for host in ("a.example", "b.example", "a.example", "b.example"):
                    await robot.get(wire.fetch(host=host))
                assert wire.connections == 2

    run(main())


def test_a_host_that_moved_is_asked_at_its_new_address(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as old:
            # The same port on another address of loopback.
            with socket.create_server(("127.0.0.2", old.port)) as new, Robot(tmp_path) as robot:
                await robot.get(old.fetch())
                capture = await robot.get(old.fetch(address="127.0.0.2"))
                assert capture.outcome == Outcome.H_TIM  # accepted by the backlog, never answered
                assert capture.address == "127.0.0.2"
                assert (await robot.get(old.fetch())).outcome == Outcome.OK
                assert len(old.requests) == 2
                new.close()

    run(main())


def test_a_resting_connection_that_the_server_closed_is_replaced_in_silence(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, CLOSE]) as wire:
            with Robot(tmp_path) as robot:
                for _ in range(4):
                    assert (await robot.get(wire.fetch())).outcome == Outcome.OK
                assert wire.connections == 4
                assert wire.requests == [capture.request for capture in robot.captures]

    run(main())


def test_after_an_answer_that_ended_inside_its_header_no_dead_connection_is_used(
    tmp_path: Path,
) -> None:
    """Several of them were tried one after the other, until a good page had failed."""

    async def main() -> None:
        short = [OK + b"Content-T", CLOSE]
        async with serving(*[[ABC, KEEP]] * 4, short, short, short, [ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                for ticket in range(4):
                    robot.client.start(wire.fetch(ticket=ticket))
                await robot.until(4)
                for _ in range(3):
                    assert (await robot.get(wire.fetch())).outcome == Outcome.H_SHT
                for _ in range(2):
                    capture = await robot.get(wire.fetch())
                    assert (capture.outcome, capture.detail) == (Outcome.OK, "")
                assert len(wire.requests) == 9

    run(main())


def test_many_at_once_on_few_connections_all_come_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path, connections=3) as robot:
                for ticket in range(40):
                    host = f"h{ticket % 7}.example"
                    robot.client.start(wire.fetch(f"/{ticket}", ticket=ticket, host=host))
                assert robot.client.active == 40
                captures = await robot.until(40)
                assert robot.client.active == 0
                assert sorted(capture.ticket for capture in captures) == list(range(40))
                for capture in captures:
                    assert capture.request.startswith(b"GET /%d HTTP" % capture.ticket)
                    assert b"Host: h%d." % (capture.ticket % 7) in capture.request

    run(main())


def test_an_aborted_fetch_gives_no_capture_and_its_connection_is_closed(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, HANG], [ABC, KEEP]) as wire:
            with Robot(tmp_path, connections=1) as robot:
                for ticket in (1, 2, 3):
                    robot.client.start(wire.fetch(ticket=ticket))
                robot.client.abort(1)
                robot.client.abort(3)
                robot.client.abort(99)
                captures = await robot.until(1)
                assert robot.client.active == 0
                assert [capture.ticket for capture in captures] == [2]

    run(main())


def test_fetches_may_be_started_and_aborted_from_done(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path, connections=4) as robot:

                def again(capture: Capture) -> None:
                    if capture.ticket < 200:
                        robot.client.abort(capture.ticket + 100)
                        robot.client.start(wire.fetch(ticket=capture.ticket + 200))
                        robot.client.start(wire.fetch(ticket=capture.ticket + 300))

                robot.on_done = again
                for ticket in (1, 2, 101, 102):
                    robot.client.start(wire.fetch(ticket=ticket))
                captures = await robot.until(6)
                tickets = {capture.ticket for capture in captures}
                assert {201, 202, 301, 302} <= tickets
                assert len(tickets) == len(captures)

    run(main())


def test_a_client_may_be_closed_while_fetches_are_under_way(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([OK, b"Content-Length: 9\r\n\r\n", b"x" * 8, HANG]) as wire:
            with Robot(tmp_path) as robot:
                for ticket in range(5):
                    robot.client.start(wire.fetch(ticket=ticket))
                robot.client.close()
                assert robot.client.active == 0
            assert robot.captures == []

    run(main())


def test_done_may_close_the_client(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                robot.on_done = lambda capture: robot.client.close()
                for ticket in range(5):
                    robot.client.start(wire.fetch(ticket=ticket))
                await robot.until(1)
                await asyncio.sleep(0)
                assert len(robot.captures) == 1

    run(main())


# -- connecting ------------------------------------------------------------------------------------


def test_a_refused_connection_is_cerr_and_nothing_was_sent(tmp_path: Path) -> None:
    async def main() -> None:
        with Robot(tmp_path) as robot:
            async with serving([ABC, KEEP]) as wire:
                await robot.get(wire.fetch())
            # The first of these finds its resting connection dead, the second has none.
            for target in ("/a", "/b"):
                capture = await robot.get(wire.fetch(target))
                assert (capture.outcome, capture.code) == (Outcome.C_ERR, 0)
                assert capture.detail
            assert capture.request == b""

    run(main())


def test_a_connection_that_is_never_taken_is_ctim(tmp_path: Path) -> None:
    async def main() -> Capture:
        with socket.socket() as full, socket.socket() as first, socket.socket() as second:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(full.getsockname())
            async with serving([ABC]) as wire:
                fetch = wire.fetch(port=full.getsockname()[1])
            with Robot(tmp_path, Limits(connect_s=0.2)) as robot:
                return await robot.get(fetch)

    capture = run(main())
    assert (capture.outcome, capture.request) == (Outcome.C_TIM, b"")


def test_an_address_that_is_none_is_never_looked_up(tmp_path: Path) -> None:
    async def main() -> Capture:
        async with serving([ABC]) as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch(address="localhost"))
                assert wire.connections == 0
                return capture

    assert run(main()).outcome == Outcome.C_ERR


def test_a_verified_certificate_is_needed(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], tls=True) as wire:
            with Robot(tmp_path, ca_file=CERTIFICATE) as robot:
                good = await robot.get(wire.fetch())
                assert (good.outcome, good.body) == (Outcome.OK, b"abc")
                assert wire.requests == [good.request]
                other = await robot.get(wire.fetch(host="b.example"))
                assert other.outcome == Outcome.C_ERR
                assert other.detail.startswith("certificate: ")
            with Robot(tmp_path) as robot:
                unknown = await robot.get(wire.fetch())
                assert unknown.outcome == Outcome.C_ERR
                assert unknown.detail.startswith("certificate: ")
                assert unknown.request == b""
            assert len(wire.requests) == 1

    run(main())


def test_tls_to_a_server_without_tls_is_cerr(tmp_path: Path) -> None:
    async def main() -> Capture:
        with socket.create_server(("127.0.0.1", 0)) as plain:
            async with serving([ABC]) as wire:
                fetch = wire.fetch(scheme="https", port=plain.getsockname()[1])
            with Robot(tmp_path) as robot:
                robot.client.start(fetch)
                loop = asyncio.get_running_loop()
                plain.setblocking(False)
                connection, _ = await loop.sock_accept(plain)
                with connection:
                    await loop.sock_sendall(connection, b"HTTP/1.1 400 Bad\r\n\r\n")
                    return (await robot.until(1))[0]

    capture = run(main())
    assert capture.outcome == Outcome.C_ERR
    assert capture.detail.startswith("TLS: ")


def test_a_file_of_certificates_that_is_not_there_is_the_operators_error(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(OperatorError, match="ca_file"):
            Robot(tmp_path, ca_file=str(tmp_path / "none.pem"))

    run(main())


def test_times_come_from_the_clock_that_was_given(tmp_path: Path) -> None:
    async def main() -> Capture:
        ticks = iter((100.0, 250.0))
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path, clock=lambda: next(ticks)) as robot:
                return await robot.get(wire.fetch())

    capture = run(main())
    assert (capture.started, capture.ended) == (100.0, 250.0)
