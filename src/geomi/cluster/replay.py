"""Replays archives through pywb, which reads indexes and WARC files where they lie. Shell."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from geomi.errors import OperatorError, ResourceError

#: pywb itself comes as a wheel; surt, which it needs, is pure Python and has none.
INSTALL = (
    "pip install 'geomi[replay]' --prefer-binary (surt is built from source, without a compiler)"
)
#: pywb opens all its indexes for each look-up: more than these are merged into one first.
INDEXES_MOST = 200
_START_S = 60.0
_WORD = re.compile(r"[^A-Za-z0-9_-]+")


def must_be_installed() -> None:
    """OperatorError with what to do, where pywb is not there."""
    if find_spec("pywb") is None:
        raise OperatorError(f"pywb is not installed; {INSTALL}")


@dataclass(frozen=True, slots=True)
class Running:
    """A pywb that listens."""

    address: str
    process: subprocess.Popen[bytes]

    def wait(self) -> None:
        """Until SIGINT or SIGTERM. ResourceError if pywb ends before."""
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            code = self.process.wait()
            raise ResourceError(f"pywb ended by itself, with exit code {code}")
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def wayback(
    indexes: Sequence[str | Path],
    files: Mapping[str, Iterable[str | Path]],
    *,
    name: str = "archive",
    archive: str = "",
    bind: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[Running]:
    """pywb over sorted CDXJ files, and WARC files by the names that those have.

    A name may have several paths: the first one that can be read counts. The one index may be a
    CDX server, `cdx+http://…`, and `archive` what stands before names where they are served.
    Captures are at
    `{address}/{timestamp}/{url}`, byte for byte at `{address}/{timestamp}id_/{url}`.
    """
    must_be_installed()
    name = _WORD.sub("-", name).strip("-") or "archive"
    with tempfile.TemporaryDirectory(prefix="geomi-replay-") as folder:
        _write(Path(folder), name, indexes, files, archive=archive)
        log = open(os.path.join(folder, "log"), "w+b")  # noqa: SIM115  closed below
        with log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "geomi.cluster.wayback", bind, str(port)],
                cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True,  # Ctrl-C is for us: we end it
                env=_environment(),
            )  # fmt: skip
            try:
                address = _address(process, Path(folder) / "log", f"{bind}:{port}")
                yield Running(address=f"{address}/{name}", process=process)
            finally:
                _end(process)


def _environment() -> dict[str, str]:
    """Ours, with this geomi in reach although the directory is another."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    found = os.pathsep.join(filter(None, paths))
    return {**os.environ, "PYTHONPATH": found, "PYTHONWARNINGS": "ignore"}


def _write(
    folder: Path,
    name: str,
    indexes: Sequence[str | Path],
    files: Mapping[str, Iterable[str | Path]],
    *,
    archive: str,
) -> None:
    """config.yaml (JSON is YAML), links to the indexes, and where each WARC file lies."""
    links = folder / "indexes"
    links.mkdir()
    remote = [str(index) for index in indexes if "+http" in str(index)]
    for number, index in enumerate(index for index in indexes if str(index) not in remote):
        (links / f"{number:06d}.cdxj").symlink_to(Path(index).absolute())
    with open(folder / "paths", "wb") as out:
        for line in sorted(
            "\t".join([file, *(str(Path(path).absolute()) for path in paths)]).encode() + b"\n"
            for file, paths in files.items()
        ):
            out.write(line)
    config = {
        "collections": {
            name: {
                "index_paths": remote[0] if remote else f"{links}/",
                "archive_paths": archive or str(folder / "paths"),
            },
        },
        "enable_auto_colls": False,
        "collections_root": str(folder / "none"),
        "framed_replay": True,
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")


def _address(process: subprocess.Popen[bytes], log: Path, wanted: str) -> str:
    """The line it says once it listens. OperatorError with its last words if it does not."""
    out = process.stdout
    assert out is not None
    end, said = time.monotonic() + _START_S, b""
    while b"http://" not in said or not said.endswith(b"\n"):
        ready, _, _ = select.select([out], [], [], max(0.0, end - time.monotonic()))
        more = os.read(out.fileno(), 4096) if ready else b""
        if not more:
            words = log.read_text("utf-8", "replace").strip().splitlines()
            raise ResourceError(
                f"pywb did not start on {wanted}: {words[-1][:300] if words else 'it said nothing'}"
            )
        said += more
    return said.decode().split()[-1]


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(5.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
