"""Pages and sites that an import brought: how they enter, and how a crawl takes them up.

A site that only an import knows (`admitted = 'import'`) is in no crawl: links to it stay outside,
and nothing of it waits. When it is admitted, its pages are wanted once, by their validators.
"""

from __future__ import annotations

from typing import Any

from geomi.frontier import counters, tables
from geomi.records import Reason
from geomi.store import Store

IMPORT = "import"
#: `pages.kind` of a page that nobody linked to yet.
KIND = "i"

FIND = (
    "SELECT page, outcome, digest, visited, stored_date FROM pages"
    " WHERE site_id = ? AND url_hash = ? AND url = ?"
)
#: A visit that is the newest of its page, by run 0: it says what the page is.
NEWEST = (
    "UPDATE pages SET outcome = ?, why = '', code = ?, mime = ?, digest = ?, size = ?, visited = ?,"
    " visits = visits + 1, changes = changes + ?, etag = ?, last_modified = ?,"
    " first_visited = CASE WHEN first_visited = 0 THEN ? ELSE first_visited END,"
    " last_changed = CASE WHEN ? > last_changed THEN ? ELSE last_changed END WHERE page = ?"
)
#: An older one is only counted.
OLDER = (
    "UPDATE pages SET visits = visits + 1,"
    " first_visited = CASE WHEN first_visited = 0 OR first_visited > ? THEN ?"
    " ELSE first_visited END WHERE page = ?"
)


def find(store: Store, site_id: int, url_hash: int, url: str) -> tuple[Any, ...] | None:
    """(page, outcome, digest, visited, stored_date) of a URL."""
    return store.one(FIND, (site_id, url_hash, url))


def take_up(store: Store, site: str) -> None:
    """Before a site is admitted: if only an import knows it, its pages are wanted once."""
    row = store.one("SELECT site_id FROM sites WHERE site = ? AND admitted = ?", (site, IMPORT))
    if row is None:
        return
    added = store.run(
        "INSERT INTO pending (site_id, depth, page, reason, not_before, weight, tries)"
        " SELECT site_id, depth, page, ?, 0, 0, 0 FROM pages WHERE site_id = ? AND run = 0"
        " AND visits > 0 ON CONFLICT (site_id, depth, page) DO NOTHING",
        (int(Reason.AGAIN), row[0]),
    )
    tables.refresh_waiting(store, [row[0]])
    counters.count(store, [("pages.pending", added)])
