"""Opens the index of payloads that a collection's settings name, and the stores it points into."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from geomi.archive import duplicates_tables as tables
from geomi.archive.bits import Bits
from geomi.archive.duplicates_tables import Kept
from geomi.cluster.batch import Batch
from geomi.cluster.collection import Collection
from geomi.cluster.digests import Index, Neighbour
from geomi.cluster.referrers import Sharers, originals
from geomi.config import Settings
from geomi.errors import OperatorError, ResourceError
from geomi.history.past import Past
from geomi.store import SQLITE, Store, open_store
from geomi.store.address import named
from geomi.store.migrate import migrate

INDEX = "digests.db"
_BITS = ".bits"  # behind the path of the index: its filter


def index_address(collection: Collection, settings: Settings) -> str:
    """A path or an address; empty: the tables of the collection's own store."""
    said = settings.archive.index
    if "://" in said:
        return named(said, "digests")
    if said:
        return os.path.abspath(os.path.join(collection.path, said))
    return "" if settings.store else str(collection.path / INDEX)


def open_index(
    collection: Collection, settings: Settings, here: Store, *, writes: bool = True
) -> Index:
    """The index, with the collection in it. `here`: its store, which stays the caller's.

    A file of the collection's own that is damaged is made anew; of a shared one that is an
    OperatorError. Who only looks opens it after one who writes.
    """
    address = index_address(collection, settings)
    try:
        return _opened(collection, settings, here, address, writes=writes)
    except OperatorError:
        if not writes or settings.archive.index or not address:
            raise
    remove_index(address)
    return _opened(collection, settings, here, address, writes=writes)


@contextmanager
def sharers(collection: Collection, settings: Settings, here: Store) -> Iterator[Sharers | None]:
    """Who shares the collection's index; None: it has none yet."""
    address = index_address(collection, settings)
    if address and "://" not in address and not os.path.exists(address):
        yield None
        return
    with contextlib.closing(open_index(collection, settings, here)) as index:
        yield Sharers(index)


def remove_index(path: str) -> None:
    """An index that is a file, and what lies beside it."""
    for end in ("", "-wal", "-shm", _BITS):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + end)


def _opened(
    collection: Collection, settings: Settings, here: Store, address: str, *, writes: bool
) -> Index:
    if not address:
        store = here
    else:
        if "://" not in address and not os.path.isdir(os.path.dirname(address)):
            raise OperatorError(f"archive.index: {os.path.dirname(address)}: no such directory")
        store = open_store(address, readonly=not writes, folder=str(collection.path), patient=True)
    try:
        if address and writes:
            if store.dialect == SQLITE:
                # A commit that a power cut takes back is caught up: no sync for each batch.
                store.run("PRAGMA synchronous=NORMAL")
            migrate(store, tables.INDEX_FILE, where=address)
        name, home = _registered(collection, settings, store, here, writes=writes)
        bits = Bits(address + _BITS) if store.dialect == SQLITE else None
    except BaseException:
        if store is not here:
            store.close()
        raise
    return Index(
        store, here, home=home, name=name, past=_past(here, collection), others=_neighbour,
        least_bytes=settings.archive.duplicate_bytes, bits=bits,
    )  # fmt: skip


def _registered(
    collection: Collection, settings: Settings, store: Store, here: Store, *, writes: bool
) -> tuple[str, int]:
    """The collection's name and its number in the index."""
    name = tables.name_of(here)
    folder = os.path.abspath(collection.path)
    address = settings.store
    for home, other, its_folder, its_address in tables.homes(store):
        if other == name:
            if (its_folder, its_address) == (folder, address) or not writes:
                return name, home
            if _is_there(name, its_folder, its_address, folder):
                name = ""  # this one was copied from that one
                with here.transaction():
                    here.run("DELETE FROM meta WHERE name = 'collection'")
    if not writes:
        raise OperatorError(f"{collection.path}: not in its index yet; run geomi archive index")
    if not name:
        with here.transaction():
            name = tables.give_name(here, os.urandom(8).hex())
    with store.transaction():
        return name, tables.register(store, name, folder=folder, address=address)


