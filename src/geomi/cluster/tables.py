"""Runs and agents, and the list of migrations, gathered from the stages."""

from __future__ import annotations

from typing import Any

from geomi.archive import duplicates_tables, rewrite_tables
from geomi.archive import tables as archive
from geomi.frontier import alias_schema, counters, equivalence_tables
from geomi.frontier import tables as frontier
from geomi.history import meaningless_tables as meaningless
from geomi.history import tables as history
from geomi.seeds import tables as seeds
from geomi.store import Both, Store
from geomi.store.migrate import Migration

SCHEMA_1 = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE runs (
        run INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,                   -- first, more, again
        state TEXT NOT NULL,                  -- running, stopped, done
        why TEXT NOT NULL DEFAULT '',         -- what stopped it
        started REAL NOT NULL,
        ended REAL NOT NULL DEFAULT 0,
        settings TEXT NOT NULL                -- JSON: options given on the command line
    )""",
    """CREATE TABLE agents (
        agent TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        started REAL NOT NULL,
        beat REAL NOT NULL,
        state TEXT NOT NULL,                  -- running, ended
        facts TEXT NOT NULL DEFAULT '{}',     -- JSON: sites, active, resting, flying
        PRIMARY KEY (agent, incarnation)
    )""",
)

#: Who coordinates, where that is no lock on a file (cluster.helm).
HELM = Both(
    "",
    """CREATE TABLE coordinator (
        one INTEGER PRIMARY KEY,              -- 1: there is one row
        epoch INTEGER NOT NULL,               -- grows each time another takes it
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        born TEXT NOT NULL,                   -- boot, namespace of process ids, start
        until REAL NOT NULL
    )""",
)

MIGRATIONS: tuple[Migration, ...] = (
    (
        *SCHEMA_1,
        *frontier.SCHEMA_1,
        *seeds.SCHEMA_1,
        *archive.SCHEMA_1,
        *history.SCHEMA_1,
    ),
    (*counters.COUNTERS, HELM),
    (*frontier.SCHEMA_2, *history.SCHEMA_2),
    frontier.SCHEMA_3,
    alias_schema.ALIASES,
    frontier.SCHEMA_4,
    alias_schema.CHECKED,
    archive.SCHEMA_2,
    meaningless.SCHEMA,
    archive.IMPORTS,
    (*duplicates_tables.INDEX_IN_STORE, *duplicates_tables.REFERS, *equivalence_tables.RULES),
    rewrite_tables.SCHEMA,
)


def last_run(store: Store) -> tuple[Any, ...] | None:
    """(run, kind, state, why, started, ended, settings) of the newest run."""
    return store.one(
        "SELECT run, kind, state, why, started, ended, settings FROM runs ORDER BY run DESC LIMIT 1"
    )


def begin_run(store: Store, kind: str, settings: str, now: float) -> int:
    row = store.one(
        "INSERT INTO runs (kind, state, started, settings) VALUES (?, 'running', ?, ?)"
        " RETURNING run",
        (kind, now, settings),
    )
    assert row is not None
    return int(row[0])


def set_run(store: Store, run: int, state: str, why: str, now: float) -> None:
    store.run(
        "UPDATE runs SET state = ?, why = ?, ended = ? WHERE run = ?",
        (state, why, 0 if state == "running" else now, run),
    )


def next_incarnation(store: Store) -> int:
    """A number that no agent had."""
    with store.transaction():
        return counters.take_ids(store, "incarnation", 1)


def begin_agent(
    store: Store, agent: str, host: str, pid: int, now: float, *, incarnation: int | None = None
) -> int:
    """A new incarnation of an agent; its number.

    Who can be seen from here is taken for dead unless its lock is held, so a process takes a
    number and its lock first, and gives the number.
    """
    number = next_incarnation(store) if incarnation is None else incarnation
    with store.transaction():
        store.run(
            "INSERT INTO agents (agent, incarnation, host, pid, started, beat, state)"
            " VALUES (?, ?, ?, ?, ?, ?, 'running') ON CONFLICT DO NOTHING",
            (agent, number, host, pid, now, now),
        )
    return number


def running_agents(store: Store) -> list[tuple[Any, ...]]:
    """(agent, incarnation, host, pid, facts) of all that have not ended."""
    return store.all(
        "SELECT agent, incarnation, host, pid, facts FROM agents WHERE state = 'running'"
        " ORDER BY incarnation"
    )


def put_facts(store: Store, agent: str, incarnation: int, facts: str) -> None:
    """What `status` shows of one life of an agent, as JSON."""
    with store.transaction():
        store.run(
            "UPDATE agents SET facts = ? WHERE agent = ? AND incarnation = ?",
            (facts, agent, incarnation),
        )
