from __future__ import annotations

import asyncio
import struct

import aiodns
import pytest

from geomi.world import Params, World
from geomi.world.dns import parse_query, reply
from geomi.world.server import WorldServer

SHARES = {"nxdomain": 0.1, "servfail": 0.1, "nodata": 0.1, "habit.two": 0.3}


def query(name, kind=1):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return (
        struct.pack(">HHHHHH", 4711, 0x0100, 1, 0, 0, 0)
        + labels
        + b"\0"
        + struct.pack(">HH", kind, 1)
    )


def test_an_answer_is_these_bytes():
    world = World(Params(seed=1, sites=3))
    site = world.sites[0]
    packet = query(site.host)
    address = bytes(map(int, site.addresses[0].split(".")))
    head = struct.pack(">HHHHHH", 4711, 0x8580, 1, 1, 0, 0)
    row = struct.pack(">HHHIH", 0xC00C, 1, 1, site.ttl_s, 4)
    assert reply(world, packet) == head + packet[12:] + row + address


def test_names_are_compared_without_case():
    world = World(Params(seed=1, sites=3))
    assert reply(world, query(world.sites[1].host.upper()))[7] == 1


def test_broken_packets_get_no_answer():
    world = World(Params(seed=1, sites=3))
    packet = query(world.sites[0].host)
    for size in range(len(packet)):
        assert parse_query(packet[:size]) is None
        assert reply(world, packet[:size]) == b""
    assert reply(world, packet + b"tail") == reply(world, packet)
    assert reply(world, reply(world, packet)) == b""


def test_several_addresses_take_turns():
    world = World(Params(seed=1, sites=60, shares=SHARES))
    site = next(site for site in world.sites if len(site.addresses) == 2)
    first, second = (reply(world, query(site.host), turn=turn) for turn in (0, 1))
    assert first != second
    assert first[-4:] == second[-20:-16]


def test_a_real_resolver_gets_what_the_world_says():
    world = World(Params(seed=1, sites=60, port=1, shares=SHARES))
    codes = {"SERVFAIL": aiodns.error.ARES_ESERVFAIL, "NXDOMAIN": aiodns.error.ARES_ENOTFOUND}

    async def check():
        async with WorldServer(world, sockets=[]) as server:
            resolver = aiodns.DNSResolver(
                nameservers=[f"127.0.0.1:{server.dns_port}"], tries=1, timeout=5
            )
            for name in [site.host for site in world.sites] + ["nobody.example"]:
                addresses, ttl_s = world.resolve(name)
                if addresses:
                    answer = (await resolver.query_dns(name, "A")).answer
                    assert {row.data.addr for row in answer} == set(addresses)
                    assert {row.ttl for row in answer} == {ttl_s}
                    continue
                with pytest.raises(aiodns.error.DNSError) as caught:
                    await resolver.query_dns(name, "A")
                nodata = aiodns.error.ARES_ENODATA
                assert caught.value.args[0] == codes.get(world.dns_code(name), nodata)
            with pytest.raises(aiodns.error.DNSError) as caught:
                await resolver.query_dns(world.sites[0].host, "AAAA")
            assert caught.value.args[0] == aiodns.error.ARES_ENODATA
            assert server.name_server.asked[world.sites[0].host] == 2
            await resolver.close()

    asyncio.run(check())
