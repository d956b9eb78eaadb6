"""The world's name server: A and AAAA over UDP, wire format by hand (RFC 1035)."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections import Counter
from typing import cast

from geomi.world.model import World

_CODES = {"NOERROR": 0, "FORMERR": 1, "SERVFAIL": 2, "NXDOMAIN": 3, "NOTIMP": 4}
_A, _AAAA, _IN = 1, 28, 1
#: Response, authoritative, recursion available; the asker's "recursion desired" is copied.
_FLAGS = 0x8480


def parse_query(packet: bytes) -> tuple[str, int, bytes] | None:
    """(name, type, question section) of a query; None if it is none."""
    if len(packet) < 17 or packet[2] & 0x80 or packet[4:6] != b"\0\1":
        return None
    labels: list[str] = []
    at = 12
    while at < len(packet) and (size := packet[at]):
        if size > 63:
            return None
        labels.append(packet[at + 1 : at + 1 + size].decode("latin-1").lower())
        at += 1 + size
    if at + 5 > len(packet):
        return None
    (kind,) = struct.unpack_from(">H", packet, at + 1)
    return ".".join(labels), kind, packet[12 : at + 5]


def reply(world: World, packet: bytes, *, turn: int = 0, asked: int = 0) -> bytes:
    """The answer to one packet; several addresses start at `turn`. Empty for what is no query.

    `asked`: how often the name was asked for before, see `World.resolve`.
    """
    query = parse_query(packet)
    if query is None:
        return b""
    name, kind, question = query
    code = world.dns_code(name)
    addresses, ttl_s = world.resolve(name, asked=asked)
    want = {_A: 4, _AAAA: 6}.get(kind, 0)
    packed = [
        parsed.packed for a in addresses if (parsed := ipaddress.ip_address(a)).version == want
    ]
    if packed:
        turn %= len(packed)
        packed = packed[turn:] + packed[:turn]
    flags = _FLAGS | (packet[2] & 1) << 8 | _CODES[code]
    head = packet[:2] + struct.pack(">HHHHH", flags, 1, len(packed), 0, 0)
    # Each answer points back at the name of the question, which starts at byte 12.
    rows = [struct.pack(">HHHIH", 0xC00C, kind, _IN, ttl_s, len(a)) + a for a in packed]
    return head + question + b"".join(rows)


class NameServer(asyncio.DatagramProtocol):
    """Answers for one world and counts the questions."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._transport: asyncio.DatagramTransport | None = None
        self.asked: Counter[str] = Counter()
        self._turn = 0
        self._before: Counter[tuple[str, int]] = Counter()  # questions by name and type

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = parse_query(data)
        if query is not None and self._transport is not None:
            self.asked[query[0]] += 1
            self._turn += 1
            before = self._before[query[:2]]
            self._before[query[:2]] += 1
            self._transport.sendto(reply(self._world, data, turn=self._turn, asked=before), addr)
