"""What may lie on disk beside the files that count: generations before and to come. For verify."""

from __future__ import annotations

from collections import Counter

from geomi.archive import rewrite_tables
from geomi.cluster.ledger import OPEN, index_path
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
