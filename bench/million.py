"""What a million known pages cost: memory, rate, start-up, `geomi status`.

    million.py [--known N]... [--pages N] [--runs N] [--part NAME]...

Stores filled with few and with very many known pages (bench/filled.py) are crawled on, `--pages`
pages each, the same pages from the same server. Parts: `rate` (one site, and a hundred),
`memory` (256 slow connections open at once, all known pages waiting), `status`, `filter`, `history`
(old visits moved to Parquet). What is printed is also written to bench/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import moved
from answering import answering
from crowd import below, greatest_mib
from filled import fill

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
GEOMI = [sys.executable, "-c", "import sys; from geomi.cli import main; sys.exit(main())"]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(HERE.parent / "src") + os.environ.get("BENCH_PATH", "")
}
PARTS = ("rate", "memory", "status", "filter", "history")
SLOW_HOSTS = 600  # more than an agent holds at once
SLOW_S = 1.0
CONNECTIONS = 256


class Watched:
    """One `geomi crawl`, and what its agents were seen to hold while it ran."""

    def __init__(
        self, words: list[str], served: Callable[[], int], *,
        open_now: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        self._served = served
        self._open_now = open_now
        self._agents: dict[int, float] = {}  # process -> greatest resident MiB
        self.first_s = 0.0  # from the start of the process to the first request
        self.series: list[int] = []  # requests served after each second
        self.open: list[int] = []  # connections with a request, after each second
        self.wall_s = 0.0
        self.cpu_s = 0.0
        self._run(words)

    def _run(self, words: list[str]) -> None:
        before = self._served()
        started = time.monotonic()
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [*GEOMI, "crawl", *words, "--json"], stdout=said, stderr=said, env=ENVIRONMENT
            )
            stop = threading.Event()
            watcher = threading.Thread(
                target=self._watch, args=(process.pid, stop, started, before)
            )
            watcher.start()
            _, status, used = os.wait4(process.pid, 0)
            self.wall_s = time.monotonic() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            stop.set()
            watcher.join()
            self.pages = self._served() - before
            self.cpu_s = used.ru_utime + used.ru_stime
            if process.returncode not in (0, 1):
                said.seek(0)
                raise RuntimeError(said.read().decode("utf-8", "replace"))

    def _watch(self, pid: int, stop: threading.Event, started: float, before: int) -> None:
        while not self.first_s and not stop.wait(0.01):
            if self._served() > before:
                self.first_s = time.monotonic() - started
        while not stop.wait(1.0):
            self.series.append(self._served() - before)
            self.open.append(self._open_now())
            for child in below(pid):
                self._agents[child] = max(self._agents.get(child, 0.0), greatest_mib(child))

    @property
    def agent_mib(self) -> float:
        return max(self._agents.values(), default=0.0)

    @property
    def busy_s(self) -> float:
        """From the first request to the end."""
        return self.wall_s - self.first_s


@contextmanager
def _stores(folder: Path, sites: list[str], known: int, *, waiting: bool) -> Iterator[Path]:
    """A filled collection to copy from, with names that lead to loopback."""
    names = {site.partition(":")[0] for site in sites}
    hosts = folder / "hosts"
    hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in sorted(names)))
    path = folder / f"filled-{known}"
    began = time.monotonic()
    fill(
        path, sites=sites, known=known, waiting=waiting,
        settings={"manners.own": ["*.bench.test"], "dns.hosts": str(hosts)},
    )  # fmt: skip
    os.sync()  # or the kernel writes half a GB of it while the crawl waits for its own syncs
    _say(f"filled with {known:,} pages in {time.monotonic() - began:.1f} s")
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _seeds(folder: Path, sites: list[str]) -> Path:
    path = folder / "seeds.txt"
    path.write_text("".join(f"http://{site}/new/0.html\n" for site in sites))
    return path


def rate(known: list[int], pages: int, runs: int) -> list[dict[str, Any]]:
    """Pages a second, on one site and on a hundred."""
    rows = []
    for number in (1, 100):
        with tempfile.TemporaryDirectory(prefix="geomi-million-") as text:
            folder = Path(text)
            found: dict[int, list[Watched]] = {}
            for _ in range(runs):
                for size in known:
                    found.setdefault(size, []).append(_rate(folder, number, size, pages))
        for size, results in found.items():
            rows.append({
                "sites": number, "known": size, "runs": len(results),
                "pages": [one.pages for one in results],
                "pages_per_s": statistics.median(one.pages / one.busy_s for one in results),
                "cpu_ms_per_page": statistics.median(
                    1000 * one.cpu_s / one.pages for one in results
                ),
                "first_request_s": statistics.median(one.first_s for one in results),
                "agent_mib": max(one.agent_mib for one in results),
                "served_after_each_second": results[0].series,
            })  # fmt: skip
    return rows


def _rate(folder: Path, number: int, known: int, pages: int) -> Watched:
    new = pages // number
    with answering(delay_s=0.0, new=new, known=known // number) as server:
        sites = [f"h{n}.bench.test:{server.port}" for n in range(number)]
        with _stores(folder, sites, known, waiting=False) as path:
            result = Watched(
                [str(path), "--seeds", str(_seeds(folder, sites))],
                lambda: int(server.answered.value),
            )
            _say(
                f"{number} sites, {known:,} known: {result.pages} pages,"
                f" {result.pages / result.busy_s:.0f} a second,"
                f" first request after {result.first_s:.2f} s, {result.agent_mib:.0f} MiB"
            )
            return result


def memory(known: list[int], pages: int) -> list[dict[str, Any]]:
    """Resident memory with CONNECTIONS slow answers open at once; every known page waits."""
    rows = []
    for size in known:
        with (
            tempfile.TemporaryDirectory(prefix="geomi-million-") as text,
            answering(delay_s=SLOW_S, new=pages, known=size // SLOW_HOSTS) as server,
        ):
            folder = Path(text)
            sites = [f"h{n}.bench.test:{server.port}" for n in range(SLOW_HOSTS)]
            with _stores(folder, sites, size, waiting=True) as path:
                result = Watched(
                    [str(path), "--max-visits", str(pages), "--set",
                     f"agent.connections={CONNECTIONS}"],
                    lambda: int(server.answered.value), open_now=lambda: server.open_now.value,
                )  # fmt: skip
                row = {
                    "known": size, "pages": result.pages, "agent_mib": result.agent_mib,
                    "open_most": server.most_open.value,
                    "open_median": statistics.median(result.open),
                    "pages_per_s": result.pages / result.busy_s,
                    "cpu_ms_per_page": 1000 * result.cpu_s / result.pages,
                    "first_request_s": result.first_s,
                }  # fmt: skip
                rows.append(row)
                _say(
                    f"{size:,} waiting: {row['agent_mib']:.0f} MiB with {row['open_median']:.0f}"
                    f" open (most {row['open_most']}), {row['pages_per_s']:.0f} pages/s"
                )
    return rows


def status(known: list[int], tries: int = 15) -> list[dict[str, Any]]:
    """`geomi status`, Python's start included."""
    rows = []
    for size in known:
        with tempfile.TemporaryDirectory(prefix="geomi-million-") as text:
            sites = [f"h{n}.bench.test" for n in range(1000)]
            with _stores(Path(text), sites, size, waiting=True) as path:
                times = []
                for _ in range(tries):
                    began = time.monotonic()
                    subprocess.run(
                        [*GEOMI, "status", str(path)], check=True, env=ENVIRONMENT,
                        stdout=subprocess.DEVNULL,
                    )  # fmt: skip
                    times.append(time.monotonic() - began)
                rows.append({"known": size, "median_s": statistics.median(times),
                             "worst_s": max(times)})  # fmt: skip
                _say(f"status at {size:,} known: {statistics.median(times):.3f} s")
    return rows


