"""The copy of a page, where the archive is rewritten: its place, and what a 304 may refer to.

Functions with `elsewhere` in their name need `pages.stored_url`: of a page whose payload is that of
another URL, the place is where that one's record lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from geomi.store import Store


def place(store: Store, rows: Iterable[Sequence[Any]]) -> None:
    """New places of copies: (offset, length, page)."""
    store.many('UPDATE pages SET "offset" = ?, length = ? WHERE page = ?', rows)


def refer(store: Store, rows: Iterable[Sequence[Any]]) -> None:
    """Copies without a payload of their own; that of the same URL is: (date, record id, page)."""
    store.many("UPDATE pages SET stored_date = ?, stored_id = ? WHERE page = ?", rows)


def ask_anew(store: Store, pages: Iterable[int]) -> None:
    """Their payload is kept under another URL, to which a 304 cannot refer: the next visit asks
    without conditions."""
    store.many(
        "UPDATE pages SET etag = '', last_modified = '' WHERE page = ?",
        [(page,) for page in pages],
    )


def own_again(store: Store, rows: Iterable[Sequence[Any]]) -> None:
    """Copies with their payload: (file, offset, length, date, page)."""
    store.many(
        "UPDATE pages SET file = ?, \"offset\" = ?, length = ?, stored_date = ?, stored_id = ''"
        " WHERE page = ?",
        rows,
    )


def without(store: Store, pages: Iterable[int]) -> None:
    """Their copies are deleted."""
    store.many(
        "UPDATE pages SET file = 0, \"offset\" = 0, length = 0, stored_date = '', stored_id = '',"
        " stored_digest = '', digest = '', etag = '', last_modified = '', title = ''"
        " WHERE page = ?",
        [(page,) for page in pages],
    )


def elsewhere(store: Store, file: int) -> list[tuple[int, int, int]]:
    """(page, offset, length) of pages whose payload is another URL's, in this file."""
    return store.all(
        "SELECT page, \"offset\", length FROM pages WHERE file = ? AND stored_url <> ''", (file,)
    )


def put_elsewhere(store: Store, rows: Iterable[Sequence[Any]]) -> None:
    """(file, offset, length, date, record id, whose URL; empty: its own, page)."""
    store.many(
        'UPDATE pages SET file = ?, "offset" = ?, length = ?, stored_date = ?, stored_id = ?,'
        " stored_url = ? WHERE page = ?",
        rows,
    )


def lose_elsewhere(store: Store, pages: Iterable[int]) -> None:
    """The payload that was another URL's is deleted; the next visit asks for it anew."""
    store.many(
        "UPDATE pages SET file = 0, \"offset\" = 0, length = 0, stored_date = '', stored_id = '',"
        " stored_digest = '', stored_url = '', etag = '', last_modified = '' WHERE page = ?",
        [(page,) for page in pages],
    )
