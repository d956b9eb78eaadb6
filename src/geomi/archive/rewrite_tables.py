"""What rewriting keeps in the store: the job under way, its edits, earlier generations of files.

A job is planned into `edits`, then carried out file by file. A file keeps its number and gets a new
name; what it was stays in `generations`, and on disk, until it is purged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from geomi.archive.edits import Action, Original
from geomi.store import Both, Store

SCHEMA = (
    """ALTER TABLE files -- how often it was rewritten
        ADD COLUMN generation INTEGER NOT NULL DEFAULT 0""",
    """CREATE TABLE rewrites (
        rewrite INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,                   -- rewrite, delete
        state TEXT NOT NULL,                  -- planning, writing, done, aborted
        options TEXT NOT NULL,                -- JSON
        started REAL NOT NULL,
        ended REAL NOT NULL DEFAULT 0,
        facts TEXT NOT NULL DEFAULT '{}'      -- JSON: what was planned and done
    )""",
    # Filled while a job is planned, emptied when it is over. Records of a file, none overlaps.
    """CREATE TABLE edits (
        file INTEGER NOT NULL,
        "offset" INTEGER NOT NULL,            -- in the generation before
        length INTEGER NOT NULL,
        action TEXT NOT NULL,                 -- revisit, point, response, drop, orphan
        uri TEXT NOT NULL DEFAULT '',         -- the original: target URI, date, id of its record
        date TEXT NOT NULL DEFAULT '',
        id TEXT NOT NULL DEFAULT '',
        source INTEGER NOT NULL DEFAULT 0,    -- response: file of the payload; orphan: site
        source_generation INTEGER NOT NULL DEFAULT 0,  -- of that file; orphan: epoch
        source_offset INTEGER NOT NULL DEFAULT 0,
        original INTEGER NOT NULL DEFAULT 0,  -- visit of the original
        copy INTEGER NOT NULL DEFAULT 0,      -- page whose copy the record was, once switched
        PRIMARY KEY (file, "offset")
    )""",
    """CREATE TABLE generations (
        file INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        name TEXT NOT NULL,
        committed INTEGER NOT NULL,
        rewrite INTEGER NOT NULL,             -- the job that took its place
        replaced REAL NOT NULL,
        PRIMARY KEY (file, generation)
    )""",
    """ALTER TABLE log -- with visit 0 and another change than added: all visits kept in this file
        ADD COLUMN file INTEGER NOT NULL DEFAULT 0""",
)


class Job(NamedTuple):
    """Work on the archive that was begun."""

    rewrite: int
    kind: str
    state: str
    options: dict[str, Any]
    started: float
    facts: dict[str, Any]


class Edit(NamedTuple):
    """What becomes of one record. See the table `edits`."""

    file: int
    offset: int
    length: int
    action: str
    uri: str = ""
    date: str = ""
    id: str = ""
    source: int = 0
    source_generation: int = 0
    source_offset: int = 0
    original: int = 0  # a visit

    @property
    def refers_to(self) -> Original:
        return Original(uri=self.uri, date=self.date, record_id=self.id)


class Kept(NamedTuple):
    """A file as it is now."""

    file: int
    root: int
    directory: str
    name: str
    committed: int
    state: str
    node: str
    base: str
    generation: int
    first_visit: int
    last_visit: int


_KEPT = ", ".join(Kept._fields)


def under_way(store: Store) -> Job | None:
    """The job that was begun and did not end."""
    row = store.one(
        "SELECT rewrite, kind, state, options, started, facts FROM rewrites"
        " WHERE state IN ('planning', 'writing') ORDER BY rewrite DESC LIMIT 1"
    )
    if row is None:
        return None
    return Job(row[0], row[1], row[2], json.loads(row[3]), row[4], json.loads(row[5]))


def begin(store: Store, kind: str, options: dict[str, Any], now: float) -> Job:
    row = store.one(
        "INSERT INTO rewrites (kind, state, options, started) VALUES (?, 'planning', ?, ?)"
        " RETURNING rewrite",
        (kind, json.dumps(options), now),
    )
    assert row is not None
    return Job(int(row[0]), kind, "planning", options, now, {})


def set_job(store: Store, rewrite: int, state: str, facts: dict[str, Any], now: float) -> None:
    """Its state from now on; one that is over has no edits any more."""
    is_over = state in ("done", "aborted")
    store.run(
        "UPDATE rewrites SET state = ?, facts = ?, ended = ? WHERE rewrite = ?",
        (state, json.dumps(facts), now if is_over else 0, rewrite),
    )
    if is_over:
        store.run("DELETE FROM edits")


def put_edits(store: Store, edits: Iterable[Edit]) -> None:
    """The first word about a record counts."""
    store.many(
        'INSERT INTO edits (file, "offset", length, action, uri, date, id, source,'
        " source_generation, source_offset, original) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ' ON CONFLICT (file, "offset") DO NOTHING',
        edits,
    )


_EDIT = ", ".join(f'"{name}"' if name == "offset" else name for name in Edit._fields)


def edits_of(store: Store, file: int) -> Iterator[Edit]:
    """In the order of the file."""
    return (
        Edit(*row)
        for row in store.each(
            f'SELECT {_EDIT} FROM edits WHERE file = ? ORDER BY "offset"', (file,)
        )
    )


def edit_at(store: Store, file: int, offset: int) -> Edit:
    row = store.one(f'SELECT {_EDIT} FROM edits WHERE file = ? AND "offset" = ?', (file, offset))
    assert row is not None
    return Edit(*row)


def was_copy(store: Store, rows: Iterable[tuple[int, int, int]]) -> None:
    """(page, file, offset): what a page's copy was, for who takes it back."""
    store.many('UPDATE edits SET copy = ? WHERE file = ? AND "offset" = ?', rows)


