"""Duplicates in virtual time: what is equal is stored once, and no crash breaks a reference."""

from __future__ import annotations

import random

import pytest
from rehearsal import HASTY, KINDS, crawl, faults, simulation

from geomi.cluster.simulate import Simulation

#: Each site under two names: every page has a twin of another URL.
TWINS = {"habit.alias": 1.0, "habit.https": 0.0}
SETS = (*HASTY, "archive.duplicate_bytes=1")


def number(sim: Simulation, where: str) -> int:
    return int(sim.store.all(f"SELECT count(*) FROM visits WHERE {where}")[0][0])


def twins(seed: int, *sets: str, sites: int = 3, pages: int = 8) -> Simulation:
    sim, _ = simulation(seed, sites=sites, pages=pages, sets=(*SETS, *sets), shares=TWINS)
    return sim


def verified(sim: Simulation) -> list[str]:
    from geomi.cluster.verify import BytesDisk, verify

    report = verify(sim.store, disk=BytesDisk(sim.files.data), where="/sim/{}".format)
    assert report.counts.get("revisits", 0) == number(sim, "revisit = 1")
    return [f"{one.what} ({one.where})" for one in report.problems]


def test_a_page_under_a_second_name_is_stored_once_and_keeps_the_place_of_the_first() -> None:
    sim = twins(1)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    assert verified(sim) == []
    equal = sim.store.all(
        "SELECT digest, code, sum(1 - revisit) FROM visits WHERE file > 0 AND size > 0 AND"
        " outcome IN ('OK', 'gone', 'code') AND code NOT IN (301, 302, 303, 307, 308)"
        " GROUP BY digest, code HAVING count(*) > 1"
    )
    assert len(equal) > 10
    # Sites that meet the same new payload within a second both store it.
    assert sum(stored == 1 for _, _, stored in equal) > 0.25 * len(equal)
    assert number(sim, "revisit = 1") > 10
    assert sim.store.all("SELECT count(*) FROM pages WHERE stored_url <> ''")[0][0] > 10


@pytest.mark.parametrize("kind", KINDS)
def test_no_crash_leaves_a_revisit_of_what_is_lost(kind: str) -> None:
    for seed in range(3):
        rng = random.Random(f"{kind} {seed}")
        sim = twins(seed, sites=2, pages=6)
        ticks = [rng.randint(1, 300) for _ in range(8)]
        assert crawl(sim, crash_ticks=ticks, kind=kind) == []
        assert verified(sim) == [], seed


def test_a_crash_at_each_operation_leaves_no_revisit_of_what_is_lost() -> None:
    whole = twins(3, sites=1, pages=4)
    assert crawl(whole, crash_ticks=[], kind="kill") == []
    middle = whole.ticks // 2
    for tick in range(middle, middle + 40):
        sim = twins(3, sites=1, pages=4)
        assert crawl(sim, crash_ticks=[tick], kind="power") == []
        assert verified(sim) == [], (tick, sim.crash_what)


def test_what_is_unchanged_is_not_stored_by_the_next_crawls() -> None:
    sim, world = simulation(4, sets=SETS)
    stored = []
    for again in (False, True, True):
        assert crawl(sim, crash_ticks=[], kind="kill", again=again) == []
        assert faults(sim, world, again=again) == []
        run = sim.store.all("SELECT max(run) FROM runs")[0][0]
        stored.append(
            sim.store.all(
                "SELECT coalesce(sum(size), 0) FROM visits WHERE run = ? AND file > 0"
                " AND revisit = 0 AND code NOT IN (301, 302, 303, 307, 308)",
                (run,),
            )[0][0]
        )
        assert number(sim, f"run = {run} AND outcome = 'OK' AND code = 200") > 0
    # What changes between two crawls of this world is no page of its own.
    assert stored[0] > 100_000
    assert stored[1] < 0.2 * stored[0]
    assert verified(sim) == []


def test_without_the_filter_every_answer_is_stored_whole() -> None:
    sim = twins(1, "archive.duplicates=false")
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    assert number(sim, "revisit = 1") == 0
    assert verified(sim) == []


def test_the_form_of_the_paper_is_kept_where_it_is_set() -> None:
    sim = twins(1, "archive.revisit_form=paper")
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    assert verified(sim) == []
    assert number(sim, "revisit = 1") > 10


@pytest.mark.parametrize("kept", ["revisit", "drop"])
def test_a_void_page_leads_nowhere_and_spares_what_the_page_had(kept: str) -> None:
    sim, _ = simulation(2, sets=(*SETS, f"archive.void={kept}"))
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    rows = sim.store.all(
        "SELECT p.page, p.url, p.stored_digest, p.file, p.stored_date FROM pages p WHERE"
        " p.outcome = 'OK' AND p.mime = 'text/html' AND p.depth > 1 ORDER BY p.page"
    )
    with sim.store.transaction():  # or the answers would be 304
        sim.store.run("UPDATE pages SET etag = '', last_modified = ''")
    sim.index.voids |= {row[2] for row in rows}
    assert len(rows) > 5
    assert crawl(sim, crash_ticks=[], kind="kill", again=True) == []
    assert verified(sim) == []
    records = sim.store.all("SELECT file, revisit FROM visits WHERE outcome = 'void'")
    assert len(records) > 3
    assert {file > 0 and revisit == 1 for file, revisit in records} == {kept == "revisit"}
    for page, url, digest, file, date in rows:
        outcome, *now = sim.store.all(
            "SELECT outcome, stored_digest, file, stored_date FROM pages WHERE page = ?", (page,)
        )[0]
        if outcome == "void":
            assert (url, *now) == (url, digest, file, date)
