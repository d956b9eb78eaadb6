"""Tables, a page found by another way: it is let in after all, or waits nearer to its seed."""

from __future__ import annotations

from collections.abc import Callable

from geomi.frontier.tables import KNOWN, Known
from geomi.store import Store


def readmit(store: Store, known: Known, site_id: int, url_hash: int) -> int | None:
    """A page that was refused by the way it was found first is in by this one. Its id, or None.

    What robots.txt, the guard or a parked site refused stays refused.
    """
    row = store.one(
        "UPDATE pages SET outcome = 'NULL', why = '', depth = ?, party = ?, kind = ?, via = ?,"
        " hops = ? WHERE site_id = ? AND url_hash = ? AND url = ? AND outcome = 'skip'"
        " AND why IN ('depth', 'prefix', 'include', 'max_pages') RETURNING page",
        (
            known.depth, known.party, known.kind, known.via, known.hops, site_id, url_hash,
            known.url,
        ),
    )  # fmt: skip
    return None if row is None else int(row[0])


def bring_nearer(
    store: Store, known: Known, site_id: int, url_hash: int, *, is_settled: Callable[[int], bool]
) -> Known | None:
    """Moves a waiting page to the depth and the place in line of `known`, if that is nearer.

    Returns how it waits now. None: it does not wait at its depth, or is no farther than that.
    """
    row = store.one(
        "SELECT page, depth FROM pages WHERE site_id = ? AND url_hash = ? AND url = ?"
        " AND depth > ?",
        (site_id, url_hash, known.url, known.depth),
    )
    if (
        row is None
        or is_settled(row[0])
        or not store.run(
            "UPDATE pending SET depth = ? WHERE site_id = ? AND depth = ? AND page = ?",
            (known.rank, site_id, row[1], row[0]),
        )
    ):
        return None
    store.run(
        "UPDATE pages SET depth = ?, kind = ?, via = ?, hops = ? WHERE page = ?",
        (known.depth, known.kind, known.via, known.hops, row[0]),
    )
    moved = store.one(
        f"SELECT {KNOWN} FROM pending w JOIN pages p ON p.page = w.page"
        " WHERE w.site_id = ? AND w.depth = ? AND w.page = ?",
        (site_id, known.rank, row[0]),
    )
    assert moved is not None
    return Known(*moved)
