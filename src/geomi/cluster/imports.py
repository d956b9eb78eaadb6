"""`geomi archive import`: archives that others made, taken into a collection.

A file is in or not: it gets a row, is written beside, checked, named, and one transaction brings
its visits, pages and places. Whatever a kill left is cleared away by the next import, which holds
the collection's helm as a crawl does. The digest of a file says whether it is in already.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from geomi import url as urls
from geomi.archive import tables
from geomi.archive.check import check_file
from geomi.archive.files import RealFiles
from geomi.archive.given import Part, given
from geomi.archive.reader import members
from geomi.archive.salvage import is_bundled, is_plain, unbundled, write_member
from geomi.cluster import node
from geomi.cluster.admitted import known_sites
from geomi.cluster.collection import Collection
from geomi.cluster.compared import IMPORTED
from geomi.cluster.ledger import OPEN, index_of
from geomi.cluster.plan import extractor_of
from geomi.cluster.recover import recover
from geomi.cluster.taken import Taken, is_capture, take
from geomi.config import Settings
from geomi.errors import OperatorError, RemoteError, ResourceError
from geomi.extract import Extractor
from geomi.frontier import counters, import_tables
from geomi.frontier import tables as frontier_tables
from geomi.frontier.import_tables import IMPORT
from geomi.history import tables as history_tables
from geomi.records import Reason
from geomi.seeds import tables as seeds_tables
from geomi.states import HAD, Outcome
from geomi.store import Store

_PIECE = 1 << 20
_CHUNK = 250  # captures a batch
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

#: (bytes done, bytes in all, the file under way)
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of one WARC file. `name`: what it is called in the archive."""

    source: str
    name: str
    state: str  # imported, there, refused
    captures: int = 0
    left_out: int = 0  # captures whose URI or date is none
    how: str = ""  # copied, linked, rewritten
    why: str = ""  # it was refused


@dataclass(slots=True, kw_only=True)
class Report:
    files: list[Imported] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not any(one.state == "refused" for one in self.files)


def import_files(
    collection: Collection, store: Store, settings: Settings, paths: Sequence[Path], *,
    link: bool = False, tell: Tell = lambda *_: None,
) -> Report:  # fmt: skip
    """Each WARC file of what is named, in order. The caller holds the helm."""
    recover(collection, store, settings)
    held = store.one(
        "SELECT site, holder FROM sites WHERE holder <> '' AND lease_until > ?", (store.now(),)
    )
    if held is not None:
        raise OperatorError(f"{collection.path}: agent {held[1]} still visits {held[0]}; wait")
    work = _Importing(collection, store, settings, link=link)
    work.clear_away()
    report = Report()
    sizes = {path: path.stat().st_size if path.is_file() else 0 for path in paths}
    total, done = sum(sizes.values()), 0
    for path in paths:
        try:
            with given(path) as one:
                total += sum(part.size for part in one.parts) - sizes[path]
                for part in one.parts:
                    tell(done, total, part.name)
                    report.files.append(work.part(part))
                    done += part.size
        except RemoteError as error:
            report.files.append(
                Imported(source=str(path), name="", state="refused", why=str(error))
            )
    history_tables.number_batches(store)
    return report