def filter_(known: list[int]) -> list[dict[str, Any]]:
    """The seen-filter of one site made anew from the store: in all, and its longest step."""
    from geomi.cluster.leases import REBUILD_LIMIT
    from geomi.frontier import tables
    from geomi.frontier.seen import SeenFilter
    from geomi.store import open_store

    rows = []
    for size in known:
        with (
            tempfile.TemporaryDirectory(prefix="geomi-million-") as text,
            _stores(Path(text), ["h0.bench.test"], size, waiting=False) as path,
        ):
            store = open_store(str(path / "geomi.db"), readonly=True)
            seen = SeenFilter(expected=size)
            reading, adding, after = [], [], -(1 << 63)
            while True:
                began = time.monotonic()
                hashes = tables.hashes(store, 1, after=after, limit=REBUILD_LIMIT)
                read = time.monotonic()
                seen.update(hashes)
                reading.append(read - began)
                adding.append(time.monotonic() - read)
                if len(hashes) < REBUILD_LIMIT:
                    break
                after = hashes[-1]
            store.close()
            row = {"known": size, "read_s": sum(reading), "add_s": sum(adding),
                       "longest_read_s": max(reading), "longest_add_s": max(adding),
                       "filter_mib": seen.size_bytes / 2**20}  # fmt: skip
            rows.append(row)
            _say(
                f"filter of {size:,}: read {row['read_s']:.2f} s, add {row['add_s']:.2f} s, in"
                f" steps of at most {row['longest_add_s'] * 1000:.0f} ms on the loop"
            )
    return rows


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def verdicts(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What must be reached, and what was; a line begins with `no` where it was missed."""
    lines = []

    def judge(what: str, is_good: bool) -> None:
        lines.append(f"{'yes' if is_good else 'no '}  {what}")

    for number in sorted({row["sites"] for row in found.get("rate", [])}):
        rows = sorted(
            (row for row in found["rate"] if row["sites"] == number), key=lambda row: row["known"]
        )
        share = rows[-1]["pages_per_s"] / rows[0]["pages_per_s"]
        judge(
            f"rate on {number} sites: {rows[-1]['pages_per_s']:.0f} pages/s at"
            f" {rows[-1]['known']:,} known, {share:.0%} of that at {rows[0]['known']:,}"
            f" (wanted 90 %); CPU {rows[-1]['cpu_ms_per_page']:.3f} ms a page,"
            f" {rows[0]['cpu_ms_per_page']:.3f} there",
            share >= 0.9,
        )
    for row in found.get("memory", []):
        judge(
            f"memory at {row['known']:,} waiting, {row['open_median']:.0f} connections open (at"
            f" most {row['open_most']}):"
            f" {row['agent_mib']:.0f} MiB (wanted 200)",
            row["agent_mib"] <= 200 and row["open_most"] >= CONNECTIONS,
        )
    for row in found.get("status", []):
        judge(
            f"status at {row['known']:,} known: {row['median_s']:.3f} s (wanted 0.2)",
            row["median_s"] < 0.2,
        )
    for row in found.get("history", []):
        lines.append(
            f"     {row['moved']:,} visits moved in {row['seconds']:.1f} s"
            f" ({row['us_per_visit']:.0f} us, {row['bytes_per_visit']:.0f} bytes each), the store"
            f" locked for {row['median_lock_s'] * 1000:.1f} ms at a time (longest"
            f" {row['longest_lock_s'] * 1000:.0f}), a story of {row['visits']} visits in"
            f" {row['story_s'] * 1000:.0f} ms"
        )
    for row in found.get("filter", []):
        lines.append(
            f"     seen-filter of {row['known']:,} URLs: read in {row['read_s']:.2f} s, filled in"
            f" {row['add_s']:.2f} s, at most {row['longest_add_s'] * 1000:.0f} ms at a time"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--known", type=int, action="append")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--part", choices=PARTS, action="append")
    given = parser.parse_args()
    known = given.known or [10_000, 1_000_000]
    parts = given.part or PARTS
    found: dict[str, list[dict[str, Any]]] = {}
    if "rate" in parts:
        found["rate"] = rate(known, given.pages, given.runs)
    if "memory" in parts:
        found["memory"] = memory(known, given.pages)
    if "status" in parts:
        found["status"] = status(known)
    if "filter" in parts:
        found["filter"] = filter_(known)
    if "history" in parts:
        found["history"] = [moved.measure()]
    lines = verdicts(found)
    print("\n".join(lines))
    RESULTS.mkdir(exist_ok=True)
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    (RESULTS / f"million-{when}.json").write_text(
        json.dumps(
            {
                "suite": "million", "when": when,
                "machine": {"cores": os.cpu_count(), "system": platform.platform()},
                "python": platform.python_version(),
                **found, "verdicts": lines,
            },
            indent=1,
        ) + "\n"
    )  # fmt: skip
    return 1 if any(line.startswith("no") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
