"""Agents that commit batches into one store: batches a second, and what they wait for.

    bench/store.py [--agents 1,2,4,8] [--seconds 10] [--visits 250] [--rate R] [--address URL]

Without an address a PostgreSQL server is started for it, with fsync on; SQLite is measured beside
it. Each agent is a process with a site of its own and writes batches as a crawl makes them: for
each visit a row of history, a settled and a stored page, one that waits no longer, 1.2 new pages,
and 0.4 links to other sites. With --rate an agent writes so many batches a second, as one that
waits for servers does.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from geomi import url as urls  # noqa: E402
from geomi.cluster.batch import Batch, Stored, commit  # noqa: E402
from geomi.cluster.found import NewPage  # noqa: E402
from geomi.cluster.tables import MIGRATIONS  # noqa: E402
from geomi.frontier import counters, tables  # noqa: E402
from geomi.frontier.tables import Known  # noqa: E402
from geomi.seeds.tables import add_seed  # noqa: E402
from geomi.store import SQLITE, Store, open_store  # noqa: E402
from geomi.store.migrate import migrate  # noqa: E402

NOW = 1_700_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number of agents."""

    store: str
    agents: int
    batches_a_second: float
    visits_a_second: float
    commit_ms: float  # mean
    slowest_ms: float
    client_us_a_visit: float  # CPU of the agents
    server_us_a_visit: float  # CPU of PostgreSQL's processes
    waits: dict[str, float]  # share of samples of a connection, by what it waits for


def batch_of(agent: int, site: int, pages: list[Known], number: int, visits: int) -> Batch:
    """Visits of `pages`, and what they led to."""
    made = Batch(agent=f"a{agent}", incarnation=agent, holder=f"a{agent}/{agent}", run=1)
    made.epochs[site] = 1
    made.parties.add(site)
    host = f"s{site}.example"
    for place, known in enumerate(pages):
        row = [
            known.page, site, "", "page", 1, 2, 1, host, "192.0.2.1", NOW, NOW + 0.5, "OK", 200,
            "text/html", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", 20_000, -1, 1,
            number * 10_000_000 + place * 30_000, 25_000, "2026-01-01T00:00:00Z", 0, 0, "",
        ]  # fmt: skip
        made.visits.append(row)
        made.settled.append((site, "NULL", "OK", (
            1, "OK", "", 200, "text/html", row[14], 20_000, 0.5, "ha0", "A title of some words",
            NOW, 1, 0, 0, 0, '"etag-1234"', "Thu, 01 Jan 2026 00:00:00 GMT", NOW, NOW, NOW,
            known.page,
        )))  # fmt: skip
        record = "urn:uuid:12345678-1234-1234-1234-123456789012"
        made.stored.append(Stored(row, known.page, place, 30_000, row[20], record, row[14], False))
        made.done.append((site, known.rank, known.page))
        if place % 5 < 2:
            url = f"http://o{(number * visits + place) % 5000}.example/{agent}/{place}"
            other = urls.site_of(url)
            link = (urls.url_hash(url), url, other, other, "a", known.url, 2, site, NOW)
            made.outside.append((site, link, 0, ""))
    for name in ("fetch.ok", "mime.html", "robots", "links.a", "dns", "tls", "cookies", "redirect"):
        made.counts[name] += 1
    del visits
    return made


def found(batch: Batch, site: int, first: int, number: int) -> list[Known]:
    """New pages of a batch, in ids from `first`."""
    news = []
    for page in range(first, first + number):
        url = f"http://s{site}.example/section-{page % 97}/page-{page}.html"
        known = Known(page, url, 1, 1, site, "a", f"http://s{site}.example/", 0, "NULL", 0, 0, "",
                      "", "", "", "", "", 2, 0.0, 0)  # fmt: skip
        batch.new.append(NewPage(site, known, urls.url_hash(url), NOW, 1))
        news.append(known)
    return news


def work(address: str, agent: int, seconds: float, visits: int, rate: float, out: Any) -> None:
    with closing(open_store(address)) as store:
        site = agent
        with store.transaction():
            store.run(
                "UPDATE sites SET holder = ?, epoch = 1 WHERE site_id = ?",
                (f"a{agent}/{agent}", site),
            )
            first = counters.take_ids(store, "page", 10_000_000)
        start = Batch(agent=f"a{agent}", incarnation=agent, holder=f"a{agent}/{agent}", run=1)
        start.epochs[site] = 1
        waiting = found(start, site, first, 4 * visits)
        commit(store, start, now=NOW, lengths={})
        first += 4 * visits
        out.put(None)  # ready
        while time.time() < float(os.environ["BENCH_START"]):
            time.sleep(0.001)
        took: list[float] = []
        began, cpu = time.perf_counter(), time.process_time()
        number = 0
        while time.perf_counter() - began < seconds:
            number += 1
            batch = batch_of(agent, site, waiting[:visits], number, visits)
            waiting = waiting[visits:] + found(batch, site, first, int(1.2 * visits))
            first += int(1.2 * visits)
            at = time.perf_counter()
            commit(store, batch, now=NOW, lengths={})
            took.append(time.perf_counter() - at)
            if rate:
                time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        out.put((took, time.perf_counter() - began, time.process_time() - cpu))


