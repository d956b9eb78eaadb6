"""The index of payloads in SQL: where each was stored first, and who refers where.

The index is a database of its own (`digests.db`, or one that collections share), or stands in the
collection's PostgreSQL. `refers` stands in each collection's store, beside the visits it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from geomi.store import Both, Store

#: Of the index. Filled after each commit by the agent that stored, and by who makes it anew.
INDEX = (
    # Measured in SQLite, keys at random: 25 bytes a payload. A name and a date would be 60 more.
    Both(
        """CREATE TABLE payloads (
            "key" INTEGER PRIMARY KEY,            -- archive.duplicates.key_of
            home INTEGER NOT NULL,                -- the collection that has it
            visit INTEGER NOT NULL                -- there: the visit that stored it
        )""",
        """CREATE TABLE payloads (
            "key" BIGINT NOT NULL PRIMARY KEY,    -- archive.duplicates.key_of
            visit BIGINT NOT NULL,                -- the visit that stored it,
            home INT NOT NULL                     -- in this collection
        )""",
    ),
    """CREATE TABLE homes (
        home INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,            -- the collection's own, wherever it moves
        folder TEXT NOT NULL,                 -- where it lies
        address TEXT NOT NULL                 -- of its store
    )""",
    # Of each life of an agent: all of its batches up to this one are in `payloads`.
    """CREATE TABLE reflected (
        home INTEGER NOT NULL,
        agent TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        batch INTEGER NOT NULL,
        PRIMARY KEY (home, agent, incarnation)
    )""",
)  # fmt: skip

#: The same in a collection's own store, where that is PostgreSQL.
INDEX_IN_STORE = tuple(Both("", one.postgresql if isinstance(one, Both) else one) for one in INDEX)

#: Of an index that is a file: what `store.migrate` needs.
INDEX_FILE = (("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)", *INDEX),)

#: Of a collection.
REFERS = (
    # Filled with the batch of the revisit. One that refers to the last response of its own page,
    # or to what the revisit of that page before it did, has no row.
    """CREATE TABLE refers (
        visit INTEGER PRIMARY KEY,            -- the revisit
        home TEXT NOT NULL,                   -- the collection it refers to; empty: this one
        original INTEGER NOT NULL             -- there: the visit with the payload
    )""",
    "CREATE INDEX refers_to ON refers (original)",
    """ALTER TABLE pages -- whose response it is, where that is of another URL
        ADD COLUMN stored_url TEXT NOT NULL DEFAULT ''""",
)

#: What may be referred to: whole, no revisit, and the visit says which record it is.
_WHOLE = "v.file > 0 AND v.revisit = 0 AND v.outcome IN ('OK', 'code', 'gone', 'void')"
ELIGIBLE = f"{_WHOLE} AND v.purpose IN ('page', 'robots')"


class Kept(NamedTuple):
    """A visit with a payload, as its collection knows it."""

    visit: int
    page: int
    url: str
    digest: str
    code: int
    date: str
    record_id: str  # empty: not known any more
    file: int
    offset: int
    length: int


_KEPT = (
    "v.visit, v.page, coalesce(p.url, v.url), v.digest, v.code, v.stored_date,"
    ' CASE WHEN p.file = v.file AND p."offset" = v."offset" AND p.stored_url = \'\''
    " AND p.stored_date = v.stored_date THEN p.stored_id ELSE '' END,"
    ' v.file, v."offset", v.length'
)
#: The same of a visit that moved to Parquet.
MOVED = "visit, page, url, digest, code, stored_date, '', file, \"offset\", length"
MOVED_ELIGIBLE = ELIGIBLE.replace("v.", "")


def keys(store: Store, some: Sequence[int]) -> dict[int, tuple[int, int]]:
    """(home, visit) by key, of those that are known."""
    found: dict[int, tuple[int, int]] = {}
    for start in range(0, len(some), 500):
        part = some[start : start + 500]
        marks = ", ".join("?" * len(part))
        for key, home, visit in store.all(
            f'SELECT "key", home, visit FROM payloads WHERE "key" IN ({marks})', part
        ):
            found[key] = (home, visit)
    return found


def put(store: Store, home: int, entries: Iterable[tuple[int, int]]) -> None:
    """(key, visit) of new payloads; what is there stays. In the order of keys: two who write the
    same ones wait for each other, and not in a circle."""
    store.many(
        'INSERT INTO payloads ("key", home, visit) VALUES (?, ?, ?) ON CONFLICT ("key") DO NOTHING',
        [(key, home, visit) for key, visit in sorted(entries)],
    )


def move(store: Store, key: int, *, home: int, visit: int, was: tuple[int, int]) -> bool:
    """Another copy is the original from now on. False: it was not the one thought."""
    return (
        store.run(
            'UPDATE payloads SET home = ?, visit = ? WHERE "key" = ? AND home = ? AND visit = ?',
            (home, visit, key, *was),
        )
        == 1
    )


def drop(store: Store, home: int, entries: Iterable[tuple[int, int]]) -> None:
    """(key, visit): nobody is told of these any more."""
    store.many(
        'DELETE FROM payloads WHERE "key" = ? AND visit = ? AND home = ?',
        [(key, visit, home) for key, visit in entries],
    )


def drop_visits(store: Store, home: int, visits: Sequence[int]) -> None:
    """The same where keys are not known: all entries are looked at."""
    for start in range(0, len(visits), 500):
        some = visits[start : start + 500]
        marks = ", ".join("?" * len(some))
        store.run(f"DELETE FROM payloads WHERE home = ? AND visit IN ({marks})", (home, *some))


def empty(store: Store, home: int) -> None:
    """All that the index has of one collection."""
    store.run("DELETE FROM payloads WHERE home = ?", (home,))
    store.run("DELETE FROM reflected WHERE home = ?", (home,))


def all_keys(store: Store, *, after: int | None, limit: int) -> list[int]:
    """Keys in order, beyond one; None: from the first on."""
    where = "" if after is None else ' WHERE "key" > ?'
    return [
        row[0]
        for row in store.all(
            f'SELECT "key" FROM payloads{where} ORDER BY "key" LIMIT ?',
            (limit,) if after is None else (after, limit),
        )
    ]


def count(store: Store, home: int | None = None) -> int:
    """Payloads in the index, or those of one collection."""
    where, params = ("", ()) if home is None else (" WHERE home = ?", (home,))
    row = store.one(f"SELECT count(*) FROM payloads{where}", params)
    return int(row[0]) if row else 0


# -- collections -----------------------------------------------------------------------------------


def homes(store: Store) -> list[tuple[int, str, str, str]]:
    """(home, name, folder, address) of the collections that share the index."""
    return store.all("SELECT home, name, folder, address FROM homes ORDER BY home")


def register(store: Store, name: str, *, folder: str, address: str) -> int:
    """The number of a collection in the index; where it lies is noted."""
    row = store.one(
        "INSERT INTO homes (name, folder, address) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
        " SET folder = excluded.folder, address = excluded.address RETURNING home",
        (name, folder, address),
    )
    assert row is not None
    return int(row[0])


def name_of(store: Store) -> str:
    """The collection's own name; empty: it has none yet."""
    row = store.one("SELECT value FROM meta WHERE name = 'collection'")
    return str(row[0]) if row else ""


