"""The harvest report of a collection: labels of seeds, visits of store and Parquet. Shell."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from geomi.archive.sorted import Runs
from geomi.history.harvest import Finding, Harvest, tally
from geomi.history.harvest_tables import found_before, found_here
from geomi.history.past import Past
from geomi.seeds import tables
from geomi.store import Store

NO_LABEL = "(no label)"


def harvest(
    store: Store, where: Callable[[str], str], *, label: str, since: float = 0.0,
    until: float = 1e18,
) -> list[Harvest]:  # fmt: skip
    """A row for each value of the label, by name; pages of seeds without it come last.

    A page counts for the party that found it first. Memory: a number a seed; visits are sorted on
    disk.
    """
    with store.image():
        groups, rows = _groups(store, label)
        with tempfile.TemporaryDirectory(prefix="geomi-harvest-") as scratch:
            runs = Runs(scratch, "findings")
            past = Past.of(store, where)
            for found in (
                found_here(store, since, until), found_before(store, past, since, until),
            ):  # fmt: skip
                for party, digest, outcome, revisit, file, size in found:
                    runs.add(Finding(
                        groups.get(party, 0), digest, outcome, bool(revisit), file > 0, size,
                    ).line())  # fmt: skip
            tally(runs, rows)
    nameless, *named = rows
    named.sort(key=lambda row: row.name)
    return named + ([nameless] if nameless.found or nameless.seeds else [])


def _groups(store: Store, label: str) -> tuple[dict[int, int], list[Harvest]]:
    """(seed -> place of its row, rows); the first row is that of seeds without the label."""
    rows = [Harvest(name=NO_LABEL)]
    places: dict[str, int] = {}
    groups: dict[int, int] = {}
    for seed, labels in tables.labels_of(store):
        name = labels.get(label, "")
        place = places.setdefault(name, len(rows)) if name else 0
        if place == len(rows):
            rows.append(Harvest(name=name))
        rows[place].seeds += 1
        if place:
            groups[seed] = place
    return groups, rows
