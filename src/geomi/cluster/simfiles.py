"""Files that forget: what was not synced is lost or torn when the power goes. For the simulator."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping

from geomi.errors import ResourceError

_PAGE = 4096  # what a disk writes at once


def scratch_of(owner: object) -> str:
    """A directory that goes when its owner does."""
    folder = tempfile.mkdtemp(prefix="geomi-sim-")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


def unpacked(data: Mapping[str, bytes | bytearray], path: str, folder: str) -> str:
    """A copy on the real disk of a file in memory, for a library that reads files."""
    copy = os.path.join(folder, path.replace("/", "_"))
    if path in data:
        with open(copy, "wb") as out:
            out.write(data[path])
    return copy


class SimFiles:
    """Keeps bytes, renames and directory entries apart from what of them was synced."""

    def __init__(self, *, tick: Callable[[str], None], forgets_sync: bool = False) -> None:
        self._tick = tick  # called before each operation: a crash point
        self._forgets_sync = forgets_sync  # a deliberately removed sync, to prove that it is found
        self.data: dict[str, bytearray] = {}
        self._synced: dict[str, int] = {}  # length that survives
        # Directory as it survives: name -> name under which the data is kept now
        self._entries: dict[str, str] = {}
        self.room: int | None = None  # bytes left on the disk; None: enough
        self._folder = scratch_of(self)

    def create(self, path: str) -> None:
        self._tick("create")
        if path in self.data:
            raise ResourceError(f"{path}: File exists")
        self.data[path] = bytearray()
        self._synced[path] = 0
        self._tick("create, before the directory is synced")
        self.sync_directory(os.path.dirname(path))

    def append(self, path: str, parts: Iterable[bytes]) -> int:
        self._tick("append")
        for part in parts:
            if self.room is not None:
                if self.room < len(part):
                    self.data[path] += part[: self.room]
                    self.room = 0
                    raise ResourceError(f"{path}: the disk is full")
                self.room -= len(part)
            self.data[path] += part
        return len(self.data[path])

    def sync(self, path: str) -> None:
        self._tick("sync")
        if not self._forgets_sync:
            self._synced[path] = len(self.data[path])

    def sync_directory(self, path: str) -> None:
        self._tick("sync directory")
        here = {name for name in self.data if os.path.dirname(name) == path}
        self._entries = {
            name: kept for name, kept in self._entries.items() if os.path.dirname(name) != path
        }
        self._entries |= {name: name for name in here}

    def truncate(self, path: str, length: int) -> None:
        self._tick("truncate")
        del self.data[path][length:]
        self._synced[path] = min(self._synced[path], length)

    def rename(self, old: str, new: str) -> None:
        self._tick("rename")
        self.data[new] = self.data.pop(old)
        self._synced[new] = self._synced.pop(old)
        for name, kept in self._entries.items():
            if kept == old:
                self._entries[name] = new
        self._tick("rename, before the directory is synced")
        self.sync_directory(os.path.dirname(new))

    def remove(self, path: str) -> None:
        self._tick("remove")
        self.data.pop(path, None)
        self._synced.pop(path, None)

    def size(self, path: str) -> int | None:
        return len(self.data[path]) if path in self.data else None

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        self._tick("write a whole file")
        data = b"".join(chunks)
        if self.room is not None and self.room < len(data):
            raise ResourceError(f"{path}: the disk is full")
        self.data[path] = bytearray(data)
        self._synced[path] = len(data)
        self.sync_directory(os.path.dirname(path))

    def readable(self, path: str) -> str:
        return unpacked(self.data, path, self._folder)

    def close(self) -> None:
        pass

    def power_cut(self, rng: random.Random) -> None:
        """What was not synced is lost, kept, or torn; entries not synced may be the old ones."""
        for path, data in self.data.items():
            sure = self._synced[path]
            unsure = len(data) - sure
            if unsure:
                kept = rng.choice((0, unsure, rng.randint(0, unsure)))
                tail = bytearray(data[sure : sure + kept])
                if rng.random() < 0.5:  # written in any order: some of its pages are not there
                    for at in range(-(sure % _PAGE), kept, _PAGE):
                        if rng.random() < 0.5:
                            low = max(at, 0)
                            tail[low : at + _PAGE] = bytes(len(tail[low : at + _PAGE]))
                data[sure:] = tail
            self._synced[path] = len(data)
        survivors: dict[str, bytearray] = {}
        for name, kept_as in self._entries.items():
            if kept_as in self.data:
                survivors[name] = self.data[kept_as]
        for name, data in self.data.items():
            # An entry that was not synced may have made it to the disk all the same.
            if name not in self._entries and name not in survivors and rng.random() < 0.5:
                if any(kept is data for kept in survivors.values()):
                    continue
                survivors[name] = data
        self.data = survivors
        self._synced = {name: len(data) for name, data in survivors.items()}
        self._entries = {name: name for name in survivors}