def give_name(store: Store, name: str) -> str:
    """Inside a transaction: names a collection that has no name; the name it has."""
    store.run(
        "INSERT INTO meta (name, value) VALUES ('collection', ?) ON CONFLICT (name) DO NOTHING",
        (name,),
    )
    return name_of(store)


# -- what the index reflects -----------------------------------------------------------------------


def reflected(store: Store, home: int) -> dict[tuple[str, int], int]:
    """The last batch that is in, by agent and incarnation."""
    return {
        (agent, incarnation): batch
        for agent, incarnation, batch in store.all(
            "SELECT agent, incarnation, batch FROM reflected WHERE home = ?", (home,)
        )
    }


def reflect(store: Store, home: int, lives: Iterable[tuple[str, int, int]]) -> None:
    """(agent, incarnation, batch): so far the index goes now."""
    store.many(
        "INSERT INTO reflected (home, agent, incarnation, batch) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (home, agent, incarnation) DO UPDATE SET batch ="
        " CASE WHEN excluded.batch > reflected.batch THEN excluded.batch ELSE reflected.batch END",
        sorted((home, *life) for life in lives),
    )


class Batches(NamedTuple):
    """A batch with visits."""

    batch: int
    first: int
    last: int
    moved: int
    agent: str
    incarnation: int


_BATCHES = "batch, first_visit, last_visit, moved, agent, incarnation"


