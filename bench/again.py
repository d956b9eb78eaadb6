"""What a second crawl of an unchanged site adds to the archive.

    again.py [--corpus NAME]...

Each documentation set is crawled twice from nginx: with validators (answers are 304) and without
(all come as 200 again); with all records, and with neither request nor metadata records. Printed:
payload bytes stored anew, as a share of the first crawl's; gzipped bytes a capture; and the size of
the second crawl as a share of the first. What is printed is also written to bench/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpus import CORPORA, Corpus
from million import ENVIRONMENT, GEOMI, RESULTS
from nginx import serving

_FAST = (
    "manners.rest_s=0", "manners.rest_factor=0", "manners.address_rest_s=0",
    "manners.connections=8", "guard.allow_networks=127.0.0.0/8",
)  # fmt: skip
_LEAN = ("archive.requests=false", "archive.metadata=false")


def crawl(collection: Path, *words: str) -> None:
    subprocess.run(
        [*GEOMI, "crawl", str(collection), *words], env=ENVIRONMENT, check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def facts(collection: Path) -> list[dict[str, Any]]:
    """Of each run: captures, revisits, payload bytes stored, received, and bytes of its files."""
    found = []
    with sqlite3.connect(f"file:{collection}/geomi.db?mode=ro", uri=True) as db:
        for (run,) in db.execute("SELECT run FROM runs ORDER BY run").fetchall():
            row = db.execute(
                "SELECT count(*), sum(revisit), sum(CASE WHEN revisit = 0 THEN size ELSE 0 END),"
                " sum(size) FROM visits WHERE run = ? AND file > 0",
                (run,),
            ).fetchone()
            size = db.execute(
                "SELECT sum(committed) FROM files WHERE file IN"
                " (SELECT DISTINCT file FROM visits WHERE run = ?)",
                (run,),
            ).fetchone()[0]
            found.append(dict(zip(("captures", "revisits", "stored", "received", "warc"),
                                  (*row, size), strict=True)))  # fmt: skip
    return found


def measure(corpus: Corpus, folder: Path, *, validators: bool, lean: bool) -> dict[str, Any]:
    collection = folder / f"{corpus.name}-{validators}-{lean}"
    sets = [word for one in (*_FAST, *(_LEAN if lean else ())) for word in ("--set", one)]
    with serving({"d": corpus.folder}, validators=validators) as port:
        crawl(collection, f"http://127.0.0.1:{port}/d/{corpus.seed}", *sets)
        crawl(collection, "--again", *sets)
    first, second = facts(collection)
    return {
        "corpus": corpus.name, "validators": validators, "all_records": not lean,
        "captures": second["captures"], "revisits": second["revisits"],
        "payload_share_percent": round(100 * second["stored"] / first["stored"], 4),
        "bytes_a_capture": round(second["warc"] / second["captures"]),
        "warc_share_percent": round(100 * second["warc"] / first["warc"], 2),
        "first_revisits": first["revisits"],
        "first_saved_percent": round(100 * (1 - first["stored"] / first["received"]), 3),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--corpus", action="append", metavar="NAME")
    parser.add_argument("--runs", help="of no use here; as the other suites have it")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="geomi-again-") as folder:
        for corpus in CORPORA:
            if not corpus.is_installed() or corpus.name not in (given.corpus or [corpus.name]):
                continue
            for validators in (True, False):
                for lean in (False, True):
                    rows.append(measure(corpus, Path(folder), validators=validators, lean=lean))
                    print(json.dumps(rows[-1]), flush=True)
    RESULTS.mkdir(exist_ok=True)
    name = RESULTS / f"again-{time.strftime('%Y%m%d-%H%M%S')}.json"
    name.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
