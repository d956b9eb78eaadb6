"""Visits, batches and the log of changes to captures.

A batch is written unnumbered; the coordinator alone gives committed batches their `seq`, because
numbers given before a commit are no order. Followers read by `seq`.

Old visits move to Parquet (`past`), but never the newest of all: in SQLite the next number is one
more than the greatest that is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from geomi.store import SQLITE, Store

SCHEMA_1 = (
    """CREATE TABLE visits (
        visit INTEGER PRIMARY KEY,
        page INTEGER NOT NULL,                -- 0 for robots.txt and probes
        site_id INTEGER NOT NULL,
        url TEXT NOT NULL,                    -- only where page is 0
        purpose TEXT NOT NULL,                -- page, robots
        run INTEGER NOT NULL,
        reason INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        host TEXT NOT NULL,                   -- the server asked: host or host:port
        address TEXT NOT NULL,
        started REAL NOT NULL,
        ended REAL NOT NULL,
        outcome TEXT NOT NULL,
        code INTEGER NOT NULL,
        mime TEXT NOT NULL,
        digest TEXT NOT NULL,
        size INTEGER NOT NULL,
        changed INTEGER NOT NULL,             -- 1 changed, 0 not, -1 nothing to compare with
        file INTEGER NOT NULL,                -- 0: nothing stored
        "offset" INTEGER NOT NULL,
        length INTEGER NOT NULL,
        stored_date TEXT NOT NULL,
        revisit INTEGER NOT NULL,             -- 1: the record is a revisit
        batch INTEGER NOT NULL,
        detail TEXT NOT NULL
    )""",
    "CREATE INDEX visits_by_page ON visits (page, visit) WHERE page > 0",
    """CREATE TABLE batches (
        batch INTEGER PRIMARY KEY,
        agent TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        committed REAL NOT NULL,
        visits INTEGER NOT NULL,
        first_visit INTEGER NOT NULL,
        last_visit INTEGER NOT NULL,
        seq INTEGER UNIQUE                    -- given by the coordinator after the commit
    )""",
    "CREATE INDEX batches_unnumbered ON batches (batch) WHERE seq IS NULL",
    # A batch that only adds has one row: change 'added', visit 0, meaning all its visits.
    """CREATE TABLE log (
        entry INTEGER PRIMARY KEY,
        batch INTEGER NOT NULL,
        change TEXT NOT NULL,                 -- added, replaced, moved, hidden, shown, removed
        visit INTEGER NOT NULL
    )""",
    "CREATE INDEX log_by_batch ON log (batch)",
)

SCHEMA_2 = (
    """ALTER TABLE batches -- of its visits: how many are in Parquet
        ADD COLUMN moved INTEGER NOT NULL DEFAULT 0""",
    "CREATE INDEX visits_of_no_page ON visits (started) WHERE page = 0",
    # Filled and emptied by the coordinator alone (cluster.mover). Rows of a file are in order of
    # page and visit; up to (done_page, done_visit) they are its own, beyond they are in `visits`.
    """CREATE TABLE past (
        part INTEGER PRIMARY KEY,
        month TEXT NOT NULL,                  -- in which its visits started: 2026-11
        name TEXT NOT NULL,                   -- path below the collection
        state TEXT NOT NULL,                  -- writing, moving, whole, replaced
        rows INTEGER NOT NULL DEFAULT 0,
        size INTEGER NOT NULL DEFAULT 0,      -- bytes
        first_page INTEGER NOT NULL DEFAULT 0,
        last_page INTEGER NOT NULL DEFAULT 0,
        first_file INTEGER NOT NULL DEFAULT 0,  -- least and greatest WARC file of its visits
        last_file INTEGER NOT NULL DEFAULT 0,
        done_page INTEGER NOT NULL DEFAULT -1,
        done_visit INTEGER NOT NULL DEFAULT 0,
        changed REAL NOT NULL                 -- when it took its state
    )""",
    "CREATE INDEX past_by_month ON past (month, state)",
)

PUT_VISIT = (
    "INSERT INTO visits (page, site_id, url, purpose, run, reason, epoch, host, address, started,"
    ' ended, outcome, code, mime, digest, size, changed, file, "offset", length, stored_date,'
    " revisit, batch, detail)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
#: With its number as the last parameter.
_PUT_NUMBERED = PUT_VISIT.replace("detail)", "detail, visit)").replace("?)", "?, ?)")


def open_batch(store: Store, agent: str, incarnation: int, now: float) -> int:
    """Inside the transaction of the batch: its id."""
    row = store.one(
        "INSERT INTO batches (agent, incarnation, committed, visits, first_visit, last_visit)"
        " VALUES (?, ?, ?, 0, 0, 0) RETURNING batch",
        (agent, incarnation, now),
    )
    assert row is not None
    return int(row[0])


def is_committed(store: Store, batch: int, agent: str, incarnation: int) -> bool:
    """True if a batch whose commit was not answered is in all the same."""
    there = store.one(
        "SELECT 1 FROM batches WHERE batch = ? AND agent = ? AND incarnation = ?",
        (batch, agent, incarnation),
    )
    return there is not None


def put_visits(store: Store, batch: int, visits: Sequence[Sequence[Any]]) -> int:
    """All visits of a batch (parameters of PUT_VISIT), and what names them; the last one's number.

    Between first and last there may be visits of other batches, where several write at a time.
    """
    first, last = 1, 0
    if store.dialect == SQLITE:
        store.many(PUT_VISIT, visits)
        last = int((store.one("SELECT coalesce(max(visit), 0) FROM visits") or (0,))[0])
        first = last - len(visits) + 1
    elif visits:
        numbers = [
            row[0]
            for row in store.all(
                "SELECT nextval('visits_visit_seq') FROM generate_series(1, ?)", (len(visits),)
            )
        ]
        first, last = numbers[0], numbers[-1]
        store.many(_PUT_NUMBERED, [(*row, n) for row, n in zip(visits, numbers, strict=True)])
    store.run(
        "UPDATE batches SET visits = ?, first_visit = ?, last_visit = ? WHERE batch = ?",
        (len(visits), first, last, batch),
    )
    if visits:
        store.run("INSERT INTO log (batch, change, visit) VALUES (?, 'added', 0)", (batch,))
    return last


def number_batches(store: Store) -> int:
    """Gives committed batches their place in the order. Only the coordinator calls this."""
    if store.one("SELECT 1 FROM batches WHERE seq IS NULL LIMIT 1") is None:
        return 0
    with store.transaction():
        rows = store.all("SELECT batch FROM batches WHERE seq IS NULL ORDER BY batch")
        first = int((store.one("SELECT coalesce(max(seq), 0) FROM batches") or (0,))[0]) + 1
        store.many(
            "UPDATE batches SET seq = ? WHERE batch = ?",
            [(first + place, row[0]) for place, row in enumerate(rows)],
        )
    return len(rows)


#: What a story tells of a visit; the same names in `visits` and in Parquet.
STORY = (
    "visit, run, reason, started, ended, outcome, code, mime, size, digest, changed, address,"
    ' revisit, file, "offset", length, stored_date, detail'
)


def of_page(store: Store, page: int) -> list[tuple[Any, ...]]:
    """STORY of the visits of one page that are in the store, oldest first."""
    return store.all(
        f"SELECT {STORY} FROM visits WHERE page = ? AND page > 0 ORDER BY visit", (page,)
    )