def copies_of(store: Store, file: int) -> list[tuple[int, int, int]]:
    """(page, offset, length) before, of pages whose copies became revisits."""
    return store.all(
        'SELECT copy, "offset", length FROM edits WHERE file = ? AND copy > 0', (file,)
    )


def edited_files(store: Store) -> list[int]:
    """Files with edits. Those come first in which a capture gets its payload, or another original:
    so the one it referred to is there until then. Then the last comes first: most that refer stand
    behind what they refer to."""
    return [
        row[0]
        for row in store.all(
            "SELECT file FROM edits GROUP BY file ORDER BY"
            " max(CASE WHEN action IN ('response', 'point') THEN 1 ELSE 0 END) DESC, file DESC"
        )
    ]


def count_edits(store: Store) -> dict[str, tuple[int, int]]:
    """action -> (number, bytes as stored before)."""
    return {
        row[0]: (int(row[1]), int(row[2]))
        for row in store.all("SELECT action, count(*), sum(length) FROM edits GROUP BY action")
    }


def kept(store: Store, file: int) -> Kept | None:
    row = store.one(f"SELECT {_KEPT} FROM files WHERE file = ?", (file,))
    return Kept(*row) if row else None


def closed_files(store: Store) -> list[Kept]:
    return [
        Kept(*row)
        for row in store.all(f"SELECT {_KEPT} FROM files WHERE state = 'closed' ORDER BY file")
    ]


def name_of(store: Store, file: int, generation: int) -> str:
    """The name a file had, or has, in one of its generations; empty if that was purged."""
    row = store.one(
        "SELECT name FROM files WHERE file = ? AND generation = ? UNION ALL"
        " SELECT name FROM generations WHERE file = ? AND generation = ?",
        (file, generation, file, generation),
    )
    return str(row[0]) if row else ""


def next_name(name: str, generation: int) -> str:
    """`a-00001.warc.gz` in its second generation: `a-00001-g1.warc.gz`."""
    stem = name.removesuffix(".warc.gz")
    if generation > 1:
        stem = stem.removesuffix(f"-g{generation - 1}")
    return f"{stem}-g{generation}.warc.gz"


