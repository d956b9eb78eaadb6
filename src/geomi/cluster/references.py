"""Which visit a revisit refers to: written with its batch, so that who deletes can ask."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from geomi.archive import duplicates_tables as tables
from geomi.archive.duplicates import Original
from geomi.store import Store

# Places in a row of `visits` (history.tables.PUT_VISIT).
_SITE, _FILE, _OFFSET, _LENGTH = 1, 17, 18, 19


class References(Struct):
    """Of one batch: what it stored, and what it refers to. Filled by settle, emptied by commit."""

    # (visit, what it refers to) of revisits of another page's payload, or of another collection's
    refers: list[tuple[list[Any], Original]] = []
    # (visit, as what later ones refer to it) of payloads stored here
    fresh: list[tuple[list[Any], Original]] = []
    # (visit, where it leads) of redirects stored here
    locations: list[tuple[list[Any], str]] = []

    def places(self) -> dict[tuple[int, int], str]:
        """Where redirects lead, by the place of their record; once that is known."""
        return {(visit[_FILE], visit[_OFFSET]): where for visit, where in self.locations}


def put_references(
    store: Store, batch: int, references: References, refused: Collection[int]
) -> None:
    """Inside the transaction of a batch, after its visits. What it stored gets number and place:
    revisits of this batch and of the next refer to it."""
    fresh, refers = references.fresh, references.refers
    if not fresh and not refers:
        return
    row = store.one("SELECT first_visit, last_visit FROM batches WHERE batch = ?", (batch,))
    assert row is not None
    numbers = tables.numbers(store, batch, *row)
    for visit, original in fresh:
        original.file, original.offset = visit[_FILE], visit[_OFFSET]
        original.length = visit[_LENGTH]
        original.visit = numbers.get((original.file, original.offset), 0)
    store.many(
        tables.PUT_REFERS,
        [
            (numbers[visit[_FILE], visit[_OFFSET]], original.home, original.visit)
            for visit, original in refers
            if visit[_SITE] not in refused
        ],
    )


def place_of(original: Original, digest: str, url: str) -> tuple[Any, ...]:
    """Where a page's stored copy lies: parameters of STORE_PAGE without the page."""
    return (
        original.file, original.offset, original.length, original.date, original.record_id,
        digest, url,
    )  # fmt: skip
