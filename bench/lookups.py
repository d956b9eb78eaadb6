"""What a look-up over many indexes costs, and how fast and small packing is.

python bench/lookups.py [--files 1000] [--lines 20000] [--mib 512]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from geomi.archive import cdxj
from geomi.archive.names import Ids
from geomi.archive.query import answer, parse_query
from geomi.archive.record import capture_members, warcinfo
from geomi.archive.selection import selection_of
from geomi.cluster.collection import Collection
from geomi.cluster.index import Archived, Index, indexed
from geomi.cluster.pack import Order, pack
from geomi.records import Capture
from geomi.states import Outcome

WORDS = [f"<b>word{number * 7919 % 10_007}</b>" for number in range(5000)]
DATE = "2026-11-20T00:00:00.000Z"


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_indexes(folder: Path, files: int, lines: int) -> int:
    """Each file has pages of some hundred sites, as an agent's file has; sites are in one file."""
    for number in range(files):
        name = f"f{number:05d}"
        rows = []
        for line in range(lines):
            url = f"http://site{number}-{line % 300}.example/page/{line}"
            rows.append(cdxj.line(
                f"example,site{number}-{line % 300})/page/{line}", "20261120000000", url=url,
                mime="text/html", status="200", digest="BAO5YUBNNOJE4ZLOHSEC624INQ3QUBQ3",
                length=8000, offset=8000 * line, filename=f"{name}.warc.gz",
            ))  # fmt: skip
        (folder / f"{name}.cdxj").write_bytes(b"".join(sorted(rows)))
    return sum(path.stat().st_size for path in folder.iterdir())


def look_ups(folder: Path, files: int, lines: int) -> dict[str, Any]:
    size = write_indexes(folder, files, lines)
    index = Index(Collection(folder), SimpleNamespace(), str(folder))  # type: ignore[arg-type]
    index._files = {
        number: Archived(number, f"f{number:05d}.warc.gz", "", 1, False,
                         str(folder / f"f{number:05d}.cdxj"))
        for number in range(files)
    }  # fmt: skip
    began = time.process_time()
    list(index.lines([(b"a", b"b")]))
    first = time.process_time() - began
    chance, took = random.Random(1), []
    for _ in range(200):
        number, line = chance.randrange(files), chance.randrange(lines)
        query = parse_query(f"url=http://site{number}-{line % 300}.example/page/{line}")
        began = time.process_time()
        assert len(answer(query, index.lines).lines) == 1
        took.append(time.process_time() - began)
    took.sort()
    return {
        "files": files, "lines": files * lines, "index_mib": round(size / 2**20),
        "first_cpu_ms": round(1000 * first, 1), "median_cpu_ms": round(1000 * took[100], 2),
        "p99_cpu_ms": round(1000 * took[197], 2), "peak_mib": round(peak_mib()),
    }  # fmt: skip


def packing(folder: Path, mib: int) -> list[dict[str, Any]]:
    place = Collection(folder / "c")
    place.create()
    store = place.open_store(place.settings())
    chance, ids = random.Random(2), Ids(bytes(10))
    total, files = 0, 0
    while total < mib << 20:
        files += 1
        name = f"2026-11/b-{files:05d}.warc.gz"
        path = folder / "c" / "archive" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows, at = [], 0
        with path.open("wb") as out:
            at += out.write(warcinfo("b", DATE, record_id=ids.next(), fields={"software": "b"}))
            while at < 128 << 20 and total + at < mib << 20:
                url = f"http://s{files}.example/{len(rows)}"
                words = " ".join(chance.choices(WORDS, k=4000))
                body = f"<title>Page {len(rows)}</title><p>{words}".encode()
                capture = Capture(
                    ticket=1, url=url, address="192.0.2.1", started=1.0, ended=2.0,
                    outcome=Outcome.OK, code=200, request=b"GET / HTTP/1.1\r\n\r\n",
                    head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", body=body,
                )  # fmt: skip
                members = capture_members(capture, date=DATE, ids=ids, warcinfo_id="urn:x")
                rows.append(cdxj.line(
                    cdxj.key_of(url), "20261120000000", url=url, mime="text/html", status="200",
                    digest=members.payload_digest, length=len(members.parts[0]), offset=at,
                    filename=path.name,
                ))  # fmt: skip
                for part in members.parts:
                    assert isinstance(part, bytes)
                    at += out.write(part)
        path.with_name(path.name.replace(".warc.gz", ".cdxj")).write_bytes(b"".join(sorted(rows)))
        store.run(
            "INSERT INTO files (file, root, directory, name, agent, incarnation, committed,"
            " first_visit, last_visit, state, created) VALUES (?, 0, 'archive', ?, 'b', 1, ?, 1, 0,"
            " 'closed', 0)", (files, name, at),
        )  # fmt: skip
        total += at
    found = []
    for what, sites, text in (("whole", [], False), ("chosen", ["*.example"], False),
                              ("whole, text", [], True)):  # fmt: skip
        out = folder / "out.wacz"
        began, cpu = time.perf_counter(), time.process_time()
        with indexed(place, store) as index:
            done = pack(store, index, out, Order(
                selection=selection_of(sites), created=0.0, title="b", text=text, replace=True,
            ), tell=lambda *_: None)  # fmt: skip
        took, used = time.perf_counter() - began, time.process_time() - cpu
        found.append({
            "pack": what, "mib": round(total / 2**20), "captures": done.captures,
            "mib_per_s": round(total / 2**20 / took, 1),
            "mib_per_cpu_s": round(total / 2**20 / used, 1),
            "us_per_capture": round(1e6 * used / done.captures), "peak_mib": round(peak_mib()),
        })  # fmt: skip
    began = time.process_time()
    digest = sha256()
    with open(folder / "out.wacz", "rb") as file:
        while piece := file.read(1 << 18):
            digest.update(piece)
    size = os.path.getsize(folder / "out.wacz")
    found.append(
        {
            "bare": "read and sha256",
            "mib_per_cpu_s": round(size / 2**20 / (time.process_time() - began), 1),
        }
    )
    store.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--mib", type=int, default=512)
    given = parser.parse_args()
    if given.files:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(look_ups(Path(folder), given.files, given.lines)), flush=True)
    if given.mib:
        with tempfile.TemporaryDirectory() as folder:
            for fact in packing(Path(folder), given.mib):
                print(json.dumps(fact), flush=True)


if __name__ == "__main__":
    main()
