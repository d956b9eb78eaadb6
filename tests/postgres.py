"""A real PostgreSQL server on loopback, from Debian's package, as ordinary processes."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

#: The newest that is installed; None: none is.
BIN = max(
    Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda p: float(p.parent.name)
)
PASSWORD = "wrong horse"
_SETTINGS = {
    "fsync": "off",  # the machine is not cut off power; a killed server loses nothing by it
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "max_connections": "60",
    "logging_collector": "off",
    "timezone": "UTC",
}


class Postgres:
    """One server with a database `geomi`. Started anew it has the same port and data."""

    def __init__(self, folder: Path, *, space: str = "", host: str = "127.0.0.1", **settings: str):
        """In the network namespace `space`, where it is reached at `host` too."""
        assert BIN is not None
        self.folder = folder
        self._host = host
        self._enter = ["ip", "netns", "exec", space] if space else []
        self._settings = _SETTINGS | settings
        # PostgreSQL refuses to run as root.
        self._user = pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self._schemas = count(1)
        folder.mkdir(exist_ok=True)
        if self._user is not None:
            os.chown(folder, self._user, -1)
        words = folder / "password"
        words.write_text(PASSWORD)
        os.chmod(words, 0o644)
        self._run(
            "initdb", "--no-sync", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8",
            f"--pwfile={words}", "--auth-local=trust", "--auth-host=scram-sha-256",
            "--pgdata", str(self.data),
        )  # fmt: skip
        rules = (self.data / "pg_hba.conf").read_text()
        # `geomi` comes in as who it says it is; `locked` must show a password.
        (self.data / "pg_hba.conf").write_text(
            f"host all geomi 0.0.0.0/0 trust\nhost all postgres 127.0.0.1/32 trust\n{rules}"
        )
        self.start()
        self.sql(
            "CREATE ROLE geomi LOGIN CREATEDB; CREATE DATABASE geomi OWNER geomi;"
            f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'"
        )

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def address(self) -> str:
        return f"postgresql://geomi@{self._host}:{self.port}/geomi"

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def schema(self) -> str:
        """The address of a schema that nobody else uses."""
        return f"{self.address}?schema=test_{os.getpid()}_{next(self._schemas)}"

    def start(self) -> None:
        """Returns once it answers."""
        assert BIN is not None and self._process is None
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*self._as_its_user(), BIN / "postgres", "-D", self.data, "-p", str(self.port),
                 "-k", self.folder, "-c", f"listen_addresses=127.0.0.1,{self._host}",
                 *(f"--{name}={value}" for name, value in self._settings.items())],
                cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._run(
            "pg_isready", "-q", "-t", "30", "-h", "127.0.0.1", "-p", str(self.port), tries=300
        )

    def kill(self) -> None:
        """kill -9 of the server and of all that serve a connection, as out of memory may."""
        assert self._process is not None
        children = _children(self._process.pid)
        self._process.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process.wait()
        self._process = None
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def sql(self, text: str, *, database: str = "postgres") -> str:
        """What psql prints, as the superuser."""
        words = ["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port),
                 "-U", "postgres", "-d", database]  # fmt: skip
        for sentence in filter(None, map(str.strip, text.split(";"))):
            words += ["-c", sentence]
        return self._run(*words)

    def _as_its_user(self) -> list[str]:
        """In its network, and as somebody else where we are root. The process stays the same."""
        if self._user is None:
            return self._enter
        user = pwd.getpwuid(self._user)
        return [*self._enter, "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
                "--clear-groups"]  # fmt: skip

    def _run(self, name: str, *words: str, tries: int = 1) -> str:
        assert BIN is not None
        for left in reversed(range(tries)):
            done = subprocess.run(
                [*self._as_its_user(), BIN / name, *words], cwd="/", capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return done.stdout.strip()
            if left:
                try:
                    assert self._process is not None
                    self._process.wait(0.05)
                    break  # it ended: no use to ask again
                except subprocess.TimeoutExpired:
                    pass
        log = self.folder / "log"
        said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        raise AssertionError(f"{name}: {done.stderr}{said}")


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def _place() -> str:
    """Memory where there is room: a schema has 130 files."""
    shm = Path("/dev/shm")
    roomy = shm.is_dir() and shutil.disk_usage(shm).free > 2 * 2**30
    return str(shm) if roomy else "/tmp"


@contextmanager
def server(*, space: str = "", host: str = "127.0.0.1", **settings: str) -> Iterator[Postgres]:
    """A server of its own; skipped where PostgreSQL is not installed, but not in CI."""
    if BIN is None:
        if os.environ.get("CI") == "true":
            raise AssertionError("Debian package postgresql is not installed")
        pytest.skip("Debian package postgresql is not installed")
    # Sockets live there, and their paths must be short; the folder must be open to its user.
    with tempfile.TemporaryDirectory(
        prefix="pg-", dir=_place(), ignore_cleanup_errors=True
    ) as name:
        os.chmod(name, 0o755)
        running = Postgres(Path(name) / "pg", space=space, host=host, **settings)
        try:
            yield running
        finally:
            running.stop()
            shutil.rmtree(running.folder, ignore_errors=True)
