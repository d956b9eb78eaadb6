"""What the frontier keeps in the store: sites, pages, what waits, inbox, addresses, robots.txt.

Only the holder of a site's lease writes its rows in `pages` and `pending`; where nobody holds the
site, the coordinator does (it holds no lease but takes the write lock and looks).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from geomi.records import Wanted
from geomi.states import Outcome
from geomi.store import Both, Store

#: `sites.why` of an open site that rests until its hours begin.
CLOSED = "hours"

SCHEMA_1 = (
    """CREATE TABLE sites (
        site_id INTEGER PRIMARY KEY,
        site TEXT NOT NULL UNIQUE,            -- host or host:port
        domain TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'open',   -- open, parked, refused
        why TEXT NOT NULL DEFAULT '',         -- why parked; `hours`: it rests until those begin
        admitted TEXT NOT NULL DEFAULT '',    -- by which rule
        added REAL NOT NULL,
        holder TEXT NOT NULL DEFAULT '',      -- agent/incarnation, empty: nobody
        epoch INTEGER NOT NULL DEFAULT 0,
        lease_until REAL NOT NULL DEFAULT 0,
        go_to TEXT NOT NULL DEFAULT '',       -- the holder of its address, who should take it
        waiting INTEGER NOT NULL DEFAULT 0,   -- rows in pending
        next_due REAL NOT NULL DEFAULT 0,     -- none of them may be asked before
        rest_until REAL NOT NULL DEFAULT 0,   -- the server rests until then
        rest_s REAL NOT NULL DEFAULT 0,       -- length of the last rest
        clean INTEGER NOT NULL DEFAULT 1,     -- 0: the last holder went without saying
        failures INTEGER NOT NULL DEFAULT 0,  -- failed connections in a row
        address TEXT NOT NULL DEFAULT ''
    )""",
    "CREATE INDEX sites_ready ON sites (next_due, site_id) WHERE waiting > 0 AND holder = ''",
    "CREATE INDEX sites_held ON sites (holder) WHERE holder <> ''",
    "CREATE INDEX sites_meant ON sites (go_to) WHERE go_to <> ''",
    """CREATE TABLE pages (
        page INTEGER PRIMARY KEY,
        site_id INTEGER NOT NULL,
        url TEXT NOT NULL,
        url_hash INTEGER NOT NULL,
        depth INTEGER NOT NULL,
        party INTEGER NOT NULL,               -- seed id
        kind TEXT NOT NULL,                   -- link kind it was first found by; s: a seed
        via TEXT NOT NULL,                    -- URL it was found on
        hops INTEGER NOT NULL DEFAULT 0,      -- redirects before it
        found REAL NOT NULL,
        run INTEGER NOT NULL,                 -- last run that settled it
        outcome TEXT NOT NULL,
        why TEXT NOT NULL DEFAULT '',
        code INTEGER NOT NULL DEFAULT 0,
        mime TEXT NOT NULL DEFAULT '',
        digest TEXT NOT NULL DEFAULT '',      -- of the last payload seen
        size INTEGER NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0,      -- of the last download
        link_type TEXT NOT NULL DEFAULT '',
        title TEXT NOT NULL DEFAULT '',
        visited REAL NOT NULL DEFAULT 0,
        visits INTEGER NOT NULL DEFAULT 0,
        changes INTEGER NOT NULL DEFAULT 0,
        fails INTEGER NOT NULL DEFAULT 0,     -- visits in a row that failed
        etag TEXT NOT NULL DEFAULT '',
        last_modified TEXT NOT NULL DEFAULT '',
        file INTEGER NOT NULL DEFAULT 0,      -- place of the last stored response; 0: none
        "offset" INTEGER NOT NULL DEFAULT 0,
        length INTEGER NOT NULL DEFAULT 0,
        stored_date TEXT NOT NULL DEFAULT '', -- WARC-Date and record id of that response,
        stored_id TEXT NOT NULL DEFAULT '',   -- for revisits
        stored_digest TEXT NOT NULL DEFAULT ''
    )""",
    "CREATE INDEX pages_by_url ON pages (site_id, url_hash)",
    """CREATE TABLE pending (
        site_id INTEGER NOT NULL,
        depth INTEGER NOT NULL,               -- rank: depth, plus or less what priority says
        page INTEGER NOT NULL,
        reason INTEGER NOT NULL,
        not_before REAL NOT NULL,
        weight REAL NOT NULL,
        tries INTEGER NOT NULL,
        PRIMARY KEY (site_id, depth, page)
    ) WITHOUT ROWID""",
    """CREATE TABLE inbox (
        letter INTEGER PRIMARY KEY,
        site TEXT NOT NULL,
        url TEXT NOT NULL,
        kind TEXT NOT NULL,
        via TEXT NOT NULL,
        depth INTEGER NOT NULL,
        party INTEGER NOT NULL,               -- of the page it was found on
        reason INTEGER NOT NULL,
        not_before REAL NOT NULL,
        weight REAL NOT NULL,
        hops INTEGER NOT NULL,
        admit TEXT NOT NULL                   -- why the site may be admitted; empty: ask the rules
    )""",
    "CREATE INDEX inbox_by_site ON inbox (site)",
    """CREATE TABLE addresses (
        address TEXT NOT NULL,                -- an address, or group:NAME
        slot INTEGER NOT NULL,
        holder TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        until REAL NOT NULL,
        PRIMARY KEY (address, slot)
    )""",
    """CREATE TABLE robots (
        authority TEXT PRIMARY KEY,           -- scheme://host[:port]
        site_id INTEGER NOT NULL,
        fetched REAL NOT NULL,
        expires REAL NOT NULL,
        code INTEGER NOT NULL,
        failing_since REAL NOT NULL,
        body BLOB NOT NULL
    )""",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
)

SCHEMA_2 = (
    """ALTER TABLE pages -- of its visits: how many are in Parquet
        ADD COLUMN moved INTEGER NOT NULL DEFAULT 0""",
    """ALTER TABLE pages -- visits that failed in a way that may pass
        ADD COLUMN failures INTEGER NOT NULL DEFAULT 0""",
    """ALTER TABLE pages -- start of the first visit
        ADD COLUMN first_visited REAL NOT NULL DEFAULT 0""",
    """ALTER TABLE pages -- start of the last visit that found a change
        ADD COLUMN last_changed REAL NOT NULL DEFAULT 0""",
    "UPDATE pages SET"
    " failures = (SELECT count(*) FROM visits v WHERE v.page = pages.page AND v.page > 0"
    " AND (v.outcome IN ('noIP', 'cErr', 'cTim', 'hErr', 'hTim', 'hSht', 'hNpr', 'dErr', 'dTim')"
    " OR v.outcome = 'code' AND (v.code >= 500 OR v.code = 429))),"
    " first_visited = (SELECT coalesce(min(started), 0) FROM visits v WHERE v.page = pages.page"
    " AND v.page > 0),"
    " last_changed = (SELECT coalesce(max(started), 0) FROM visits v WHERE v.page = pages.page"
    " AND v.page > 0 AND v.changed = 1) WHERE visits > 0",
    # Pages with old visits to move; most pages were visited less often and are not in it.
    "CREATE INDEX pages_often ON pages ((visits - moved)) WHERE visits - moved > 2",
)

SCHEMA_3 = ("CREATE INDEX robots_by_site ON robots (site_id)",)

SCHEMA_4 = (
    """ALTER TABLE addresses -- its holder has each so manieth part of the time, from `slot` on
        ADD COLUMN slots INTEGER NOT NULL DEFAULT 1""",
    """ALTER TABLE addresses -- seconds of one part
        ADD COLUMN part_s REAL NOT NULL DEFAULT 0""",
    """ALTER TABLE addresses -- 1: another agent has sites there too
        ADD COLUMN wished INTEGER NOT NULL DEFAULT 0""",
    "CREATE INDEX addresses_wished ON addresses (holder) WHERE wished = 1",
)


class Known(NamedTuple):
    """A pending page with what the store knows of it. `rank` orders, least first."""

    page: int
    url: str
    rank: int
    depth: int
    party: int
    kind: str
    via: str
    hops: int
    outcome: str
    fails: int
    visits: int
    digest: str
    etag: str
    last_modified: str
    stored_date: str
    stored_id: str
    stored_digest: str
    reason: int
    not_before: float
    tries: int
    stored_url: str = ""  # whose response the stored copy is; empty: its own


_PAGE = (
    "p.page, p.url, w.depth, p.depth, p.party, p.kind, p.via, p.hops, p.outcome, p.fails, p.visits,"
    " p.digest, p.etag, p.last_modified, p.stored_date, p.stored_id, p.stored_digest"
)
KNOWN = _PAGE + ", w.reason, w.not_before, w.tries, p.stored_url"


def window(store: Store, site_id: int, *, after: tuple[int, int], limit: int) -> list[Known]:
    """The next pending pages of a site in order of (rank, page), beyond `after`."""
    rows = store.all(
        f"SELECT {KNOWN} FROM pending w JOIN pages p ON p.page = w.page"
        " WHERE w.site_id = ? AND (w.depth, w.page) > (?, ?)"
        " ORDER BY w.depth, w.page LIMIT ?",
        (site_id, after[0], after[1], limit),
    )
    return [Known(*row) for row in rows]


def known_page(store: Store, page: int, *, rank: int) -> Known:
    """One page with what the store knows of it, to wait at `rank`."""
    row = store.one(
        f"SELECT {_PAGE.replace('w.depth', '?')}, 0, 0.0, 0, p.stored_url FROM pages p"
        " WHERE p.page = ?",
        (rank, page),
    )
    assert row is not None
    return Known(*row)


_SOME_HASHES = (
    " FROM (SELECT url_hash FROM pages WHERE site_id = ? AND url_hash > ?"
    " ORDER BY url_hash LIMIT ?) AS some_of_them"
)
_HASHES = Both(
    f"SELECT json_group_array(url_hash){_SOME_HASHES}",
    f"SELECT coalesce(json_agg(url_hash ORDER BY url_hash), '[]')::text{_SOME_HASHES}",
)


def hashes(store: Store, site_id: int, *, after: int, limit: int) -> list[int]:
    """Hashes of a site's URLs, in order, for rebuilding its seen-filter.

    One row, because sqlite3 lets go of the interpreter at each: 50,000 rows took 15 ms alone and
    6.6 s beside a busy loop, one row with all of them 11 ms.
    """
    row = store.one(_HASHES.of(store), (site_id, after, limit))
    assert row is not None
    return msgspec.json.decode(row[0], type=list[int])


NEW_PAGE = (
    "INSERT INTO pages (page, site_id, url, url_hash, depth, party, kind, via, hops, found, run,"
    " outcome, why) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
PUT_PENDING = (
    "INSERT INTO pending (site_id, depth, page, reason, not_before, weight, tries)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site_id, depth, page) DO UPDATE SET"
    " reason = pending.reason | excluded.reason, not_before = excluded.not_before,"
    " tries = excluded.tries"
)
DROP_PENDING = "DELETE FROM pending WHERE site_id = ? AND depth = ? AND page = ?"
_SETTLED = (
    "run = ?, outcome = ?, why = ?, code = ?, mime = ?, digest = ?, size = ?,"
    " seconds = ?, link_type = ?, title = ?, visited = ?, visits = visits + ?,"
    " changes = changes + ?, fails = ?, failures = failures + ?, etag = ?, last_modified = ?,"
    " first_visited = CASE WHEN first_visited = 0 THEN ? ELSE first_visited END,"
    " last_changed = CASE WHEN ? > last_changed THEN ? ELSE last_changed END"
)
_STORED = (
    'file = ?, "offset" = ?, length = ?, stored_date = ?, stored_id = ?, stored_digest = ?,'
    " stored_url = ?"
)
SETTLE_PAGE = f"UPDATE pages SET {_SETTLED} WHERE page = ?"
STORE_PAGE = f"UPDATE pages SET {_STORED} WHERE page = ?"
#: Parameters of STORE_PAGE without its page, then of SETTLE_PAGE: one change of a row, not two.
STORE_AND_SETTLE = f"UPDATE pages SET {_STORED}, {_SETTLED} WHERE page = ?"
PUT_INBOX = (
    "INSERT INTO inbox (site, url, kind, via, depth, party, reason, not_before, weight, hops,"
    " admit) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def want(store: Store, wanted: Iterable[Wanted], *, admit: str = "") -> None:
    """The door: whatever wants a page visited puts it here. With `admit` its site is let in.

    The holder of the site takes it from the inbox, or the coordinator where nobody holds it.
    """
    store.many(
        PUT_INBOX,
        [
            (
                one.site, one.url, one.kind, one.via, one.depth, one.party, int(one.reason),
                one.not_before, one.weight, one.hops, admit,
            )
            for one in wanted
        ],
    )  # fmt: skip


PUT_ROBOTS = (
    "INSERT INTO robots (authority, site_id, fetched, expires, code, failing_since, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (authority) DO UPDATE SET"
    " site_id = excluded.site_id, fetched = excluded.fetched, expires = excluded.expires,"
    " code = excluded.code, failing_since = excluded.failing_since, body = excluded.body"
)


def add_site(store: Store, site: str, *, domain: str, admitted: str, now: float) -> int:
    """The site's id; the site is made if it is new."""
    row = store.one(
        "INSERT INTO sites (site, domain, admitted, added) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (site) DO UPDATE SET admitted = CASE WHEN sites.admitted = 'import'"
        " THEN excluded.admitted ELSE sites.admitted END RETURNING site_id",
        (site, domain, admitted, now),
    )
    assert row is not None
    return int(row[0])


