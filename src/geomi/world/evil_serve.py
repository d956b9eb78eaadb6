"""Evil hosts on loopback: runs the scripts of evil.py, as fast as they are read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from geomi.world import evil
from geomi.world.evil import Evil
from geomi.world.evil_words import STALL, Say

#: A script that is never read to its end must not fill memory: writing waits above this.
_HIGH_BYTES = 262_144
#: (started or ended: seconds by the server's clock)
Note = Callable[[float, str, str, str, int, int], None]


class EvilServer:
    """One connection handler for all evil hosts; the address says which host it is."""

    def __init__(self, *, pause_s: float, clock: Callable[[], float], note: Note) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._note = note
        self._by_address = {evil.address(entry): entry for entry in evil.EVILS}
        # One a connection, removed when it ends; close() waits for none.
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; one request, as most of these servers leave nothing to go on with."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        address = writer.get_extra_info("sockname")[0]
        try:
            writer.transport.set_write_buffer_limits(high=_HIGH_BYTES)
            head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(self._by_address[address], address, head, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the visitor left, which is what it should do
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(
        self,
        entry: Evil,
        address: str,
        head: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        started_s, sent = self._clock(), 0
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        target = words[1] if len(words) == 3 else ""
        asked = Say(target=target, page=entry.target, pause_s=self._pause_s)
        gone = asyncio.ensure_future(reader.read())  # ends when the visitor closes
        try:
            for step in evil.script(entry, asked):
                if isinstance(step, bytes):
                    writer.write(step)
                    sent += len(step)
                    await writer.drain()
                    await asyncio.sleep(0)  # a fast reader never makes drain() wait
                    if gone.done() or writer.is_closing():
                        return
                    continue
                await asyncio.wait((gone,), timeout=None if step == STALL else step)
                if gone.done():
                    return
        finally:
            gone.cancel()
            self._note(started_s, address, entry.host, target, 0, sent)

    def close(self) -> None:
        """Ends all connections."""
        for task in list(self._tasks):
            task.cancel()
