"""Two proxies on loopback: HTTP CONNECT and SOCKS5, which keep what they were asked for."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """`asked`: the head of each CONNECT, or "host:port" of each SOCKS request."""

    port: int = 0
    asked: list[str] = field(default_factory=list)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    there, back = await asyncio.open_connection(host, port)
    await asyncio.gather(_pipe(reader, back), _pipe(there, writer))


@asynccontextmanager
async def proxying(kind: str, *, refuse: bool = False) -> AsyncIterator[Proxy]:
    """`kind`: http or socks5h. `refuse`: it answers every request with 403."""
    proxy = Proxy()
    talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        proxy.asked.append(head)
        if refuse:
            writer.write(b"HTTP/1.1 403 No\r\nX-Proxy: 1\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, _, port = head.split()[1].rpartition(":")
        writer.write(b"HTTP/1.1 200 Established\r\nX-Proxy: 1\r\n\r\n")
        await _join(reader, writer, host.strip("[]"), int(port))

    async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly((await reader.readexactly(2))[1])
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == 1 else 16)))
        port = int.from_bytes(await reader.readexactly(2), "big")
        proxy.asked.append(f"{host}:{port}")
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await _join(reader, writer, host, port)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks[task] = writer
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await (connect if kind == "http" else socks)(reader, writer)

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for writer in talks.values():
            writer.transport.abort()
        await asyncio.gather(*talks)
        await server.wait_closed()
