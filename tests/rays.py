"""A real Ray cluster of two nodes on loopback, as ordinary processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from geomi.cluster.node import ARCHIVE, NAME, RESOURCE

TESTS = Path(__file__).resolve().parent
PATHS = [str(TESTS.parent / "src"), str(TESTS)]
_MEMORY = str(80 * 2**20)  # of the object store; the least that Ray takes


class Nodes:
    """A head at 127.0.0.2 and more nodes beside it, each with its own raylet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[int, subprocess.Popen[bytes]] = {}  # by number, those that run
        with socket.socket() as probe:
            probe.bind(("127.0.0.2", 0))
            self.port = probe.getsockname()[1]
        self.address = f"127.0.0.2:{self.port}"

    def start(self, number: int, *, name: str = "", archive: str = "") -> None:
        """Node `number`; 0 is the head. `name`, `archive`: as of `geomi cluster start`."""
        more = {NAME: name, ARCHIVE: archive} if name else {}
        words = ["--node-ip-address", f"127.0.0.{2 + number}", "--num-cpus", "2"]
        if number:
            words += ["--address", self.address]
        else:
            words += ["--head", "--port", str(self.port), "--include-dashboard=false"]
            words += ["--temp-dir", str(self._folder)]
        if name:
            words += ["--resources", json.dumps({f"{RESOURCE}{name}": 1})]
        command = "from ray.scripts.scripts import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", command, "start", "--block", "--disable-usage-stats",
             "--object-store-memory", _MEMORY, *words],
            env={**os.environ, **more, "PYTHONPATH": os.pathsep.join(PATHS)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        self._processes[number] = process
        assert process.stdout is not None
        said = b""
        while b"--block" not in said:  # Ray says that it blocks once it runs
            line = process.stdout.readline()
            assert line, f"no Ray node: {said.decode(errors='replace')[-2000:]}"
            said += line

    def kill(self, number: int) -> None:
        """The whole node at once, as a power cut would."""
        process = self._processes.pop(number)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def stop(self) -> None:
        for number in sorted(self._processes, reverse=True):
            self.kill(number)


@contextmanager
def cluster(nodes: int = 2, *, archives: Mapping[str, Path] | None = None) -> Iterator[Nodes]:
    """Starts so many nodes, and ends them. `archives`: names of nodes, and where theirs lie."""
    # Ray's sockets live there, and their paths must be short.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as name:
        running = Nodes(Path(name))
        try:
            if archives is not None:
                for number, (node, folder) in enumerate(archives.items()):
                    running.start(number, name=node, archive=str(folder))
            else:
                for number in range(nodes):
                    running.start(number)
            yield running
        finally:
            running.stop()
