"""The whole program as its user runs it: real processes, real sockets, a real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geomi.world import Running

SOURCE = Path(__file__).resolve().parents[2] / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "200", "LC_ALL": "C.UTF-8"}
COMMAND = [sys.executable, "-c", "from geomi.cli.main import main; main()"]

#: Manners that cost a test no time. Failures are tried again at once.
FAST = (
    "manners.rest_s=0", "manners.rest_factor=0", "manners.address_rest_s=0",
    "manners.connections=4", "retry.gap_s=0.05", "fetch.idle_s=0.4", "fetch.connect_s=2",
    "agent.batch_s=0.3",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> dict[str, Any]:
        """The one object that --json prints."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The objects of a listing, a line each."""
        return [json.loads(line) for line in self.out.splitlines()]


def start(*words: object, own_group: bool = False) -> subprocess.Popen[str]:
    """A command that runs beside the test."""
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_group,
    )


def end(process: subprocess.Popen[str], *, timeout_s: float = 60.0) -> Done:
    """Waits for it. One that hangs is killed, and the test fails."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"still running after {timeout_s} s\n{out}\n{err}") from None
    return Done(code=process.returncode, out=out, err=err)


def geomi(*words: object, code: int | None = 0, timeout_s: float = 60.0) -> Done:
    """One command from beginning to end; `code` None takes any."""
    done = end(start(*words), timeout_s=timeout_s)
    assert code is None or done.code == code, f"exit {done.code}, wanted {code}\n{done}"
    return done


def to_world(running: Running) -> list[str]:
    """Options with which a crawl reaches a served world."""
    return [
        "--allow-network", "127.64.0.0/10", "--allow-network", "127.127.0.0/16",
        "--set", f'dns.servers=["127.0.0.1:{running.dns_port}"]',
    ]  # fmt: skip


def settings(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--set", text)]


def outcomes(collection: Path) -> dict[str, str]:
    """URL -> outcome of every page the collection knows and did not skip."""
    return {row["url"]: row["outcome"] for row in pages(collection) if row["outcome"] != "skip"}


def pages(collection: Path, *words: str) -> list[dict[str, Any]]:
    return geomi("pages", collection, *words, "--json").rows


def must_be_sound(collection: Path) -> None:
    """verify finds nothing, and warcio agrees about every WARC."""
    verified = geomi("verify", collection, "--json", code=None)
    assert verified.code == 0, verified.out
    files = sorted(collection.glob("archive/**/*.warc.gz"))
    assert files
    warcio_agrees(files)


def warcio_agrees(files: Iterable[Path]) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "warcio.cli", "check", *map(str, files)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]


def agents_of(supervisor: int) -> list[int]:
    """Process ids of the agents that a crawl started."""
    try:
        text = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def kill(process_id: int) -> None:
    try:
        os.kill(process_id, signal.SIGKILL)
    except ProcessLookupError:
        pass
