"""Seeds, and the candidates found on the way that no rule admitted.

`outside` holds URLs beyond the admitted sites, at most `seeds.outside_per_site` a site: they are
the paper's candidate seeds, and what a looser scope wants again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from geomi.store import Both, Store

SCHEMA_1 = (
    """CREATE TABLE seeds (
        seed INTEGER PRIMARY KEY,
        url TEXT NOT NULL UNIQUE,
        url_hash INTEGER NOT NULL,
        site TEXT NOT NULL,
        labels TEXT NOT NULL DEFAULT '{}',    -- JSON: category, institution, community …
        source TEXT NOT NULL,                 -- given, found, redirect; or the file it came from
        added REAL NOT NULL,
        page INTEGER NOT NULL DEFAULT 0,
        digest TEXT NOT NULL DEFAULT '',      -- of the front page
        outcome TEXT NOT NULL DEFAULT 'NULL', -- of the seed's own page
        party_started REAL NOT NULL DEFAULT 0,
        party_ended REAL NOT NULL DEFAULT 0,  -- when the last page of the party was settled
        pages INTEGER NOT NULL DEFAULT 0,     -- admitted to the party
        followed TEXT NOT NULL DEFAULT ''     -- site that a redirect of the seed led to
    )""",
    "CREATE INDEX seeds_by_site ON seeds (site)",
    """CREATE TABLE outside (
        url_hash INTEGER NOT NULL,
        url TEXT NOT NULL,
        site TEXT NOT NULL,
        domain TEXT NOT NULL,
        kind TEXT NOT NULL,
        via TEXT NOT NULL,
        depth INTEGER NOT NULL,
        party INTEGER NOT NULL,
        found REAL NOT NULL,
        PRIMARY KEY (url_hash, url)
    )""",
    "CREATE INDEX outside_by_site ON outside (site)",
    # Sites outside whose address was asked, where admission goes by address.
    """CREATE TABLE asked (
        site TEXT PRIMARY KEY,
        answer TEXT NOT NULL,                 -- admitted, refused
        asked REAL NOT NULL
    )""",
    # PostgreSQL indexes no text beyond some 2,700 bytes: there the digest of a URL is the key.
    Both("", "ALTER TABLE seeds DROP CONSTRAINT seeds_url_key"),
    Both("", "CREATE UNIQUE INDEX seeds_by_url ON seeds (url_hash, md5(url))"),
    Both("", "ALTER TABLE outside DROP CONSTRAINT outside_pkey"),
    Both("", "CREATE UNIQUE INDEX outside_by_url ON outside (url_hash, md5(url))"),
)

PUT_OUTSIDE = (
    "INSERT INTO outside (url_hash, url, site, domain, kind, via, depth, party, found)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)


def add_seed(
    store: Store,
    url: str,
    *,
    url_hash: int,
    site: str,
    labels: Mapping[str, str],
    source: str,
    now: float,
) -> tuple[int, bool]:
    """The seed's id, and whether it is new. Labels of a known seed are renewed."""
    there = "SELECT seed, labels FROM seeds WHERE url_hash = ? AND url = ?"
    row = store.one(there, (url_hash, url))
    text = json.dumps(dict(labels), ensure_ascii=False, sort_keys=True)
    if row is not None:
        if labels and row[1] != text:
            store.run("UPDATE seeds SET labels = ? WHERE seed = ?", (text, row[0]))
        return int(row[0]), False
    row = store.one(
        "INSERT INTO seeds (url, url_hash, site, labels, source, added) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING RETURNING seed",
        (url, url_hash, site, text, source, now),
    )
    if row is None:  # another writer added it this moment
        row = store.one(there, (url_hash, url))
        assert row is not None
        return int(row[0]), False
    return int(row[0]), True


def all_seeds(store: Store) -> Iterator[tuple[Any, ...]]:
    """(seed, url, site, labels, source, outcome, pages, digest, seconds of the party)."""
    return store.each(
        "SELECT seed, url, site, labels, source, outcome, pages, digest,"
        " CASE WHEN party_ended > party_started THEN party_ended - party_started ELSE 0 END"
        " FROM seeds ORDER BY seed"
    )


def labels_of(store: Store) -> Iterator[tuple[int, dict[str, str]]]:
    """(seed, labels), by seed."""
    for seed, text in store.each("SELECT seed, labels FROM seeds ORDER BY seed"):
        yield seed, json.loads(text)


def candidates(store: Store) -> Iterator[tuple[Any, ...]]:
    """(site, number of URLs, one URL, found on) of sites that no rule admitted."""
    return store.each(
        "SELECT site, count(*), min(url), min(via) FROM outside GROUP BY site ORDER BY site"
    )


def given_domains(store: Store) -> set[str]:
    """Registrable domains of the seeds that were given."""
    return {
        row[0]
        for row in store.all(
            "SELECT DISTINCT s.domain FROM seeds d JOIN sites s ON s.site = d.site"
            " WHERE d.source <> 'found'"
        )
    }
