"""A collection with any number of known pages, filled in seconds, that `geomi verify` calls valid.

Each known page was visited once and answered (nothing of it is stored), or waits to be asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from geomi import url as urls
from geomi.archive.names import sha1_b32
from geomi.cluster import tables as cluster_tables
from geomi.cluster.collection import Collection
from geomi.frontier import counters
from geomi.frontier import tables as frontier
from geomi.history import tables as history
from geomi.records import Reason
from geomi.seeds import tables as seeds
from geomi.store import Store

_BATCH = 250  # visits, as agents write them
_SLICE = 100_000  # pages a transaction
_WHEN = 1_700_000_000.0

_PAGE = (
    "INSERT INTO pages (page, site_id, url, url_hash, depth, party, kind, via, found, run, outcome,"
    " code, mime, digest, size, seconds, visited, visits, etag)"
    " VALUES (?, ?, ?, ?, 3, ?, 'a', ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def fill(
    path: Path, *, sites: Sequence[str], known: int, waiting: bool, settings: dict[str, object]
) -> None:
    """Makes the collection: `known` pages `/known/N.html`, spread over `sites` (host:port).

    `waiting`: all of them are still to be asked; else all were, in a run that is done.
    """
    Collection(path).create(settings)
    place = Collection(path)
    store = place.open_store(place.settings())
    try:
        _fill(store, sites, known, waiting=waiting)
    finally:
        store.close()


def _fill(store: Store, sites: Sequence[str], known: int, *, waiting: bool) -> None:
    with store.transaction():
        run = cluster_tables.begin_run(store, "first", json.dumps({}), _WHEN)
        cluster_tables.set_run(store, run, "done", "", _WHEN + 1.0)
        first = counters.take_ids(store, "page", known)
    ids: list[tuple[int, int]] = []
    with store.transaction():
        for site in sites:
            number = frontier.add_site(
                store, site, domain=urls.domain_of(site.partition(":")[0]), admitted="given",
                now=_WHEN,
            )  # fmt: skip
            start = f"http://{site}/known/0.html"
            seed, _ = seeds.add_seed(
                store, start, url_hash=urls.url_hash(start), site=site, labels={},
                source="given", now=_WHEN,
            )  # fmt: skip
            ids.append((number, seed))
    for begin in range(0, known, _SLICE):
        numbers = range(begin, min(begin + _SLICE, known))
        with store.transaction():
            store.many(_PAGE, _pages(sites, ids, numbers, first, waiting=waiting))
            if waiting:
                store.many(
                    frontier.PUT_PENDING,
                    [
                        (ids[n % len(ids)][0], 3, first + n, int(Reason.LINK), 0.0, 0.0, 0)
                        for n in numbers
                    ],
                )
            else:
                _visits(store, sites, ids, numbers, first)
    outcome = "NULL" if waiting else "OK"
    visits = 0 if waiting else known
    with store.transaction():
        counters.count(
            store,
            [("pages.known", known), (f"outcome.{outcome}", known), ("visits", visits),
             ("requests", visits), ("bytes", visits * 4000), ("pages.pending", known - visits)],
        )  # fmt: skip
        frontier.refresh_waiting(store, [number for number, _ in ids])


def known_url(site: str, place: int) -> str:
    """The URL of the known page at this place among those of its site."""
    return f"http://{site}/known/{place}.html"


def visit_again(path: Path, *, known: int, times: int) -> None:
    """Each of the known pages was visited so often more, once a day, in runs of its own."""
    place = Collection(path)
    store = place.open_store(place.settings())
    try:
        ((site_id, site),) = store.all("SELECT site_id, site FROM sites")
        ((first,),) = store.all("SELECT min(page) FROM pages")
        for time in range(1, times + 1):
            at = _WHEN + time * 86_400
            with store.transaction():
                run = cluster_tables.begin_run(store, "again", json.dumps({}), at)
                cluster_tables.set_run(store, run, "done", "", at + 1.0)
                for begin in range(0, known, _BATCH):
                    some = range(begin, min(begin + _BATCH, known))
                    batch = history.open_batch(store, "a0", 0, at + 1.0)
                    rows = [
                        (
                            first + n, site_id, "", "page", run, int(Reason.AGAIN), 0, site,
                            "127.0.0.1", at + n / 1000, at + n / 1000 + 0.01, "OK", 200,
                            "text/html", _digest(f"{n} {(n + time) // 7}"), 4000,
                            int((n + time) % 7 == 0), 0, 0, 0, "", 0, batch, "",
                        )
                        for n in some
                    ]  # fmt: skip
                    history.put_visits(store, batch, rows)
                store.run("UPDATE pages SET visits = visits + 1")
                counters.count(
                    store, [("visits", known), ("requests", known), ("bytes", known * 4000)]
                )
            history.number_batches(store)
    finally:
        store.close()


def _digest(url: str) -> str:
    return sha1_b32(url.encode())


def _pages(
    sites: Sequence[str], ids: Sequence[tuple[int, int]], numbers: range, first: int, *,
    waiting: bool,
) -> Iterator[tuple[object, ...]]:  # fmt: skip
    for n in numbers:
        site = sites[n % len(sites)]
        number, seed = ids[n % len(sites)]
        url = known_url(site, n // len(sites))
        via = known_url(site, n // len(sites) // 10)
        start = (first + n, number, url, urls.url_hash(url), seed, via, _WHEN)
        if waiting:
            yield (*start, "NULL", 0, "", "", 0, 0.0, 0.0, 0, "")
        else:
            yield (
                *start,
                "OK",
                200,
                "text/html",
                sha1_b32(url.encode()),
                4000,
                0.01,
                _WHEN,
                1,
                f'"{n}"',
            )


def _visits(
    store: Store, sites: Sequence[str], ids: Sequence[tuple[int, int]], numbers: range, first: int
) -> None:
    for begin in range(numbers.start, numbers.stop, _BATCH):
        some = range(begin, min(begin + _BATCH, numbers.stop))
        batch = history.open_batch(store, "a0", 0, _WHEN + 1.0)
        history.put_visits(
            store,
            batch,
            [
                (
                    first + n, ids[n % len(sites)][0], "", "page", 1, int(Reason.LINK), 0,
                    sites[n % len(sites)], "127.0.0.1", _WHEN, _WHEN + 0.01, "OK", 200,
                    "text/html", _digest(known_url(sites[n % len(sites)], n // len(sites))), 4000,
                    -1, 0, 0, 0, "", 0, batch, "",
                )
                for n in some
            ],
        )  # fmt: skip
    history.number_batches(store)
