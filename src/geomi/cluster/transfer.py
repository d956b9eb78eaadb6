"""A collection's state from one store to another: all or nothing, then geomi.toml says where."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from geomi.cluster.collection import DATABASE, Collection
from geomi.cluster.recover import recover
from geomi.cluster.tables import MIGRATIONS
from geomi.config import FILE_NAME
from geomi.errors import OperatorError, ResourceError
from geomi.keys import is_bare_secret
from geomi.sheet import with_store
from geomi.store import SQLITE, Store, open_store
from geomi.store.address import named, parse
from geomi.store.copy import copy_all, hold
from geomi.store.migrate import migrate

#: What an operator writes for the database file in the collection.
HERE = "sqlite"
_NEW = ".new"  # the file until it is whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What was done. `kept` is where the old state lies, untouched."""

    to: str
    kept: str
    rows: dict[str, int]
    seconds: float


def move(place: Collection, destination: str, *, tell: Callable[[str, int, int], None]) -> Moved:
    """Copies every table, counts them, switches geomi.toml, and puts the old store aside.

    OperatorError: a crawl runs, a command writes to it, or something is there already; nothing was
    changed then. Who would write meanwhile is refused.
    """
    with place.must_exist().writing(alone=True):
        return _move(place, destination, tell)


def _move(place: Collection, destination: str, tell: Callable[[str, int, int], None]) -> Moved:
    began = time.monotonic()
    settings = place.settings()
    address = _address(place, destination)
    if address == settings.store:
        raise OperatorError(f"{place.path}: its store is there already")
    if not settings.store and not (place.path / DATABASE).is_file():
        raise OperatorError(f"{place.path}: nothing was crawled yet (no {DATABASE})")
    text = _switched(place, address)
    helm = place.coordinate(settings)
    try:
        with closing(place.open_store(settings)) as source:
            recover(place, source, settings)
            _must_rest(place, source)
            with _target(place, address) as target, source.transaction():
                hold(source)
                with target.transaction():
                    migrate(target, MIGRATIONS, where=str(place.path))
                    if target.dialect != SQLITE:
                        target.run("SET LOCAL idle_in_transaction_session_timeout = 0")
                    rows = copy_all(source, target, tell)
        _replace(os.path.join(place.path, FILE_NAME), text)
    finally:
        helm.release()
    return Moved(
        to=parse(address).shown if address else str(place.path / DATABASE),
        kept=_put_aside(place, settings.store), rows=rows, seconds=time.monotonic() - began,
    )  # fmt: skip


def _address(place: Collection, destination: str) -> str:
    """As geomi.toml is to have it."""
    if destination == HERE:
        return ""
    if "://" not in destination:
        raise OperatorError(f"{destination}: wanted {HERE}, or postgresql://user@host/database")
    if is_bare_secret("store", destination):
        raise OperatorError("store: a password would be seen by all; write user:env:NAME@host")
    return named(destination, place.path.absolute().name)


def _must_rest(place: Collection, source: Store) -> None:
    held = source.one("SELECT count(*) FROM sites WHERE holder <> '' AND lease_until > ?",
                      (source.now(),))  # fmt: skip
    if held and held[0]:
        raise OperatorError(
            f"{place.path}: agents still hold {held[0]} sites; when they have ended, in a minute at"
            " most, move it again"
        )


@contextmanager
def _target(place: Collection, address: str) -> Iterator[Store]:
    """An empty store, whole in its place when the block ends well; gone if it does not."""
    if address:
        with closing(open_store(address, folder=str(place.path))) as store:
            if not store.is_empty():
                raise OperatorError(f"{parse(address).shown}: there is a collection already")
            yield store  # one transaction: what is not committed never was
        return
    path = place.path / DATABASE
    if path.exists():
        raise OperatorError(f"{path}: there is a store already; move it away first")
    beside = str(path) + _NEW
    with ExitStack() as undo:
        undo.callback(_remove, beside)
        _remove(beside)  # of one that was killed
        with closing(open_store(beside)) as store:
            yield store
        os.rename(beside, path)


def _remove(path: str) -> None:
    for ending in ("", "-wal", "-shm"):
        try:
            os.unlink(path + ending)
        except FileNotFoundError:
            pass


def _switched(place: Collection, address: str) -> str:
    """geomi.toml with the store in it. OperatorError if it is not ours to write."""
    path = place.path / FILE_NAME
    before = path.read_text("utf-8") if path.exists() else ""
    after = with_store(before, address)
    if {**tomllib.loads(before), "store": address} != {"store": "", **tomllib.loads(after)}:
        raise OperatorError(f"{path}: cannot be changed by itself; write store = …  and move again")
    return after


def _replace(path: str, text: str) -> None:
    """The whole file at once, so that it says one or the other."""
    try:
        with open(path + _NEW, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + _NEW, path)
    except OSError as error:
        raise ResourceError(f"{path}: {error.strerror or error}") from error


def _put_aside(place: Collection, store: str) -> str:
    """Renames the old store, so that nobody takes it for the one in use; its new name."""
    stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime())
    if not store:
        old = str(place.path / DATABASE)
        aside = f"{old}.moved-{stamp}"
        os.rename(old, aside)
        return aside
    with closing(open_store(store, folder=str(place.path))) as opened:
        schema = parse(store).schema
        aside = f"{schema[:40]}_moved_{stamp}"
        opened.run(f'ALTER SCHEMA "{schema}" RENAME TO "{aside}"')
    return f"schema {aside}"
