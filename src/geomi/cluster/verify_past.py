"""Visits in Parquet with the store: each is in exactly one of the two. Part of verify."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

from geomi.cluster.verify_archive import Add, Disk, Where
from geomi.history.past import Part, Past, parts_of
from geomi.store import Store


def past_of(store: Store, where: Where, disk: Disk) -> Past:
    """What moved out of the store, as the image says that is open now."""
    return Past.of(store, lambda name: disk.readable(where(name)))


def check_files(
    store: Store, past: Past, add: Add, counts: Counter[str], *, where: Where, disk: Disk
) -> bool:
    """Every file that counts is there, and no stranger. True: they can be read."""
    known = {part.name: part for part in parts_of(store, "writing", "moving", "whole", "replaced")}
    counts["history.files"] = len(past.parts)
    counts["history.visits"] = 0
    is_readable = True
    for part in past.parts:
        size = disk.size(where(part.name))
        if size != part.size:
            seen = "no such file" if size is None else f"{size} bytes"
            add("history", f"{seen}, wanted {part.size} bytes ({part.state})", part.name)
            is_readable = False
    for name in disk.names(where("history")):
        if name.endswith(".parquet") and os.path.join("history", name) not in known:
            # Files have their row before they exist.
            add("stranger", "a file the store does not know", os.path.join("history", name))
    return is_readable


def check_past(
    store: Store, past: Past, add: Add, counts: Counter[str], *, settled: Callable[[str], str],
    quick: bool,
) -> None:  # fmt: skip
    """The moved visits with pages, batches, sites, WARC files. `settled`: see cluster.verify."""
    counts["history.visits"] = past.totals()[0]
    for part in past.parts:
        _check_part(past, part, add)
    _check_sums(store, past, add)
    for site_id, epoch in past.grouped("site_id, max(epoch)", "site_id"):
        row = store.one("SELECT epoch, site FROM sites WHERE site_id = ?", (site_id,))
        if row is None or row[0] < epoch:
            add("epoch", f"a moved visit carries epoch {epoch}, the newest is {row and row[0]}",
                f"site {row[1] if row else site_id}")  # fmt: skip
    for file, first, last, least, end, shortest in past.grouped(
        'file, min(visit), max(visit), min("offset"), max("offset" + length), min(length)',
        "file", "WHERE file > 0",
    ):  # fmt: skip
        row = store.one(
            "SELECT state, first_visit, last_visit, committed FROM files WHERE file = ?", (file,)
        )
        if row is None:
            add("place", f"moved visits {first} to {last} are kept in file {file}, which is not"
                " in the store", f"file {file}")  # fmt: skip
        elif not (
            row[0] == "closed" and row[1] <= first <= last <= row[2] and least >= 0
            and shortest > 0 and end <= row[3]
        ):  # fmt: skip
            add("place", f"moved visits {first} to {last} are beyond what is committed of it",
                f"file {file}")  # fmt: skip
    if not quick:
        _check_settled(store, past, add, settled("v"))


def _check_part(past: Past, part: Part, add: Add) -> None:
    alone = Past([part._replace(state="whole")], past.where)
    rows, visits = alone.over_all("count(*), count(DISTINCT visit)")
    if rows != part.rows or visits != rows:
        add("history", f"{rows} rows of {visits} visits, wanted {part.rows}", part.name)


def _check_sums(store: Store, past: Past, add: Add) -> None:
    """Of each page and batch so many visits moved as it says."""
    for what, table in (("page", "pages"), ("batch", "batches")):
        total = 0
        where = f"WHERE {what} > 0"
        for number, moved in past.grouped(f"{what}, count(*)", what, where):
            total += moved
            row = store.one(f"SELECT moved FROM {table} WHERE {what} = ?", (number,))
            if row is None or row[0] != moved:
                add("moved", f"{moved} visits of it are in Parquet, it says {row and row[0]}",
                    f"{what} {number}")  # fmt: skip
        said = store.one(f"SELECT coalesce(sum(moved), 0) FROM {table} WHERE moved <> 0")
        if said is not None and said[0] != total:
            add("moved", f"{said[0]} visits are said to be in Parquet, counted {total}", table)


def _check_settled(store: Store, past: Past, add: Add, settled: str) -> None:
    """No visit that moved settled its page in a run in which another did."""
    for page, run, first, number in past.grouped(
        "page, run, min(visit), count(*)", "page, run", f"WHERE page > 0 AND {settled}"
    ):
        other = store.one(
            "SELECT min(v.visit) FROM visits v WHERE v.page = ? AND v.page > 0 AND v.run = ?"
            f" AND {settled}",
            (page, run),
        )
        if number > 1 or (other is not None and other[0] is not None):
            add("committed twice", f"visits {first} and another settled it in run {run}",
                f"page {page}")  # fmt: skip
