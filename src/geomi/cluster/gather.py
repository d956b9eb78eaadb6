"""Closed archive files of many nodes into one archive directory: `geomi cluster gather`.

A file is read where it lies, compared with the length the store vouches for and with the digest
taken there, given its name, and only then does its row say where it is now. Stopped at any moment,
the next run goes on: with the next piece of the file, and never with a file that is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from geomi.archive import tables
from geomi.archive.check import check_file
from geomi.archive.files import Lock, RealFiles
from geomi.cluster import node, pieces
from geomi.cluster.collection import Collection
from geomi.cluster.engine import Engine, Item, Result
from geomi.cluster.pieces import PIECE_BYTES, Piece
from geomi.config import Settings
from geomi.errors import OperatorError, ResourceError
from geomi.store import Store

_WINDOW = 4  # pieces of one file that are read at once, and held in memory


class Source(NamedTuple):
    """A file as its row says. `node` empty: of a time before nodes had names."""

    file: int
    directory: str
    name: str
    committed: int
    node: str
    base: str

    @property
    def path(self) -> str:
        return os.path.join(self.base, self.name)


@dataclass(slots=True, kw_only=True)
class Gathered:
    """What a run did. `left`: what it could not, and why."""

    destination: str
    files: int = 0
    size_bytes: int = 0
    removed: int = 0
    open: int = 0  # still written to: for a later run
    left: list[tuple[str, str]] = field(default_factory=list)


#: done bytes, all bytes, the file
Tell = Callable[[int, int, str], None]


def gather(
    collection: Collection, store: Store, settings: Settings, engine: Engine, *,
    destination: str = "", host: str = "", remove: bool = False, tell: Tell = lambda *_: None,
) -> Gathered:  # fmt: skip
    """Without a destination: what other nodes have, into the first archive directory; with one,
    what lies anywhere else. `host`: of this node alone. `remove`: the originals go afterwards."""
    lock = Lock(collection.lock_path("gather"))
    if not lock.take():
        raise OperatorError(f"{collection.path}: somebody else gathers its files")
    try:
        known = destination in settings.archive.directories
        directory = destination or settings.archive.directories[0]
        if destination and not known:
            directory = os.path.abspath(destination)
        work = _Gathering(
            collection, store, engine, directory=directory,
            root=settings.archive.directories.index(directory)
            if directory in settings.archive.directories else 0,
            remove=remove, tell=tell,
        )  # fmt: skip
        return work.run(host=host, others_only=not destination)
    finally:
        lock.release()


class _Gathering:
    def __init__(
        self, collection: Collection, store: Store, engine: Engine, *, directory: str, root: int,
        remove: bool, tell: Tell,
    ) -> None:  # fmt: skip
        self._collection = collection
        self._store = store
        self._engine = engine
        self._directory = directory
        self._base = os.path.abspath(collection.archive_path(directory))
        self._root = root
        self._remove = remove
        self._tell = tell
        self._files = RealFiles()
        self._here = node.here()
        self._done_bytes = self._all_bytes = 0

    def run(self, *, host: str, others_only: bool) -> Gathered:
        made = Gathered(destination=self._base)
        wanted: list[Source] = []
        for row, state in tables.places(self._store):
            source = Source(*row)
            if not source.base:  # of a time before: where the collection says
                source = source._replace(base=self._collection.archive_path(source.directory))
            its_node = source.node or self._here
            if (host and its_node != host) or (others_only and its_node == self._here):
                continue
            if its_node == self._here and os.path.abspath(source.base) == self._base:
                continue
            if state == "open":
                made.open += 1
            else:
                wanted.append(source)
        self._all_bytes = sum(source.committed for source in wanted)
        for source in wanted:
            try:
                made.removed += self._one(source)
            except ResourceError as error:
                made.left.append((source.name, f"{source.node or self._here}: {error}"))
            else:
                made.files += 1
                made.size_bytes += source.committed
            self._done_bytes += source.committed
        return made

    def _one(self, source: Source) -> int:
        """Brings one file and its index; returns how many originals were removed."""
        at = "" if (source.node or self._here) == self._here else source.node
        final = os.path.join(self._base, source.name)
        self._bring(source, at, source.path, final, source.committed)
        index, final_index = _index(source.path), _index(final)
        self._bring(source, at, index, final_index, None)
        if not tables.moved(
            self._store, source.file, was=source.node, root=self._root,
            directory=self._directory, node=self._here, base=self._base,
        ):  # fmt: skip
            raise ResourceError("its row changed meanwhile")
        if not self._remove or (not at and os.path.abspath(source.path) == os.path.abspath(final)):
            return 0
        gone = self._do(at, pieces.discard, [source.path, index]).values()
        return sum(gone)

    def _bring(self, source: Source, at: str, path: str, final: str, committed: int | None) -> None:
        """The file is at `final`, whole and synced, or ResourceError."""
        if self._files.size(final) is not None:
            self._must_be_whole(at, path, final, committed)
            return
        length, digest = self._measured(at, path)
        if committed is not None and length != committed:
            raise ResourceError(f"{path}: {length} bytes, wanted {committed}")
        folder, name = os.path.split(final)
        # No name that looks like an archive file: verify would take it for a stranger.
        part = os.path.join(
            folder, f".gathering-{source.file}-{'cdxj' if committed is None else 0}"
        )
        os.makedirs(folder, exist_ok=True)
        if at or not self._linked(path, part):
            self._copy(at, path, part, length, is_counted=committed is not None, name=name)
        if pieces.measure(part) != (length, digest):
            pieces.discard(part)
            raise ResourceError(f"{path}: what came is not what was read there")
        self._files.sync(part)
        self._files.rename(part, final)

    def _linked(self, path: str, part: str) -> bool:
        """On one file system a second name costs nothing."""
        pieces.discard(part)
        try:
            os.link(path, part)
        except OSError:
            return False
        return True

    def _copy(
        self, at: str, path: str, part: str, length: int, *, is_counted: bool, name: str
    ) -> None:
        """Appends what is not there yet, piece by piece, in order."""
        have = self._files.size(part)
        if have is None:
            self._files.create(part)
            have = 0
        if have > length or have % PIECE_BYTES:
            have = 0 if have > length else have - have % PIECE_BYTES
            self._files.truncate(part, have)
        for window in _windows(path, have, length):
            came = self._do(at, pieces.read, window)
            for piece in window:
                if len(came[piece]) != piece.length:
                    raise ResourceError(f"{path}: it became shorter while it was read")
            self._files.append(part, (came[piece] for piece in window))
            have = window[-1].offset + window[-1].length
            if is_counted:
                self._tell(self._done_bytes + have, self._all_bytes, name)

    def _measured(self, at: str, path: str) -> tuple[int, str]:
        return self._do(at, pieces.measure, [path])[path]

    def _do(self, at: str, work: Callable[[Item], Result], items: list[Item]) -> dict[Item, Result]:
        """On the node that has the file; here without asking anybody."""
        if not at:
            return {item: work(item) for item in items}
        return dict(self._engine.run_tasks(work, items, at=at))

    def _must_be_whole(self, at: str, path: str, final: str, committed: int | None) -> None:
        """A file that is there already: of a run that was stopped, or of a shared directory."""
        try:
            same = os.path.samefile(path, final) if not at else False
            if same or self._measured(at, path) == pieces.measure(final):
                return
            why = "another file of this name is there"
        except (ResourceError, OSError) as error:
            if committed is None:
                return  # verify compares an index with the store
            if self._files.size(final) == committed and not check_file(final):
                return
            why = str(error)
        raise ResourceError(f"{final}: {why}")


def _index(path: str) -> str:
    return path.removesuffix(".warc.gz") + ".cdxj"


def _windows(path: str, start: int, length: int) -> Iterator[list[Piece]]:
    all_pieces = [
        Piece(path, offset, min(PIECE_BYTES, length - offset))
        for offset in range(start, length, PIECE_BYTES)
    ]
    for first in range(0, len(all_pieces), _WINDOW):
        yield all_pieces[first : first + _WINDOW]
