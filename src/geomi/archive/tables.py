"""The archive's files in the store: which there are, how much of each is committed.

A file belongs to one incarnation of one agent and is never opened again after it was closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from geomi.store import Both, Store

SCHEMA_1 = (
    """CREATE TABLE files (
        file INTEGER PRIMARY KEY,
        root INTEGER NOT NULL,                -- number of the archive directory
        directory TEXT NOT NULL,              -- that directory, as set
        name TEXT NOT NULL,                   -- path below it, without .open
        agent TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        committed INTEGER NOT NULL,           -- length that batches vouch for
        first_visit INTEGER NOT NULL,         -- visits of the file lie between these
        last_visit INTEGER NOT NULL,
        state TEXT NOT NULL,                  -- open, closed
        created REAL NOT NULL,
        closed REAL NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX files_open ON files (agent, incarnation) WHERE state = 'open'",
    """CREATE TABLE orphans (
        file INTEGER NOT NULL,
        "offset" INTEGER NOT NULL,
        length INTEGER NOT NULL,
        site_id INTEGER NOT NULL,
        epoch INTEGER NOT NULL,               -- the one that was refused
        PRIMARY KEY (file, "offset")
    )""",
)

SCHEMA_2 = (
    """ALTER TABLE files -- the machine it was written on, or gathered to
        ADD COLUMN node TEXT NOT NULL DEFAULT ''""",
    """ALTER TABLE files -- path of the directory there
        ADD COLUMN base TEXT NOT NULL DEFAULT ''""",
)


IMPORTS = (
    """CREATE TABLE imports (
        digest TEXT PRIMARY KEY,              -- SHA-256 of the file as it was given
        source TEXT NOT NULL,                 -- where it was
        file INTEGER NOT NULL,                -- what it is here
        captures INTEGER NOT NULL,
        imported REAL NOT NULL
    )""",
)

#: A number that no visit of the past has, and every visit of a file opened now is beyond.
_NEXT_VISIT = Both(
    "(SELECT coalesce(max(visit), 0) + 1 FROM visits)",
    "(SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM visits_visit_seq)",
)


def committed(store: Store, file: int, length: int, *, last_visit: int) -> None:
    """What a batch vouches for; `last_visit` is its last, 0 if it has none."""
    store.run(
        "UPDATE files SET committed = ?,"
        " last_visit = CASE WHEN last_visit < ? THEN ? ELSE last_visit END WHERE file = ?",
        (length, last_visit, last_visit, file),
    )


def opened(
    store: Store,
    *,
    file: int,
    root: int,
    directory: str,
    name: str,
    agent: str,
    incarnation: int,
    now: float,
    node: str = "",
    base: str = "",
) -> None:
    """Registers a file before it exists. May be repeated."""
    store.run(
        "INSERT INTO files (file, root, directory, name, agent, incarnation, committed,"
        " first_visit, last_visit, state, created, node, base) VALUES (?, ?, ?, ?, ?, ?, 0,"
        f" {_NEXT_VISIT.of(store)}, 0, 'open', ?, ?, ?)"
        " ON CONFLICT (file) DO NOTHING",
        (file, root, directory, name, agent, incarnation, now, node, base),
    )


def closed(store: Store, file: int, now: float) -> None:
    store.run("UPDATE files SET state = 'closed', closed = ? WHERE file = ?", (now, file))


def open_files(store: Store, agent: str, incarnation: int) -> list[tuple[Any, ...]]:
    """(file, directory, name, committed) of what an incarnation left open."""
    return store.all(
        "SELECT file, directory, name, committed FROM files"
        " WHERE agent = ? AND incarnation = ? AND state = 'open' ORDER BY file",
        (agent, incarnation),
    )


def all_files(store: Store) -> Iterator[tuple[Any, ...]]:
    """(file, directory, name, committed, state, node, base)."""
    return store.each(
        "SELECT file, directory, name, committed, state, node, base FROM files ORDER BY file"
    )


