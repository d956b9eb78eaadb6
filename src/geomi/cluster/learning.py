"""Rules of equal URLs: learned from digests, checked, withdrawn, given by hand.

While no crawl runs: the caller holds the collection's lock.
"""

from __future__ import annotations

from collections import Counter

from geomi.archive.names import EMPTY_DIGEST
from geomi.cluster.mergers import want_skipped
from geomi.errors import OperatorError
from geomi.frontier import equivalence_tables as tables
from geomi.frontier.equivalence_tables import Row
from geomi.frontier.equivalences import (
    CHECKED,
    Evidence,
    Rule,
    candidates,
    is_believed,
    parse,
    weighed,
)
from geomi.records import Reason
from geomi.store import Store

_PAGES = 100_000  # of one site that are looked at
_AT_ONCE = 2_000  # wanted again
#: So much is listed as proposed; less is chance.
_WORTH_TELLING = 2
#: Checks that fail before a rule is withdrawn: one page may have changed between two visits.
_FAILS = 2


def learn(store: Store, *, confidence: float) -> Counter[str]:
    """Looks at all sites: new rules are proposed or applied, those that fail are withdrawn."""
    done: Counter[str] = Counter()
    for site_id, _ in list(tables.sites(store)):
        pages = [
            page for page in tables.contents_of(store, site_id, _PAGES) if page[1] != EMPTY_DIGEST
        ]
        known = tables.of_site(store, site_id)
        rules = dict.fromkeys([*candidates(url for url, _ in pages), *known])
        for rule in rules:
            evidence = weighed(rule, pages)
            row = known.get(rule)
            state, by = _state(row, evidence, confidence)
            if not state:
                continue
            with store.transaction():
                tables.put(store, site_id, rule, evidence, state=state, by=by, at=store.now())
            if row is None or row.state != state:
                done[state] += 1
            if row is not None and state == "withdrawn" != row.state:
                done["wanted"] += want_again(store, row)
    return done


def _state(row: Row | None, evidence: Evidence, confidence: float) -> tuple[str, str]:
    """The state of a rule and who decided; empty: it is not worth a row."""
    believed = is_believed(evidence, confidence)
    if row is None:
        if believed:
            return "active", "digests"
        return ("proposed" if evidence.support >= _WORTH_TELLING else ""), "digests"
    if row.state == "active":
        # What it skips gives no evidence any more: few agree, so only what differs counts.
        every = evidence.support + evidence.against
        if evidence.against >= _FAILS and evidence.against > (1 - confidence) * every:
            return "withdrawn", "digests"
        return row.state, row.by
    if row.state == "proposed" and believed:
        return "active", "digests"
    return row.state, row.by


def want_again(store: Store, row: Row) -> int:
    """The URLs that a rule skipped wait; their number."""
    number = 0
    while some := tables.some_skipped(store, row, _AT_ONCE):
        with store.transaction():
            want_skipped(store, row.site_id, some, reason=Reason.LINK)
        number += len(some)
    return number


def add(store: Store, site: str, text: str) -> Row:
    """A rule by hand: it is applied, whatever the digests say, until it is removed or fails."""
    rule = parse(text)
    if rule is None:
        raise OperatorError(
            f"{text!r}: wanted drop NAME, index NAME, scheme http|https, order or slash"
        )
    found = store.one("SELECT site_id FROM sites WHERE site = ?", (site,))
    if found is None:
        raise OperatorError(f"{site}: not a site of this collection")
    pages = tables.contents_of(store, found[0], _PAGES)
    with store.transaction():
        tables.put(
            store, found[0], rule, weighed(rule, pages), state="active", by="hand",
            at=store.now(),
        )  # fmt: skip
    return tables.of_site(store, found[0])[rule]


def remove(store: Store, number: int) -> tuple[Row, int]:
    """A rule is not applied any more, nor learned again; (it, URLs that are wanted again)."""
    row = tables.by_number(store, number)
    if row is None:
        raise OperatorError(f"rule {number}: there is none of that number")
    with store.transaction():
        store.run(
            "UPDATE rules SET state = 'removed', \"by\" = 'hand', at = ? WHERE rule = ?",
            (store.now(), number),
        )
    return row, want_again(store, row)


__all__ = ["CHECKED", "Rule", "add", "learn", "remove", "want_again"]
