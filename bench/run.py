"""One run, the same pages, everyone side by side: CPU a page, pages/s, memory.

    run.py [--suite quick|peers|full] [--runs N] [--corpus NAME]... [--only CONTENDER]...

A page is a request that nginx answered, so nobody counts for themselves. CPU is of the whole tree
of processes, nginx left out. What is printed is also written to bench/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from corpus import CORPORA, Corpus
from nginx import requests_served, serving
from peers import SUITES, Contender

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
SOURCE = HERE.parent / "src"  # this checkout is measured, whatever else is installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One crawl, measured."""

    pages: int
    wall_s: float
    cpu_s: float
    rss_mib: float  # of the largest process


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the runs of one contender on one corpus come to: medians."""

    corpus: str
    contender: str
    runs: int
    pages: int
    pages_per_s: float
    cpu_ms_per_page: float
    rss_mib: float


def measure(contender: Contender, seed: str, *, port: int) -> Run | str:
    """One crawl into a folder that is thrown away; a text says why there is none."""
    with tempfile.TemporaryDirectory(prefix="geomi-bench-") as text:
        folder = Path(text)
        with (folder / "said").open("w+b") as said:
            before = requests_served(port)
            started = time.monotonic()
            process = subprocess.Popen(
                contender.command(seed, folder),
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(SOURCE)},
            )
            _, status, used = os.wait4(process.pid, 0)
            wall_s = time.monotonic() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            pages = requests_served(port) - before
            if process.returncode not in contender.good_exits:
                said.seek(0)
                last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
                return f"exit {process.returncode}: {' '.join(last)}"
            if pages == 0:
                return "asked for nothing"
    return Run(
        pages=pages,
        wall_s=wall_s,
        cpu_s=used.ru_utime + used.ru_stime,
        rss_mib=used.ru_maxrss / 1024,  # Linux counts it in KiB
    )


def compare(
    corpus: Corpus, contenders: tuple[Contender, ...], *, runs: int
) -> tuple[list[Row], list[str]]:
    """Everyone on one corpus, round by round, so that a slow minute hits all alike."""
    found: dict[str, list[Run]] = {}
    faults: dict[str, str] = {}
    for one in contenders:
        if lacking := one.needs():
            faults[one.name] = f"not measured, missing: {lacking}"
    for path in corpus.folder.rglob("*"):  # into the page cache, for the first one's sake
        if path.is_file():
            path.read_bytes()
    with serving({corpus.name: corpus.folder}) as port:
        seed = f"http://127.0.0.1:{port}/{corpus.name}/{corpus.seed}"
        for _ in range(runs):
            for one in contenders:
                if one.name in faults:
                    continue
                result = measure(one, seed, port=port)
                if isinstance(result, str):
                    faults[one.name] = result
                else:
                    found.setdefault(one.name, []).append(result)
    rows = [_row(corpus.name, name, results) for name, results in found.items()]
    return rows, [f"{name} on {corpus.name}: {why}" for name, why in faults.items()]


def _row(corpus: str, contender: str, results: list[Run]) -> Row:
    return Row(
        corpus=corpus,
        contender=contender,
        runs=len(results),
        pages=round(statistics.median(one.pages for one in results)),
        pages_per_s=statistics.median(one.pages / one.wall_s for one in results),
        cpu_ms_per_page=statistics.median(1000 * one.cpu_s / one.pages for one in results),
        rss_mib=statistics.median(one.rss_mib for one in results),
    )


def table(rows: list[Row]) -> str:
    """The rows with ratios: CPU to the plain loop's and to wget's, speed to wget's."""
    lines = [
        f"{'corpus':18} {'contender':18} {'pages':>6} {'pages/s':>8} {'CPU ms/page':>11} "
        f"{'RSS MiB':>8} {'CPU/plain':>9} {'CPU/wget':>8} {'speed/wget':>10}"
    ]
    by_name = {(row.corpus, row.contender): row for row in rows}
    for row in rows:
        plain = by_name.get((row.corpus, "plain loop"))
        wget = by_name.get((row.corpus, "wget --warc-file"))
        lines.append(
            f"{row.corpus:18} {row.contender:18} {row.pages:6} {row.pages_per_s:8.0f} "
            f"{row.cpu_ms_per_page:11.3f} {row.rss_mib:8.0f} "
            f"{_ratio(row.cpu_ms_per_page, plain and plain.cpu_ms_per_page):>9} "
            f"{_ratio(row.cpu_ms_per_page, wget and wget.cpu_ms_per_page):>8} "
            f"{_ratio(row.pages_per_s, wget and wget.pages_per_s):>10}"
        )
    return "\n".join(lines)


def _ratio(mine: float, theirs: float | None) -> str:
    return f"{mine / theirs:.2f}" if theirs else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", choices=SUITES, default="quick")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--corpus", action="append", choices=[one.name for one in CORPORA])
    parser.add_argument("--only", action="append", help="a contender's name, or its beginning")
    given = parser.parse_args()
    contenders, runs = SUITES[given.suite]
    if given.only:
        contenders = tuple(
            one for one in contenders if any(one.name.startswith(name) for name in given.only)
        )
    rows: list[Row] = []
    faults: list[str] = []
    for corpus in CORPORA:
        if given.corpus and corpus.name not in given.corpus:
            continue
        if not corpus.is_installed():
            faults.append(f"{corpus.name}: not measured, the Debian package is not installed")
            continue
        print(f"measuring {corpus.name} …", file=sys.stderr, flush=True)
        more, wrong = compare(corpus, contenders, runs=given.runs or runs)
        rows += more
        faults += wrong
    print(table(rows))
    for fault in faults:
        print(fault)
    RESULTS.mkdir(exist_ok=True)
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    (RESULTS / f"{given.suite}-{when}.json").write_text(
        json.dumps(
            {
                "suite": given.suite,
                "when": when,
                "machine": {"cores": os.cpu_count(), "system": platform.platform()},
                "python": platform.python_version(),
                "rows": [asdict(row) for row in rows],
                "faults": faults,
            },
            indent=1,
        )
        + "\n"
    )
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
