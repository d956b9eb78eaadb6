"""`python -m geomi.world`: serves a world until SIGTERM comes or its input, if a pipe, closes.

Prints one JSON line when ready. On its standard input it takes the word `flush` (and answers
with one JSON line of counters), so that a parent can read the log; a child never outlives it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import uvloop

from geomi.errors import OperatorError
from geomi.world.features import WHOLE
from geomi.world.model import Params, World
from geomi.world.server import WorldServer, listen


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m geomi.world", description="a small web")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sites", type=int, default=50)
    parser.add_argument("--pages", type=int, default=30, help="mean pages of a site")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--tls-port", type=int, default=443, help="of https; 443: a free one")
    parser.add_argument("--dns-port", type=int, default=0, help="0: a free one")
    parser.add_argument("--korean", type=float, default=0.6, help="share of Korean sites")
    parser.add_argument("--changes", action="store_true", help="documents change with time")
    parser.add_argument("--speed", type=float, default=1.0, help="world seconds a second")
    parser.add_argument("--share", action="append", default=[], metavar="NAME=SHARE")
    parser.add_argument("--whole", action="store_true", help="everything occurs")
    parser.add_argument("--trap-steps", type=int, default=0, help="length of traps; 0: endless")
    parser.add_argument("--evil", action="store_true", help="serve the evil hosts too")
    parser.add_argument("--params", metavar="JSON", help="all parameters at once")
    parser.add_argument("--log", type=Path, help="one line a request")
    parser.add_argument("--ca-file", type=Path, help="write the authority of its certificates")
    parser.add_argument("--hosts-file", type=Path, help="write names as /etc/hosts has them")
    return parser.parse_args(argv)


def _params(arguments: argparse.Namespace) -> Params:
    if arguments.params:
        return Params(**json.loads(arguments.params))
    shares = dict(WHOLE) if arguments.whole else {}
    shares |= {name: float(share) for name, _, share in (s.partition("=") for s in arguments.share)}
    return Params(
        seed=arguments.seed, sites=arguments.sites, pages=arguments.pages, port=arguments.port,
        korean=arguments.korean, changes=arguments.changes, shares=shares,
        tls_port=arguments.tls_port, trap_steps=arguments.trap_steps, evil=arguments.evil,
    )  # fmt: skip


async def _run(arguments: argparse.Namespace) -> None:
    params = _params(arguments)
    # Addresses do not depend on the ports, but every URL does: bind first.
    sockets = listen(World(params))
    ports = {"port": sockets.plain[0].getsockname()[1]}
    ports["tls_port"] = sockets.tls[0].getsockname()[1] if sockets.tls else params.tls_port
    world = World(replace(params, **ports))
    if arguments.hosts_file:
        arguments.hosts_file.write_text("".join(world.hosts_lines()), encoding="ascii")
    begun = time.monotonic()
    speed = arguments.speed if params.changes else 0.0
    server = WorldServer(
        world,
        sockets=sockets,
        log=arguments.log,
        at=lambda: (time.monotonic() - begun) * speed,
        dns_port=arguments.dns_port,
    )
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    words = asyncio.StreamReader()
    mode = os.fstat(sys.stdin.fileno()).st_mode
    # libuv aborts the process on anything else, such as the /dev/null of a background job.
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty():
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    async with server:
        if arguments.ca_file:
            arguments.ca_file.write_text(server.authority, encoding="ascii")
        _say({**ports, "dns_port": server.dns_port})
        listening = asyncio.create_task(_listen(words, server, over))
        await over.wait()
        listening.cancel()


async def _listen(words: asyncio.StreamReader, server: WorldServer, over: asyncio.Event) -> None:
    while line := await words.readline():
        if line.strip() == b"flush":
            server.flush()
            _say(
                {
                    "connections": dict(server.connections),
                    "most_open": dict(server.most_open),
                    "asked": dict(server.name_server.asked),
                }
            )
    over.set()


def _say(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs until told to stop."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        uvloop.run(_run(_arguments(sys.argv[1:] if argv is None else argv)))
    except (OperatorError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