def _is_there(name: str, folder: str, address: str, mine: str) -> bool:
    """True if a collection of that name lies there too."""
    if os.path.realpath(folder) == os.path.realpath(mine):
        return False
    try:
        with neighbour(folder, address) as other:
            return tables.name_of(other.store) == name
    except (OperatorError, ResourceError):
        return False


def _past(store: Store, collection: Collection) -> Callable[[], Past]:
    def past() -> Past:
        with store.image():
            return Past.of(store, collection.archive_path)

    return past


def _neighbour(folder: str, address: str) -> Neighbour:
    """The store of another collection, for reading. It must be of this geomi's version."""
    collection = Collection(folder)
    settings = collection.must_exist().settings()
    if settings.store != address:
        settings = collection.settings()
    store = collection.read_store(settings)
    return Neighbour(store, _past(store, collection))


@contextmanager
def neighbour(folder: str, address: str) -> Iterator[Neighbour]:
    """The same, for as long as the context."""
    one = _neighbour(folder, address)
    try:
        yield one
    finally:
        one.store.close()


def size_of(collection: Collection, settings: Settings, index: Index) -> int:
    """Bytes that it takes on disk, with its filter."""
    if index.store.dialect == SQLITE:
        path = index_address(collection, settings)
        names = (path + end for end in ("", "-wal", _BITS))
        return sum(os.stat(name).st_blocks * 512 for name in names if os.path.exists(name))
    row = index.store.one("SELECT pg_total_relation_size('payloads')")
    return int(row[0]) if row else 0


class Keeping:
    """The index of one agent: brought up to date at its start, and after each batch.

    The index is never worth a crawl: what it cannot take now it takes with a later batch, or when
    the next agent starts.
    """

    def __init__(self, collection: Collection, settings: Settings, store: Store) -> None:
        self._collection = collection
        self._settings = settings
        self._index: Index | None = None
        self._told = ""
        if settings.archive.duplicates:
            try:
                self._index = open_index(collection, settings, store)
                self._index.catch_up()
            except ResourceError as error:
                self._complain(error)

    def stored(self, batch: Batch) -> None:
        """A batch is committed: later payloads may refer to what it stored."""
        if self._index is None:
            return
        places = batch.references.places()
        try:
            self._index.add(batch.agent, batch.incarnation, locations=places)
        except (ResourceError, OperatorError) as error:
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        """Once a cause."""
        if str(error) != self._told:
            self._told = str(error)
            print(f"geomi: the index of payloads is behind: {error}", file=sys.stderr, flush=True)

    @property
    def opener(self) -> Callable[[], Index] | None:
        """Opens it for who looks only, in a thread of its own; None: it is switched off."""
        if self._index is None:
            return None
        collection, settings = self._collection, self._settings

        def opened() -> Index:
            store = collection.read_store(settings, patient=True)
            return open_index(collection, settings, store, writes=False)

        return opened

    def close(self) -> None:
        if self._index is not None:
            self._index.close()


class Elsewhere:
    """What collections that share an index have of their visits, for verify. Opened when asked."""

    def __init__(self, collection: Collection, settings: Settings, here: Store) -> None:
        self._collection = collection
        self._settings = settings
        self._here = here
        self._index: Index | None = None
        self._others: dict[str, Neighbour] = {}

    def __call__(self, home: str, visit: int) -> Kept | None:
        """OperatorError or ResourceError where that collection cannot be asked."""
        other = self._others.get(home) or self._opened(home)
        return originals(other.store, other.past(), [visit]).get(visit)

    def _opened(self, home: str) -> Neighbour:
        if self._index is None:
            self._index = open_index(self._collection, self._settings, self._here, writes=False)
        for _, name, folder, address in tables.homes(self._index.store):
            if name == home:
                self._others[home] = _neighbour(folder, address)
                return self._others[home]
        raise OperatorError(f"no collection named {home} shares its index")

    def close(self) -> None:
        for other in self._others.values():
            other.store.close()
        if self._index is not None:
            self._index.close()
