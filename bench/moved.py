"""Old visits on their way to Parquet: how fast, how long others wait, how quickly they are read."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from filled import fill, visit_again
from geomi.archive.files import RealFiles
from geomi.cluster.collection import Collection
from geomi.cluster.mover import Mover
from geomi.cluster.story import story
from geomi.cluster.verify import verify
from geomi.store import SqliteStore

PAGES = 20_000
VISITS = 31  # of each; all but the last 20 move


class Timed(SqliteStore):
    """Notes how long each transaction holds the write lock."""

    held: list[float]

    def transaction(self) -> Any:
        return _Held(super().transaction(), self.held)


class _Held:
    def __init__(self, inner: Any, held: list[float]) -> None:
        self._inner = inner
        self._held = held

    def __enter__(self) -> None:
        self._inner.__enter__()
        self._began = time.perf_counter()

    def __exit__(self, *error: Any) -> Any:
        try:
            return self._inner.__exit__(*error)
        finally:
            self._held.append(time.perf_counter() - self._began)


def measure() -> dict[str, Any]:
    """One site whose pages were visited VISITS times, and the move of what is old."""
    with tempfile.TemporaryDirectory(prefix="geomi-moved-") as text:
        path = Path(text) / "c"
        fill(path, sites=["h0.bench.test"], known=PAGES, waiting=False, settings={})
        visit_again(path, known=PAGES, times=VISITS - 1)
        place = Collection(path)
        before = (path / "geomi.db").stat().st_size
        store = Timed(str(path / "geomi.db"))
        store.held = []
        mover = Mover(store, RealFiles(), where=place.archive_path, keep=place.settings().history)
        began = time.perf_counter()
        longest = 0.0
        at = began
        for _ in mover.finish(time.time()):
            longest = max(longest, time.perf_counter() - at)
            at = time.perf_counter()
        took = time.perf_counter() - began
        parts = store.all("SELECT count(*), sum(rows), sum(size) FROM past WHERE state = 'whole'")
        ((files, moved, size),) = parts
        times = []
        for page in range(20):
            url = f"http://h0.bench.test/known/{page * 997 % PAGES}.html"
            began = time.perf_counter()
            told = story(
                store, url, settings=place.settings(), where=place.archive_path, now=time.time()
            )
            times.append(time.perf_counter() - began)
            if sum(event.what == "asked" for event in told.events) != VISITS:
                raise RuntimeError(f"{url}: its story is not whole")
        report = verify(store, where=place.archive_path)
        store.close()
        if not report.ok:
            raise RuntimeError(str(report.problems[:3]))
        return {
            "pages": PAGES, "visits": VISITS, "moved": moved, "seconds": took,
            "us_per_visit": 1e6 * took / moved, "files": files,
            "bytes_per_visit": size / moved, "store_bytes": before,
            "longest_lock_s": max(store.held), "median_lock_s": statistics.median(store.held),
            "longest_step_s": longest, "story_s": statistics.median(times),
        }  # fmt: skip
