"""Files as the archive needs them: created once, appended to, synced, renamed. Shell.

`Files` is what the rest may ask for; `RealFiles` asks the operating system, the simulator has its
own that loses and tears what was not synced.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from typing import Protocol

from geomi.errors import ResourceError


class Files(Protocol):
    """Every method may raise ResourceError, after which the file's tail is unknown."""

    def create(self, path: str) -> None: ...
    def append(self, path: str, parts: Iterable[bytes]) -> int: ...
    def sync(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def truncate(self, path: str, length: int) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def size(self, path: str) -> int | None: ...
    def write(self, path: str, chunks: Iterable[bytes]) -> None: ...
    def readable(self, path: str) -> str: ...
    def close(self) -> None: ...


class RealFiles:
    """The operating system's. Keeps the files it appends to open until renamed or closed."""

    def __init__(self) -> None:
        # Filled by create() and append(), emptied by rename(), remove() and close().
        self._open: dict[str, int] = {}

    def create(self, path: str) -> None:
        """Makes an empty file that did not exist, directories as needed, and syncs the entry."""
        with _told(path):
            directory = os.path.dirname(path)
            if not os.path.isdir(directory):
                self._make_directories(directory)
            self._open[path] = os.open(
                path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644
            )
            self.sync_directory(directory)

    def _make_directories(self, directory: str) -> None:
        missing = []
        while directory and not os.path.isdir(directory):
            missing.append(directory)
            directory = os.path.dirname(directory)
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
            self.sync_directory(os.path.dirname(path) or ".")

    def append(self, path: str, parts: Iterable[bytes]) -> int:
        """Writes all parts at the end; returns the new length."""
        with _told(path):
            handle = self._handle(path)
            for part in parts:
                view = memoryview(part)
                while view:
                    view = view[os.write(handle, view) :]
            return os.fstat(handle).st_size

    def _handle(self, path: str) -> int:
        handle = self._open.get(path)
        if handle is None:
            handle = self._open[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        return handle

    def sync(self, path: str) -> None:
        with _told(path):
            os.fdatasync(self._handle(path))

    def sync_directory(self, path: str) -> None:
        with _told(path):
            handle = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def truncate(self, path: str, length: int) -> None:
        with _told(path):
            handle = self._handle(path)
            os.ftruncate(handle, length)
            os.fsync(handle)

    def rename(self, old: str, new: str) -> None:
        """Renames and syncs the directory: after it returned the new name survives."""
        with _told(old):
            self._forget(old)
            os.rename(old, new)
            self.sync_directory(os.path.dirname(new))

    def remove(self, path: str) -> None:
        with _told(path):
            self._forget(path)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def size(self, path: str) -> int | None:
        """Length in bytes; None if there is no such file."""
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """A whole small file at once: written beside, synced, renamed over."""
        with _told(path):
            directory = os.path.dirname(path)
            if not os.path.isdir(directory):
                self._make_directories(directory)
            beside = path + ".new"
            with open(beside, "wb") as out:
                for chunk in chunks:
                    out.write(chunk)
                out.flush()
                os.fsync(out.fileno())
            os.rename(beside, path)
            self.sync_directory(directory)

    def readable(self, path: str) -> str:
        """Where a library finds the file to read."""
        return path

    def close(self) -> None:
        for path in list(self._open):
            self._forget(path)

    def _forget(self, path: str) -> None:
        handle = self._open.pop(path, None)
        if handle is not None:
            os.close(handle)


class Lock:
    """An flock on a file; free at the death of the process that holds it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._handle: int | None = None

    def take(self, *, shared: bool = False) -> bool:
        """True if it is ours now, or with others who share it. Never waits."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._handle = handle
        return True

    def note(self, text: str) -> None:
        """Leaves a word for whoever finds the lock taken."""
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, text.encode(), 0)

    def read_note(self) -> str:
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                return file.read(200).strip()
        except OSError:
            return ""

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """The one place where the operating system's errors become geomi's."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceError(f"{path}: the disk is full") from error
        raise ResourceError(f"{path}: {error.strerror or error}") from error
