"""What a page weighs: bytes in each store and in WARC, CPU and time of each job of a store."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from corpus import Corpus
from crowd import ENVIRONMENT, GEOMI, below, cpu_s, postgres
from filled import fill
from geomi.cluster.simweb import WorldWeb
from geomi.seeds.lists import Seed
from geomi.store import Store, open_store
from geomi.store.postgres import PostgresStore
from geomi.store.sqlite import SqliteStore
from rehearsed import rehearse
from served import serve
from virtual import say, world_of


def weigh_stores(pages: int) -> list[dict[str, Any]]:
    """One crawl of the small world, in virtual time, into each store: bytes a page, ms a job."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="geomi-scale-") as text:
        path = str(Path(text) / "geomi.db")
        rows.append(_weigh("sqlite", pages, lambda _: SqliteStore(path), _sqlite_bytes))
    with postgres() as places:
        made = PostgresStore(f"{places.postgres}_weighed")
        made.make()
        rows.append(
            _weigh(
                "postgresql",
                pages,
                lambda _: made,
                _postgres_bytes,
                server_cpu=lambda: sum(map(cpu_s, below(places.postgres_pid))),
            )
        )
    return rows


def _weigh(
    name: str, pages: int, store: Callable[[Callable[[str], None]], Store],
    weigh: Callable[[Any], dict[str, int]], *, server_cpu: Callable[[], float] = lambda: 0.0,
) -> dict[str, Any]:  # fmt: skip
    world = world_of(pages)
    sim, judge = rehearse(
        WorldWeb(world, seed=1), agents=2, extractor=None, rest_s=2.0, address_rest_s=0.25,
        # Batches by number, as agents that have much to do write them.
        sets=["agent.contexts=500", "crawl.agents=2", "agent.batch_s=3600"], store=store,
        seeds=(Seed(url=url, source="bench") for url in world.seeds()),
    )  # fmt: skip
    before = server_cpu()
    began = time.process_time()
    sim.advance(until=sim.began + 365 * 86_400.0)
    took_s = time.process_time() - began
    known = int((sim.store.one("SELECT count(*) FROM pages") or (0,))[0])
    weights = weigh(sim.store)
    row = {
        "store": name, "pages": known, "visits": judge.requests,
        "bytes_per_page": sum(weights.values()) / known,
        "bytes_of": {table: round(size / known, 1) for table, size in weights.items()},
        "batches": sim.jobs["Write"],
        "visits_a_batch": judge.requests / sim.jobs["Write"],
        "job_ms": {
            job: round(1000 * statistics.median(times), 3)
            for job, times in sorted(sim.jobs_s.items())
        },
        "write_ms_per_page": 1000 * sum(sim.jobs_s["Write"]) / judge.requests,
        "write_cpu_ms_per_page": 1000 * sim.write_cpu_s / judge.requests,
        "server_cpu_ms_per_page": 1000 * (server_cpu() - before) / judge.requests,
        "cpu_s": took_s,
    }  # fmt: skip
    sim.store.close()
    say(str(row))
    return row


def _sqlite_bytes(store: SqliteStore) -> dict[str, int]:
    store.one("PRAGMA wal_checkpoint(TRUNCATE)")
    try:
        rows = store.all("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC")
    except Exception:  # this SQLite counts no bytes of tables
        rows = [("all", os.path.getsize(store.path))]
    return {str(name): int(size) for name, size in rows if size > 100_000}


def _postgres_bytes(store: PostgresStore) -> dict[str, int]:
    return {
        str(name): int(size)
        for name, size in store.all(
            "SELECT c.relname, pg_table_size(c.oid) FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'i') ORDER BY 2 DESC"
        )
        if size > 100_000
    }


def weigh_waiting(pages: int) -> list[dict[str, Any]]:
    """Pages that are known, and were not asked for: bytes of each in both stores."""
    rows = []
    sites = [f"h{number}.bench.test" for number in range(pages // 100)]
    with tempfile.TemporaryDirectory(prefix="geomi-scale-") as text, postgres() as places:
        for name, address in (("sqlite", ""), ("postgresql", f"{places.postgres}_waiting")):
            path = Path(text) / name
            settings: dict[str, object] = {"store": address} if address else {}
            fill(path, sites=sites, known=pages, waiting=True, settings=settings)
            store: Any = open_store(address or str(path / "geomi.db"))
            weights = _postgres_bytes(store) if address else _sqlite_bytes(store)
            store.close()
            row = {
                "store": name, "pages": pages, "bytes_per_page": sum(weights.values()) / pages,
                "bytes_of": {table: round(size / pages, 1) for table, size in weights.items()},
            }  # fmt: skip
            say(str(row))
            rows.append(row)
    return rows


def weigh_corpus(corpus: Corpus) -> dict[str, Any]:
    """A real crawl of documentation: bytes over the wire, in WARC and in the store, a page."""
    with (
        tempfile.TemporaryDirectory(prefix="geomi-scale-") as text,
        serve(corpus, copies=1) as site,
    ):
        folder = Path(text) / "c"
        own = [word for seed in site.seeds for word in ("--own", urlsplit(seed).netloc)]
        subprocess.run(
            [*GEOMI, "crawl", str(folder), *site.seeds, *own, "--json"], check=True,
            stdout=subprocess.DEVNULL, env=ENVIRONMENT,
        )  # fmt: skip
        told = json.loads(subprocess.run(
            [*GEOMI, "status", str(folder), "--json"], check=True, capture_output=True,
            env=ENVIRONMENT,
        ).stdout)  # fmt: skip
        visits = int(told["visits"])
        store = sum(path.stat().st_size for path in folder.glob("geomi.db*"))
        archive = sum(
            path.stat().st_size for path in (folder / "archive").rglob("*") if path.is_file()
        )
        cdxj = sum(path.stat().st_size for path in (folder / "archive").rglob("*.cdxj"))
        row = {
            "corpus": corpus.name, "visits": visits,
            "received_bytes_per_page": told["bytes"] / visits,
            "warc_bytes_per_page": (archive - cdxj) / visits,
            "cdxj_bytes_per_page": cdxj / visits,
            "store_bytes_per_page": store / visits,
        }  # fmt: skip
        say(str(row))
        return row