class _Importing:
    def __init__(
        self, collection: Collection, store: Store, settings: Settings, *, link: bool
    ) -> None:
        self._collection = collection
        self._store = store
        self._directory = settings.archive.directories[0]
        self._base = collection.kept_path(self._directory)
        self._level = settings.archive.level
        self._link = link
        self._files = RealFiles()
        self._extractor = extractor_of(settings)

    def clear_away(self) -> None:
        """What a killed import left: rows of files that were never filled, and their files."""
        for file, directory, name in tables.left_over(self._store, IMPORT):
            path = os.path.join(self._collection.kept_path(directory), name)
            for one in (path, path + OPEN, _index(path)):
                self._files.remove(one)
            with self._store.transaction():
                tables.forget(self._store, file)

    def part(self, part: Part) -> Imported:
        with part.opened() as source:
            digest = _digest(source)
            there = tables.import_of(self._store, digest)
            if there is not None:
                return Imported(
                    source=part.name, name=there[1] or "", state="there", captures=there[2]
                )
            name = f"imported/{IMPORTED}{digest[:16]}-{_stem(part.key)}.warc.gz"
            path = os.path.join(self._base, name)
            file = self._register(name)
            try:
                how = self._write(part, source, path + OPEN)
                if problems := check_file(path + OPEN, strict=False):
                    raise RemoteError(_refusal(part.name, problems[0].offset, problems[0].what))
                self._files.rename(path + OPEN, path)
                captures, left_out = self._commit(part.name, digest, file, path, name)
            except RemoteError as error:
                self.clear_away()
                return Imported(source=part.name, name="", state="refused", why=str(error))
            return Imported(
                source=part.name, name=name, state="imported", captures=captures,
                left_out=left_out, how=how,
            )  # fmt: skip

    def _register(self, name: str) -> int:
        with self._store.transaction():
            file = counters.take_ids(self._store, "file", 1)
            tables.opened(
                self._store, file=file, root=0, directory=self._directory, name=name, agent=IMPORT,
                incarnation=0, now=self._store.now(), node=node.here(), base=self._base,
            )  # fmt: skip
        return file

    def _write(self, part: Part, source: BinaryIO, path: str) -> str:
        """The file beside its name: linked, copied, or written record by record; and synced."""
        self._files.remove(path)
        plain = is_plain(source)
        try:
            if plain or is_bundled(source):
                source.seek(0)
                self._files.create(path)
                self._files.close()
                with open(path, "r+b") as out:
                    for member in members(source) if plain else unbundled(source):
                        write_member(member, out, level=min(self._level, 3))
                self._files.sync(path)
                return "rewritten"
            if self._link and _is_file(part.name):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.link(part.name, path)
                self._files.sync_directory(os.path.dirname(path))
                return "linked"
        except OSError as error:
            raise ResourceError(f"{path}: {error.strerror or error}") from error
        source.seek(0)
        self._files.create(path)
        self._files.append(path, iter(lambda: source.read(_PIECE), b""))
        self._files.sync(path)
        return "copied"

    # -- the transaction -------------------------------------------------------------------------

    def _commit(self, source: str, digest: str, file: int, path: str, name: str) -> tuple[int, int]:
        store, now = self._store, self._store.now()
        captures = left_out = last = 0
        size = os.path.getsize(path)
        with store.transaction():
            found = _captures(path, self._extractor)
            sites: dict[str, int] = {}
            while chunk := list(islice(found, _CHUNK)):
                taken = [one for one in chunk if isinstance(one, Taken)]
                others = [one for one in chunk if not isinstance(one, Taken)]
                tables.put_orphans(store, file, others)
                last = max(last, self._batch(source, file, taken, sites, now))
                captures += len(taken)
                left_out += len(others)
                if len(sites) > 10_000:
                    sites.clear()
            tables.committed(store, file, size, last_visit=last)
            self._files.write(_index(path), index_of(store, file, os.path.basename(name)))
            tables.closed(store, file, now)
            tables.imported(store, digest, source=source, file=file, captures=captures, now=now)
        return captures, left_out

    def _batch(
        self, source: str, file: int, taken: list[Taken], sites: dict[str, int], now: float
    ) -> int:
        """Visits and pages of some captures; the number of the last visit."""
        store = self._store
        if not taken:
            return 0
        batch = history_tables.open_batch(store, IMPORT, 0, now)
        counts: Counter[str] = Counter()
        self._remember(taken, now)
        first_page = counters.take_ids(store, "page", len(taken))
        rows = []
        for number, one in enumerate(taken, start=first_page):
            if one.site not in sites:
                sites[one.site] = frontier_tables.add_site(
                    store, one.site, domain=urls.domain_of(urls.host_of(one.site)),
                    admitted=IMPORT, now=now,
                )  # fmt: skip
            site_id = sites[one.site]
            page, changed, outcome = 0, -1, one.outcome
            if not one.is_robots:
                page, changed, outcome = self._page(one, site_id, number, file, counts)
            rows.append((
                page, site_id, "" if page else one.url, "page" if page else "robots", 0,
                int(Reason.IMPORT), 0, one.site, "", one.at, one.at, str(outcome), one.code,
                one.mime, one.digest, one.size, changed, file, one.offset, one.length, one.date,
                int(one.is_revisit), batch, f"imported from {os.path.basename(source)}",
            ))  # fmt: skip
            counts["requests"] += 1
            counts["visits"] += bool(page)
            counts["bytes"] += one.size
        counters.count(store, counts.items())
        return history_tables.put_visits(store, batch, rows)

    def _remember(self, taken: list[Taken], now: float) -> None:
        """Links of pages whose site is in no crawl wait outside until it is: a page that turns out
        unchanged then is not read again."""
        admitted = known_sites(self._store, {one.site for one in taken if one.links})
        rows = {
            link: (urls.url_hash(link), link, one.site, urls.domain_of(urls.host_of(one.site)),
                   kind, one.url, 1, 0, now)
            for one in taken if one.site not in admitted
            for kind, link in one.links
        }  # fmt: skip
        self._store.many(seeds_tables.PUT_OUTSIDE, sorted(rows.values()))

    def _page(
        self, one: Taken, site_id: int, new: int, file: int, counts: Counter[str]
    ) -> tuple[int, int, Outcome]:
        """The page of a capture, made or brought up to date: (page, changed, outcome)."""
        store = self._store
        url_hash = urls.url_hash(one.url)
        there = import_tables.find(store, site_id, url_hash, one.url)
        if there is None:
            store.run(frontier_tables.NEW_PAGE, (
                new, site_id, one.url, url_hash, 0, 0, import_tables.KIND, "", 0, one.at, 0,
                str(Outcome.NULL), "",
            ))  # fmt: skip
            counts["pages.known"] += 1
            counts["outcome.NULL"] += 1
            there = (new, str(Outcome.NULL), "", 0.0, "")
        page, before, digest, visited, stored_date = there
        outcome = one.outcome
        if outcome is Outcome.CODE and stored_date and one.at >= visited:
            outcome = (
                Outcome.GONE if one.code in (404, 410)
                else Outcome.SAME if one.code == 304 else outcome
            )  # fmt: skip
        if one.at < visited:
            store.run(import_tables.OLDER, (one.at, one.at, page))
            return page, -1, outcome
        has_body = outcome in HAD
        changed = -1 if not (has_body and digest and one.digest) else int(digest != one.digest)
        changed = 0 if outcome is Outcome.SAME else changed
        keeps = outcome is Outcome.OK
        counts["outcome." + before] -= 1
        counts["outcome." + str(outcome)] += 1
        store.run(import_tables.NEWEST, (
            str(outcome), one.code, one.mime, one.digest if has_body and one.digest else digest,
            one.size, one.at, int(changed == 1), one.etag if keeps else "",
            one.last_modified if keeps else "", one.at,
            *((one.at,) * 2 if changed == 1 else (0.0, 0.0)), page,
        ))  # fmt: skip
        if keeps and not one.is_revisit:
            store.run(frontier_tables.STORE_PAGE, (
                file, one.offset, one.length, one.date, one.record_id, one.digest, page,
            ))  # fmt: skip
        return page, changed, outcome


