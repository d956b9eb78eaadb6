"""Pages that were deleted from the archive: they stay known, so that nobody asks for them again."""

from __future__ import annotations

from typing import Any

from geomi.frontier import counters, tables
from geomi.states import Outcome
from geomi.store import Store

_FORGET = (
    "UPDATE pages SET outcome = ?, why = ?, code = 0, mime = '', digest = '', title = '',"
    " link_type = '', etag = '', last_modified = '', file = 0, \"offset\" = 0, length = 0,"
    " stored_date = '', stored_id = '', stored_digest = ''"
)


def put_page(store: Store, page: int, why: str) -> int:
    return _put(store, "page = ?", (page,), why)


def put_site(store: Store, site_id: int, why: str) -> int:
    """All pages of a site; what links to it leads nowhere from now on."""
    number = _put(store, "site_id = ?", (site_id,), why)
    store.run("UPDATE sites SET state = 'refused', why = ? WHERE site_id = ?", (why, site_id))
    store.run("DELETE FROM robots WHERE site_id = ?", (site_id,))
    store.run(
        "DELETE FROM inbox WHERE site = (SELECT site FROM sites WHERE site_id = ?)", (site_id,)
    )
    return number


def put_digest(store: Store, digest: str, why: str) -> int:
    """Pages whose last payload, or whose copy, it is."""
    return _put(store, "(digest = ? OR stored_digest = ?)", (digest, digest), why)


def _put(store: Store, which: str, params: tuple[Any, ...], why: str) -> int:
    """Inside a transaction, and no agent lives. The number of pages."""
    erased = str(Outcome.ERASED)
    counts: list[tuple[str, int]] = []
    for before, number in store.all(
        f"SELECT outcome, count(*) FROM pages WHERE {which} GROUP BY outcome", params
    ):
        counts += [(f"outcome.{before}", -number), (f"outcome.{erased}", number)]
    sites = [
        row[0] for row in store.all(f"SELECT DISTINCT site_id FROM pages WHERE {which}", params)
    ]
    waited = store.run(
        f"DELETE FROM pending WHERE page IN (SELECT page FROM pages WHERE {which})", params
    )
    store.run(
        "UPDATE seeds SET outcome = ?, digest = '' WHERE (url, url_hash) IN"
        f" (SELECT url, url_hash FROM pages WHERE {which})",
        (erased, *params),
    )
    store.run(
        f"DELETE FROM faces WHERE (site_id, url) IN (SELECT site_id, url FROM pages WHERE {which})",
        params,
    )
    number = store.run(f"{_FORGET} WHERE {which}", (erased, why, *params))
    counters.count(store, [*counts, ("pages.pending", -waited)])
    tables.refresh_waiting(store, sites)
    return number
