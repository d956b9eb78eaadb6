"""`geomi archive check`: collections and foreign files proved together, damaged ones salvaged."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from geomi import url as urls
from geomi.archive import given as foreign
from geomi.archive import tables
from geomi.archive.check import Checking, Problem
from geomi.archive.given import Given, Index, Part
from geomi.archive.names import Ids
from geomi.archive.salvage import Salvaged, salvage
from geomi.archive.source import Broken
from geomi.cluster.collection import Collection
from geomi.cluster.ledger import OPEN
from geomi.cluster.verify_archive import RealDisk
from geomi.frontier.import_tables import IMPORT

#: So many problems are kept; all are counted.
LISTED = 1000
#: (bytes read, bytes in all, the file under way)
Tell = Callable[[int, int, str], None]


@dataclass(slots=True)
class Report:
    """What was found. `counts` says how much was looked at, and how revisits resolved."""

    problems: list[Problem] = field(default_factory=list)
    found: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    salvaged: list[Salvaged] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.found

    def add(self, problem: Problem) -> None:
        self.found += 1
        if len(self.problems) < LISTED:
            self.problems.append(problem)


class _File(NamedTuple):
    """A row of archive.tables.for_check."""

    file: int
    directory: str
    name: str
    committed: int
    state: str
    node: str
    base: str
    agent: str


def check(
    paths: Sequence[Path], *, now: float, tell: Tell = lambda *_: None,
    salvage_to: Path | None = None,
) -> Report:  # fmt: skip
    """Everything that is named, as one archive: a revisit may refer from one to another."""
    report = Report()
    damaged: set[str] = set()

    def add(problem: Problem) -> None:
        damaged.add(problem.file)  # of files, not of records
        report.add(problem)

    with ExitStack() as stack:
        whole: list[Given] = []
        for path in paths:
            try:
                whole.append(
                    _collection(path, report)
                    if path.is_dir() and Collection(path).exists
                    else stack.enter_context(foreign.given(path))
                )
            except Broken as error:
                add(Problem(file=error.file, offset=error.offset, what=error.what))
        total = sum(part.size for one in whole for part in one.parts)
        checking = stack.enter_context(
            Checking(add, tell=lambda done, name: tell(done, total, name))
        )
        for one in whole:
            _check_one(one, checking)
        checking.finish()
        report.counts.update(checking.counts)
        if salvage_to is not None:
            for part in (part for one in whole for part in one.parts if part.name in damaged):
                report.salvaged.append(_salvage(part, salvage_to, now=now))
    return report


def _check_one(one: Given, checking: Checking) -> None:
    if one.package is not None:
        one.package.check(checking.add)
    places: dict[str, tuple[int, int]] = {}
    for part in one.parts:
        try:
            with part.opened() as file:
                number = checking.file(
                    file, name=part.name, size=part.size, committed=part.committed,
                    strict=part.strict, is_indexed=part.is_indexed, left_out=part.left_out,
                    uri_of=part.uri_of,
                )  # fmt: skip
        except Broken as error:  # a package's entry that cannot be unpacked
            checking.add(error.file, error.offset, error.what)
            continue
        places[part.name] = places[part.key] = (number, part.size)
    for index in one.indexes:
        checking.index(index.name, index.lines(), _finder(index, places))


def _finder(
    index: Index, places: dict[str, tuple[int, int]]
) -> Callable[[str], tuple[int, int] | None]:
    """Files by the names that lines have for them: below the index's folder, or anywhere given."""

    @lru_cache(maxsize=1000)
    def find(name: str) -> tuple[int, int] | None:
        found = places.get(os.path.join(index.relative_to, name)) if index.relative_to else None
        return found or places.get(name)

    return find


def _salvage(part: Part, folder: Path, *, now: float) -> Salvaged:
    """A file of that name in the folder, which must not lie in a collection's archive."""
    name = os.path.basename(part.key).removesuffix(OPEN)
    with part.opened() as file:
        size = part.size if part.committed is None else min(part.size, part.committed)
        return salvage(file, size, folder / name, now=now, ids=Ids(os.urandom(10)))


# -- a collection ----------------------------------------------------------------------------------


def _collection(path: Path, report: Report) -> Given:
    """The closed files of a collection, and the committed part of open ones."""
    collection = Collection(path)
    parts, indexes = [], []
    with closing(collection.read_store(collection.settings())) as store:
        for row in tables.for_check(store):
            file = _File(*row)
            found = _path_of(file, collection, report)
            if found is None:
                continue
            index = foreign.index_path(found)
            is_indexed = file.state != "open" and index.is_file()
            more = {"uri_of": canonical} if file.agent == IMPORT else {"strict": True}
            parts.append(foreign.file_part(
                found, committed=file.committed, is_indexed=is_indexed,
                left_out=tuple(tables.orphans_of(store, file.file)), **more,
            ))  # fmt: skip
            if is_indexed:
                indexes.append(foreign.file_index(index))
            elif file.state != "open":
                report.add(Problem(file=str(index), offset=0, what="no such index"))
    return Given(parts=tuple(parts), indexes=tuple(indexes))


def _path_of(file: _File, collection: Collection, report: Report) -> Path | None:
    disk = RealDisk()
    folders = [collection.archive_path(file.directory), file.base]
    for folder in filter(None, folders):
        for end in ("", OPEN):
            path = os.path.join(folder, file.name + end)
            if disk.size(path) is not None:
                return Path(path)
    if not disk.is_here(file.node):
        report.counts["files elsewhere"] += 1
    elif file.committed or file.state != "open":
        report.add(Problem(
            file=os.path.join(folders[0], file.name), offset=0,
            what=f"no such file, wanted {file.committed} bytes ({file.state})",
        ))  # fmt: skip
    return None


def canonical(uri: str) -> str:
    """A URI as pages are filed under it; one that is no web address stays as it is."""
    return urls.canonical(uri) or uri
