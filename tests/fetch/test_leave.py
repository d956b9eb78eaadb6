"""A request is written only where it may be, the moment before: a late one leaves no trace."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from wire import ABC, CERTIFICATE, KEEP, OK, Robot, run, serving

from geomi.fetch.leave import Leave
from geomi.states import Outcome


class Gate:
    """Says no to the tickets it is told, and remembers what it heard."""

    def __init__(self, *refused: int) -> None:
        self.refused = set(refused)
        self.heard: list[tuple[str, int]] = []
        self.leave = Leave(
            may_send=self._may_send,
            sent=lambda ticket: self.heard.append(("sent", ticket)),
            held_back=self._held_back,
        )
        self.back: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def _may_send(self, ticket: int) -> bool:
        self.heard.append(("asked", ticket))
        return ticket not in self.refused

    def _held_back(self, ticket: int) -> None:
        self.heard.append(("held back", ticket))
        self.back.set_result(ticket)


@pytest.mark.parametrize("tls", [False, True])
def test_what_is_refused_is_not_sent_and_no_capture_comes(tmp_path: Path, tls: bool) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], tls=tls) as wire:
            gate = Gate(1)
            with Robot(tmp_path, leave=gate.leave, ca_file=CERTIFICATE) as robot:
                robot.client.start(wire.fetch("/late", ticket=1))
                assert await asyncio.wait_for(gate.back, 20) == 1
                assert robot.client.active == 0
                capture = await robot.get(wire.fetch("/b", ticket=2))
                assert (capture.outcome, capture.body) == (Outcome.OK, b"abc")
                assert [one.ticket for one in robot.captures] == [2]
        assert [request.split(b" ")[1] for request in wire.requests] == [b"/b"]
        assert gate.heard == [("asked", 1), ("held back", 1), ("asked", 2), ("sent", 2)]

    run(main())


def test_a_connection_that_rests_is_asked_for_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            gate = Gate(2)
            with Robot(tmp_path, leave=gate.leave) as robot:
                await robot.get(wire.fetch("/a", ticket=1))
                robot.client.start(wire.fetch("/late", ticket=2))
                await asyncio.wait_for(gate.back, 20)
                await robot.get(wire.fetch("/c", ticket=3))
        assert [request.split(b" ")[1] for request in wire.requests] == [b"/a", b"/c"]

    run(main())


def test_what_is_read_as_it_comes_is_asked_for_too(tmp_path: Path) -> None:
    """libcurl only connects there, and the client writes."""
    bad = OK + b"no colon here\r\n\r\nbody"

    async def main() -> None:
        async with serving([bad, "close"]) as wire:
            gate = Gate(2)
            with Robot(tmp_path, leave=gate.leave) as robot:
                assert (await robot.get(wire.fetch("/a", ticket=1))).outcome is Outcome.H_NPR
                robot.client.start(wire.fetch("/a", ticket=2))
                await asyncio.wait_for(gate.back, 20)
                capture = await robot.get(wire.fetch("/a", ticket=3))
                assert capture.body == b"body"
        assert len(wire.requests) == 2
        assert gate.heard[-2:] == [("asked", 3), ("sent", 3)]

    run(main())
