"""The copy of a page, chosen anew after a capture of it was hidden or shown. Where nobody holds its
site; the rest waits in `unsettled` for the next scan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from geomi.frontier import alias_tables
from geomi.history import meaningless_tables as tables
from geomi.history import tables as history
from geomi.history.keeping import Seen, kept
from geomi.history.past import Past
from geomi.states import HAD, Outcome
from geomi.store import Store

_PAGES = 500  # looked at in one go

# Places in a row of history.tables.STORY.
_VISIT, _STARTED, _OUTCOME, _DIGEST, _REVISIT, _FILE, _OFFSET, _LENGTH, _DATE = (
    history.STORY.replace('"', "").split(", ").index(name)
    for name in ("visit", "started", "outcome", "digest", "revisit", "file", "offset", "length",
                 "stored_date")
)  # fmt: skip


class Copies:
    """`run` chooses those that can be chosen."""

    def __init__(self, store: Store, where: Callable[[str], str]) -> None:
        self._store = store
        self._where = where

    def run(self) -> int:
        """How many pages got another copy."""
        done = after = 0
        while pages := tables.unsettled(self._store, after=after, limit=_PAGES):
            for page in pages:
                with self._store.transaction():
                    done += self._page(page)
            after = pages[-1]
        return done

    def _page(self, page: int) -> int:
        store = self._store
        row = store.one(
            'SELECT site_id, file, "offset", stored_date FROM pages WHERE page = ?', (page,)
        )
        if row is None:
            tables.settled(store, page)
            return 0
        site_id, file, offset, date = row
        if not alias_tables.is_free(store, site_id):
            return 0
        tables.settled(store, page)
        hidden = {row[0] for row in tables.hidden_of(store, page)}
        visits = [
            one for one in [*Past.of(store, self._where).of_page(page),
                            *history.of_page(store, page)]
            if one[_OUTCOME] in HAD
        ]  # fmt: skip
        copy = kept(_seen(one, hidden) for one in visits)
        if copy is None:
            return 0
        (chosen,) = [one for one in visits if one[_VISIT] == copy.visit]
        place = (chosen[_FILE], chosen[_OFFSET])
        if (file, offset) == place and date == chosen[_DATE]:
            return 0
        ours = {(one[_FILE], one[_OFFSET]) for one in visits}
        # What a server said of the other copy is no validator for this one.
        store.run(
            "UPDATE pages SET stored_date = ?, stored_id = '', stored_digest = ?, etag = '',"
            " last_modified = '' WHERE page = ?",
            (chosen[_DATE], chosen[_DIGEST], page),
        )
        if (file, offset) in ours:  # else a later answer, as 404, is shown: it stays
            store.run(
                'UPDATE pages SET file = ?, "offset" = ?, length = ? WHERE page = ?',
                (*place, chosen[_LENGTH], page),
            )
        return 1


def _seen(visit: tuple[Any, ...], hidden: set[int]) -> Seen:
    return Seen(
        visit=visit[_VISIT], started=visit[_STARTED], digest=visit[_DIGEST],
        means_nothing=visit[_OUTCOME] == Outcome.VOID or visit[_VISIT] in hidden,
        is_stored=visit[_OUTCOME] == Outcome.OK and visit[_FILE] > 0 and not visit[_REVISIT],
    )  # fmt: skip
