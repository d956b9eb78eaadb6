"""What rewriting a finished archive costs, beside the bare loop over the same libraries.

    rewriting.py [--runs N] [--corpus NAME]... [--copies N]

An archive is made by crawling real documentation twice with the filters off, so that half of it is
duplicates. The bare loop inflates each member, whose place it knows, hashes it, and deflates it
again: what a program must do that copies an archive record by record. CPU seconds of the work
alone, medians of runs that take turns; each rewrites a fresh copy. Memory is the greatest of the
whole command in a process of its own; with --copies the same archive is larger.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
sys.path[:0] = [str(SOURCE), str(HERE)]

from isal import isal_zlib  # noqa: E402
from zlib_ng import zlib_ng  # noqa: E402

from corpus import CORPORA, Corpus  # noqa: E402
from served import serve  # noqa: E402

_FAST = ("manners.rest_s=0", "manners.rest_factor=0", "manners.address_rest_s=0",
         "manners.connections=4")  # fmt: skip
#: Settings that leave duplicates in the archive, where this geomi has them.
_OFF = {"archive.duplicates": "archive.duplicates=false"}
_CLI = "import sys; from geomi.cli.main import run; sys.exit(run(sys.argv[1:]))"


def made(corpus: Corpus, folder: Path, copies: int) -> Path:
    """A collection with two crawls of a corpus."""
    from geomi.keys import KEYS

    collection = folder / corpus.name
    sets = [*_FAST, *(text for name, text in _OFF.items() if name in KEYS)]
    with serve(corpus, copies=copies) as served:
        geomi(
            "crawl", str(collection), *served.seeds, "--allow-network", "127.0.0.0/8", "--json",
            *(word for text in sets for word in ("--set", text)),
        )  # fmt: skip
        with _store(collection) as store, store.transaction():
            # A server with validators answers 304: those visits are no duplicates.
            store.run("UPDATE pages SET etag = '', last_modified = ''")
        geomi("crawl", str(collection), "--again", "--allow-network", "127.0.0.0/8", "--json",
              *(word for text in sets for word in ("--set", text)))  # fmt: skip
    return collection


def _store(collection: Path):  # type: ignore[no-untyped-def]
    from contextlib import closing

    from geomi.store import open_store

    return closing(open_store(str(collection / "geomi.db")))


def geomi(*words: str) -> None:
    subprocess.run(
        [sys.executable, "-c", _CLI, *words], env=os.environ | {"PYTHONPATH": str(SOURCE)},
        check=True, capture_output=True,
    )  # fmt: skip


def rss_of(*words: str) -> float:
    """MiB that one command took at most."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CLI, *words], env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return float(used.ru_maxrss) / 1024  # Linux counts it in KiB


def cuts_of(collection: Path) -> dict[Path, list[tuple[int, int]]]:
    from geomi.archive.reader import members

    return {
        path: [(one.offset, one.length) for one in members(path)]
        for path in sorted(collection.glob("archive/**/*.warc.gz"))
    }


def bare(collection: Path, deflate: Callable[[bytes], bytes], out: Path) -> None:
    for path, places in cuts_of_cached(collection).items():
        with path.open("rb") as file, out.open("wb") as new:
            for offset, length in places:
                file.seek(offset)
                data = isal_zlib.decompress(file.read(length), 31)
                sha1(data).digest()
                new.write(deflate(data))
            new.flush()
            os.fsync(new.fileno())


_CUTS: dict[Path, dict[Path, list[tuple[int, int]]]] = {}


def cuts_of_cached(collection: Path) -> dict[Path, list[tuple[int, int]]]:
    if collection not in _CUTS:
        _CUTS[collection] = cuts_of(collection)
    return _CUTS[collection]


def rewrite(collection: Path, *, dense: int) -> None:
    from geomi.cluster.collection import Collection
    from geomi.cluster.rewriting import Rewriting, Wish
    from geomi.cluster.workplace import held

    with held(Collection(collection)) as here:
        done = Rewriting(here.shell, folder_of=here.folder_of).run(Wish(dense=dense))
    if done.left:
        raise SystemExit(f"{collection}: {done.left[0]}")


def compare(corpus: Corpus, *, runs: int, copies: int) -> list[dict[str, object]]:
    print(f"measuring {corpus.name} …", file=sys.stderr, flush=True)
    spent: dict[str, list[float]] = {}
    after: dict[str, int] = {}
    with TemporaryDirectory(prefix="geomi-bench-") as text:
        folder = Path(text)
        collection = made(corpus, folder, copies)
        cuts = cuts_of_cached(collection)
        records = sum(map(len, cuts.values()))
        size = sum(path.stat().st_size for path in cuts)
        works: dict[str, Callable[[Path], None]] = {
            "bare loop, ISA-L 1": lambda path: bare(
                path, lambda data: isal_zlib.compress(data, 1, 31), folder / "out"),
            "rewrite": lambda path: rewrite(path, dense=0),
            "bare loop, zlib-ng 6": lambda path: bare(
                path, lambda data: zlib_ng.compress(data, 6, 31), folder / "out"),
            "rewrite --recompress": lambda path: rewrite(path, dense=6),
        }  # fmt: skip
        for _ in range(runs):
            for name, work in works.items():
                copy = collection
                if name.startswith("rewrite"):
                    copy = folder / "copy"
                    shutil.copytree(collection, copy)
                began = time.process_time()
                work(copy)
                spent.setdefault(name, []).append(time.process_time() - began)
                if copy is not collection:
                    after[name] = kept_bytes(copy)
                    shutil.rmtree(copy)
        copy = folder / "copy"
        shutil.copytree(collection, copy)
        rss_mib = rss_of("archive", "rewrite", str(copy))
    median = {name: statistics.median(times) for name, times in spent.items()}
    floors = {"rewrite": "bare loop, ISA-L 1", "rewrite --recompress": "bare loop, zlib-ng 6"}
    return [
        {
            "corpus": corpus.name, "work": name, "records": records, "archive_bytes": size,
            "after_bytes": after.get(name), "cpu_s": round(seconds, 3),
            "us_a_record": round(1e6 * seconds / records, 1),
            "to_bare": round(median[floors.get(name, name)] / seconds, 2),
            "rss_mib": round(rss_mib, 1) if name == "rewrite" else None,
        }
        for name, seconds in median.items()
    ]  # fmt: skip


def kept_bytes(collection: Path) -> int:
    """Of the files that count."""
    with _store(collection) as store:
        return int(store.one("SELECT sum(committed) FROM files")[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--copies", type=int, default=1, help="of a corpus, beside each other")
    parser.add_argument("--corpus", action="append", choices=[one.name for one in CORPORA])
    given = parser.parse_args()
    chosen = [one for one in CORPORA if one.name in (given.corpus or ["python3-doc"])]
    rows = [
        row for corpus in chosen for row in compare(corpus, runs=given.runs, copies=given.copies)
    ]
    for row in rows:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