def is_refused(store: Store, site_id: int) -> bool:
    """True for a site that was deleted by hand: nothing of it is wanted any more."""
    return (
        store.one("SELECT 1 FROM sites WHERE site_id = ? AND state = 'refused'", (site_id,))
        is not None
    )


def find_page(store: Store, site_id: int, url: str, url_hash: int) -> tuple[Any, ...] | None:
    """(page, depth, outcome, reason of pending or None) of a URL, None if it is unknown."""
    return store.one(
        "SELECT p.page, p.depth, p.outcome, w.reason FROM pages p LEFT JOIN pending w"
        " ON w.site_id = p.site_id AND w.page = p.page"
        " WHERE p.site_id = ? AND p.url_hash = ? AND p.url = ?",
        (site_id, url_hash, url),
    )


def refresh_waiting(store: Store, site_ids: Sequence[int]) -> None:
    """Counts what waits at some sites anew: exact, and cheap where few wait."""
    store.many(
        "UPDATE sites SET waiting = (SELECT count(*) FROM pending WHERE site_id = sites.site_id),"
        " next_due = coalesce((SELECT min(not_before) FROM pending"
        " WHERE site_id = sites.site_id), 0) WHERE site_id = ?",
        [(site_id,) for site_id in site_ids],
    )


def pages_of(store: Store, where: str, params: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of pages for a listing."""
    return store.each(
        "SELECT p.url, p.outcome, p.code, p.mime, p.depth, p.kind, p.digest, p.size, p.seconds,"
        ' p.file, p."offset", p.length, p.why, p.via, p.title, p.visited, f.name'
        " FROM pages p LEFT JOIN files f ON f.file = p.file"
        f" {where} ORDER BY p.page",
        params,
    )


def unsettled(outcome: str) -> bool:
    """True while a page has no visit behind its state."""
    return outcome == Outcome.NULL


def title_of(store: Store, site: str, url: str, url_hash: int) -> tuple[str, str]:
    """(title, mime) of a page; empty if it is not known."""
    row = store.one(
        "SELECT p.title, p.mime FROM sites s JOIN pages p ON p.site_id = s.site_id"
        " WHERE s.site = ? AND p.url_hash = ? AND p.url = ?",
        (site, url_hash, url),
    )
    return (row[0], row[1]) if row else ("", "")