def _captures(path: str, extractor: Extractor) -> Iterator[Taken | tuple[int, int]]:
    """Captures of a file; (offset, length) of responses and revisits that cannot be a page's."""
    for member in members(path):
        if is_capture(member):
            taken = take(member, extractor)
            if taken is not None:
                yield taken
            elif member.type != "resource":
                yield member.offset, member.length


def _refusal(name: str, offset: int, what: str) -> str:
    return (
        f"{name} at {offset}: {what}; `geomi archive check FILE --salvage DIRECTORY` writes what is"
        " whole to a file that can be imported"
    )


def _digest(source: BinaryIO) -> str:
    source.seek(0)
    seen = hashlib.sha256()
    while piece := source.read(_PIECE):
        seen.update(piece)
    return seen.hexdigest()


def _stem(key: str) -> str:
    """What a file was called, as part of a name here."""
    name = key.replace("\\", "/").rpartition("/")[2]
    for end in (".open", ".gz", ".warc"):
        name = name.removesuffix(end)
    return _UNSAFE.sub("-", name).strip(".-")[:80] or "archive"


def _index(path: str) -> str:
    return path.removesuffix(".warc.gz") + ".cdxj"


def _is_file(name: str) -> bool:
    """False for an entry of a package."""
    return os.path.isfile(name)
