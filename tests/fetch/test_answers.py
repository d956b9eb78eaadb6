"""What every kind of answer comes to: header, body, limits; each fed by a raw server."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from wire import (
    ABC,
    CLOSE,
    DRIP,
    HANG,
    KEEP,
    OK,
    RESET,
    Robot,
    Script,
    once,
    run,
    serving,
)

from geomi.fetch.limits import Limits
from geomi.records import Capture
from geomi.states import Outcome

# -- header ----------------------------------------------------------------------------------------

#: name: (script, outcome, code, head, body, truncated)
HEADERS: dict[str, tuple[Script, Outcome, int, bytes, bytes, str]] = {
    "nothing": ([CLOSE], Outcome.H_ERR, 0, b"", b"", ""),
    "reset": ([RESET], Outcome.H_ERR, 0, b"", b"", ""),
    "part of a status line": (
        [b"HTTP/1.1 2", CLOSE], Outcome.H_SHT, 0, b"HTTP/1.1 2", b"", "disconnect",
    ),
    "a status line alone": ([OK, CLOSE], Outcome.H_SHT, 200, OK, b"", "disconnect"),
    "lines, no blank one": (
        [OK + b"A: b\r\nC", CLOSE], Outcome.H_SHT, 200, OK + b"A: b\r\nC", b"", "disconnect",
    ),
    "an interim answer alone": (
        [b"HTTP/1.1 103 Early\r\nA: b\r\n\r\n", CLOSE], Outcome.H_SHT, 103,
        b"HTTP/1.1 103 Early\r\nA: b\r\n\r\n", b"", "disconnect",
    ),
    "silence": ([HANG], Outcome.H_TIM, 0, b"", b"", ""),
    "silence after a line": ([OK, HANG], Outcome.H_TIM, 200, OK, b"", "time"),
    "a banner of another protocol": (
        [b"SSH-2.0-x\r\n", HANG], Outcome.H_NPR, 0, b"", b"SSH-2.0-x\r\n", "unspecified",
    ),
    "bytes": ([b"\0\1\2" * 9, CLOSE], Outcome.H_NPR, 0, b"", b"\0\1\2" * 9, "unspecified"),
    "a blank line first": ([b"\r\n" + ABC, HANG], Outcome.H_NPR, 0, None, None, "unspecified"),
    "a version that is none": (
        [b"HTTP/0.9 200 OK\r\n\r\nabc", CLOSE],
        Outcome.H_NPR, 200, b"HTTP/0.9 200 OK\r\n\r\n", b"abc", "unspecified",
    ),
    "a code that is none": (
        [b"HTTP/1.1 abc\r\n\r\n", CLOSE],
        Outcome.H_NPR, 0, b"HTTP/1.1 abc\r\n\r\n", b"", "unspecified",
    ),
    "a code of four digits": (
        [b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", KEEP],
        Outcome.H_NPR, 0, b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", b"", "",
    ),
    "a line without colon": (
        [OK + b"bad\r\n\r\nabc", CLOSE],
        Outcome.H_NPR, 200, OK + b"bad\r\n\r\n", b"abc", "unspecified",
    ),
    "a line without colon, and a length": (
        [OK + b"Content-Length: 3\r\nbad\r\n\r\nabc", KEEP],
        Outcome.H_NPR, 200, OK + b"Content-Length: 3\r\nbad\r\n\r\n", b"abc", "",
    ),
    "two status lines": ([OK + ABC, CLOSE], Outcome.H_NPR, 200, OK + ABC[:-3], b"abc", ""),
    "NUL in a line": (
        [OK + b"A: \0\r\n\r\n", CLOSE],
        Outcome.H_NPR, 200, OK + b"A: \0\r\n\r\n", b"", "unspecified",
    ),
    "a length that is none": (
        [OK + b"Content-Length: x\r\n\r\n", CLOSE],
        Outcome.H_NPR, 200, OK + b"Content-Length: x\r\n\r\n", b"", "unspecified",
    ),
    "two lengths": (
        [OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", CLOSE],
        Outcome.H_NPR, 200, OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n", b"abcd",
        "unspecified",
    ),
    "a transfer encoding we did not ask for": (
        [OK + b"Transfer-Encoding: foo\r\n\r\nabc", CLOSE],
        Outcome.H_NPR, 200, OK + b"Transfer-Encoding: foo\r\n\r\n", b"abc", "unspecified",
    ),
    "control bytes in a value": (
        [OK + b"A: \x01\xff\r\nContent-Length: 0\r\n\r\n", KEEP],
        Outcome.OK, 200, OK + b"A: \x01\xff\r\nContent-Length: 0\r\n\r\n", b"", "",
    ),
    "lines that end with LF alone": (
        [b"HTTP/1.0 404 No\nContent-Length: 3\n\nabc", CLOSE],
        Outcome.CODE, 404, b"HTTP/1.0 404 No\nContent-Length: 3\n\n", b"abc", "",
    ),
    "a status line in lower case": (
        [b"http/1.1 200 ok\r\n\r\nabc", CLOSE],
        Outcome.OK, 200, b"http/1.1 200 ok\r\n\r\n", b"abc", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_every_kind_of_header_has_its_outcome(tmp_path: Path, name: str) -> None:
    script, outcome, code, head, body, truncated = HEADERS[name]
    capture = once(tmp_path, *script)
    assert (capture.outcome, capture.code, capture.truncated) == (outcome, code, truncated)
    assert head is None or capture.head == head
    assert body is None or capture.body == body
    assert capture.request
    assert outcome in (Outcome.OK, Outcome.CODE) or capture.detail


ENDLESS = {
    "short lines": [OK, *[b"A: " + b"b" * 90 + b"\r\n"] * 4000],
    "many lines": [OK, *[b"A:b\r\n" * 100] * 60],
    "one line": [OK, *[b"a" * 10_000] * 40],
    "one status line": [b"HTTP/1.1 200 ", *[b"a" * 10_000] * 40],
    "interim answers": [b"HTTP/1.1 100 Continue\r\n\r\n" * 100] * 400,
    "interim answers with lines": [b"HTTP/1.1 103 E\r\nA: b\r\n\r\n" * 100] * 200,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_header_without_end_is_herr_and_bounded(tmp_path: Path, name: str) -> None:
    capture = once(tmp_path, *ENDLESS[name], HANG)
    assert capture.outcome == Outcome.H_ERR
    assert "large" in capture.detail or "header" in capture.detail
    assert len(capture.head) <= 256 * 1024


def test_a_header_over_our_own_limit_is_herr(tmp_path: Path) -> None:
    limits = Limits(head_bytes=100, idle_s=0.2)
    for body in (b"abc", b""):
        head = OK + b"A: %s\r\nContent-Length: %d\r\n\r\n" % (b"b" * 99, len(body))
        capture = once(tmp_path, head + body, KEEP, limits=limits)
        assert (capture.outcome, capture.truncated) == (Outcome.H_ERR, "length")
        assert len(capture.head) == 100


@pytest.mark.parametrize("piecewise", [False, True])
def test_the_head_is_kept_as_it_came_without_interim_answers_and_trailers(
    tmp_path: Path, piecewise: bool
) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
    head = OK + b"x-Odd:  spaces  \r\nA: 1\r\nA: 2\r\n"
    sent = interim + head + b"transfer-ENCODING: chunked\r\n\r\n"
    sent += b"2;ext=1\r\nab\r\n1\r\nc\r\n0\r\nTrailer: x\r\n\r\n"
    pieces = [sent[at : at + 1] for at in range(len(sent))] if piecewise else [sent]
    capture = once(tmp_path, *pieces, KEEP)
    assert capture.outcome == Outcome.OK
    assert capture.head == head + b"X-Geomi-Transfer-Encoding: chunked\r\n\r\n"
    assert capture.body == b"abc"


def test_trailers_are_no_part_of_the_head_of_an_empty_body(tmp_path: Path) -> None:
    head = OK + b"Transfer-Encoding: chunked\r\n\r\n"
    capture = once(tmp_path, head + b"0\r\nTrailer: x\r\n\r\n", KEEP)
    assert (capture.outcome, capture.body) == (Outcome.OK, b"")
    assert capture.head == OK + b"X-Geomi-Transfer-Encoding: chunked\r\n\r\n"


def test_content_encoding_is_left_alone(tmp_path: Path) -> None:
    head = OK + b"Content-Encoding: gzip, wat\r\nContent-Length: 3\r\n\r\n"
    capture = once(tmp_path, head + b"\x1f\x8b\x00", KEEP)
    assert (capture.outcome, capture.head, capture.body) == (Outcome.OK, head, b"\x1f\x8b\x00")


# -- body ------------------------------------------------------------------------------------------

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = OK + b"Content-Length: 9\r\n\r\nabc"
GONE = LONG.replace(b"200 OK", b"410 No")

#: name: (script, outcome, code, body, truncated)
BODIES: dict[str, tuple[Script, Outcome, int, bytes, str]] = {
    "by length": ([ABC, KEEP], Outcome.OK, 200, b"abc", ""),
    "by close": ([OK + b"\r\nabc", CLOSE], Outcome.OK, 200, b"abc", ""),
    "more than the length": ([ABC + b"def", HANG], Outcome.OK, 200, b"abc", ""),
    "a length beside chunks": (
        [CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 9\r\n\r\n") + b"3\r\nabc\r\n0\r\n\r\n",
         KEEP], Outcome.OK, 200, b"abc", "",
    ),
    "the same length twice": (
        [OK + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", KEEP],
        Outcome.OK, 200, b"abc", "",
    ),
    "a length beyond all numbers": (
        [OK + b"Content-Length: 99999999999999999999999\r\n\r\nabc", CLOSE],
        Outcome.OK, 200, b"abc", "",
    ),
    "a chunk longer than it says": (
        [CHUNKED + b"3\r\nabcdef\r\n0\r\n\r\n", HANG], Outcome.D_ERR, 200, b"abc", "disconnect",
    ),
    "a negative chunk size": (
        [CHUNKED + b"3\r\nabc\r\n-1\r\n", HANG], Outcome.D_ERR, 200, b"abc", "disconnect",
    ),
    "204 with a body": (
        [b"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\nabc", KEEP], Outcome.CODE, 204, b"", "",
    ),
    "304 with a length": (
        [b"HTTP/1.1 304 No\r\nContent-Length: 3\r\n\r\n", KEEP], Outcome.CODE, 304, b"", "",
    ),
    "503": ([ABC.replace(b"200 OK", b"503 No"), KEEP], Outcome.CODE, 503, b"abc", ""),
    "less than the length": ([LONG, CLOSE], Outcome.D_ERR, 200, b"abc", "disconnect"),
    "less, and not 200": ([GONE, CLOSE], Outcome.D_ERR, 410, b"abc", "disconnect"),
    "nothing of the length": (
        [OK + b"Content-Length: 9\r\n\r\n", CLOSE], Outcome.D_ERR, 200, b"", "disconnect",
    ),
    "reset": ([LONG, RESET], Outcome.D_ERR, 200, None, "disconnect"),
    "a torn chunk": ([CHUNKED + b"9\r\nabc", CLOSE], Outcome.D_ERR, 200, b"abc", "disconnect"),
    "no last chunk": ([CHUNKED + b"3\r\nabc\r\n", CLOSE], Outcome.D_ERR, 200, b"abc", "disconnect"),
    "a chunk size that is none": (
        [CHUNKED + b"3\r\nabc\r\nzz\r\n", HANG], Outcome.D_ERR, 200, b"abc", "disconnect",
    ),
    "silence": ([LONG, HANG], Outcome.D_TIM, 200, b"abc", "time"),
    "silence from the start": (
        [OK + b"Content-Length: 9\r\n\r\n", HANG], Outcome.D_TIM, 200, b"", "time",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_every_kind_of_body_has_its_outcome_and_keeps_its_bytes(tmp_path: Path, name: str) -> None:
    script, outcome, code, body, truncated = BODIES[name]
    capture = once(tmp_path, *script)
    assert (capture.outcome, capture.code, capture.truncated) == (outcome, code, truncated)
    assert body is None or capture.body == body
    assert capture.head.endswith(b"\r\n\r\n")


async def drip(limits: Limits, tmp_path: Path, start: bytes) -> Capture:
    """The capture from a server that sends `start` and then a byte at a time, for ever."""
    async with serving([start, DRIP]) as wire:
        with Robot(tmp_path, limits) as robot:
            return await robot.get(wire.fetch())


def test_a_body_that_never_stalls_ends_with_the_total_time_and_is_kept(tmp_path: Path) -> None:
    capture = run(drip(Limits(idle_s=10, total_s=0.2), tmp_path, LONG.replace(b"9", b"99999")))
    assert (capture.outcome, capture.truncated) == (Outcome.CUT, "time")
    assert capture.body.startswith(b"abca")


def test_a_header_that_never_stalls_ends_with_the_total_time(tmp_path: Path) -> None:
    capture = run(drip(Limits(idle_s=10, total_s=0.2), tmp_path, OK + b"A: "))
    assert (capture.outcome, capture.truncated) == (Outcome.H_TIM, "time")
    assert capture.head.startswith(OK + b"A: a")


def test_a_header_line_that_never_ends_is_no_progress(tmp_path: Path) -> None:
    capture = run(drip(Limits(idle_s=0.2, total_s=60), tmp_path, OK + b"A: "))
    assert capture.outcome == Outcome.H_TIM


def test_one_slow_server_delays_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([HANG]) as slow, serving([ABC, KEEP]) as quick:
            with Robot(tmp_path, Limits(idle_s=30)) as robot:
                robot.client.start(slow.fetch(ticket=7, host="slow.example"))
                for _ in range(20):
                    assert (await robot.get(quick.fetch())).outcome == Outcome.OK
                assert robot.client.active == 1

    run(main())


# -- limits ----------------------------------------------------------------------------------------

HTML = b"Content-Type: Text/HTML; charset=x\r\n"


@pytest.mark.parametrize(
    ("kind", "kept"), [(HTML, 10), (b"Content-Type: application/xhtml+xml\r\n", 10), (b"", 20)]
)
@pytest.mark.parametrize("size", [9, 10, 11, 20, 21, 40_000])
@pytest.mark.parametrize("code", [b"200 OK", b"404 No"])
def test_a_body_is_cut_at_the_limit_of_its_type(
    tmp_path: Path, kind: bytes, kept: int, size: int, code: bytes
) -> None:
    limits = Limits(html_bytes=10, other_bytes=20)
    head = b"HTTP/1.1 " + code + b"\r\n" + kind + b"Content-Length: %d\r\n\r\n" % size
    body = bytes(range(250)) * 200
    capture = once(tmp_path, head + body[:size], KEEP, limits=limits)
    assert capture.body == body[: min(size, kept)]
    over = size > kept
    assert capture.truncated == ("length" if over else "")
    cut = Outcome.CUT if over else Outcome.OK
    assert capture.outcome == (cut if code == b"200 OK" else Outcome.CODE)


def test_a_cut_body_closes_its_connection(tmp_path: Path) -> None:
    async def main() -> None:
        endless = [OK + HTML + b"\r\n", *[b"x" * 65536] * 64, HANG]
        async with serving(endless, [ABC, KEEP]) as wire:
            with Robot(tmp_path, Limits(html_bytes=100_000)) as robot:
                assert len((await robot.get(wire.fetch())).body) == 100_000
                assert (await robot.get(wire.fetch())).body == b"abc"
                assert wire.connections == 2

    run(main())


@pytest.mark.parametrize("end", ["length", "disconnect", ""])
def test_a_large_body_is_spooled_with_its_digests(tmp_path: Path, end: str) -> None:
    limits = Limits(spool_bytes=100_000, sniff_bytes=1000, other_bytes=300_000, idle_s=1)
    body = bytes(range(251)) * 1500
    size = len(body) if end else 200_000
    head = OK + b"Content-Length: %d\r\n\r\n" % size
    sent = body[:200_000] if end == "disconnect" else body[:size]
    capture = once(tmp_path, head, sent, CLOSE if end == "disconnect" else KEEP, limits=limits)
    kept = sent[:300_000]
    spool = capture.spool
    assert spool is not None
    assert Path(spool.path).read_bytes() == kept
    assert Path(spool.path).parent == tmp_path
    assert spool.size == len(kept)
    assert spool.payload_sha1 == hashlib.sha1(kept).digest()
    assert spool.block_sha1 == hashlib.sha1(capture.head + kept).digest()
    assert capture.body == kept[:1000]
    assert capture.truncated == end
    outcomes = {"length": Outcome.CUT, "disconnect": Outcome.D_ERR, "": Outcome.OK}
    assert capture.outcome == outcomes[end]


def test_bodies_spool_earlier_when_memory_is_short(tmp_path: Path) -> None:
    async def main() -> None:
        limits = Limits(in_flight_bytes=50_000, sniff_bytes=1000)
        script = [OK + b"Content-Length: 90000\r\n\r\n", *[b"x" * 1000] * 90, KEEP]
        async with serving(script) as wire:
            with Robot(tmp_path, limits) as robot:
                for ticket in range(6):
                    robot.client.start(wire.fetch(ticket=ticket))
                captures = await robot.until(6)
        spools = [capture for capture in captures if capture.spool]
        assert spools
        assert all("early" in capture.detail for capture in spools)
        assert {capture.outcome for capture in captures} == {Outcome.OK}
        for capture in captures:
            data = Path(capture.spool.path).read_bytes() if capture.spool else capture.body
            assert data == b"x" * 90_000
        assert robot.client.held_bytes == 0

    run(main())


def test_a_spool_that_nobody_took_is_removed(tmp_path: Path) -> None:
    async def main() -> None:
        limits = Limits(spool_bytes=1000, idle_s=30)
        async with serving([OK + b"\r\n", b"x" * 100_000, HANG]) as wire:
            with Robot(tmp_path, limits) as robot:
                robot.client.start(wire.fetch())
                while not list(tmp_path.iterdir()):
                    await asyncio.sleep(0)
                robot.client.abort(1)
                assert list(tmp_path.iterdir()) == []
                assert robot.client.held_bytes == 0

    run(main())


def test_a_spool_that_cannot_be_written_is_derr_and_says_so(tmp_path: Path) -> None:
    limits = Limits(spool_bytes=1000)
    head = OK + b"Content-Length: 50000\r\n\r\n"
    capture = once(tmp_path / "none", head + b"x" * 50_000, KEEP, limits=limits)
    assert capture.outcome == Outcome.D_ERR
    assert capture.detail.startswith("spool: ")
    assert capture.spool is None
