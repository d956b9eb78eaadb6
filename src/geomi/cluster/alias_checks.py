"""Names that were merged are compared now and then: some pages that the kept name has, another part
each time, and those of which it has no content though the other name was said to have them.
"""

from __future__ import annotations

from collections.abc import Container

from geomi import url as urls
from geomi.cluster.mergers import site_name
from geomi.config import Settings
from geomi.frontier import alias_tables, aliases, counters, tables
from geomi.frontier.aliases import State
from geomi.records import Reason, Wanted
from geomi.states import HAD, TRANSIENT, Outcome
from geomi.store import Store

_ROUND_S = 6 * 3_600.0
_PAIRS_A_STEP = 20
_CHECKS_A_ROUND = 100  # of one pair
_SKIPPED_A_ROUND = 2_000  # so many URLs that were not asked for are looked through
_LEAST_MISSING = 20  # so many of those without content are asked for, however small the share


class Checks:
    """Wants pages under the second name. What comes of it is a test like any other."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def begin_run(self, *, now: float) -> None:
        """Inside the transaction that begins a run: the front pages are compared at once."""
        if self._settings.alias.check <= 0:
            return
        for pair, _, kept_id, alias_id, _ in alias_tables.in_state(
            self._store, (State.MERGED,), limit=1_000_000
        ):
            face = self._store.one("SELECT url FROM faces WHERE site_id = ? LIMIT 1", (alias_id,))
            if face is not None:
                kept = site_name(self._store, kept_id)
                self._compare(pair, [(urls.under(face[0], kept), face[0])], now)

    def step(self, *, run: int, now: float, is_end: bool) -> int:
        """Rounds that are due; at the end of a run one more. Returns how many pages are wanted."""
        share = self._settings.alias.check
        if share <= 0:
            return 0
        which = "checked" if is_end else "next_look"
        rows = self._store.all(
            "SELECT pair, site_id, alias_id, looks FROM aliases WHERE state = 'merged'"
            f" AND {which} <= ? ORDER BY {which}, pair LIMIT ?",
            (run - 1 if is_end else now, _PAIRS_A_STEP),
        )
        for pair, kept_id, alias_id, looks in rows:
            with self._store.transaction():
                self._round(pair, kept_id, alias_id, looks, share=share, run=run, now=now)
                self._store.run(
                    "UPDATE aliases SET looks = looks + 1, next_look = ?, checked = ?"
                    " WHERE pair = ?",
                    (now + _ROUND_S, run, pair),
                )
        return len(rows)

    def _round(
        self, pair: int, kept_id: int, alias_id: int, looks: int, *, share: float, run: int,
        now: float,
    ) -> None:  # fmt: skip
        store = self._store
        kept, alias = site_name(store, kept_id), site_name(store, alias_id)
        pages = [
            (url, urls.under(url, alias))
            for url in alias_tables.part_of(
                store, kept_id, share=share, start=aliases.part_begins(looks),
                limit=_CHECKS_A_ROUND,
            )
        ]  # fmt: skip
        skipped = alias_tables.skipped(
            store, alias_id, after=aliases.part_begins(looks), limit=_SKIPPED_A_ROUND
        )
        there = alias_tables.twins(store, kept_id, [urls.under(url, kept) for url in skipped])
        missing = [
            (urls.under(url, kept), url)
            for url in skipped
            if (twin := there.get(urls.under(url, kept))) is not None
            and twin.outcome not in HAD
            and twin.outcome not in TRANSIENT
            and twin.outcome not in (Outcome.NULL, Outcome.DENY)
        ]
        number = max(_LEAST_MISSING, int(share * len(skipped)))
        began = store.one("SELECT started FROM runs WHERE run = ?", (run,))
        seen = alias_tables.twins(store, alias_id, [url for _, url in pages])
        fresh = {
            url
            for url, twin in seen.items()
            if twin.outcome in HAD and began is not None and twin.visited >= began[0]
        }
        self._compare(pair, pages + missing[:number], now, fresh=fresh)

    def _compare(
        self, pair: int, pages: list[tuple[str, str]], now: float, *, fresh: Container[str] = ()
    ) -> None:
        """Tests; the pages under the second name are wanted, but for `fresh` ones."""
        store = self._store
        under_test = set(alias_tables.tested(store, pair, is_open=True))
        pages = [page for page in dict.fromkeys(pages) if page[0] not in under_test]
        alias_tables.put_tests(store, pair, "check", pages, now=now)
        tables.want(store, [
            Wanted(url=url, site=urls.site_of(url), reason=Reason.ALIAS, via=twin, depth=1)
            for twin, url in pages
            if url not in fresh
        ])  # fmt: skip
        counters.count(store, [("alias.checks", len(pages))])
