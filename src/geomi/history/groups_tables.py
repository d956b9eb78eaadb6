"""Pages of a site with the features of their contents, and probes: what candidates are made of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from geomi.history.meaningless import PROBE_AGAIN_S, PROBE_KIND, Content, is_front
from geomi.store import Store
from geomi.url import url_hash

#: URLs looked at of one text. Fewer than this is what most sites' walls have under one text.
MOST_URLS = 50
#: Texts of one site that are compared; the most frequent come first, so what is left out stands
#: under one URL each. 3 KB each.
MOST_CONTENTS = 20_000

#: Support counts only what was not filtered: void pages are left out.
_PAGES = (
    "SELECT site_id, main, digest, simhash, words, hints, url, n FROM ("
    " SELECT p.site_id, f.main, f.digest, f.simhash, f.words, f.hints, p.url,"
    " count(*) OVER (PARTITION BY p.site_id, f.main) AS n,"
    " row_number() OVER (PARTITION BY p.site_id, f.main ORDER BY p.url) AS k"
    " FROM pages p JOIN features f ON f.digest = p.digest"
    f" WHERE p.outcome IN ('OK', 'cut', 'same') AND p.kind <> '{PROBE_KIND}' AND f.main <> ''"
    ") AS counted WHERE k <= ? ORDER BY site_id, n DESC, main, k"
)


def contents(store: Store) -> Iterator[tuple[int, list[Content]]]:
    """Site by site its texts, the most frequent first; the front page's URL is in none."""
    for site_id, rows in groupby(store.each(_PAGES, (MOST_URLS,)), itemgetter(0)):
        found: list[Content] = []
        for main, pages in groupby(rows, itemgetter(1)):
            if len(found) >= MOST_CONTENTS:
                continue
            digests: dict[str, int] = {}
            urls = []
            for row in pages:
                digest, url = row[2], row[6]
                if is_front(url):
                    continue
                urls.append(url)
                digests[digest] = digests.get(digest, 0) + 1
            if urls:
                _, _, _, simhash, words, rule, _, number = row
                found.append(Content(
                    same=main, simhash=simhash, words=words, rule=rule, digests=digests,
                    urls=tuple(urls), pages=max(len(urls), number if number > MOST_URLS else 0),
                ))  # fmt: skip
        yield site_id, found


def site_name(store: Store, site_id: int) -> str:
    row = store.one("SELECT site FROM sites WHERE site_id = ?", (site_id,))
    return str(row[0]) if row else ""


def depth_of(store: Store, site_id: int, url: str) -> int:
    row = store.one(
        "SELECT depth FROM pages WHERE site_id = ? AND url_hash = ? AND url = ?",
        (site_id, url_hash(url), url),
    )
    return int(row[0]) if row else 1


# -- probes ----------------------------------------------------------------------------------------


def asked(store: Store, directory: str, *, now: float) -> bool:
    """True if the directory was asked within the time."""
    row = store.one("SELECT wanted FROM probes WHERE directory = ?", (directory,))
    return row is not None and row[0] > now - PROBE_AGAIN_S


def put_probe(store: Store, directory: str, site_id: int, url: str, *, now: float) -> None:
    store.run(
        "INSERT INTO probes (directory, site_id, url, url_hash, wanted) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (directory) DO UPDATE SET url = excluded.url, url_hash = excluded.url_hash,"
        " wanted = excluded.wanted, decided = 0, outcome = '', digest = ''",
        (directory, site_id, url, url_hash(url), now),
    )


def answered(store: Store, *, now: float) -> int:
    """Probes whose page came to something since take it over; how many."""
    rows = store.all(
        "SELECT r.directory, p.outcome, p.digest FROM probes r JOIN pages p"
        " ON p.site_id = r.site_id AND p.url_hash = r.url_hash AND p.url = r.url AND p.kind = ?"
        " WHERE r.decided = 0 AND p.outcome <> 'NULL' AND NOT EXISTS"
        " (SELECT 1 FROM pending w WHERE w.site_id = p.site_id AND w.page = p.page)",
        (PROBE_KIND,),
    )
    store.many(
        "UPDATE probes SET decided = ?, outcome = ?, digest = ? WHERE directory = ?",
        [
            (now, outcome, digest if outcome in ("OK", "cut", "same", "void") else "", directory)
            for directory, outcome, digest in rows
        ],
    )
    return len(rows)


def probed(store: Store, site_id: int) -> dict[str, str]:
    """Names of main texts that a probe of the site came to, each with its directory."""
    return dict(
        store.all(
            "SELECT f.main, min(r.directory) FROM probes r JOIN features f ON f.digest = r.digest"
            " WHERE r.site_id = ? AND r.digest <> '' AND f.main <> '' GROUP BY f.main",
            (site_id,),
        )
    )
