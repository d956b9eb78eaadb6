"""What people say of digests: these mean nothing, these do, take these from elsewhere.

Only the list is written here; the next scan brings marks up to date, and the next visit obeys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from geomi.cluster.scanning import list_changed
from geomi.errors import OperatorError
from geomi.history import meaningless_tables as tables
from geomi.history.meaningless import State
from geomi.history.meaningless_tables import Entry
from geomi.store import Store

_BY_HAND = "hand"
_IN_ONE = 1_000  # entries of an import in one transaction


def decide(store: Store, digests: Sequence[str], state: State, *, now: float) -> int:
    """Digests of the list take this state; how many had another. OperatorError: one is not in it,
    and nothing is changed."""
    with store.transaction():
        changed = []
        for digest in digests:
            one = tables.entry(store, digest)
            if one is None:
                raise OperatorError(
                    f"{digest}: not in the list; geomi archive meaningless add takes it in"
                )
            if one.state != state:
                changed.append(one._replace(state=str(state), by=_BY_HAND, at=now))
        tables.put(store, changed)
        list_changed(store)
    return len(changed)


def add(store: Store, digests: Sequence[tuple[str, str]], *, reason: str, now: float) -> int:
    """(digest, where it is from) are confirmed; how many were not."""
    with store.transaction():
        changed = []
        for digest, example in digests:
            one = tables.entry(store, digest)
            if one is None:
                one = Entry(digest, "", reason or "by hand", "", example, 0, _BY_HAND, now)
            if one.state != State.CONFIRMED:
                changed.append(one._replace(
                    state=str(State.CONFIRMED), reason=reason or one.reason, by=_BY_HAND, at=now
                ))  # fmt: skip
        tables.put(store, changed)
        list_changed(store)
    return len(changed)


def remove(store: Store, digests: Sequence[str]) -> int:
    """Digests leave the list; a scan may find them again. OperatorError: one is not in it, and
    nothing is changed."""
    with store.transaction():
        for digest in digests:
            if not tables.remove(store, digest):
                raise OperatorError(f"{digest}: not in the list")
        list_changed(store)
    return len(digests)


def take_in(store: Store, entries: Iterable[Entry]) -> tuple[int, int]:
    """(taken in, left as they are): what was decided here stays as it was decided."""
    taken = left = 0
    some: list[Entry] = []

    def put() -> tuple[int, int]:
        with store.transaction():
            new = {}
            for one in some:
                before = tables.entry(store, one.digest)
                if before is None or before.state == State.CANDIDATE:
                    new[one.digest] = one
            tables.put(store, new.values())
            list_changed(store)
        return len(new), len(some) - len(new)

    for one in entries:
        some.append(one)
        if len(some) == _IN_ONE:
            counts = put()
            taken, left, some = taken + counts[0], left + counts[1], []
    counts = put()
    return taken + counts[0], left + counts[1]
