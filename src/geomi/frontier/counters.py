"""What is counted, in parts that are summed when read; and numbers that are given once."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from geomi.store import SQLITE, Both, Store
from geomi.store.migrate import Migration

#: A counter is the sum of its parts: writers with a part each do not wait for each other.
COUNTERS: Migration = (
    "ALTER TABLE counters RENAME TO counters_before",
    """CREATE TABLE counters (
        name TEXT NOT NULL,
        part INTEGER NOT NULL,
        value INTEGER NOT NULL,
        PRIMARY KEY (name, part)
    ) WITHOUT ROWID""",
    "INSERT INTO counters (name, part, value) SELECT name, 0, value FROM counters_before",
    "DROP TABLE counters_before",
    # What is changed and deleted all the time is cleared away all the time.
    Both("", "ALTER TABLE pages SET (fillfactor = 80)"),
    *(
        Both("", f"ALTER TABLE {name} SET (autovacuum_vacuum_scale_factor = 0.02,"
                 " autovacuum_vacuum_threshold = 1000)")
        for name in ("sites", "pending", "inbox", "counters")
    ),
)  # fmt: skip

_COUNT = (
    "INSERT INTO counters (name, part, value) VALUES (?, ?, ?)"
    " ON CONFLICT (name, part) DO UPDATE SET value = counters.value + excluded.value"
)
PARTS = 64  # so many agents count without waiting for each other


def count(store: Store, deltas: Iterable[tuple[str, int]], *, writer: str = "") -> None:
    """Adds to the counters that `status` shows. Called inside the transaction that earned them.

    `writer` names who counts, where several do at a time.
    """
    rows = ((name, delta) for name, delta in deltas if delta)
    if store.dialect == SQLITE:  # one writer at a time: one part
        store.many(_COUNT, [(name, 0, delta) for name, delta in rows])
    else:
        part = crc32(writer.encode()) % PARTS if writer else 0
        store.many(_COUNT, [(name, part, delta) for name, delta in sorted(rows)])


def counters(store: Store) -> dict[str, int]:
    return dict(store.all("SELECT name, sum(value) FROM counters GROUP BY name"))


def counter(store: Store, name: str) -> int:
    """One of them."""
    row = store.one("SELECT sum(value) FROM counters WHERE name = ?", (name,))
    return int(row[0] or 0) if row else 0


def set_quota(store: Store, visits: int | None) -> None:
    """How many visits the crawl may still make; None: no end."""
    store.run("DELETE FROM counters WHERE name = 'quota'")
    if visits is not None:
        store.run(_COUNT, ("quota", 0, visits))


def draw_quota(store: Store, number: int) -> int:
    """Takes a share of it, at most `number`: nobody gets so much that others starve."""
    row = store.one(
        Both(
            "SELECT value FROM counters WHERE name = 'quota'",
            "SELECT value FROM counters WHERE name = 'quota' FOR UPDATE",
        ).of(store)
    )
    left = int(row[0]) if row else 0
    share = max(min(number, max(1, left // 8), left), 0)
    if share:
        store.run(_COUNT, ("quota", 0, -share))
    return share


def take_ids(store: Store, name: str, number: int) -> int:
    """The first of `number` ids that nobody else gets. In a transaction that ends soon: all who
    want ids wait for it."""
    row = store.one(f"{_COUNT} RETURNING value", ("next." + name, 0, number))
    assert row is not None
    return int(row[0]) - number + 1
