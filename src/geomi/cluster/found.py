"""A page that somebody found: how it enters the store, and what becomes of one that is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from geomi.frontier import alias_tables, tables
from geomi.frontier.tables import Known
from geomi.frontier.ways import bring_nearer, readmit
from geomi.records import PASSES_SEEN, Reason
from geomi.states import Outcome
from geomi.store import Store


class NewPage(Struct):
    """A page found. `known` waits for its visit; with a `why` it is refused and only recorded."""

    site_id: int
    known: Known
    url_hash: int
    found: float
    run: int
    why: str = ""
    is_maybe: bool = False  # the seen-filter cannot say: the store decides
    may_be_nearer: bool = False  # depths count, and this way may be shorter than the first one
    by_letter: bool = False  # the inbox has it until this is committed


def page_row(new: NewPage) -> tuple[Any, ...]:
    """Parameters of NEW_PAGE."""
    k = new.known
    return (
        k.page, new.site_id, k.url, new.url_hash, k.depth, k.party, k.kind, k.via, k.hops,
        new.found, new.run, k.outcome, new.why,
    )  # fmt: skip


def found_nearer(
    store: Store, new: NewPage, *, is_settled: Callable[[int], bool] = lambda page: False
) -> NewPage | None:
    """A page that waits and was found by a shorter way, at its new place in line.

    None where it does not wait, lies no nearer this way, or is settled in the same breath.
    Redirects and requisites cost no depth, so a level may find a page of its own after it found
    the same page one level deeper.
    """
    known = bring_nearer(store, new.known, new.site_id, new.url_hash, is_settled=is_settled)
    return None if known is None else replace(new, known=known)


def revive(store: Store, new: NewPage, counts: Counter[str]) -> NewPage | None:
    """A known page that is to wait all the same: by its reason, or refused as found before.

    What robots.txt, the guard or a parked site refused stays refused.
    """
    known = new.known
    if known.reason & PASSES_SEEN:
        return _once_more(store, new, counts)
    page = readmit(store, known, new.site_id, new.url_hash)
    if page is None:
        return None
    counts["outcome.skip"] -= 1
    counts["outcome.NULL"] += 1
    return replace(new, known=known._replace(page=page))


def _once_more(store: Store, new: NewPage, counts: Counter[str]) -> NewPage | None:
    """A page that is due, or of which a notice came: with what the store knows of it.

    One that waits already goes on waiting, for one more reason and no later than asked for.
    """
    there = tables.find_page(store, new.site_id, new.known.url, new.url_hash)
    if there is None or there[2] in (Outcome.BAD, Outcome.ERASED):
        return None
    page = int(there[0])
    if there[2] == Outcome.SKIP:
        if not (new.known.reason & Reason.ALIAS and alias_tables.readmit(store, page)):
            return None
        counts["outcome.skip"] -= 1
        counts["outcome.NULL"] += 1
    if there[3] is not None:
        store.run(
            "UPDATE pending SET reason = reason | ?,"
            " not_before = CASE WHEN not_before > ? THEN ? ELSE not_before END"
            " WHERE site_id = ? AND page = ?",
            (
                new.known.reason,
                new.known.not_before,
                new.known.not_before,
                new.site_id,
                page,
            ),
        )
        return None
    known = tables.known_page(store, page, rank=new.known.rank)
    return replace(new, known=known._replace(
        reason=new.known.reason, not_before=new.known.not_before
    ))  # fmt: skip