def prepare(address: str, agents: int) -> None:
    with closing(open_store(address)) as store:
        migrate(store, MIGRATIONS, where="bench")
        with store.transaction():
            for number in range(1, agents + 1):
                site = f"s{number}.example"
                tables.add_site(store, site, domain=site, admitted="given", now=NOW)
                add_seed(store, f"http://{site}/", url_hash=number, site=site, labels={},
                         source="given", now=NOW)  # fmt: skip


def measure(
    address: str, agents: int, *, seconds: float, visits: int, rate: float, server: int = 0
) -> Row:
    """One row. `server`: process of a PostgreSQL server that is ours alone."""
    prepare(address, agents)
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    os.environ["BENCH_START"] = str(time.time() + 1.0 + 0.4 * agents)
    workers = [
        context.Process(target=work, args=(address, n, seconds, visits, rate, out))
        for n in range(1, agents + 1)
    ]
    for one in workers:
        one.start()
    for _ in workers:
        out.get(timeout=60)
    time.sleep(max(0.0, float(os.environ["BENCH_START"]) - time.time()))
    before = _cpu(server) if server else 0.0
    with closing(open_store(address, readonly=True)) as watcher:
        waits = _watch(watcher, seconds)
    spent = _cpu(server) - before if server else 0.0
    results = [out.get(timeout=seconds + 60) for _ in workers]
    for one in workers:
        one.join()
    took = [each for times, _, _ in results for each in times]
    rates = sum(len(times) / wall for times, wall, _ in results)
    return Row(
        store="sqlite" if "://" not in address else "postgresql", agents=agents,
        batches_a_second=round(rates, 1), visits_a_second=round(rates * visits),
        commit_ms=round(1000 * sum(took) / len(took), 1), slowest_ms=round(1000 * max(took), 1),
        client_us_a_visit=round(1e6 * sum(cpu for *_, cpu in results) / len(took) / visits, 1),
        server_us_a_visit=round(1e6 * spent / len(took) / visits, 1), waits=waits,
    )  # fmt: skip


def _watch(store: Store, seconds: float) -> dict[str, float]:
    """Twenty looks a second at what the connections wait for."""
    until = time.perf_counter() + 0.95 * seconds
    if store.dialect == SQLITE:
        time.sleep(max(0.0, until - time.perf_counter()))
        return {}
    seen: Counter[str] = Counter()
    every = 0
    while time.perf_counter() < until:
        for state, kind, event in store.all(
            "SELECT state, wait_event_type, wait_event FROM pg_stat_activity"
            " WHERE application_name = 'geomi' AND pid <> pg_backend_pid()"
        ):
            every += 1
            if state != "idle" and kind in ("Lock", "LWLock", "IO"):
                seen[f"{kind}:{event}"] += 1
        time.sleep(0.05)
    return {name: round(number / max(every, 1), 3) for name, number in seen.most_common(5)}


def _cpu(server: int) -> float:
    """Seconds of CPU of a server and its children, those that have ended too."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        if pid == server:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == server:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--agents", default="1,2,4,8")
    words.add_argument("--seconds", type=float, default=10.0)
    words.add_argument("--visits", type=int, default=250)
    words.add_argument("--rate", type=float, default=0.0)
    words.add_argument("--address", default="")
    words.add_argument("--json", action="store_true")
    given = words.parse_args()
    numbers = [int(word) for word in given.agents.split(",")]
    options = {"seconds": given.seconds, "visits": given.visits, "rate": given.rate}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            rows.append(measure(f"{folder}/{number}.db", number, **options))
            _tell(rows[-1], as_json=given.json)
    if given.address:
        for number in numbers:
            rows.append(measure(f"{given.address}_{number}", number, **options))
            _tell(rows[-1], as_json=given.json)
        return 0
    from postgres import server

    with server(
        fsync="on", synchronous_commit="on", full_page_writes="on", shared_buffers="256MB",
        max_wal_size="2GB",
    ) as running:  # fmt: skip
        for number in numbers:
            rows.append(measure(running.schema(), number, server=running.process_id, **options))
            _tell(rows[-1], as_json=given.json)
    return 0


def _tell(row: Row, *, as_json: bool) -> None:
    print(json.dumps(asdict(row)) if as_json else "  ".join(
        f"{name} {value}" for name, value in asdict(row).items()), flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
