"""Servers that mean harm: a named outcome, what came is kept, memory is bounded, no other waits."""

from __future__ import annotations

import asyncio
import socket
import struct
import zlib
from pathlib import Path

import pytest
from wire import ABC, CERTIFICATE, CLOSE, DRIP, HANG, KEEP, OK, Endless, Robot, Script, run, serving

from geomi.fetch.limits import Limits
from geomi.records import Capture
from geomi.states import Outcome

MIB = 1024 * 1024
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HTML = OK + b"Content-Type: text/html\r\n\r\n"
PIECE = b"x" * 65536
BOMB = zlib.compress(bytes(100 * MIB), 9, wbits=31)
GZIP = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)

#: name: (script, outcome, truncated, head begins with, body begins with)
CASES: dict[str, tuple[Script, Outcome, str, bytes, bytes]] = {
    "no answer": ([HANG], Outcome.H_TIM, "", b"", b""),
    "a byte now and then in the status line": (
        [b"HTTP/1.1 200 ", DRIP], Outcome.H_TIM, "time", b"HTTP/1.1 200 a", b"",
    ),
    "a byte now and then in the header": (
        [OK + b"A: ", DRIP], Outcome.H_TIM, "time", OK + b"A: a", b"",
    ),
    "a byte now and then in the body": ([OK + b"\r\n", DRIP], Outcome.CUT, "time", OK, b"aa"),
    "a byte now and then in a chunk size": (
        [CHUNKED + b"1\r\na\r\n", DRIP], Outcome.D_ERR, "disconnect", OK, b"a",
    ),
    "a header without end": (
        Endless(OK, b"A: %s\r\n" % (b"b" * 90)), Outcome.H_ERR, "length", OK, b"",
    ),
    "a header line without end": (Endless(OK + b"A: ", PIECE), Outcome.H_ERR, "length", OK, b""),
    "a status line without end": (
        Endless(b"HTTP/1.1 200 ", PIECE), Outcome.H_ERR, "length", b"HTTP/1.1 200 x", b"",
    ),
    "interim answers without end": (
        Endless(b"", b"HTTP/1.1 103 E\r\nA: b\r\n\r\n" * 50), Outcome.H_ERR, "length", b"HTTP", b"",
    ),
    "a body without end": (Endless(OK + b"\r\n", PIECE), Outcome.CUT, "length", OK, b"xxx"),
    "HTML without end": (Endless(HTML, PIECE), Outcome.CUT, "length", OK, b"xxx"),
    "chunks without end": (
        Endless(CHUNKED, b"10000\r\n" + PIECE + b"\r\n"), Outcome.CUT, "length", OK, b"xxx",
    ),
    "a chunk extension without end": (
        Endless(CHUNKED + b"3\r\nabc\r\n1;", PIECE), Outcome.D_TIM, "time", OK, b"abc",
    ),
    "a chunk size without end": (
        Endless(CHUNKED + b"3\r\nabc\r\n1", b"1" * 1000), Outcome.D_ERR, "disconnect", OK, b"abc",
    ),
    "a chunk beyond all numbers": (
        [CHUNKED + b"3\r\nabc\r\nFFFFFFFFFFFFFFFFF\r\n", HANG],
        Outcome.D_ERR, "disconnect", OK, b"abc",
    ),
    "trailers without end": (
        Endless(CHUNKED + b"3\r\nabc\r\n0\r\n", b"A: b\r\n" * 100),
        Outcome.D_ERR, "disconnect", OK, b"abc",
    ),
    "a trailer without end": (
        Endless(CHUNKED + b"3\r\nabc\r\n0\r\nA: ", PIECE),
        Outcome.D_ERR, "disconnect", OK, b"abc",
    ),
    "a gzip bomb": ([GZIP + BOMB, KEEP], Outcome.OK, "", OK, BOMB[:9]),
    "a length beyond all numbers": (
        [OK + b"Content-Length: 99999999999999999999999\r\n\r\nabc", CLOSE],
        Outcome.OK, "", OK, b"abc",
    ),
    "a length that nobody sends": (
        [OK + b"Content-Length: 9000000000000000000\r\n\r\nabc", CLOSE],
        Outcome.D_ERR, "disconnect", OK, b"abc",
    ),
    "a negative length": (
        [OK + b"Content-Length: -1\r\n\r\nabc", CLOSE], Outcome.H_NPR, "unspecified",
        OK + b"Content-Length: -1\r\n\r\n", b"abc",
    ),
    "bytes without end": (Endless(b"", bytes(65536)), Outcome.H_NPR, "unspecified", b"", b"\0\0"),
    "HTTP/0.9": ([b"<html>abc</html>", CLOSE], Outcome.H_NPR, "unspecified", b"", b"<html>abc"),
    "NUL in a header": (
        [OK + b"A: \0\r\n\r\nabc", CLOSE], Outcome.H_NPR, "unspecified", OK + b"A: \0\r\n", b"abc",
    ),
    "a body without end behind a line without colon": (
        Endless(OK + b"bad\r\n\r\n", PIECE), Outcome.H_NPR, "unspecified", OK + b"bad\r\n", b"xxx",
    ),
}  # fmt: skip

