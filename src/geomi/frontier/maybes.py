"""Pages of which the seen-filter cannot say whether they are new: the store says, exactly.

On SQLite a sentence each. On PostgreSQL one sentence for all of a batch, because there each is a
question over the network.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from geomi.store import SQLITE, Store

#: Inserts only what is not there; rowcount tells. Exact: hash and URL are compared.
MAYBE_PAGE = (
    "INSERT INTO pages (page, site_id, url, url_hash, depth, party, kind, via, hops, found, run,"
    " outcome, why) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
    " WHERE NOT EXISTS (SELECT 1 FROM pages WHERE site_id = ? AND url_hash = ? AND url = ?)"
)


def put_maybes(store: Store, rows: Sequence[tuple[Any, ...]]) -> list[bool]:
    """Inserts those pages (parameters of NEW_PAGE) that are not there; which of them were not.

    Of two rows with one URL the first alone is new.
    """
    if store.dialect == SQLITE:
        return [
            bool(store.run(MAYBE_PAGE, (*row, row[_SITE], row[_HASH], row[_URL]))) for row in rows
        ]
    if not rows:
        return []
    first: dict[tuple[int, str], tuple[Any, ...]] = {}
    for row in rows:
        first.setdefault((row[_SITE], row[_URL]), row)
    new = {page for (page,) in store.all(_MAYBES, (to_json(list(first.values())),))}
    return [row[0] in new for row in rows]


def changeable(store: Store, rows: Sequence[tuple[Any, ...]]) -> list[bool]:
    """Which of these known pages (parameters of NEW_PAGE) another way to them may change.

    On PostgreSQL one look at all of them spares those for whom it cannot a sentence or two each.
    """
    if store.dialect == SQLITE or not rows:
        return [True] * len(rows)
    can = {(site_id, url) for site_id, url in store.all(_CHANGEABLE, (to_json(rows),))}
    return [(row[_SITE], row[_URL]) in can for row in rows]


# Places in a row of parameters of NEW_PAGE.
_SITE, _URL, _HASH = 1, 2, 3
_CHANGEABLE = (
    "SELECT p.site_id, p.url FROM json_array_elements(?::json) AS r JOIN pages p"
    " ON p.site_id = (r->>1)::bigint AND p.url_hash = (r->>3)::bigint AND p.url = r->>2"
    " WHERE p.outcome = 'skip' OR p.depth > (r->>4)::bigint"
)
#: PostgreSQL alone: all rows in one sentence, 13 µs each where one of its own takes 100.
_MAYBES = (
    "INSERT INTO pages (page, site_id, url, url_hash, depth, party, kind, via, hops, found, run,"
    " outcome, why) SELECT n.* FROM (SELECT (r->>0)::bigint AS page, (r->>1)::bigint AS site_id,"
    " r->>2 AS url, (r->>3)::bigint AS url_hash, (r->>4)::bigint, (r->>5)::bigint, r->>6, r->>7,"
    " (r->>8)::bigint, (r->>9)::float8, (r->>10)::bigint, r->>11, r->>12"
    " FROM json_array_elements(?::json) AS r) AS n"
    " WHERE NOT EXISTS (SELECT 1 FROM pages p WHERE p.site_id = n.site_id"
    " AND p.url_hash = n.url_hash AND p.url = n.url) RETURNING page"
)


def to_json(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as one parameter of a sentence."""
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
