"""A world in a process of its own, for tests and the demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from geomi.errors import ResourceError
from geomi.world import evil
from geomi.world.evil import Evil
from geomi.world.model import Params, World
from geomi.world.wire import LogRow

_SOURCE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the server counted until now."""

    connections: dict[str, int]  # ever opened, by address
    most_open: dict[str, int]  # at one time, by address
    asked: dict[str, int]  # questions to the name server, by name


class Running:
    """A served world, as its parent sees it."""

    def __init__(
        self, process: subprocess.Popen[str], params: Params, *, dns_port: int, folder: Path
    ) -> None:
        self._process = process
        self.world = World(params)  # the same world, for the truth
        self.port = params.port
        self.tls_port = params.tls_port
        #: Certificate authority of its https; empty where no site has any.
        self.ca_file = folder / "ca.pem"
        self.dns_port = dns_port
        self.hosts_file = folder / "hosts"
        self._log = folder / "log"

    def seeds(self, n: int | None = None, *, copies: bool = False) -> list[str]:
        """Seed URLs of the first `n` sites, see `World.seeds`."""
        return self.world.seeds(n, copies=copies)

    def evils(self) -> list[tuple[Evil, str]]:
        """Every evil entry with the URL to visit."""
        return [(entry, evil.url(entry, self.port)) for entry in evil.EVILS]

    def counters(self) -> Counters:
        """Flushes the log too."""
        assert self._process.stdin is not None
        self._process.stdin.write("flush\n")
        self._process.stdin.flush()
        return Counters(**_read(self._process))

    def log(self) -> list[LogRow]:
        """Every request answered so far, in the order in which they ended."""
        self.counters()
        with self._log.open(encoding="latin-1") as lines:
            return [LogRow.parse(line) for line in lines]


@contextmanager
def serve(params: Params, *, dns_port: int = 0, speed: float = 1.0) -> Iterator[Running]:
    """Serves a world; a `port` of 0 or 80 (or 443 for https) means any free port."""
    port = 0 if params.port == 80 else params.port
    params = replace(params, port=port)
    with tempfile.TemporaryDirectory(prefix="geomi-world-") as name:
        folder = Path(name)
        command = [
            sys.executable, "-m", "geomi.world", "--dns-port", str(dns_port),
            "--params", json.dumps(params.to_dict()),
            "--log", str(folder / "log"), "--hosts-file", str(folder / "hosts"),
            "--ca-file", str(folder / "ca.pem"), "--speed", str(speed),
        ]  # fmt: skip
        paths = [str(_SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        with process:
            try:
                ready = _read(process)
                known = replace(params, port=ready["port"], tls_port=ready["tls_port"])
                yield Running(process, known, dns_port=ready["dns_port"], folder=folder)
            finally:
                process.terminate()


def _read(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ResourceError(f"the small world ended with code {process.wait()} before it answered")
    return json.loads(line)