LIMITS = Limits(
    connect_s=2, idle_s=0.4, total_s=0.8, html_bytes=4 * MIB, other_bytes=80 * MIB
)  # fmt: skip
FAST = Limits(connect_s=2, idle_s=1, total_s=20, html_bytes=4 * MIB, other_bytes=80 * MIB)


def peak_kib(*, anew: bool = False) -> int:
    """Most memory this process ever held, or since it was asked `anew`."""
    if anew:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            pytest.skip("the peak of memory cannot be set back here")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_server_has_its_outcome_bounded_memory_and_delays_nobody(
    tmp_path: Path, name: str
) -> None:
    script, outcome, truncated, head, body = CASES[name]
    slow = outcome == Outcome.CUT and truncated == "length"

    async def main() -> Capture:
        async with serving(script) as bad, serving([ABC, KEEP]) as good:
            with Robot(tmp_path, FAST if slow else LIMITS) as robot:
                before = peak_kib(anew=True)
                robot.client.start(bad.fetch(ticket=0, host="bad.example"))
                for ticket in range(1, 21):
                    robot.client.start(good.fetch(ticket=ticket, host=f"h{ticket}.example"))
                captures = await robot.until(21)
                assert peak_kib() - before < 50 * 1024
                assert robot.client.held_bytes == 0
                found = {capture.ticket: capture for capture in captures}
                for ticket in range(1, 21):
                    assert (found[ticket].outcome, found[ticket].body) == (Outcome.OK, b"abc")
                if truncated == "time" or not found[0].head + found[0].body:
                    assert captures[-1].ticket == 0  # nobody waited for it
                return found[0]

    capture = run(main())
    assert (capture.outcome, capture.truncated) == (outcome, truncated)
    assert capture.head.startswith(head)
    assert capture.body.startswith(body)
    assert bool(capture.head) == bool(head)
    assert bool(capture.body) == bool(body)


