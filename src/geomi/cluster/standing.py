"""Where a crawl stands, from counters: cheap whatever the size of the collection."""

from __future__ import annotations

from dataclasses import dataclass, field

from geomi.frontier.counters import counters as counters_of
from geomi.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the crawl stands, for progress and for knowing its end."""

    known: int
    pending: int
    visits: int
    requests: int
    size_bytes: int
    outcomes: dict[str, int]
    held: int  # sites leased
    due: int  # sites nobody holds with something due within patience
    waiting_later: int  # sites with something due beyond patience
    letters: int
    next_due: float  # soonest of the sites nobody holds; 0: none
    # What else was counted on the way: certificates, cookies, links, redirects, …
    counters: dict[str, int] = field(default_factory=dict)


def standing(store: Store, *, patience_s: float, now: float) -> Standing:
    """Counters, not counts: cheap whatever the size of the collection."""
    soon = now + patience_s
    with store.image():  # a site given back between two looks would be neither held nor due
        counters = counters_of(store)
        row = store.one(
            "SELECT count(*) FILTER (WHERE at <= ?), count(*) FILTER (WHERE at > ?),"
            " coalesce(min(at), 0)"
            " FROM (SELECT CASE WHEN next_due > rest_until THEN next_due ELSE rest_until END AS at"
            " FROM sites WHERE waiting > 0 AND holder = '' AND state = 'open') AS free",
            (soon, soon),
        )
        held = store.one("SELECT count(*) FROM sites WHERE holder <> ''")
        letter = store.one("SELECT 1 FROM inbox LIMIT 1")
    due, later, next_due = row if row else (0, 0, 0.0)
    return Standing(
        known=counters.get("pages.known", 0),
        pending=counters.get("pages.pending", 0),
        visits=counters.get("visits", 0),
        requests=counters.get("requests", 0),
        size_bytes=counters.get("bytes", 0),
        outcomes={
            name.removeprefix("outcome."): value
            for name, value in sorted(counters.items())
            if name.startswith("outcome.") and value
        },
        held=int(held[0]) if held else 0,
        due=int(due),
        waiting_later=int(later),
        letters=1 if letter else 0,
        next_due=float(next_due),
        counters={
            name: value
            for name, value in sorted(counters.items())
            if "." in name and value and not name.startswith(("outcome.", "pages.", "next."))
        },
    )


def is_idle(store: Store, *, patience_s: float, now: float) -> bool:
    """Nothing is held, due within patience, or in the inbox. Cheap whatever the number of sites.

    One sentence: a site given back between two looks would be neither held nor due.
    """
    soon = now + patience_s
    row = store.one(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM sites WHERE holder <> '')"
        " OR EXISTS (SELECT 1 FROM sites WHERE waiting > 0 AND holder = '' AND state = 'open'"
        " AND next_due <= ? AND rest_until <= ?)"
        " OR EXISTS (SELECT 1 FROM inbox)",
        (soon, soon),
    )
    return row is None
