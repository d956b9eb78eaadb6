"""Takes out of a database what rows held before they were changed or deleted."""

from __future__ import annotations

from geomi.errors import ResourceError
from geomi.store.store import SQLITE, Store

#: PostgreSQL: the tables that may hold words of a page.
_TABLES = ("pages", "visits", "robots", "faces", "seeds", "edits", "rewrites")


def scrub(store: Store) -> None:
    """Outside a transaction. Rewrites the whole database, with room for it on disk.

    ResourceError: somebody reads it this moment, so that the old pages cannot go. What PostgreSQL
    keeps in its log and its backups is the server's affair.
    """
    if store.dialect != SQLITE:
        for table in _TABLES:
            store.run(f"VACUUM FULL {table}")
        return
    store.all("PRAGMA temp_store=FILE")  # the copy is as large as the database
    store.run("VACUUM")
    row = store.one("PRAGMA wal_checkpoint(TRUNCATE)")
    store.all("PRAGMA temp_store=MEMORY")
    if row is not None and row[0]:
        raise ResourceError("another program reads the store: what was deleted is in its log yet")
