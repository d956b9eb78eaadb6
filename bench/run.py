"""One run, the same pages, everyone side by side: CPU a page, pages/s, memory.

    run.py [--suite quick|peers|full] [--runs N] [--corpus NAME]... [--only CONTENDER]...

Three parts: everyone on some thousand pages of each corpus; two agents beside two plain loops, on
two hosts; one short crawl, which is mostly the start of a program. A page is a request that the
server answered, so nobody counts for themselves. CPU is of the whole tree of processes, the server
left out. Medians. What is printed is also written to bench/results/ as JSON.
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
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from corpus import CORPORA, Corpus
from peers import GEOMI, PAIR, PLAIN, SUITES, WGET, Contender
from served import SMALL_WORLD, Served, serve

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
SOURCE = HERE.parent / "src"  # this checkout is measured, whatever else is installed
#: Python may keep what it compiled, as in an installed program; else each start pays 0.15 s for it.
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
} | {"PYTHONPATH": str(SOURCE)}


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


def measure(contender: Contender, served: Served) -> Run | str:
    """One crawl into a folder that is thrown away; a text says why there is none."""
    with tempfile.TemporaryDirectory(prefix="geomi-bench-") as text:
        folder = Path(text)
        with (folder / "said").open("w+b") as said:
            before = served.requests()
            started = time.monotonic()
            processes = [
                subprocess.Popen(
                    command, stdout=said, stderr=subprocess.STDOUT, cwd=folder,
                    env=_ENVIRONMENT,
                )
                for command in contender.commands(served.seeds, folder)
            ]  # fmt: skip
            cpu_s = rss_mib = 0.0
            for process in processes:
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                cpu_s += used.ru_utime + used.ru_stime
                rss_mib = max(rss_mib, used.ru_maxrss / 1024)  # Linux counts it in KiB
            wall_s = time.monotonic() - started
            pages = served.requests() - before
            bad = [p.returncode for p in processes if p.returncode not in contender.good_exits]
            if bad:
                said.seek(0)
                last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
                return f"exit {bad[0]}: {' '.join(last)}"
            if pages == 0:
                return "asked for nothing"
    return Run(pages=pages, wall_s=wall_s, cpu_s=cpu_s, rss_mib=rss_mib)


def compare(
    name: str, serving: AbstractContextManager[Served], contenders: Sequence[Contender], *,
    runs: int,
) -> tuple[list[Row], list[str]]:  # fmt: skip
    """Everyone on one corpus, round by round, so that a slow minute hits all alike."""
    print(f"measuring {name} …", file=sys.stderr, flush=True)
    found: dict[str, list[Run]] = {}
    faults: dict[str, str] = {}
    for one in contenders:
        if lacking := one.needs():
            faults[one.name] = f"not measured, missing: {lacking}"
    with serving as served:
        for _ in range(runs):
            for one in contenders:
                if one.name in faults:
                    continue
                result = measure(one, served)
                if isinstance(result, str):
                    faults[one.name] = result
                else:
                    found.setdefault(one.name, []).append(result)
    rows = [_row(name, contender, results) for contender, results in found.items()]
    return rows, [f"{one} on {name}: {why}" for one, why in faults.items()]


def bare(corpus: Corpus) -> dict[str, Any]:
    """What the libraries alone cost on a corpus, see bare.py."""
    print(f"measuring the libraries on {corpus.name} …", file=sys.stderr, flush=True)
    with serve(corpus, copies=1) as served:
        told = subprocess.run(
            [sys.executable, str(HERE / "bare.py"), served.seeds[0]],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    return {"corpus": corpus.name, **json.loads(told)}


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


def table(rows: list[Row], yardstick: str = PLAIN.name) -> str:
    """The rows with ratios: CPU to the plain loop's, wget's and Scrapy's, speed to wget's."""
    lines = [
        f"{'corpus':18} {'contender':17} {'pages':>6} {'pages/s':>8} {'CPU ms/page':>11} "
        f"{'RSS MiB':>8} {'CPU/plain':>9} {'CPU/wget':>8} {'CPU/Scrapy':>10} {'speed/plain':>11} "
        f"{'speed/wget':>10}"
    ]
    by_name = {(row.corpus, row.contender): row for row in rows}
    for row in rows:
        plain = by_name.get((row.corpus, yardstick))
        wget = by_name.get((row.corpus, "wget --warc-file"))
        scrapy = by_name.get((row.corpus, "Scrapy + warcio"))
        lines.append(
            f"{row.corpus:18} {row.contender:17} {row.pages:6} {row.pages_per_s:8.0f} "
            f"{row.cpu_ms_per_page:11.3f} {row.rss_mib:8.0f} "
            f"{_ratio(row.cpu_ms_per_page, plain and plain.cpu_ms_per_page):>9} "
            f"{_ratio(row.cpu_ms_per_page, wget and wget.cpu_ms_per_page):>8} "
            f"{_ratio(row.cpu_ms_per_page, scrapy and scrapy.cpu_ms_per_page):>10} "
            f"{_ratio(row.pages_per_s, plain and plain.pages_per_s):>11} "
            f"{_ratio(row.pages_per_s, wget and wget.pages_per_s):>10}"
        )
    return "\n".join(lines)


def _ratio(mine: float, theirs: float | None) -> str:
    return f"{mine / theirs:.2f}" if theirs else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", choices=SUITES, default="quick")
    parser.add_argument("--runs", type=int)
    parser.add_argument(
        "--corpus", action="append", choices=[*(one.name for one in CORPORA), SMALL_WORLD]
    )
    parser.add_argument("--only", action="append", help="a contender's name, or its beginning")
    given = parser.parse_args()
    contenders, runs = SUITES[given.suite]
    if given.only:
        contenders = tuple(
            one for one in contenders if any(one.name.startswith(name) for name in given.only)
        )
    runs = given.runs or runs
    parts: dict[str, list[Row]] = {"crawl": [], "agents": [], "start": []}
    libraries: list[dict[str, Any]] = []
    faults: list[str] = []

    def add(part: str, found: tuple[list[Row], list[str]]) -> None:
        parts[part] += found[0]
        faults.extend(found[1])

    for corpus in CORPORA:
        if given.corpus and corpus.name not in given.corpus:
            continue
        if not corpus.is_installed():
            faults.append(f"{corpus.name}: not measured, the Debian package is not installed")
            continue
        add("crawl", compare(corpus.name, serve(corpus), contenders, runs=runs))
        libraries.append(bare(corpus))
        if given.suite == "full":
            half = max(1, corpus.copies // 2)
            add(
                "agents", compare(corpus.name, serve(corpus, hosts=2, copies=half), PAIR, runs=runs)
            )
            if corpus.copies > 1:
                short = (PLAIN, GEOMI, WGET)
                add("start", compare(corpus.name, serve(corpus, copies=1), short, runs=runs))
    if not given.corpus or SMALL_WORLD in given.corpus:
        add("crawl", compare(SMALL_WORLD, serve(None), contenders, runs=runs))
    rows = parts["crawl"]
    print(table(rows))
    if parts["agents"]:
        print("\ntwo hosts at once: CPU/plain and speed/plain are to two plain loops together")
        print(table(parts["agents"], PAIR[0].name))
    if parts["start"]:
        print("\none copy alone: mostly the start of the programs")
        print(table(parts["start"]))
    for one in libraries:
        told = ", ".join(f"{name} {us:g}" for name, us in one["us_a_page"].items())
        print(f"\nlibraries alone on {one['corpus']}, CPU us a page: {told}")
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
                **{part: [asdict(row) for row in found] for part, found in parts.items()},
                "libraries": libraries,
                "faults": faults,
            },
            indent=1,
        )
        + "\n"
    )
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
