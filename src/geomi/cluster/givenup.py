"""Pages that are not asked for: what they are counted as, and all of a site at once."""

from __future__ import annotations

from collections import Counter

from geomi.frontier import tables
from geomi.states import Outcome
from geomi.store import Store

REFUSED = frozenset({Outcome.SKIP, Outcome.DENY})


def refused_as(why: str) -> str:
    """The counter of pages that were refused: `trap:depth` -> `refused.trap_depth`.

    Of others what stands behind the colon is a number, or one of many words.
    """
    name, _, more = why.partition(":")
    return f"refused.trap_{more}" if name == "trap" else f"refused.{name}"


def give_up_site(
    store: Store, site_id: int, outcome: str, why: str, run: int, counts: Counter[str],
    *, prefix: str = "",
) -> None:  # fmt: skip
    """All that waits at a site, under a prefix, takes one state and waits no longer."""
    which = (
        "page IN (SELECT w.page FROM pending w JOIN pages p ON p.page = w.page"
        " WHERE w.site_id = ? AND substr(p.url, 1, CAST(? AS INTEGER)) = ?)"
    )
    params = (site_id, len(prefix), prefix)
    for before, number in store.all(
        f"SELECT outcome, count(*) FROM pages WHERE {which} GROUP BY outcome", params
    ):
        counts["outcome." + before] -= number
        counts["outcome." + outcome] += number
        if outcome in REFUSED:
            counts[refused_as(why)] += number
    store.run(
        f"UPDATE pages SET outcome = ?, why = ?, run = ?, fails = fails + 1 WHERE {which}",
        (outcome, why, run, *params),
    )
    store.run(
        "UPDATE seeds SET outcome = ? WHERE (url, url_hash) IN"
        f" (SELECT url, url_hash FROM pages WHERE {which})",
        (outcome, *params),
    )
    counts["pages.pending"] -= store.run(
        f"DELETE FROM pending WHERE site_id = ? AND {which}", (site_id, *params)
    )
    # What the batch itself put there is counted by its caller: set, do not add.
    tables.refresh_waiting(store, [site_id])