def for_check(store: Store) -> list[tuple[Any, ...]]:
    """(file, directory, name, committed, state, node, base, agent) of all files."""
    return store.all(
        "SELECT file, directory, name, committed, state, node, base, agent FROM files ORDER BY file"
    )


def places(store: Store) -> list[tuple[tuple[Any, ...], str]]:
    """((file, directory, name, committed, node, base), state) of all files."""
    return [
        (tuple(row[:-1]), row[-1])
        for row in store.all(
            "SELECT file, directory, name, committed, node, base, state FROM files ORDER BY file"
        )
    ]


def moved(
    store: Store, file: int, *, was: str, root: int, directory: str, node: str, base: str
) -> bool:
    """A closed file lies elsewhere from now on. False: it is not closed, or on another node."""
    with store.transaction():
        return (
            store.run(
                "UPDATE files SET root = ?, directory = ?, node = ?, base = ?"
                " WHERE file = ? AND state = 'closed' AND node = ?",
                (root, directory, node, base, file, was),
            )
            == 1
        )


def captures_of(store: Store, file: int) -> Iterator[tuple[Any, ...]]:
    """(url, stored_date, mime, code, digest, offset, length, revisit) of a file's captures."""
    return store.each(
        'SELECT coalesce(p.url, v.url), v.stored_date, v.mime, v.code, v.digest, v."offset",'
        " v.length, v.revisit FROM files f JOIN visits v"
        " ON v.visit BETWEEN f.first_visit AND f.last_visit AND v.file = f.file"
        " LEFT JOIN pages p ON p.page = v.page AND v.page > 0 WHERE f.file = ?",
        (file,),
    )


def orphans_of(store: Store, file: int) -> list[tuple[int, int]]:
    """(offset, length) of records whose epoch was refused."""
    return store.all(
        'SELECT "offset", length FROM orphans WHERE file = ? ORDER BY "offset"', (file,)
    )


def captures_since(store: Store, file: int, visit: int) -> Iterator[tuple[Any, ...]]:
    """(visit, url, stored_date, mime, code, digest, offset, length, revisit) of captures of a file
    that are newer than a visit."""
    return store.each(
        "SELECT v.visit, coalesce(p.url, v.url), v.stored_date, v.mime, v.code, v.digest,"
        ' v."offset", v.length, v.revisit FROM files f JOIN visits v'
        " ON v.visit BETWEEN f.first_visit AND f.last_visit AND v.file = f.file"
        " LEFT JOIN pages p ON p.page = v.page AND v.page > 0 WHERE f.file = ? AND v.visit > ?",
        (file, visit),
    )


def left_over(store: Store, agent: str) -> list[tuple[Any, ...]]:
    """(file, directory, name) of files of an agent that were registered and never filled."""
    return store.all(
        "SELECT file, directory, name FROM files WHERE agent = ? AND state = 'open'"
        " AND committed = 0 ORDER BY file",
        (agent,),
    )


def forget(store: Store, file: int) -> None:
    """Takes back the row of a file that was never filled."""
    store.run("DELETE FROM files WHERE file = ? AND committed = 0", (file,))


def import_of(store: Store, digest: str) -> tuple[Any, ...] | None:
    """(source, name, captures) of an import; None: this file was never imported."""
    return store.one(
        "SELECT i.source, f.name, i.captures FROM imports i LEFT JOIN files f ON f.file = i.file"
        " WHERE i.digest = ?",
        (digest,),
    )


def imported(
    store: Store, digest: str, *, source: str, file: int, captures: int, now: float
) -> None:
    store.run(
        "INSERT INTO imports (digest, source, file, captures, imported) VALUES (?, ?, ?, ?, ?)",
        (digest, source, file, captures, now),
    )


def put_orphans(store: Store, file: int, extents: list[tuple[int, int]]) -> None:
    """Records of a file that are no page's: known, and in no index."""
    store.many(
        'INSERT INTO orphans (file, "offset", length, site_id, epoch) VALUES (?, ?, ?, 0, 0)',
        [(file, offset, length) for offset, length in extents],
    )
