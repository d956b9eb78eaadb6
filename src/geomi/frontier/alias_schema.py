"""The tables of names that may be one site: front pages, pairs of names, and what was compared."""

from __future__ import annotations

from geomi.store.migrate import Migration

ALIASES: Migration = (
    # Filled by the holder of a site when its front page has come; looked at by the coordinator.
    """CREATE TABLE faces (
        site_id INTEGER NOT NULL,
        url TEXT NOT NULL,                    -- scheme://site/
        digest TEXT NOT NULL,
        address TEXT NOT NULL,                -- that it came from
        looked INTEGER NOT NULL DEFAULT 0,    -- 0: the coordinator has not looked at it yet
        PRIMARY KEY (site_id, url)
    )""",
    "CREATE INDEX faces_by_digest ON faces (digest, address)",
    "CREATE INDEX faces_new ON faces (site_id) WHERE looked = 0",
    """CREATE TABLE aliases (
        pair INTEGER PRIMARY KEY,
        site_id INTEGER NOT NULL,             -- whose URLs are kept
        alias_id INTEGER NOT NULL,            -- its other name
        relation TEXT NOT NULL,               -- why they were compared: www, address …, hand
        state TEXT NOT NULL,                  -- see frontier.aliases.State
        ends TEXT NOT NULL DEFAULT '',        -- what it becomes after parting
        why TEXT NOT NULL DEFAULT '',
        found REAL NOT NULL,
        decided REAL NOT NULL DEFAULT 0,
        looks INTEGER NOT NULL DEFAULT 0,
        next_look REAL NOT NULL DEFAULT 0,
        checked INTEGER NOT NULL DEFAULT 0    -- run at whose end pages were compared once more
    )""",
    "CREATE UNIQUE INDEX aliases_of_both ON aliases (alias_id, site_id)",
    "CREATE INDEX aliases_of_site ON aliases (site_id)",
    "CREATE INDEX aliases_moving ON aliases (state, next_look)",
    """CREATE TABLE alias_tests (
        test INTEGER PRIMARY KEY,
        pair INTEGER NOT NULL,
        kind TEXT NOT NULL,                   -- front, robots, sample; check: after the merge
        url TEXT NOT NULL,                    -- under the name that is kept
        alias_url TEXT NOT NULL,
        made REAL NOT NULL,
        decided REAL NOT NULL DEFAULT 0,
        verdict TEXT NOT NULL DEFAULT '',     -- agree, differ, unknown; empty: open
        said TEXT NOT NULL DEFAULT '',        -- what the page of the kept name came to
        alias_said TEXT NOT NULL DEFAULT '',
        again TEXT NOT NULL DEFAULT '',       -- whose older visit was made again: kept, alias
        visits INTEGER NOT NULL DEFAULT 0,    -- that page had before
        was TEXT NOT NULL DEFAULT '',         -- what it came to before
        looks INTEGER NOT NULL DEFAULT 0,
        next_look REAL NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX alias_tests_of ON alias_tests (pair)",
    "CREATE INDEX alias_tests_open ON alias_tests (next_look) WHERE verdict = ''",
    # Sites that the coordinator wants back from their holders, and gives to nobody meanwhile.
    "CREATE TABLE recalled (site_id INTEGER PRIMARY KEY)",
    # What a collection of an earlier schema has.
    "INSERT INTO faces (site_id, url, digest, address) SELECT p.site_id, p.url, p.digest,"
    " coalesce((SELECT v.address FROM visits v WHERE v.page = p.page AND v.page > 0"
    " ORDER BY v.visit DESC LIMIT 1), '') FROM pages p JOIN sites s ON s.site_id = p.site_id"
    " WHERE p.outcome = 'OK' AND p.size > 0"
    " AND p.url IN ('http://' || s.site || '/', 'https://' || s.site || '/')",
)  # fmt: skip
#: However many there are: pairs that were not compared once more in a run, and equal front pages.
CHECKED: Migration = (
    "CREATE INDEX aliases_checked ON aliases (state, checked)",
    "CREATE INDEX faces_alike ON faces (digest, address, site_id)",
    "DROP INDEX faces_by_digest",
)
