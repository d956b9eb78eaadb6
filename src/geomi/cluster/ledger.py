"""One batch to disk and store, in the order that loses nothing; and the closing of files.

Used by both shells: `files` and `store` are real or simulated. A crash may come between any two
calls on them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from geomi import url as urls
from geomi.archive import cdxj, tables
from geomi.archive.files import Files
from geomi.archive.names import date14
from geomi.archive.record import SpoolPart, stream_member
from geomi.archive.writer import FileWrite
from geomi.cluster.batch import Batch, Committed, answered, commit
from geomi.errors import ResourceError
from geomi.store import Store

OPEN = ".open"
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A batch that is safe. `grown`: (file, bytes) of spooled parts, for the writer."""

    committed: Committed
    grown: tuple[tuple[int, int], ...]


class Ledger:
    """Writes batches of one agent. `where` turns an archive directory into a path."""

    def __init__(
        self,
        *,
        store: Store,
        files: Files,
        where: Callable[[str], str],
        level: int,
        now: Callable[[], float],
        rest_s: float = 0.0,
        node: str = "",
        stored: Callable[[Batch], None] = lambda batch: None,
    ) -> None:
        self._store = store
        self._files = files
        self._where = where
        self._level = level
        self._now = now
        self._node = node  # where the files are, for who looks for them
        self._stored = stored  # told of each batch that is committed: the index of payloads
        self._rest_s = rest_s  # of addresses that a dead agent may have visited a moment ago

    def write(self, batch: Batch) -> Written:
        """Appends, syncs, commits. After a ResourceError it may be called again with the batch."""
        committed = answered(self._store, batch)
        if committed is None:
            committed = self._commit(batch)
        self._stored(batch)
        for spool in batch.spools:
            self._files.remove(spool)
        for write in batch.files:
            if write.close:
                self.close(write.file, write.directory, write.name)
        return Written(committed=committed, grown=batch.spooled)

    def _commit(self, batch: Batch) -> Committed:
        self._register(batch)
        lengths: dict[int, int] = {}
        spooled: list[tuple[int, int, int]] = []  # file, index, length
        for write in batch.files:
            path = self.path(write.directory, write.name) + OPEN
            if write.create and self._files.size(path) is None:
                self._files.create(path)
            size = self._files.size(path)
            if size is None or size < write.start:
                raise ResourceError(f"{path}: {size} bytes, wanted at least {write.start}")
            if size > write.start:  # what an earlier try left
                self._files.truncate(path, write.start)
            lengths[write.file] = write.start
            if write.parts:
                sizes: list[tuple[int, int]] = []
                lengths[write.file] = self._files.append(path, self._bytes(write, sizes))
                self._files.sync(path)
                spooled += [(write.file, index, size) for index, size in sizes]
        for file, index, length in spooled:
            batch.grown(file, index, length)
        batch.spooled = tuple((file, length) for file, _, length in spooled)
        try:
            return commit(self._store, batch, now=self._now(), lengths=lengths)
        except BaseException:
            for file, index, length in spooled:  # a second try appends them anew
                batch.grown(file, index, -length)
            raise

    def path(self, directory: str, name: str) -> str:
        return os.path.join(self._where(directory), name)

    def _register(self, batch: Batch) -> None:
        """Files get their row before they exist: whatever is on disk is known to the store."""
        created = [write for write in batch.files if write.create]
        if created:
            with self._store.transaction():
                for write in created:
                    tables.opened(
                        self._store, file=write.file, root=write.root, directory=write.directory,
                        name=write.name, agent=batch.agent, incarnation=batch.incarnation,
                        now=self._now(), node=self._node, base=self._where(write.directory),
                    )  # fmt: skip

    def _bytes(self, write: FileWrite, sizes: list[tuple[int, int]]) -> Iterator[bytes]:
        """The parts of a write, small ones joined; spooled ones as they come from their file."""
        plain: list[bytes] = []
        for index, part in enumerate(write.parts):
            if not isinstance(part, SpoolPart):
                plain.append(part)
                continue
            yield b"".join(plain)
            plain = []
            size = 0
            for piece in stream_member(part, read_chunks(part.path), level=self._level):
                size += len(piece)
                yield piece
            sizes.append((index, size))
        yield b"".join(plain)

    def close(self, file: int, directory: str, name: str) -> None:
        """Index, rename, mark: each step may be repeated after a crash."""
        path = self.path(directory, name)
        self._files.write(index_path(path), index_of(self._store, file, os.path.basename(name)))
        if self._files.size(path + OPEN) is not None:
            self._files.rename(path + OPEN, path)
        with self._store.transaction():
            tables.closed(self._store, file, self._now())

    def recover(self, agent: str, incarnation: int) -> int:
        """Keeps the committed part of each file that a dead incarnation left open; their number."""
        left = tables.open_files(self._store, agent, incarnation)
        for file, directory, name, committed in left:
            path = self.path(directory, name)
            size = self._files.size(path + OPEN)
            if committed == 0:
                self._files.remove(path + OPEN)
                with self._store.transaction():
                    self._store.run("DELETE FROM files WHERE file = ?", (file,))
                continue
            if size is not None and size > committed:
                self._files.truncate(path + OPEN, committed)
            self.close(file, directory, name)
        holder = f"{agent}/{incarnation}"
        with self._store.transaction():
            self._store.run(
                "UPDATE sites SET holder = '', lease_until = 0 WHERE holder = ? AND holder <> ''",
                (holder,),
            )
            self._store.run(
                "UPDATE sites SET go_to = '' WHERE go_to = ? AND go_to <> ''", (holder,)
            )
            # When it asked there last nobody knows, so each address rests once from now on.
            self._store.run(
                "UPDATE addresses SET holder = '', until = ? WHERE holder = ?",
                (self._now() + self._rest_s, holder),
            )
            self._store.run(
                "UPDATE agents SET state = 'ended' WHERE agent = ? AND incarnation = ?",
                (agent, incarnation),
            )
        return len(left)


def read_chunks(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise ResourceError(f"{path}: {error.strerror or error}") from error


def index_path(path: str) -> str:
    return path.removesuffix(".warc.gz") + ".cdxj"


def index_of(
    store: Store, file: int, filename: str, moved: Iterable[tuple[Any, ...]] = ()
) -> Iterator[bytes]:
    """The CDXJ lines of one file, sorted by bytes. `moved`: of its visits in Parquet, the same
    columns as archive.tables.captures_of; none while the file is open."""
    lines = [line_of(filename, *row) for row in (*tables.captures_of(store, file), *moved)]
    yield from cdxj.sort_lines(lines)


def line_of(
    filename: str, url: str, date: str, mime: str, code: int, digest: str, offset: int,
    length: int, revisit: int,
) -> bytes:  # fmt: skip
    """The CDXJ line of one capture, as the store has it."""
    return cdxj.line(
        urls.surt(url),
        date14(date),
        url=url,
        mime="warc/revisit" if revisit else mime or "unk",
        status=str(code) if code and not revisit else "",
        digest=digest,
        length=length,
        offset=offset,
        filename=filename,
    )
