"""Sockets of a world: bound before the world is made, because ports are part of every URL."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from geomi.world import evil
from geomi.world.model import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Sockets bound for a world."""

    plain: list[socket.socket]
    tls: list[socket.socket]
    evil: list[socket.socket]


def listen(world: World) -> Listening:
    """Sockets at the world's addresses; a port of 0 becomes one that is free on all of them."""
    params = world.params
    wicked = [evil.address(entry) for entry in evil.EVILS] if params.evil else []
    addresses = world.addresses()
    bound = bind([*addresses, *wicked], params.port)
    tls: list[socket.socket] = []
    try:
        if secure := world.tls_addresses():
            tls = bind(secure, params.tls_port)
    except OSError:
        for sock in bound:
            sock.close()
        raise
    return Listening(plain=bound[: len(addresses)], tls=tls, evil=bound[len(addresses) :])


def bind(addresses: list[str], port: int) -> list[socket.socket]:
    """One listening socket for each address, all on one port; 0 finds a port free on all."""
    for attempt in range(20):
        sockets: list[socket.socket] = []
        chosen = port
        try:
            for address in addresses:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                sock = socket.socket(family, socket.SOCK_STREAM)
                sockets.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((address, chosen))
                chosen = sock.getsockname()[1]
        except OSError:
            for sock in sockets:
                sock.close()
            if port or attempt == 19:
                raise
        else:
            return sockets
    raise AssertionError("the loop returns or raises")
