"""Planning over many captures: memory does not grow with them, and what is lacking is told."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from cluster.rewritten import doubled, rewriting_of
from cluster.small import Small
from geomi.archive.rewrite_tables import Edit
from geomi.cluster.doubles import Doubles, all_captures
from geomi.cluster.rewriting import Rewriting, Wish
from geomi.store import SqliteStore

COLUMNS = (
    "page, site_id, url, purpose, run, reason, epoch, host, address, started, ended, outcome, code,"
    ' mime, digest, size, changed, file, "offset", length, stored_date, revisit, batch, detail'
)


def many(store: SqliteStore, number: int) -> None:
    """Captures that exist in the store alone, no two alike."""
    with store.transaction():
        store.many(
            f"INSERT INTO visits ({COLUMNS}) VALUES (0, 1, ?, 'page', 1, 0, 1, '', '', 0, 1, 'OK',"
            " 200, '', ?, 1000, -1, 9, ?, 100, '2026-01-01T00:00:00.000Z', 0, 1, '')",
            ((f"http://a.example/{n}", f"sha1:{n:032d}", 100 * n) for n in range(number)),
        )


def peak_bytes(store: SqliteStore) -> int:
    tracemalloc.start()
    with all_captures(store, where=str) as captures:
        doubles = Doubles(
            captures, path_of=lambda _: None, meaningless=frozenset(), sink=lambda _: None
        )
        doubles.plan()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    small = Small(tmp_path / "c")
    assert isinstance(small.store, SqliteStore)
    many(small.store, 2_000)
    little = peak_bytes(small.store)
    many(small.store, 20_000)
    assert peak_bytes(small.store) < little + 1_000_000


def test_what_lies_on_another_node_is_neither_touched_nor_referred_to(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    first = small.store.one("SELECT min(file) FROM files")
    assert first is not None
    here = rewriting_of(small)._shell
    work = Rewriting(
        here,
        folder_of=lambda kept: (
            None if kept.file == first[0] else small.place.archive_path(kept.directory)
        ),
    )
    edits: list[Edit] = []
    counts = work.plan(Wish(), meaningless=frozenset(), sink=edits.extend)
    assert counts["elsewhere"] > 0
    assert first[0] not in {edit.file for edit in edits}
    assert {edit.original for edit in edits} <= {
        row[0] for row in small.store.all("SELECT visit FROM visits WHERE file > ?", first)
    }
