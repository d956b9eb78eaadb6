"""Replays captures through real pywb, in a process of its own: `python replayed.py FOLDER...`.

Reads lines `TIMESTAMP URL` from standard input; prints a JSON list of [status, hex of the body's
SHA-1, bytes] for each. In each folder, or below it, lie WARC files and their CDXJ.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def replayed(
    folders: Sequence[Path], asked: Iterable[tuple[str, str]]
) -> list[tuple[int, str, int]]:
    """What pywb answers to (timestamp, URL): status, SHA-1 of the body, its length."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, folders)],
        input="".join(f"{stamp} {url}\n" for stamp, url in asked),
        capture_output=True, text=True, timeout=120, cwd=folders[0], check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(row[0], row[1], row[2]) for row in json.loads(done.stdout.splitlines()[-1])]


def main(folders: list[str]) -> None:
    from pywb.apps.frontendapp import FrontEndApp

    with TemporaryDirectory(prefix="geomi-replay-") as place:
        gather(folders, Path(place))
        paths = {"index_paths": f"{place}/all.cdxj", "archive_paths": f"{place}/"}
        app = FrontEndApp(custom_config={"collections": {"all": paths}, "framed_replay": False})
        answer(app)


def gather(folders: list[str], place: Path) -> None:
    """One index over all files; two collections may have files of one name."""
    lines = []
    for number, folder in enumerate(folders):
        for path in Path(folder).rglob("*.warc.gz"):
            (place / f"{number}-{path.name}").symlink_to(path.resolve())
        for path in Path(folder).rglob("*.cdxj"):
            lines += [
                line.replace(b'"filename": "', b'"filename": "%d-' % number)
                for line in path.read_bytes().splitlines(keepends=True)
            ]
    (place / "all.cdxj").write_bytes(b"".join(sorted(lines)))


def answer(app: Any) -> None:
    from werkzeug.test import Client
    from werkzeug.wrappers import Response

    client = Client(app, Response)
    found = []
    for line in sys.stdin:
        stamp, url = line.split()
        got = client.get(f"/all/{stamp}id_/{url}")
        found.append([got.status_code, sha1(got.data).hexdigest(), len(got.data)])
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
