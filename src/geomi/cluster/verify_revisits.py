"""Each revisit with what it refers to: there, whole, the same payload, named to the letter.

Part of verify.
"""

from __future__ import annotations

import os
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from geomi import url as urls
from geomi.archive import tables
from geomi.archive.duplicates_tables import Kept
from geomi.archive.names import header_uri
from geomi.archive.reader import Member, members
from geomi.cluster.ledger import OPEN
from geomi.cluster.referrers import originals, page_of, targets_of_page
from geomi.cluster.verify_archive import SAMPLED, Add, Disk, File, Where, kept_in
from geomi.errors import OperatorError, RemoteError, ResourceError
from geomi.history.past import Past
from geomi.store import Store

_REMEMBERED = 1_000  # pages and originals; most revisits of a file refer to few of them

#: What another collection has of a visit, by that one's name; raises where it cannot be asked.
Elsewhere = Callable[[str, int], Kept | None]


K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """The last ones asked for."""

    def __init__(self) -> None:
        self._last: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, make: Callable[[], V]) -> V:
        last = self._last
        if key not in last:
            last[key] = make()
            if len(last) > _REMEMBERED:
                last.popitem(last=False)
        return last[key]


def check_revisits(
    store: Store, add: Add, counts: Counter[str], *, where: Where, disk: Disk, quick: bool,
    elsewhere: Elsewhere | None,
) -> None:  # fmt: skip
    """The revisits of all files that lie here; of each file some, where it is to be quick."""
    files = {row[0]: File(*row) for row in tables.all_files(store)}

    def open_at(number: int, offset: int) -> Member | None:
        file = files.get(number)
        path = None if file is None else _path_of(file, where, disk)
        return None if path is None else _member(path, offset, disk)

    with store.image():
        _check_places(store, add, Past.of(store, lambda name: disk.readable(where(name))))
    targets = Targets(store, add, counts, open_at=open_at, elsewhere=elsewhere)
    for file in files.values():
        path = _path_of(file, where, disk)
        if path is None:
            continue  # check_archive has said so
        with store.image():
            past = Past.of(store, lambda name: disk.readable(where(name)))
            kept = [one for one in kept_in(store, file, past) if one.revisit]
            for one in kept[:: max(1, len(kept) // SAMPLED)] if quick else kept:
                try:
                    member = _member(path, one.offset, disk)
                except RemoteError:
                    continue  # so has it of this
                if member is not None and member.type == "revisit":
                    place = f"{file.name} at {one.offset}"
                    targets.check(member, one.visit, past, place, is_whole=not quick)


def _check_places(store: Store, add: Add, past: Past) -> None:
    """A page that is equal to another one has its copy where one of its revisits refers to."""
    for page, url, file, offset, length in store.each(
        "SELECT page, url, file, \"offset\", length FROM pages WHERE stored_url <> '' AND file > 0"
    ):
        targets = targets_of_page(store, past, page)
        here = sorted({visit for home, visit in targets.values() if not home})
        places = {
            (kept.file, kept.offset, kept.length) for kept in originals(store, past, here).values()
        }
        if (file, offset, length) not in places:
            add("page place", f"kept in file {file} at {offset}, where no visit put it", url)


def _path_of(file: File, where: Where, disk: Disk) -> str | None:
    for folder in (where(file.directory), file.base):
        path = os.path.join(folder, file.name)
        for name in (path, path + OPEN):
            if folder and (disk.size(name) or 0) >= max(file.committed, 1):
                return name
    return None


def _member(path: str, offset: int, disk: Disk) -> Member | None:
    with disk.open(path) as source:
        source.seek(offset)
        return next(members(source, offset), None)


class Targets:
    """Filled as files are walked. `open_at` gives the record that lies at a place."""

    def __init__(
        self, store: Store, add: Add, counts: Counter[str], *,
        open_at: Callable[[int, int], Member | None], elsewhere: Elsewhere | None,
    ) -> None:  # fmt: skip
        self._store = store
        self._add = add
        self._counts = counts
        self._open_at = open_at
        self._elsewhere = elsewhere
        self._pages: Remembered[int, dict[int, tuple[str, int]]] = Remembered()
        self._kept: Remembered[tuple[str, int], Kept | None] = Remembered()
        self._ids: Remembered[tuple[int, int], str] = Remembered()

    def check(self, member: Member, visit: int, past: Past, where: str, *, is_whole: bool) -> None:
        """One revisit's record with the visit it belongs to."""
        self._counts["revisits"] += 1
        target = self._target(visit, past) or self._named(member)
        if target is None:
            self._add("revisit", f"visit {visit} refers to nothing that is known", where)
            return
        home, number = target
        try:
            kept = self._kept.get(target, lambda: self._found(home, number, past))
        except (OperatorError, ResourceError) as error:
            self._add("revisit elsewhere", f"visit {visit} refers to visit {number} of another"
                      f" collection, which cannot be asked: {error}", where)  # fmt: skip
            return
        if kept is None:
            what = "is no whole response, or not there"
            self._add("revisit", f"visit {visit} refers to visit {number}, which {what}", where)
            return
        head = member.headers.get
        if (head("WARC-Refers-To-Date"), home) != (kept.date, ""):
            # A rewritten file may refer to another copy than the visits tell.
            named = self._named(member)
            other = named and self._kept.get(named, lambda: self._found(*named, past))
            kept = other or kept
        uri = head("WARC-Refers-To-Target-URI")
        if uri and urls.canonical(uri) == kept.url:  # as another tool may spell it
            uri = header_uri(kept.url)
        pairs = [
            ("Refers-To-Target-URI", uri, header_uri(kept.url)),
            ("Refers-To-Date", head("WARC-Refers-To-Date"), kept.date),
            ("Payload-Digest", head("WARC-Payload-Digest"), kept.digest),
        ]
        said = (head("WARC-Refers-To") or "").strip("<>")
        if is_whole and said and not home:
            place = (kept.file, kept.offset)
            pairs.append(("Refers-To", said, self._ids.get(place, lambda: self._id(*place))))
        for name, seen, wanted in pairs:
            if seen != wanted:
                self._add(f"revisit {name}", f"{name} is {seen!r}, visit {number} has {wanted!r}",
                          where)  # fmt: skip

    def _target(self, visit: int, past: Past) -> tuple[str, int] | None:
        page = page_of(self._store, past, visit)
        if not page:
            row = self._store.one("SELECT home, original FROM refers WHERE visit = ?", (visit,))
            return (row[0], row[1]) if row else None
        targets = self._pages.get(page, lambda: targets_of_page(self._store, past, page))
        return targets.get(visit)

    def _named(self, member: Member) -> tuple[str, int] | None:
        """The visit whose URL and date the record names, where this collection has it."""
        uri = member.headers.get("WARC-Refers-To-Target-URI") or ""
        url = urls.canonical(uri)
        if url is None:
            return None
        row = self._store.one(
            "SELECT v.visit FROM sites s JOIN pages p ON p.site_id = s.site_id AND p.url_hash = ?"
            " AND p.url = ? JOIN visits v ON v.page = p.page AND v.page > 0"
            " WHERE s.site = ? AND v.stored_date = ? AND v.revisit = 0",
            (urls.url_hash(url), url, urls.site_of(url), member.headers.get("WARC-Refers-To-Date")),
        )
        return ("", row[0]) if row else None

    def _found(self, home: str, number: int, past: Past) -> Kept | None:
        if home:
            if self._elsewhere is None:
                raise OperatorError("it has no index that is shared")
            return self._elsewhere(home, number)
        return originals(self._store, past, [number]).get(number)

    def _id(self, file: int, offset: int) -> str:
        """Of the record at a place; empty: there is no response."""
        try:
            member = self._open_at(file, offset)
        except (OSError, RemoteError, ResourceError):
            return ""
        if member is None or member.type != "response":
            return ""
        return (member.headers.get("WARC-Record-ID") or "").strip("<>")
