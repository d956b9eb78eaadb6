"""What may lie on disk beside the files that count: generations before and to come. For verify."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from geomi.archive import rewrite_tables
from geomi.cluster.ledger import OPEN, index_path
from geomi.states import Outcome
from geomi.store import Store


def of_other_generations(store: Store, counts: Counter[str]) -> set[str]:
    """Names of what files were before they were rewritten, and of what they are about to be."""
    names = set()
    for _, _, name, *_ in rewrite_tables.replaced(store):
        counts["files.replaced"] += 1
        names |= {name, index_path(name)}
    if rewrite_tables.under_way(store) is not None:
        for kept in rewrite_tables.closed_files(store):
            name = rewrite_tables.next_name(kept.name, kept.generation + 1)
            names |= {name, name + OPEN, index_path(name), index_path(name) + ".new"}
    return names


def check_jobs(store: Store, add: Callable[[str, str, str], None], counts: Counter[str]) -> None:
    """What was rewritten and deleted, with itself: no plan without a job, no copy of what is gone,
    and each generation before follows on another."""
    job = rewrite_tables.under_way(store)
    counts["rewrites.under_way"] = job is not None
    planned = sum(number for number, _ in rewrite_tables.count_edits(store).values())
    if planned and job is None:
        add("edits", f"{planned} edits are planned, and no job is under way", "edits")
    for url, file in store.each(
        "SELECT url, file FROM pages WHERE outcome = ? AND file > 0", (str(Outcome.ERASED),)
    ):
        add("erased", f"is deleted, and has a copy in file {file}", url)
    for file, generation, newest in store.each(
        "SELECT g.file, g.generation, f.generation FROM generations g LEFT JOIN files f"
        " ON f.file = g.file WHERE f.file IS NULL OR g.generation >= f.generation"
    ):
        add("generation", f"has generation {generation} behind it, and is in {newest}",
            f"file {file}")  # fmt: skip
