"""Which captures of an archive hold a payload that another holds already: what rewriting plans.

All captures go into a scratch database on disk, in the order of digest, status and date; so memory
does not grow with the archive. An original is read and hashed once before anything refers to it.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha1
from typing import NamedTuple

from geomi.archive.edits import Action, Original, field_of
from geomi.archive.generation import record_at
from geomi.archive.names import header_uri, sha1_name
from geomi.archive.reader import Member
from geomi.archive.rewrite_tables import Edit
from geomi.archive.source import opened
from geomi.errors import RemoteError, ResourceError
from geomi.history.past import Past
from geomi.store import SqliteStore, Store

#: Smaller payloads cost less than the record that would save them.
FLOOR_BYTES = 256
#: Redirects of one digest and status to so many places are told apart; others stay as they are.
_LOCATIONS = 1_000
_ROWS = 5_000

_SCHEMA = (
    """CREATE TABLE seen (
        visit INTEGER PRIMARY KEY, page INTEGER, site_id INTEGER, digest TEXT, code INTEGER,
        date TEXT, url TEXT, file INTEGER, "offset" INTEGER, length INTEGER, size INTEGER,
        revisit INTEGER, outcome TEXT,
        to_uri TEXT NOT NULL DEFAULT '',      -- of the original it will refer to
        to_date TEXT NOT NULL DEFAULT '',
        to_id TEXT NOT NULL DEFAULT '',
        to_visit INTEGER NOT NULL DEFAULT 0,
        held INTEGER NOT NULL DEFAULT 0,      -- 1: its headers are another capture's too
        doomed INTEGER NOT NULL DEFAULT 0     -- 1: it is to be deleted
    )""",
    "CREATE INDEX seen_alike ON seen (digest, code, date, visit)",
)
_COLUMNS = 'visit, page, site_id, digest, code, stored_date, url, file, "offset", length, size,' \
    " revisit, outcome"  # fmt: skip
_HERE = (
    "SELECT v.visit, v.page, v.site_id, v.digest, v.code, v.stored_date, coalesce(p.url, v.url),"
    ' v.file, v."offset", v.length, v.size, v.revisit, v.outcome FROM visits v'
    " LEFT JOIN pages p ON p.page = v.page AND v.page > 0 WHERE v.file > 0"
)


class Seen(NamedTuple):
    """A capture, as the scratch database has it."""

    visit: int
    page: int
    digest: str
    code: int
    date: str
    url: str
    file: int
    offset: int
    length: int


SEEN = 'visit, page, digest, code, date, url, file, "offset", length'
#: The path of a file; None: it is not here, so nothing in it is touched or referred to.
PathOf = Callable[[int], str | None]


@contextmanager
def all_captures(
    store: Store, *, where: Callable[[str], str], scratch: str | None = None
) -> Iterator[Store]:
    """The scratch database, filled. It lasts as long as the context."""
    with tempfile.TemporaryDirectory(prefix="geomi-captures-", dir=scratch) as folder:
        found = SqliteStore(os.path.join(folder, "captures.db"))
        try:
            for sentence in ("PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF",
                             "PRAGMA temp_store=FILE"):  # fmt: skip
                found.all(sentence)
            found.run(_SCHEMA[0])
            with found.transaction(), store.image():
                for rows in (store.each(_HERE), _moved(store, where)):
                    found.many(
                        "INSERT INTO seen (visit, page, site_id, digest, code, date, url, file,"
                        ' "offset", length, size, revisit, outcome)'
                        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        rows,
                    )
            found.run(_SCHEMA[1])
            yield found
        finally:
            found.close()


def _moved(store: Store, where: Callable[[str], str]) -> Iterator[tuple[object, ...]]:
    return (row for row in Past.of(store, where).by_visit(_COLUMNS) if row[7])


class Found(NamedTuple):
    """A record that may be referred to, and its visit."""

    record: Original
    visit: int


class Doubles:
    """Plans `revisit` and `point` edits. `sink` takes them, some at a time."""

    def __init__(
        self,
        captures: Store,
        *,
        path_of: PathOf,
        meaningless: frozenset[str],
        sink: Callable[[list[Edit]], None],
        floor: int = FLOOR_BYTES,
    ) -> None:
        self._captures = captures
        self._path_of = path_of
        self._meaningless = meaningless
        self._sink = sink
        self._floor = floor
        self.counts: Counter[str] = Counter()
        # Edits and their marks in the scratch database, until there are enough for a sentence.
        self._edits: list[Edit] = []
        self._marks: list[tuple[str, str, str, int, int]] = []

    def plan(self) -> None:
        with self._captures.transaction():
            self._hold()
            self._duplicates()
            self._flush()
            if self.counts["duplicates"]:
                self._referring()
            self._flush()

    # -- what stays as it is -----------------------------------------------------------------------

    def _hold(self) -> None:
        """A "not modified" has no headers but those of what it refers to: that stays a response."""
        held = []
        for row in self._captures.each(
            f"SELECT {SEEN} FROM seen r WHERE r.revisit = 1 AND (SELECT count(*) FROM (SELECT 1"
            " FROM seen s WHERE s.digest = r.digest AND s.revisit = 0 LIMIT 2)) = 2"
        ):
            one = Seen(*row)
            path = self._path_of(one.file)
            if path is None:
                continue
            refers = refers_to(one, path)
            if refers.is_bare:
                held += [(visit,) for visit, _ in self._named(one.digest, refers)]
        self._captures.many("UPDATE seen SET held = 1 WHERE visit = ?", held)

    def _named(self, digest: str, refers: Refers) -> list[tuple[int, Found]]:
        """The captures that a revisit means, and what they will refer to themselves."""
        return [
            (visit, Found(Original(uri=to_uri, date=to_date, record_id=to_id), to_visit))
            for visit, url, to_uri, to_date, to_id, to_visit in self._captures.all(
                "SELECT visit, url, to_uri, to_date, to_id, to_visit FROM seen WHERE digest = ?"
                " AND date = ? AND revisit = 0",
                (digest, refers.date),
            )
            if header_uri(url) == refers.uri
        ]

    # -- duplicates --------------------------------------------------------------------------------

    def _duplicates(self) -> None:
        alike: tuple[str, int] | None = None
        first: Seen | None = None  # of those alike, not looked at yet
        originals: dict[str, Found] = {}  # by Location, of those alike
        for row in self._captures.each(
            f"SELECT {SEEN}, size, held FROM seen WHERE revisit = 0 AND outcome <> 'cut'"
            " AND digest <> '' ORDER BY digest, code, date, visit"
        ):
            self.counts["captures"] += 1
            one, size, held = Seen(*row[:-2]), row[-2], row[-1]
            is_meaningless = one.digest in self._meaningless
            if size < self._floor and not (is_meaningless and size):
                continue
            if (one.digest, one.code) != alike:
                alike, first, originals = (one.digest, one.code), one, {}
                continue
            if first is not None:
                self._original(first, originals)
                first = None
            path = self._path_of(one.file)
            if path is None:
                self.counts["elsewhere"] += 1
                continue
            location = self._location(one, path) if 300 <= one.code < 400 else ""
            original = originals.get(location)
            if original is None:
                if len(originals) < _LOCATIONS:
                    self._original(one, originals)
                continue
            if held:
                self.counts["held"] += 1
                continue
            self.counts["duplicates"] += 1
            self.counts["meaningless"] += is_meaningless
            self.counts["duplicate_bytes"] += one.length
            self._add(one, Action.REVISIT, original)
            self._marks.append((
                original.record.uri, original.record.date, original.record.record_id,
                original.visit, one.visit,
            ))  # fmt: skip

    def _original(self, one: Seen, originals: dict[str, Found]) -> None:
        """Takes a capture for the original, if its record is whole and what it says it is."""
        path = self._path_of(one.file)
        if path is None:
            self.counts["elsewhere"] += 1
            return
        try:
            with opened(path) as (file, name):
                member = record_at(file, name, one.offset)
                if not is_whole_response(member):
                    return
                http = member.http_head()
                if sha1_name(_sha1_of(member)) != one.digest or member.length != one.length:
                    raise RemoteError(f"{name} at {one.offset}: its payload is not {one.digest}")
        except (RemoteError, ResourceError):
            self.counts["unsound"] += 1
            return
        location = field_of(http, "Location") if 300 <= one.code < 400 else ""
        originals.setdefault(location, Found(original_of(member), one.visit))

    def _location(self, one: Seen, path: str) -> str:
        try:
            with opened(path) as (file, name):
                return field_of(record_at(file, name, one.offset).http_head(), "Location")
        except (RemoteError, ResourceError):
            return "\n"  # no Location is this

    # -- who refers to what becomes a revisit ------------------------------------------------------

    def _referring(self) -> None:
        for row in self._captures.each(
            f"SELECT {SEEN} FROM seen r WHERE r.revisit = 1 AND EXISTS (SELECT 1 FROM seen s"
            " WHERE s.digest = r.digest AND s.to_date <> '')"
        ):
            one = Seen(*row)
            path = self._path_of(one.file)
            if path is None:
                self.counts["elsewhere"] += 1
                continue
            for _, original in self._named(one.digest, refers_to(one, path)):
                if original.record.date:
                    self.counts["pointed"] += 1
                    self._add(one, Action.POINT, original)

    # -- out ---------------------------------------------------------------------------------------

    def _add(self, one: Seen, action: Action, to: Found) -> None:
        uri, date, record_id = to.record.uri, to.record.date, to.record.record_id
        self._edits.append(
            Edit(one.file, one.offset, one.length, action, uri, date, record_id, original=to.visit)
        )
        if len(self._edits) >= _ROWS:
            self._flush()

    def _flush(self) -> None:
        self._captures.many(
            "UPDATE seen SET to_uri = ?, to_date = ?, to_id = ?, to_visit = ? WHERE visit = ?",
            self._marks,
        )
        self._sink(self._edits)
        self._edits, self._marks = [], []


def is_whole_response(member: Member) -> bool:
    """True if a revisit may refer to it."""
    headers = member.headers
    return (
        member.type == "response"
        and not headers.get("WARC-Truncated")
        and not headers.get("WARC-Segment-Number")
        and headers.get("Content-Type").replace(" ", "").startswith("application/http")
    )


def original_of(member: Member) -> Original:
    return Original(uri=member.target_uri, date=member.date, record_id=member.record_id)


class Refers(NamedTuple):
    """What a revisit names; empty where it cannot be read. `is_bare`: it has no headers."""

    uri: str = ""
    date: str = ""
    is_bare: bool = False


def refers_to(one: Seen, path: str) -> Refers:
    try:
        with opened(path) as (file, name):
            member = record_at(file, name, one.offset)
            uri = member.headers.get("WARC-Refers-To-Target-URI").strip("<>")
            date = member.headers.get("WARC-Refers-To-Date")
            return Refers(uri, date, member.content_length == 0)
    except (RemoteError, ResourceError):
        return Refers()


def _sha1_of(member: Member) -> bytes:
    payload = sha1()
    for piece in member.chunks():
        payload.update(piece)
    return payload.digest()
