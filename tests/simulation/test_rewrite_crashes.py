"""A rewrite that ends at any moment: kill and power cut at each crash point, then on, or back.

The disk forgets what was not synced, the store what was not committed. At every point the archive
is the old one or the new one, file by file, whole: every capture replays as before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from isal import isal_zlib

from cluster.rewritten import TEXT, Replayed, doubled, moved, not_modified, replay
from geomi.archive import rewrite_tables
from geomi.archive.names import sha1_b32
from geomi.cluster.collection import Collection
from geomi.cluster.deleting import Deleting
from geomi.cluster.rewriting import Rewriting, Wish
from geomi.cluster.simfiles import SimFiles
from geomi.cluster.simstore import SimStore
from geomi.cluster.simulate import SimCrash
from geomi.cluster.switching import Shell
from geomi.cluster.verify import BytesDisk, verify
from geomi.cluster.workplace import workplace
from geomi.config import Settings

T = 1_800_000_000.0


class World(NamedTuple):
    """A collection as it lies on disk and in the store, to be copied for each crash."""

    data: dict[str, bytes]
    store: Any
    folder: str
    before: dict[int, Replayed]


def world_of(path: Path, *, is_moved: bool, runs: int = 3) -> World:
    small = doubled(path, runs=runs)
    not_modified(small)
    if is_moved:
        moved(small)
    data = {
        str(one): one.read_bytes()
        for folder in ("archive", "history")
        for one in (path / folder).rglob("*")
        if one.is_file()
    }
    before = replay(small.store, where=small.place.archive_path, path_of=lambda name: name)
    return World(data, small, str(path), before)


class Attempt:
    """One collection in the simulator; `crash_at`: the number of the operation it ends before."""

    def __init__(self, world: World, *, crash_at: int = 0) -> None:
        self._world = world
        self.ticks: list[str] = []
        self.crash_at = 0
        self.files = SimFiles(tick=self._tick)
        for path, data in world.data.items():
            self.files.data[path] = bytearray(data)
            self.files._synced[path] = len(data)
            self.files._entries[path] = path
        self.store = SimStore(self._tick)
        world.store.store._db.backup(self.store._db)
        self.crash_at = crash_at

    def _tick(self, what: str) -> None:
        self.ticks.append(what)
        if len(self.ticks) == self.crash_at:
            raise SimCrash(what)

    def where(self, name: str) -> str:
        return f"{self._world.folder}/{name}"

    def shell(self) -> Shell:
        return Shell(store=self.store, files=self.files, where=self.where, now=lambda: T)

    def work(self) -> Rewriting:
        return Rewriting(self.shell(), folder_of=lambda kept: self.where(kept.directory))

    def deleting(self) -> Deleting:
        here = workplace(
            Collection(self._world.folder), Settings(), self.store, files=self.files
        )  # fmt: skip
        here = replace(here, shell=self.shell(), folder_of=lambda kept: self.where(kept.directory))
        return Deleting(here, self.work())

    def inside(self) -> Iterator[bytes]:
        """All that lies on the disk, inflated."""
        for data in self.files.data.values():
            rest = bytes(data)
            while rest.startswith(b"\x1f\x8b"):
                z = isal_zlib.decompressobj(31)
                yield z.decompress(rest)
                rest = z.unused_data
            yield rest

    def must_be_whole(self, *, is_over: bool = False) -> None:
        assert self._world.before == self.must_verify(is_over=is_over)

    def must_verify(self, *, is_over: bool) -> dict[int, Replayed]:
        """What replays now; nothing is wrong with it."""

        def opened(path: str) -> BytesIO:
            return BytesIO(self.files.data[path])

        found = replay(
            self.store, where=self.where, path_of=opened, readable=self.files.readable
        )  # fmt: skip
        report = verify(
            self.store, where=self.where, disk=BytesDisk(self.files.data),
            directories=("archive",), quick=not is_over,
        )  # fmt: skip
        assert report.problems == ()
        return found

    def is_under_way(self) -> bool:
        return rewrite_tables.under_way(self.store) is not None

    def archive(self) -> dict[str, bytes]:
        """All that lies in it."""
        return {path: bytes(data) for path, data in self.files.data.items() if "archive" in path}

    def generations(self) -> dict[int, int]:
        return dict(self.store.all("SELECT file, generation FROM files"))

    def shown(self) -> dict[str, bytes]:
        """What counts of the archive."""
        names = [name for (name,) in self.store.all("SELECT name FROM files")]
        return {
            path: bytes(data)
            for path, data in self.files.data.items()
            if any(path.endswith(end) for one in names for end in (one, one[:-8] + ".cdxj"))
        }


def crashed(world: World, point: int, *, is_power_cut: bool) -> Attempt:
    """The rewrite ended before its `point`th operation, and the machine came back."""
    attempt = Attempt(world, crash_at=point)
    with pytest.raises(SimCrash):
        attempt.work().run(Wish())
    if is_power_cut:
        attempt.files.power_cut(random.Random(point))
    attempt.crash_at = 0
    return attempt


def points(world: World, number: int) -> Iterator[int]:
    """So many of the operations of a rewrite, evenly spread; all if there are fewer."""
    whole = Attempt(world)
    whole.work().run(Wish())
    last = len(whole.ticks)
    yield from sorted({1 + round(n * (last - 1) / (number - 1)) for n in range(number)})


def must_survive(world: World, chosen: list[int]) -> int:
    """Each point as a kill or a power cut, gone on with and taken back; how many that were."""
    whole = Attempt(world)
    whole.work().run(Wish())
    crashes = 0
    for point in chosen:
        for is_power_cut, is_back in ((False, False), (True, False), (True, True)):
            crashes += 1
            attempt = crashed(world, point, is_power_cut=is_power_cut)
            attempt.must_be_whole()
            if is_back and attempt.is_under_way():
                attempt.work().abort()
                assert set(attempt.generations().values()) == {0}
                assert attempt.archive() == {
                    path: data for path, data in world.data.items() if "archive" in path
                }
            else:
                attempt.work().run(Wish())
                assert attempt.shown() == whole.shown()
            attempt.must_be_whole(is_over=crashes % 5 == 0)
    return crashes


def test_killed_at_two_hundred_points_the_archive_is_the_old_or_the_new_one(
    tmp_path: Path,
) -> None:
    world = world_of(tmp_path / "c", is_moved=False, runs=4)
    assert must_survive(world, list(points(world, 1_000))) >= 200


@pytest.mark.long
def test_killed_at_every_point_of_a_rewrite_of_many_files(tmp_path: Path) -> None:
    world = world_of(tmp_path / "c", is_moved=False, runs=20)
    must_survive(world, list(points(world, 1_000)))


def test_killed_while_visits_are_in_parquet_their_places_are_right(tmp_path: Path) -> None:
    world = world_of(tmp_path / "c", is_moved=True)
    *_, middle, _ = points(world, 3)
    must_survive(world, [middle])


@pytest.mark.long
def test_killed_at_every_point_with_visits_in_parquet(tmp_path: Path) -> None:
    world = world_of(tmp_path / "c", is_moved=True)
    must_survive(world, list(points(world, 1_000)))


def test_a_deletion_that_is_killed_goes_on_and_leaves_nothing(tmp_path: Path) -> None:
    world = world_of(tmp_path / "c", is_moved=False)
    digest = sha1_b32(TEXT)
    options = {"kind": "digest", "value": digest, "purge": True, "by": "me", "why": "", "level": 1}
    stays = {visit: one for visit, one in world.before.items() if one.payload != TEXT}

    def deleted(attempt: Attempt) -> None:
        job = rewrite_tables.under_way(attempt.store)
        if job is None:
            with attempt.store.transaction():
                job = rewrite_tables.begin(attempt.store, "delete", options, T)
        attempt.deleting().run(job)

    whole = Attempt(world)
    deleted(whole)
    last = len(whole.ticks)
    for place, point in enumerate(range(1, last + 1, max(1, last // 30))):
        attempt = Attempt(world, crash_at=point)
        with pytest.raises(SimCrash):
            deleted(attempt)
        if place % 2:
            attempt.files.power_cut(random.Random(point))
        attempt.crash_at = 0
        found = attempt.must_verify(is_over=False)
        assert {visit: found[visit] for visit in stays} == stays
        deleted(attempt)
        assert attempt.must_verify(is_over=True) == stays
        assert attempt.shown() == whole.shown()
        assert not any(TEXT[50:90] in inside for inside in attempt.inside())
        assert any(path.endswith("reports/deleted-0001.txt") for path in attempt.files.data)


def _without_sync(files: SimFiles) -> None:
    files._forgets_sync = True


@pytest.mark.parametrize("spoil", [_without_sync])
def test_a_missing_sync_is_found(tmp_path: Path, spoil: Callable[[SimFiles], None]) -> None:
    """The test above can fail: without the sync a power cut after the switch tears the file."""
    world = world_of(tmp_path / "c", is_moved=False)
    torn = 0
    for point in points(world, 40):
        attempt = Attempt(world, crash_at=point)
        spoil(attempt.files)
        with pytest.raises(SimCrash):
            attempt.work().run(Wish())
        attempt.files.power_cut(random.Random(point))
        attempt.crash_at = 0
        try:
            attempt.must_be_whole()
        except Exception:
            torn += 1
    assert torn
