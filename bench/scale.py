"""The scaling study: what more agents, more pages and more sites bring, and what they cost.

    scale.py [--suite NAME]... [--runs N]

Suites: `polite` (real agents that wait, 1 to 8: local and Ray, SQLite and PostgreSQL), `plain`
(real agents that do not wait, beside plain loops), `figures` (figures 14 and 15 of the paper, in
virtual time), `million` (64 agents, a million sites, in virtual time), `weights` (bytes and
milliseconds a page). Without any: all, each under an hour. Results go to bench/results/ too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from answering import answering
from corpus import CORPORA
from crowd import PAGES, Crew, Manner, Places, Window, postgres, ray, watch
from peers import PAIR
from run import compare
from served import serve
from virtual import figures, million, say
from weighed import weigh_corpus, weigh_stores, weigh_waiting

RESULTS = Path(__file__).resolve().parent / "results"
AGENTS = (1, 2, 4, 8)
#: The rest of the default preset; 80 contexts an agent: 40 pages/s, far below a processor's limit.
POLITE = Manner(rest_s=2.0, contexts=80, hosts=700, warm_s=25.0, window_s=40.0)
#: A thousand pages a second by eight agents, to see what the coordinator takes for them.
BUSY = Manner(rest_s=2.0, contexts=250, hosts=2_100, warm_s=40.0, window_s=40.0)
OWN = Manner(rest_s=0.0, contexts=80, hosts=200, warm_s=8.0, window_s=20.0)
Rows = list[dict[str, Any]]


def crowd(crews: Iterable[tuple[Crew, Manner]]) -> list[Window]:
    """Each crew in turn, on the same pages."""
    wanted = list(crews)
    with ExitStack() as held:
        places = Places()
        if any(crew.store == "postgresql" for crew, _ in wanted):
            places = held.enter_context(postgres())
        if any(crew.engine == "ray" for crew, _ in wanted):
            places = replace(places, ray=held.enter_context(ray()).ray)
        found = []
        for number, (crew, manner) in enumerate(wanted):
            with answering(delay_s=0.0, new=PAGES, known=0, addresses=manner.hosts) as server:
                window = watch(crew, manner, server, places, number=number)
            say(
                f"{crew.agents} agents, {crew.engine}, {crew.store}, rest {manner.rest_s:g} s:"
                f" {window.pages_per_s:.1f} pages/s, agents {window.agents_cpu_ms_per_page:.2f} ms"
                f" a page, coordinator {window.coordinator_percent:.2f} % of a core"
            )
            found.append(window)
        return found


def polite(_runs: int) -> dict[str, Rows]:
    places = [("local", "sqlite"), ("local", "postgresql"), ("ray", "sqlite")]
    crews = [
        (Crew(agents=agents, engine=engine, store=store), POLITE)
        for engine, store in places
        for agents in AGENTS
    ]
    crews += [(Crew(agents=8, engine=engine, store=store), BUSY) for engine, store in places]
    return {"polite": [asdict(window) for window in crowd(crews)]}


def plain(runs: int) -> dict[str, Rows]:
    pairs = []
    for corpus in CORPORA:
        if not corpus.is_installed():
            continue
        half = max(1, corpus.copies // 2)
        rows, faults = compare(corpus.name, serve(corpus, hosts=2, copies=half), PAIR, runs=runs)
        if faults:
            raise RuntimeError("; ".join(faults))
        pairs += [asdict(row) for row in rows]
    crews = [
        (Crew(agents=agents, store=store), OWN)
        for _ in range(runs)
        for store in ("sqlite", "postgresql")
        for agents in AGENTS
    ]
    return {"pairs": pairs, "plain": [asdict(window) for window in crowd(crews)]}


def in_virtual_time(_runs: int) -> dict[str, Rows]:
    return {"figures": figures([10_000, 100_000, 1_000_000], list(AGENTS))}


def many_sites(_runs: int) -> dict[str, Rows]:
    return {"million": [
        million(sites=1_000_000, agents=64, contexts=50, window_s=90.0, across=0.0),
        million(sites=200_000, agents=16, contexts=50, window_s=60.0, across=0.5),
    ]}  # fmt: skip


def weights(_runs: int) -> dict[str, Rows]:
    return {
        "stores": weigh_stores(50_000),
        "waiting": weigh_waiting(100_000),
        "corpora": [weigh_corpus(corpus) for corpus in CORPORA if corpus.is_installed()],
    }


SUITES: dict[str, Callable[[int], dict[str, Rows]]] = {
    "polite": polite, "plain": plain, "figures": in_virtual_time, "million": many_sites,
    "weights": weights,
}  # fmt: skip


def verdicts(found: dict[str, Rows]) -> list[str]:
    """What must be reached, and what was; a line begins with `no` where it was missed."""
    lines: list[str] = []

    def judge(what: str, is_good: bool) -> None:
        lines.append(f"{'yes' if is_good else 'no '}  {what}")

    rows = [row for row in found.get("polite", []) if row["contexts"] == POLITE.contexts]
    rates = {
        (row["crew"]["engine"], row["crew"]["store"], row["crew"]["agents"]): row["pages_per_s"]
        for row in rows
    }
    for engine, store, agents in rates:
        if agents == 1:
            growth = rates[engine, store, 8] / rates[engine, store, 1]
            judge(
                f"{engine}, {store}: {growth:.2f} times the pages/s with 8 agents (wanted 7.5)",
                growth >= 7.5,
            )
    for row in found.get("polite", []):
        if row["crew"]["agents"] == 8:
            share, crew = row["coordinator_percent_per_1000"], row["crew"]
            judge(
                f"{crew['engine']}, {crew['store']}, {row['pages_per_s']:.0f} pages/s:"
                f" the coordinator takes {share:.2f} % of a core for 1,000 pages/s (wanted 1)",
                share < 1.0,
            )
    for row in found.get("million", []):
        share = row["coordinator_percent_per_1000"]
        judge(
            f"{row['sites']:,} sites, {row['agents']} agents, {row['pages_a_lease']:.0f} pages a"
            f" lease, {row['letters'] / row['requests']:.2f} letters a page: the coordinator takes"
            f" {share:.2f} % of a core for 1,000 pages/s (wanted 1)",
            share < 1.0,
        )
        judge(f"{row['broken_gaps']} gaps too short (wanted 0)", not row["broken_gaps"])
    by_corpus: dict[str, dict[str, dict[str, Any]]] = {}
    for row in found.get("pairs", []):
        by_corpus.setdefault(row["corpus"], {})[row["contender"]] = row
    for name, rows_of in by_corpus.items():
        loops, one, two = (rows_of[contender.name] for contender in PAIR)
        cpu = two["cpu_ms_per_page"] / one["cpu_ms_per_page"]
        speed = two["pages_per_s"] / loops["pages_per_s"]
        judge(f"{name}: two agents take {cpu:.2f} times the CPU of one (wanted 1.1)", cpu <= 1.1)
        judge(
            f"{name}: two agents reach {speed:.0%} of two plain loops (wanted 80 %)", speed >= 0.8
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", choices=SUITES, action="append")
    parser.add_argument("--runs", type=int, default=3, help="of what depends on the processor")
    given = parser.parse_args()
    lines = []
    RESULTS.mkdir(exist_ok=True)
    for name in given.suite or SUITES:
        began = time.monotonic()
        found = SUITES[name](given.runs)
        told = verdicts(found)
        lines += told
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        (RESULTS / f"scale-{name}-{when}.json").write_text(
            json.dumps(
                {
                    "suite": name, "when": when, "seconds": round(time.monotonic() - began),
                    "machine": {"cores": os.cpu_count(), "system": platform.platform()},
                    "python": platform.python_version(),
                    **found, "verdicts": told,
                },
                indent=1,
            ) + "\n"
        )  # fmt: skip
    print("\n".join(lines))
    return 1 if any(line.startswith("no") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
