"""What agents and coordinator ask again and again costs what waits, not what is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rehearsal import HASTY, simulation

from geomi.store import SqliteStore

#: Tables that grow with the collection. (`sites` only by indexes over what waits or is held.)
LARGE = "payloads|refers|pages|visits|pending|outside|batches|log|seeds|robots|sites|files"
#: A whole table is read, or sorted: seconds at a million rows.
WHOLE = re.compile(rf"SCAN ({LARGE})($| USING (COVERING )?INDEX (pages_by_url|sites_by))")
OF_THE_INDEX = re.compile(r"\b(payloads|homes|reflected)\b")
#: Few: letters that wait, agents, sites that somebody holds or that are meant for somebody.
FEW = ("FROM inbox", "FROM agents", "holder <> ''", "go_to <> ''")


@pytest.fixture
def sentences(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Every sentence that a store in SQLite was asked, while the fixture lasts."""
    found: set[str] = set()

    def noting(method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(self: SqliteStore, sql: str, *more: Any) -> Any:
            found.add(sql)
            return method(self, sql, *more)

        return noted

    for name in ("all", "one", "run", "many", "each"):
        monkeypatch.setattr(SqliteStore, name, noting(getattr(SqliteStore, name)))
    yield found


@pytest.mark.parametrize(
    "more",
    [(), ("crawl.max_depth=3",), ("history.keep_visits=2",),
     ("alias.detect=true", "alias.sample=2")],
)  # fmt: skip
def test_no_sentence_of_a_running_crawl_reads_a_table_that_grows(
    sentences: set[str], more: tuple[str, ...]
) -> None:
    names = {"habit.alias": 0.5} if "alias.detect=true" in more else None
    sim, _ = simulation(1, sites=6, pages=8, sets=(*HASTY, *more), shares=names)
    asked: set[str] = set()
    for again in (False, True, True, True, True):
        sim.begin(again=again)
        sentences.clear()  # the start of a run may look at all that is known
        assert sim.advance(until=sim.now + 5 * 86_400)
        sim.finish()
        asked |= sentences
    assert len(asked) > 50
    wrong = []
    for sql in sorted(asked):
        if sql.split()[0] not in ("SELECT", "UPDATE", "DELETE", "INSERT", "WITH"):
            continue
        store = sim.index.index.store if OF_THE_INDEX.search(sql) else sim.store
        for row in store.all(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?")):
            is_sorted = row[3].startswith("USE TEMP B-TREE") and not any(one in sql for one in FEW)
            if WHOLE.match(row[3]) or is_sorted:
                wrong.append((row[3], sql))
    assert wrong == []
    sim.store.close()