def switched(
    store: Store, old: Kept, *, name: str, committed: int, rewrite: int, now: float
) -> bool:
    """The file is its next generation from now on. False: its row changed meanwhile."""
    if not store.run(
        "UPDATE files SET name = ?, committed = ?, generation = generation + 1"
        " WHERE file = ? AND generation = ? AND name = ? AND directory = ? AND state = 'closed'",
        (name, committed, old.file, old.generation, old.name, old.directory),
    ):
        return False
    store.run(
        "INSERT INTO generations (file, generation, name, committed, rewrite, replaced)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (old.file, old.generation, old.name, old.committed, rewrite, now),
    )
    return True


def switched_back(store: Store, file: int, generation: int) -> None:
    """The file is what it was before."""
    row = store.one(
        "SELECT name, committed FROM generations WHERE file = ? AND generation = ?",
        (file, generation),
    )
    assert row is not None
    store.run(
        "UPDATE files SET name = ?, committed = ?, generation = ? WHERE file = ?",
        (row[0], row[1], generation, file),
    )
    store.run("DELETE FROM generations WHERE file = ? AND generation = ?", (file, generation))


def switched_by(store: Store, rewrite: int) -> list[tuple[int, int, str, int]]:
    """(file, generation, name, committed) before, of the files that a job has switched."""
    return store.all(
        "SELECT file, generation, name, committed FROM generations WHERE rewrite = ? ORDER BY file",
        (rewrite,),
    )


def replaced(store: Store) -> list[tuple[Any, ...]]:
    """(file, generation, name, committed, directory, node, base) of all that waits for a purge."""
    return store.all(
        "SELECT g.file, g.generation, g.name, g.committed, f.directory, f.node, f.base"
        " FROM generations g JOIN files f ON f.file = g.file ORDER BY g.file, g.generation"
    )


def purged(store: Store, file: int, generation: int) -> None:
    store.run("DELETE FROM generations WHERE file = ? AND generation = ?", (file, generation))


def orphans_out(store: Store, file: int) -> None:
    """A file's orphans are not in its next generation."""
    store.run("DELETE FROM orphans WHERE file = ?", (file,))


def orphans_back(store: Store, edits: Iterable[Edit]) -> None:
    store.many(
        'INSERT INTO orphans (file, "offset", length, site_id, epoch) VALUES (?, ?, ?, ?, ?)',
        [
            (e.file, e.offset, e.length, e.source, e.source_generation)
            for e in edits
            if e.action == Action.ORPHAN
        ],
    )


def orphans(store: Store) -> Iterator[Edit]:
    """An edit for each orphan of a closed file."""
    for file, offset, length, site_id, epoch in store.each(
        'SELECT o.file, o."offset", o.length, o.site_id, o.epoch FROM orphans o'
        " JOIN files f ON f.file = o.file WHERE f.state = 'closed'"
    ):
        yield Edit(file, offset, length, Action.ORPHAN, source=site_id, source_generation=epoch)


_HAS_TABLE = Both(
    "SELECT 1 FROM sqlite_master WHERE name = ?",
    "SELECT 1 WHERE to_regclass(?) IS NOT NULL",
)


def meaningless(store: Store) -> frozenset[str]:
    """Digests that somebody confirmed to mean nothing; none where no such list is kept."""
    if store.one(_HAS_TABLE.of(store), ("meaningless",)) is None:
        return frozenset()
    rows = store.all("SELECT digest FROM meaningless WHERE state = 'confirmed'")
    return frozenset(row[0] for row in rows)


def keeps_references(store: Store) -> bool:
    """True where the store has which visit each revisit refers to (`refers`), and of a page whose
    payload is another URL's, which (`pages.stored_url`)."""
    return store.one(_HAS_TABLE.of(store), ("refers",)) is not None


def refer(store: Store, rows: Iterable[tuple[int, int]]) -> None:
    """(revisit, original): visits of this collection."""
    store.many(
        "INSERT INTO refers (visit, home, original) VALUES (?, '', ?) ON CONFLICT (visit)"
        " DO UPDATE SET home = excluded.home, original = excluded.original",
        rows,
    )


def refer_no_more(store: Store, visits: Iterable[int]) -> None:
    store.many("DELETE FROM refers WHERE visit = ?", [(visit,) for visit in visits])
