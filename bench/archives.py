"""What work on finished archives costs, beside the bare loop over the same libraries.

    archives.py [--runs N] [--corpus NAME]... [--only WORK]...

An archive is made by crawling real documentation. The bare loop inflates each member, whose place
it knows, and hashes block and payload: what any proof of an archive must do. CPU seconds of the
work alone, without the start of a program, medians of runs that take turns. A new kind of work is
one function in WORKS: it gets the collection, does its work and says nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
sys.path[:0] = [str(SOURCE), str(HERE)]

from isal import isal_zlib  # noqa: E402

from corpus import CORPORA, Corpus  # noqa: E402
from served import serve  # noqa: E402

_DEFAULT = ("python3-doc", "openjdk-17-doc")
_FAST = ("manners.rest_s=0", "manners.rest_factor=0", "manners.address_rest_s=0",
         "manners.connections=4")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of work on one archive: medians."""

    corpus: str
    work: str
    records: int
    archive_bytes: int
    cpu_s: float
    us_a_record: float
    to_bare: float  # speed, as a share of that of the bare loop


def made(corpus: Corpus, folder: Path) -> Path:
    """A collection with one crawl of a corpus; what it takes is not measured."""
    collection = folder / corpus.name
    with serve(corpus) as served:
        subprocess.run(
            [sys.executable, "-c", "import sys; from geomi.cli import main; sys.exit(main())",
             "crawl", str(collection), *served.seeds, "--allow-network", "127.0.0.0/8", "--json",
             *(word for text in _FAST for word in ("--set", text))],
            env=os.environ | {"PYTHONPATH": str(SOURCE)}, check=True, capture_output=True,
        )  # fmt: skip
    return collection


def archives_of(collection: Path) -> list[Path]:
    return sorted(collection.glob("archive/**/*.warc.gz"))


def cuts_of(collection: Path) -> dict[Path, list[tuple[int, int]]]:
    """Where the members of each file are: known to the bare loop before it begins."""
    from geomi.archive.reader import members

    return {
        path: [(one.offset, one.length) for one in members(path)]
        for path in archives_of(collection)
    }


def bare(cuts: dict[Path, list[tuple[int, int]]]) -> None:
    """Inflate each member, SHA-1 of its block, and of the payload of a response."""
    for path, places in cuts.items():
        with path.open("rb") as file:
            for offset, length in places:
                file.seek(offset)
                data = isal_zlib.decompress(file.read(length), 31)
                start = data.find(b"\r\n\r\n") + 4
                view = memoryview(data)
                sha1(view[start:-4]).digest()
                if data.startswith(b"WARC/1.1\r\nWARC-Type: response"):
                    sha1(view[data.find(b"\r\n\r\n", start) + 4 : -4]).digest()


def check(collection: Path) -> None:
    """`geomi archive check`: structure, digests, references, index lines."""
    from geomi.cluster.checked import check as look_at

    report = look_at([collection], now=time.time())
    if not report.ok:
        raise SystemExit(f"{collection}: {report.problems[0]}")


#: What is measured beside the bare loop.
WORKS: dict[str, Callable[[Path], None]] = {"geomi archive check": check}


def compare(corpus: Corpus, *, runs: int, only: tuple[str, ...]) -> list[Row]:
    print(f"measuring {corpus.name} …", file=sys.stderr, flush=True)
    works = {name: work for name, work in WORKS.items() if not only or name.endswith(only)}
    with TemporaryDirectory(prefix="geomi-bench-") as text:
        collection = made(corpus, Path(text))
        cuts = cuts_of(collection)
        spent: dict[str, list[float]] = {"bare loop": [], **{name: [] for name in works}}
        for _ in range(runs):
            spent["bare loop"].append(cpu_of(lambda: bare(cuts)))
            for name, work in works.items():
                spent[name].append(cpu_of(lambda work=work: work(collection)))  # type: ignore[misc]
        records = sum(map(len, cuts.values()))
        size = sum(path.stat().st_size for path in cuts)
    floor = statistics.median(spent["bare loop"])
    return [
        Row(
            corpus=corpus.name, work=name, records=records, archive_bytes=size,
            cpu_s=statistics.median(times),
            us_a_record=1e6 * statistics.median(times) / records,
            to_bare=floor / statistics.median(times),
        )
        for name, times in spent.items()
    ]  # fmt: skip


def cpu_of(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def table(rows: list[Row]) -> str:
    lines = [f"{'corpus':16} {'work':22} {'records':>8} {'MiB':>6} {'CPU s':>7} {'us/record':>9} "
             f"{'speed/bare':>10}"]  # fmt: skip
    lines += [
        f"{row.corpus:16} {row.work:22} {row.records:8} {row.archive_bytes / 2**20:6.1f} "
        f"{row.cpu_s:7.3f} {row.us_a_record:9.1f} {row.to_bare:10.2f}"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--corpus", action="append", choices=[one.name for one in CORPORA])
    parser.add_argument("--only", action="append", default=[], help="the last word of a work")
    given = parser.parse_args()
    rows, faults = [], []
    for corpus in CORPORA:
        if corpus.name not in (given.corpus or _DEFAULT):
            continue
        if corpus.is_installed():
            rows += compare(corpus, runs=given.runs, only=tuple(given.only))
        else:
            faults.append(f"{corpus.name}: not measured, the Debian package is not installed")
    print(table(rows))
    print(*faults, sep="\n", end="\n" if faults else "")
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    (results / f"archive-{when}.json").write_text(
        json.dumps(
            {"suite": "archive", "when": when,
             "machine": {"cores": os.cpu_count(), "system": platform.platform()},
             "python": platform.python_version(), "rows": [asdict(row) for row in rows],
             "faults": faults},
            indent=1,
        ) + "\n"
    )  # fmt: skip
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
