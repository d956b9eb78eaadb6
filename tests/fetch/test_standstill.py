"""A loop that stood still blames no server: what came meanwhile is read before clocks are."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from pathlib import Path

import pytest
from wire import ABC, Robot, run, serving

from geomi.fetch.limits import Limits
from geomi.fetch.request import Fetch
from geomi.states import Outcome


def answering(server: socket.socket, pieces: int) -> None:
    """In a thread of its own: an answer in so many pieces, 50 ms apart."""
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer:
            peer.recv(9999)
            size = -(-len(ABC) // pieces)
            for at in range(0, len(ABC), size):
                peer.sendall(ABC[at : at + size])
                time.sleep(0.05)


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("after_s", [0.0, 0.02])
def test_an_answer_that_came_while_the_loop_stood_still_is_in_time(
    tmp_path: Path, pieces: int, after_s: float
) -> None:
    limits = Limits(connect_s=0.3, idle_s=0.3, total_s=20)

    async def main(port: int) -> None:
        fetch = Fetch(
            ticket=1, url=f"http://a.example:{port}/", scheme="http", host="a.example", port=port,
            target="/", address="127.0.0.1",
        )  # fmt: skip
        with Robot(tmp_path, limits) as robot:
            robot.client.start(fetch)
            asyncio.get_running_loop().call_later(after_s, time.sleep, 1.0)
            capture = (await robot.until(1))[0]
            assert (capture.outcome, capture.body) == (Outcome.OK, b"abc"), capture.detail

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answering, args=(server, pieces), daemon=True)
        thread.start()
        run(main(server.getsockname()[1]))
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_no_more_of_a_body_is_taken_than_is_of_use(
    tmp_path: Path, limit: int, length: bool
) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 3\r\n" if length else b"")

    async def main() -> None:
        async with serving([head + b"\r\nabc", "keep" if length else "close"]) as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch(limit_bytes=limit))
                assert capture.body == b"abc"[:limit]
                assert capture.outcome == (Outcome.CUT if limit < 3 else Outcome.OK)
                assert capture.truncated == ("length" if limit < 3 else "")
                # The next one has what its type may have.
                assert (await robot.get(wire.fetch())).body == b"abc"

    run(main())