def test_a_gzip_bomb_is_stored_as_it_came(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([GZIP + BOMB, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch())
                assert (capture.outcome, capture.body) == (Outcome.OK, BOMB)

    run(main())


# -- what libcurl drops ----------------------------------------------------------------------------

BAD = OK + b"Server: x\r\nno colon here\r\n\r\n"
BODY = bytes(range(256)) * 400


def odd(end: str, *, length: bool = False) -> Script:
    head = BAD.replace(b"Server: x", b"Content-Length: %d" % len(BODY)) if length else BAD
    return [head, BODY, end]


@pytest.mark.parametrize("length", [False, True])
@pytest.mark.parametrize("tls", [False, True])
def test_what_libcurl_drops_is_read_as_it_comes_when_it_is_asked_for_again(
    tmp_path: Path, tls: bool, length: bool
) -> None:
    async def main() -> None:
        async with serving(odd(KEEP if length else CLOSE, length=length), tls=tls) as wire:
            with Robot(tmp_path, ca_file=CERTIFICATE) as robot:
                first = await robot.get(wire.fetch("/a"))
                assert (first.outcome, first.code) == (Outcome.H_NPR, 200)
                assert first.truncated == "unspecified"
                assert first.head.startswith(OK)
                assert "colon" in first.detail
                for _ in range(2):
                    again = await robot.get(wire.fetch("/a"))
                    assert (again.outcome, again.truncated) == (Outcome.H_NPR, "")
                    assert (again.head + again.body).startswith(OK)
                    assert again.head.endswith(b"no colon here\r\n\r\n")
                    assert again.body == BODY
                    assert "colon" in again.detail
                assert len(wire.requests) == 3  # never twice for one fetch
                assert wire.requests[0] == first.request
                assert robot.client.held_bytes == 0

    run(main())


def test_plain_http_gives_the_first_bytes_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([BAD + BODY, CLOSE]) as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch())
                assert capture.head == BAD
                assert BODY.startswith(capture.body)
                assert len(capture.body) > 10_000

    run(main())


def test_a_server_that_healed_is_read_as_others_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(odd(CLOSE), [ABC, CLOSE], [ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                outcomes = [(await robot.get(wire.fetch())).outcome for _ in range(4)]
                assert outcomes == [Outcome.H_NPR, Outcome.H_ERR, Outcome.OK, Outcome.OK]

    run(main())


@pytest.mark.parametrize(
    ("script", "outcome", "truncated"),
    [
        ([HANG], Outcome.H_TIM, ""),
        ([CLOSE], Outcome.H_ERR, ""),
        ([OK + b"bad", HANG], Outcome.H_TIM, "time"),
        ([OK + b"bad", CLOSE], Outcome.H_SHT, "disconnect"),
        ([BAD + b"abc", HANG], Outcome.H_NPR, "time"),
        ([b"nothing of HTTP", CLOSE], Outcome.H_NPR, ""),
        (Endless(BAD, PIECE), Outcome.H_NPR, "length"),
        (Endless(OK, b"A: b\r\n" * 100), Outcome.H_SHT, "length"),
        ([OK + b"bad\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", KEEP],
         Outcome.H_NPR, ""),
    ],
)  # fmt: skip
def test_an_answer_read_as_it_comes_has_every_outcome(
    tmp_path: Path, script: Script, outcome: Outcome, truncated: str
) -> None:
    async def main() -> None:
        async with serving(odd(CLOSE), script) as wire:
            with Robot(tmp_path) as robot:
                await robot.get(wire.fetch())
                capture = await robot.get(wire.fetch())
                assert (capture.outcome, capture.truncated) == (outcome, truncated)
                assert len(capture.head) + len(capture.body) <= MIB
                assert len(wire.requests) == 2

    run(main())


def test_a_fetch_that_is_read_as_it_comes_can_be_aborted(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(odd(CLOSE), [BAD, HANG], [ABC, KEEP]) as wire:
            with Robot(tmp_path, Limits(idle_s=30)) as robot:
                await robot.get(wire.fetch())
                robot.client.start(wire.fetch(ticket=7))
                while len(wire.requests) < 2:
                    await asyncio.sleep(0)
                robot.client.abort(7)
                assert robot.client.active == 0
                assert (await robot.get(wire.fetch("/other"))).outcome == Outcome.OK

    run(main())


# -- asked once ------------------------------------------------------------------------------------


def test_a_server_that_reads_a_request_and_closes_is_not_asked_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], [CLOSE], [ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                assert (await robot.get(wire.fetch())).outcome == Outcome.OK
                capture = await robot.get(wire.fetch())
                assert capture.outcome == Outcome.H_ERR
                assert "second time" in capture.detail
                assert len(wire.requests) == 2
                assert (await robot.get(wire.fetch())).outcome == Outcome.OK

    run(main())


def test_many_resting_connections_that_are_dead_cost_one_request(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(*[[ABC, KEEP]] * 5, [CLOSE]) as wire:
            with Robot(tmp_path) as robot:
                for ticket in range(5):
                    robot.client.start(wire.fetch(ticket=ticket))
                await robot.until(5)
                assert wire.connections == 5
                assert (await robot.get(wire.fetch())).outcome == Outcome.H_ERR
                assert len(wire.requests) == 6

    run(main())


def test_after_a_reset_of_a_resting_connection_the_request_is_sent_once_more(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as server, Robot(tmp_path) as robot:
            server.setblocking(False)
            async with serving([ABC]) as wire:
                fetch = wire.fetch(port=server.getsockname()[1])
            robot.client.start(fetch)
            first, _ = await loop.sock_accept(server)
            await loop.sock_recv(first, 9999)
            await loop.sock_sendall(first, ABC)
            await robot.until(1)
            robot.client.start(fetch)
            first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            first.close()
            second, _ = await loop.sock_accept(server)
            await loop.sock_recv(second, 9999)
            await loop.sock_sendall(second, ABC)
            capture = (await robot.until(2))[1]
            assert capture.outcome == Outcome.OK
            second.close()

    run(main())
