"""A collection full of duplicates, what rewrites it, and what replays it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, NamedTuple

from cluster.small import SEED, Small
from geomi.archive.files import Files, RealFiles
from geomi.archive.reader import members
from geomi.archive.rewrite_tables import Kept
from geomi.cluster.collection import Collection
from geomi.cluster.mover import Mover
from geomi.cluster.rewriting import Rewriting
from geomi.cluster.switching import Shell
from geomi.cluster.verify import verify
from geomi.history.past import Past
from geomi.keys import KEYS
from geomi.settings import History
from geomi.store import Store


def prose(seed: int) -> bytes:
    """Some 4 KB of words, which deflate like text."""
    rng = Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(200)]
    return ("<p>" + " ".join(rng.choices(words, k=700))).encode()


TEXT, OTHER = prose(1), prose(2)
TINY = b"<p>tiny"
#: Nothing is left out while crawling, where that is a setting.
OFF = ("archive.duplicates=false",) if "archive.duplicates" in KEYS else ()


def doubled(path: Path, *, address: str = "", runs: int = 2) -> Small:
    """Equal pages under several URLs, in several runs; each run has a file of its own."""
    small = Small(path, sets=OFF, address=address)
    names = ("a", "b", "missing", "cut", "tiny", "tiny2", "left", "right", "left2", "other")
    for run in range(runs):
        if run:
            small.again()
        small.robots(b"User-agent: *\nDisallow: /secret\n# " + prose(3))
        links = "".join(f'<a href="/{name}">x</a>' for name in names)
        small.visit(SEED, body=links.encode())
        small.visit(f"{SEED}a", body=TEXT, head=f'X-Run: {run}\r\nETag: "1"\r\n')
        small.visit(f"{SEED}b", body=TEXT, head=f"X-Other: {run}\r\n")
        small.visit(f"{SEED}missing", body=TEXT, code=404)
        small.visit(f"{SEED}tiny", body=TINY)
        small.visit(f"{SEED}tiny2", body=TINY)
        small.visit(f"{SEED}left", body=TEXT, code=301, head="Location: /a\r\n")
        small.visit(f"{SEED}right", body=TEXT, code=301, head="Location: /b\r\n")
        small.visit(f"{SEED}left2", body=TEXT, code=301, head="Location: /a\r\n")
        small.visit(f"{SEED}other", body=OTHER + b"%d" % run)
        small.end()
    return small


def not_modified(small: Small, name: str = "b") -> None:
    """One more run, in which a page answers 304: a revisit of its last copy."""
    small.again()
    small.visit(f"{SEED}{name}", code=304, body=b"", head='ETag: "1"\r\n')
    small.end()


def moved(small: Small, *, keep: int = 2) -> None:
    """Old visits go to Parquet."""
    mover = Mover(
        small.store, RealFiles(), where=small.place.archive_path,
        keep=History(keep_visits=keep, keep_requests_s=0.0),
    )  # fmt: skip
    for _ in mover.finish(small.now):
        pass


def shell_of(small: Small, *, files: Files | None = None) -> Shell:
    return Shell(
        store=small.store, files=files or RealFiles(), where=small.place.archive_path,
        now=lambda: small.now,
    )  # fmt: skip


def rewriting_of(small: Small) -> Rewriting:
    return Rewriting(shell_of(small), folder_of=folder_of(small))


def folder_of(small: Small) -> Callable[[Kept], str | None]:
    return lambda kept: small.place.archive_path(kept.directory)


def problems(small: Small, *, quick: bool = False) -> list[str]:
    return problems_of(small.store, small.place, quick=quick)


def problems_of(store: Store, place: Collection, *, quick: bool) -> list[str]:
    report = verify(store, where=place.archive_path, directories=("archive",), quick=quick)
    return [f"{one.where}: {one.what}" for one in report.problems]


class Replayed(NamedTuple):
    """What somebody who looks at a capture gets."""

    url: str
    date: str
    status: str
    head: bytes
    payload: bytes


def replayed(small: Small) -> dict[int, Replayed]:
    """Every capture by its visit."""
    return replay(small.store, where=small.place.archive_path, path_of=lambda path: path)


def replay(
    store: Store, *, where: Callable[[str], str], path_of: Callable[[str], str | BinaryIO],
    readable: Callable[[str], str] = lambda path: path,
) -> dict[int, Replayed]:  # fmt: skip
    """Revisits are resolved by the URI and date they refer to, and by nothing else."""
    records: dict[tuple[int, int], Any] = {}
    responses: dict[tuple[str, str], tuple[bytes, bytes]] = {}
    for file, directory, name in store.all("SELECT file, directory, name FROM files"):
        for member in members(path_of(os.path.join(where(directory), name))):
            if member.type not in ("response", "revisit"):
                continue
            http = member.http_head()
            body = b"".join(member.chunks())
            refers = (
                member.headers.get("WARC-Refers-To-Target-URI"),
                member.headers.get("WARC-Refers-To-Date"),
            )
            records[file, member.offset] = (member.type, member.target_uri, member.date, http, body,
                                            refers)  # fmt: skip
            if member.type == "response":
                responses[member.target_uri, member.date] = (http, body)
    columns = 'visit, file, "offset"'
    visits = store.all(f"SELECT {columns} FROM visits WHERE file > 0")
    past = Past.of(store, lambda name: readable(where(name)))
    visits += [row for row in past.by_visit(columns) if row[1]]
    found = {}
    for visit, file, offset in visits:
        kind, uri, date, http, body, refers = records[file, offset]
        if kind == "revisit":
            if refers not in responses:
                continue  # it does not replay
            original, body = responses[refers]
            http = http or original
        found[visit] = Replayed(uri, date, http.split()[1].decode(), http, body)
    return found
