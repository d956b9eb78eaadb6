"""A collection on disk: its directory, settings, store and locks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geomi import clock, config
from geomi.archive.files import Lock
from geomi.cluster import dating, node
from geomi.cluster.helm import FileHelm, Helm, StoreHelm, take
from geomi.cluster.tables import MIGRATIONS
from geomi.config import FILE_NAME, Settings
from geomi.errors import OperatorError
from geomi.sheet import default_toml
from geomi.store import SQLITE, SqliteStore, Store, open_store
from geomi.store.migrate import check_version, migrate, version_of

DATABASE = "geomi.db"


class NothingYet(OperatorError):
    """There is a collection, and no store: no crawl began, or it was killed before it made one."""


class Collection:
    """Paths and settings. Opens nothing until asked."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        return (self.path / FILE_NAME).is_file() or (self.path / DATABASE).is_file()

    def must_exist(self) -> Collection:
        if not self.exists:
            raise OperatorError(f"{self.path}: no collection here (no {FILE_NAME}, no {DATABASE})")
        return self

    def create(
        self,
        given: Mapping[str, Any] | None = None,
        sites: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        settings: Settings | None = None,
    ) -> None:
        """Makes the directory and its geomi.toml; `given` are settings to write into it, `sites`
        those of single sites. With `settings` the tables too, where others share the store; what
        was made goes again if that fails."""
        if self.path.exists() and not self.path.is_dir():
            raise OperatorError(f"{self.path}: not a directory")
        if self.exists:
            raise OperatorError(f"{self.path}: there is a collection already")
        if self.path.is_dir() and any(self.path.iterdir()):
            raise OperatorError(f"{self.path}: the directory is not empty, and no collection")
        is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / FILE_NAME).write_text(default_toml(given, sites), encoding="utf-8")
        except OSError as error:
            raise OperatorError(f"{self.path}: {error.strerror or error}") from error
        if settings is not None and "://" in self.store_address(settings):
            try:
                self.open_store(settings).close()
            except BaseException:
                (self.path / FILE_NAME).unlink()
                if is_new:
                    self.path.rmdir()
                raise

    def settings(
        self, sets: Sequence[str] = (), options: Mapping[str, Any] | None = None
    ) -> Settings:
        return config.load(self.path / FILE_NAME, sets, options=options)

    def store_address(self, settings: Settings) -> str:
        return settings.store or str(self.path / DATABASE)

    def open_store(self, settings: Settings, *, patient: bool = False) -> Store:
        """For writing; brings the schema up to date. The patient wait for a server that is away."""
        store = open_store(self.store_address(settings), folder=str(self.path), patient=patient)
        try:
            migrate(store, MIGRATIONS, where=str(self.path))
            _dated(store)
        except BaseException:
            store.close()
            raise
        return store

    def read_store(self, settings: Settings | None = None, *, patient: bool = False) -> Store:
        """For reading. Never refused while a crawl is running."""
        self.must_exist()
        address = self.store_address(settings or self.settings())
        if "://" not in address and not Path(address).is_file():
            raise NothingYet(f"{self.path}: nothing was crawled yet (no {DATABASE})")
        store = open_store(address, readonly=True, folder=str(self.path), patient=patient)
        try:
            have = version_of(store)
            check_version(have, len(MIGRATIONS), str(self.path))
            if not have and store.dialect != SQLITE:
                raise NothingYet(f"{self.path}: nothing was crawled yet (its store is empty)")
        except BaseException:
            store.close()
            raise
        if have < len(MIGRATIONS):
            store.close()
            return self.open_store(settings or self.settings())
        _dated(store)
        return store

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[None]:
        """For who writes beside a crawl: inside, the collection keeps its store. `alone`: for who
        moves that. OperatorError where the other is at work."""
        try:
            lock = Lock(self.lock_path("store"))
            taken = lock.take(shared=not alone)
        except OSError as error:
            raise OperatorError(
                f"{self.path}: cannot be written: {error.strerror or error}"
            ) from error
        if not taken:
            what = "another command writes to it" if alone else "its store is being moved"
            raise OperatorError(f"{self.path}: {what}; try again when that has ended")
        try:
            yield
        finally:
            lock.release()

    def set_out(self, store: Store) -> None:
        """A crawl begins, and no agent lives: the time of the store is the machine's date."""
        if isinstance(store, SqliteStore):
            zero = dating.set_out(
                store, date=clock.now(), counter=clock.boottime(), boot=clock.boot()
            )
            store.clock = clock.counted_from(zero)

    def archive_path(self, directory: str) -> str:
        """Where an archive directory of the settings lies."""
        return directory if os.path.isabs(directory) else str(self.path / directory)

    def kept_path(self, directory: str) -> str:
        """Where agents of this node keep an archive directory: there, or where the node says."""
        return node.kept_path(str(self.path), directory)

    def spool_path(self, agent: str, incarnation: int) -> str:
        """Where one life of an agent keeps large bodies until they are archived."""
        return str(self.path / "spool" / f"{agent}-{incarnation}")

    def clear_spool(self, agent: str, incarnation: int) -> None:
        shutil.rmtree(self.spool_path(agent, incarnation), ignore_errors=True)

    def lock_path(self, name: str) -> str:
        """The file of a lock; its directory is made."""
        locks = self.path / "locks"
        locks.mkdir(exist_ok=True)
        return str(locks / name)

    def coordinate(
        self,
        settings: Settings,
        *,
        wait: bool = False,
        take_over: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Helm:
        """The right to be the one coordinator; OperatorError names the one that has it."""
        if "://" in self.store_address(settings):
            found: Helm = StoreHelm(lambda: self.open_store(settings))
        else:
            try:
                found = FileHelm(Lock(self.lock_path("coordinator")))
            except OSError as error:
                raise OperatorError(
                    f"{self.path}: cannot be written: {error.strerror or error}"
                ) from error
        return take(found, str(self.path), wait=wait, take_over=take_over, tell=tell)


def _dated(store: Store) -> None:
    """A store in SQLite shows the time of the crawl that began last."""
    if isinstance(store, SqliteStore):
        zero = dating.zero_of(store, boot=clock.boot())
        if zero is not None:
            store.clock = clock.counted_from(zero)
