"""A collection held for work on its finished archive: no crawl runs meanwhile. Shell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from geomi.archive.files import Files, RealFiles
from geomi.archive.rewrite_tables import Kept
from geomi.cluster import node
from geomi.cluster.collection import Collection
from geomi.cluster.mover import Mover
from geomi.cluster.recover import recover
from geomi.cluster.switching import Shell
from geomi.config import Settings
from geomi.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What work on an archive needs. `check` raises once another has the collection."""

    collection: Collection
    settings: Settings
    store: Store
    shell: Shell
    folder_of: Callable[[Kept], str | None]
    check: Callable[[], None] = lambda: None


@contextmanager
def held(collection: Collection) -> Iterator[Workplace]:
    """OperatorError names the process that works on it already, a crawl for example.

    What dead agents left is mended, and visits under way to Parquet are there, before it begins.
    """
    settings = collection.must_exist().settings()
    collection.read_store(settings).close()  # one that was never crawled is not made now
    helm = collection.coordinate(settings)
    try:
        with closing(collection.open_store(settings)) as store:
            store.fence = helm.fence
            recover(collection, store, settings)
            files = RealFiles()
            mover = Mover(store, files, where=collection.archive_path, keep=settings.history)
            for _ in mover.begun(store.now()):
                pass
            try:
                yield workplace(collection, settings, store, files=files, check=helm.check)
            finally:
                files.close()
    finally:
        helm.release()


@contextmanager
def seen(collection: Collection) -> Iterator[Workplace]:
    """The same to read from; nobody is kept out, and nothing may be written."""
    settings = collection.must_exist().settings()
    with closing(collection.read_store(settings)) as store:
        yield workplace(collection, settings, store, files=RealFiles())


def workplace(
    collection: Collection, settings: Settings, store: Store, *, files: Files,
    check: Callable[[], None] = lambda: None,
) -> Workplace:  # fmt: skip
    shell = Shell(store=store, files=files, where=collection.archive_path, now=store.now)
    return Workplace(
        collection=collection, settings=settings, store=store, shell=shell,
        folder_of=lambda kept: folder_of(collection, kept), check=check,
    )  # fmt: skip


def folder_of(collection: Collection, kept: Kept) -> str | None:
    """Where a file lies, if that is on this node: in the collection, or where its row says."""
    if kept.node and kept.node != node.here():
        return None
    for folder in (collection.archive_path(kept.directory), kept.base):
        if folder and os.path.exists(os.path.join(folder, kept.name)):
            return folder
    return None