def batches_of(store: Store, agent: str, incarnation: int, after: int) -> list[Batches]:
    """Those of one life beyond one batch."""
    return [
        Batches(*row)
        for row in store.all(
            f"SELECT {_BATCHES} FROM batches WHERE batch > ? AND agent = ? AND incarnation = ?"
            " AND visits > 0 ORDER BY batch",
            (after, agent, incarnation),
        )
    ]


def batches_beyond(store: Store, after: int) -> Iterator[tuple[Any, ...]]:
    """Batches of all, with when each was committed."""
    return store.each(
        f"SELECT {_BATCHES}, committed FROM batches WHERE batch > ? AND visits > 0 ORDER BY batch",
        (after,),
    )


def last_batch(store: Store, before: float) -> int:
    """The greatest number of those committed before a time; 0: there is none."""
    row = store.one("SELECT max(batch) FROM batches WHERE committed < ?", (before,))
    return int(row[0] or 0) if row else 0


def stored_by(store: Store, batch: int, first: int, last: int) -> list[tuple[Any, ...]]:
    """(visit, digest, code, size, file, offset) of what a batch stored and may be referred to."""
    return store.all(
        'SELECT v.visit, v.digest, v.code, v.size, v.file, v."offset" FROM visits v'
        f" WHERE v.visit BETWEEN ? AND ? AND v.batch = ? AND {ELIGIBLE} ORDER BY v.visit",
        (first, last, batch),
    )


def stored_at_all(store: Store) -> Iterator[tuple[Any, ...]]:
    """(visit, digest, code, size) of all visits in the store that may be referred to."""
    return store.each(
        f"SELECT v.visit, v.digest, v.code, v.size FROM visits v WHERE {ELIGIBLE} ORDER BY v.visit"
    )


# -- visits and who refers to them -----------------------------------------------------------------


def kept(store: Store, visits: Sequence[int]) -> dict[int, Kept]:
    """What the store has of visits that may be referred to, by number."""
    found: dict[int, Kept] = {}
    for start in range(0, len(visits), 500):
        some = visits[start : start + 500]
        marks = ", ".join("?" * len(some))
        for row in store.all(
            f"SELECT {_KEPT} FROM visits v LEFT JOIN pages p ON p.page = v.page AND v.page > 0"
            f" WHERE v.visit IN ({marks}) AND {ELIGIBLE}",
            some,
        ):
            found[row[0]] = Kept(*row)
    return found


PUT_REFERS = (
    "INSERT INTO refers (visit, home, original) VALUES (?, ?, ?)"
    " ON CONFLICT (visit) DO UPDATE SET home = excluded.home, original = excluded.original"
)


def numbers(store: Store, batch: int, first: int, last: int) -> dict[tuple[int, int], int]:
    """Visits of a batch by the place of their record: (file, offset)."""
    return {
        (file, offset): visit
        for file, offset, visit in store.all(
            'SELECT file, "offset", visit FROM visits WHERE visit BETWEEN ? AND ? AND batch = ?'
            " AND file > 0",
            (first, last, batch),
        )
    }


def named_referrers(store: Store, home: str, original: int) -> list[int]:
    """Revisits whose row names this visit."""
    return [
        row[0]
        for row in store.all(
            "SELECT visit FROM refers WHERE original = ? AND home = ? ORDER BY visit",
            (original, home),
        )
    ]


def rows_of(store: Store, visits: Sequence[int]) -> dict[int, tuple[str, int]]:
    """(home, original) by revisit, of those that have a row."""
    found: dict[int, tuple[str, int]] = {}
    for start in range(0, len(visits), 500):
        some = visits[start : start + 500]
        marks = ", ".join("?" * len(some))
        for visit, home, original in store.all(
            f"SELECT visit, home, original FROM refers WHERE visit IN ({marks})", some
        ):
            found[visit] = (home, original)
    return found


def lines_of(store: Store, page: int) -> list[tuple[int, str, int, int]]:
    """(visit, outcome, file, revisit) of a page's visits in the store, oldest first."""
    return store.all(
        "SELECT visit, outcome, file, revisit FROM visits WHERE page = ? AND page > 0"
        " ORDER BY visit",
        (page,),
    )


def refers_elsewhere(store: Store, home: str) -> Iterator[tuple[int, int]]:
    """(revisit, original) of all that refer to one other collection."""
    return store.each("SELECT visit, original FROM refers WHERE home = ? ORDER BY visit", (home,))
