"""Visits that found a content, for the harvest report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from geomi.history.harvest import FOUND
from geomi.history.past import Past
from geomi.store import Store

_COLUMNS = "page, digest, outcome, revisit, file, size"
_FOUND = ", ".join(f"'{outcome}'" for outcome in FOUND)
_WHERE = f"v.page > 0 AND v.outcome IN ({_FOUND}) AND v.started >= ? AND v.started < ?"


def found_here(store: Store, since: float, until: float) -> Iterator[tuple[Any, ...]]:
    """(party, digest, outcome, revisit, file, size) of visits that are in the store."""
    return store.each(
        "SELECT p.party, v.digest, v.outcome, v.revisit, v.file, v.size FROM visits v"
        f" JOIN pages p ON p.page = v.page WHERE {_WHERE}",
        (since, until),
    )


def found_before(store: Store, past: Past, since: float, until: float) -> Iterator[tuple[Any, ...]]:
    """The same of those that moved to Parquet: both sides come by page and are walked once."""
    parties = store.each("SELECT page, party FROM pages ORDER BY page")
    at, party = next(parties, (0, 0))
    for page, *rest in past.by_page(_COLUMNS, f"WHERE {_WHERE}", (since, until)):
        while at < page:
            at, party = next(parties, (page + 1, 0))
        yield (party if at == page else 0, *rest)
