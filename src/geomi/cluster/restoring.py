"""`geomi archive restore`: a copy of the archive in which every revisit is a response again.

It needs no other file to be replayed. A file of the copy appears under its name once it is whole,
proved and indexed, so a stopped restore goes on with the next one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path

from geomi.archive import cdxj, rewrite_tables
from geomi.archive.edits import Action
from geomi.archive.generation import Form, proved, written
from geomi.archive.names import header_uri
from geomi.archive.rewrite_tables import Edit, Kept
from geomi.cluster.doubles import SEEN, Seen, refers_to
from geomi.cluster.ledger import OPEN, index_path
from geomi.cluster.rewriting import Rewriting, Tell
from geomi.cluster.workplace import Workplace
from geomi.errors import OperatorError, RemoteError, ResourceError
from geomi.store import Store


@dataclass(slots=True, kw_only=True)
class Restored:
    """What was written. `left`: (file, why) of what could not be."""

    destination: str
    files: int = 0
    there: int = 0  # files that a run before had written
    size_bytes: int = 0
    responses: int = 0  # made of revisits
    left: list[tuple[str, str]] = field(default_factory=list)


class Restoring:
    def __init__(self, here: Workplace, destination: Path, *, tell: Tell = lambda *_: None) -> None:
        self._here = here
        self._files = here.shell.files
        self._destination = _outside(here, destination)
        self._tell = tell
        self._paths = Rewriting(here.shell, folder_of=here.folder_of)
        self._path_of = self._paths.path_of()
        self._form = Form(level=here.settings.archive.level)

    def run(self) -> Restored:
        made = Restored(destination=str(self._destination))
        if rewrite_tables.under_way(self._here.store) is not None:
            raise OperatorError(
                f"{self._here.collection.path}: a rewrite was begun and is not over: end it first"
            )
        wanted = rewrite_tables.closed_files(self._here.store)
        every = sum(kept.committed for kept in wanted)
        done = 0
        with self._paths.captures() as captures:
            captures.run('CREATE INDEX seen_kept ON seen (file, "offset") WHERE revisit = 1')
            for kept in wanted:
                self._tell(done, every, kept.name)
                try:
                    self._one(captures, kept, made)
                except RemoteError as error:
                    made.left.append((kept.name, str(error)))
                done += kept.committed
        return made

    def _one(self, captures: Store, kept: Kept, made: Restored) -> None:
        old = self._path_of(kept.file)
        new = os.path.join(self._destination, kept.name)
        if old is None:
            made.left.append((kept.name, f"lies on {kept.node or 'another node'}: gather it first"))
            return
        if self._files.size(new) is not None:
            made.there += 1
            return
        if self._files.size(new + OPEN) is not None:
            self._files.remove(new + OPEN)
        self._files.create(new + OPEN)
        tally: Counter[str] = Counter()
        lost: list[str] = []
        self._files.append(new + OPEN, written(
            old, kept.committed, self._edits(captures, kept, lost), form=self._form,
            source=self._source, tally=tally,
        ))  # fmt: skip
        self._files.sync(new + OPEN)
        proved(
            old, new + OPEN, kept.committed, self._edits(captures, kept, []), form=self._form,
            source=self._source,
        )  # fmt: skip
        name = os.path.basename(kept.name)
        lines = cdxj.sort_lines(cdxj.from_warc(new + OPEN, name))
        self._files.write(index_path(new), lines)
        self._files.rename(new + OPEN, new)
        made.files += 1
        made.size_bytes += self._files.size(new) or 0
        made.responses += tally[Action.RESPONSE]
        made.left += [(kept.name, what) for what in lost]

    def _edits(self, captures: Store, kept: Kept, lost: list[str]) -> Iterator[Edit]:
        """A response for each revisit of a file, in its order; orphans are left out."""
        orphans = (edit for edit in rewrite_tables.orphans(self._here.store)
                   if edit.file == kept.file)  # fmt: skip
        yield from merge(
            self._responses(captures, kept, lost), sorted(orphans, key=_offset), key=_offset
        )

    def _responses(self, captures: Store, kept: Kept, lost: list[str]) -> Iterator[Edit]:
        for row in captures.all(
            f'SELECT {SEEN} FROM seen WHERE revisit = 1 AND file = ? ORDER BY "offset"',
            (kept.file,),
        ):
            one = Seen(*row)
            original = self._original(captures, one)
            if original is None:
                lost.append(f"revisit of {one.url} at {one.offset}: its payload is nowhere")
                continue
            yield Edit(
                one.file, one.offset, one.length, Action.RESPONSE, source=original.file,
                source_offset=original.offset,
            )  # fmt: skip

    def _original(self, captures: Store, one: Seen) -> Seen | None:
        """The response it refers to; else the earliest that has its payload, on this node."""
        path = self._path_of(one.file)
        refers = refers_to(one, path) if path else None
        rows = captures.each(
            f"SELECT {SEEN} FROM seen WHERE digest = ? AND revisit = 0 AND outcome <> 'cut'"
            " ORDER BY date, visit",
            (one.digest,),
        )
        other = None
        for row in rows:
            found = Seen(*row)
            if self._path_of(found.file) is None:
                continue
            if refers is not None and (header_uri(found.url), found.date) == refers[:2]:
                return found
            other = other or found
        return other

    def _source(self, edit: Edit) -> tuple[str, int]:
        path = self._path_of(edit.source)
        if path is None:
            raise ResourceError(f"file {edit.source}: is not on this node")
        return path, edit.source_offset


def _offset(edit: Edit) -> int:
    return edit.offset


def _outside(here: Workplace, destination: Path) -> Path:
    """OperatorError if a restored copy would lie in the archive it is made of."""
    path = destination.resolve()
    collection = here.collection
    folders = [collection.path.resolve()]
    folders += [Path(collection.archive_path(one)).resolve()
                for one in here.settings.archive.directories]  # fmt: skip
    for folder in folders:
        if path == folder or folder in path.parents or path in folder.parents:
            raise OperatorError(
                f"{destination}: lies in {folder}, or around it; wanted a directory elsewhere"
            )
    if path.exists() and not path.is_dir():
        raise OperatorError(f"{destination}: is a file, wanted a directory")
    return path
