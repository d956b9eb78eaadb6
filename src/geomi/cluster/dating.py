"""The time of a collection that SQLite keeps: the date as a crawl began, and counted on since.

All processes of a crawl agree about leases, rests and waits, whatever somebody does to the date
meanwhile. (PostgreSQL has a clock of its own, which agents follow.)
"""

from __future__ import annotations

from geomi.records import Reason
from geomi.store import Store

_NAME = "clock"
_SLIGHT_S = 1.0  # a date that was put right by less is left alone


def set_out(store: Store, *, date: float, counter: float, boot: str) -> float:
    """The date at which the counter was zero, from now on. Asked while no agent lives.

    Where the date was set since the last crawl, all that waits or rests until some time is moved
    with it, so that it waits as long as it was to. `boot` tells one counting from the next.
    """
    zero = date - counter
    with store.transaction():
        before = zero_of(store, boot=boot)
        if before is not None:
            if abs(zero - before) <= _SLIGHT_S:
                return before
            _move(store, zero - before)
        store.run(
            "INSERT INTO meta (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (_NAME, f"{boot} {zero!r}"),
        )
    return zero


def zero_of(store: Store, *, boot: str) -> float | None:
    """What set_out said last; None: nothing since the machine started."""
    row = store.one("SELECT value FROM meta WHERE name = ?", (_NAME,))
    told, _, zero = row[0].rpartition(" ") if row is not None else ("", "", "")
    return float(zero) if row is not None and told == boot else None


def _move(store: Store, by_s: float) -> None:
    """(What is due by a timetable is due by the calendar, and stays.)"""
    for table, column, of in (
        ("sites", "rest_until", ""),
        ("sites", "next_due", ""),
        ("addresses", "until", ""),
        ("robots", "expires", ""),
        ("robots", "failing_since", ""),
        ("pending", "not_before", f" AND reason NOT IN ({int(Reason.DUE)}, {int(Reason.NOTICE)})"),
    ):
        store.run(f"UPDATE {table} SET {column} = {column} + ? WHERE {column} > 0{of}", (by_s,))
