"""Archive files of other nodes come to one directory whole, once, and never half."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small import SEED, Small

from geomi.cluster import gather as gathering
from geomi.cluster import pieces
from geomi.cluster.engine import Orders, Placed
from geomi.cluster.gather import Gathered, gather
from geomi.cluster.local import LocalEngine
from geomi.cluster.node import here, kept_path
from geomi.cluster.verify import Report, verify
from geomi.errors import OperatorError

PIECE = 200


class OtherNode:
    """An engine with one node, `far`; what it is asked for may go wrong on the way."""

    def __init__(self, spoil: Callable[[Any, Any], Any] = lambda item, result: result) -> None:
        self._spoil = spoil
        self.read: list[int] = []

    def run_tasks(
        self, work: Callable[[Any], Any], items: Iterable[Any], *, at: str = ""
    ) -> Iterator[tuple[Any, Any]]:
        assert at == "far"
        for item in items:
            if work is pieces.read:
                self.read.append(item.offset)
            yield item, self._spoil(item, work(item))

    def place(self, orders: Orders) -> Placed:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str) -> Iterator[Small]:
    """A collection whose one file lies on another node."""
    monkeypatch.setattr(gathering, "PIECE_BYTES", PIECE)
    made = Small(tmp_path / "c", address=shared)
    made.robots()
    made.visit(SEED, body=b'<a href="/b">b')
    made.visit(f"{SEED}b", body=bytes(range(256)) * 40)
    made.end()
    (tmp_path / "c" / "archive").rename(tmp_path / "far")
    made.store.run("UPDATE files SET node = 'far', base = ?", (str(tmp_path / "far"),))
    yield made
    made.store.close()


def bring(small: Small, engine: Any = None, **more: Any) -> Gathered:
    return gather(small.place, small.store, small.settings, engine or OtherNode(), **more)


def looked_at(small: Small) -> Report:
    return verify(small.store, where=small.place.archive_path, directories=["archive"])


def row(small: Small) -> tuple[Any, ...]:
    found = small.store.one("SELECT directory, node, base, committed FROM files")
    assert found is not None
    return found


def test_files_of_other_nodes_are_counted_and_not_looked_at(small: Small) -> None:
    report = looked_at(small)
    assert report.problems == () and report.counts["files.elsewhere"] == 1
    small.store.run("UPDATE files SET node = ?", (here(),))
    (one, *_) = Path(row(small)[2]).glob("**/*.warc.gz")
    one.unlink()
    assert "no such file" in looked_at(small).problems[0].what  # of its own it is missing


def test_a_gathered_file_is_found_by_all_who_look_for_it(small: Small, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    made = bring(small, tell=lambda done, every, _: told.append((done, every)))
    assert (made.files, made.left, made.removed) == (1, [], 0)
    assert made.size_bytes == row(small)[3] == told[-1][0] == told[-1][1]
    assert row(small)[:3] == ("archive", here(), str(tmp_path / "c" / "archive"))
    report = looked_at(small)
    assert report.problems == () and "files.elsewhere" not in report.counts
    assert report.counts["captures"] == 3
    for name in ("warc.gz", "cdxj"):
        (come,) = (tmp_path / "c" / "archive").glob(f"**/*.{name}")
        (original,) = (tmp_path / "far").glob(f"**/*.{name}")
        assert come.read_bytes() == original.read_bytes()
    again = bring(small)
    assert (again.files, again.left) == (0, [])


def test_the_originals_go_only_when_told(small: Small, tmp_path: Path) -> None:
    assert bring(small, remove=True).removed == 2
    assert not list((tmp_path / "far").glob("**/*.*z")) + list((tmp_path / "far").glob("**/*.cdxj"))
    assert looked_at(small).problems == ()


@pytest.mark.parametrize("after", [0, 3, 5, 9])
def test_a_run_that_was_stopped_is_gone_on_with(small: Small, after: int) -> None:
    left = after

    def stop(item: Any, result: Any) -> Any:
        nonlocal left
        if isinstance(item, pieces.Piece):
            if not left:
                raise KeyboardInterrupt
            left -= 1
        return result

    first = OtherNode(stop)
    with pytest.raises(KeyboardInterrupt):
        bring(small, first)
    assert row(small)[1] == "far"
    report = looked_at(small)  # nothing of it is mistaken for an archive file
    assert report.problems == () and report.counts["files.elsewhere"] == 1
    second = OtherNode()
    assert bring(small, second).files == 1
    kept = after // 4 * 4  # whole windows
    assert [offset for offset in second.read if offset][:1] == [max(kept, 1) * PIECE]
    assert looked_at(small).problems == ()


def test_what_changed_on_the_way_is_not_taken(small: Small, tmp_path: Path) -> None:
    def flip(item: Any, result: Any) -> Any:
        if isinstance(item, pieces.Piece) and item.offset == 2 * PIECE:
            return bytes([result[0] ^ 1]) + result[1:]
        return result

    made = bring(small, OtherNode(flip))
    assert made.files == 0 and "what came is not what was read there" in made.left[0][1]
    assert row(small)[1] == "far"
    assert not [path for path in (tmp_path / "c" / "archive").glob("**/*") if path.is_file()]
    assert bring(small).files == 1
    assert looked_at(small).problems == ()


@pytest.mark.parametrize("what", ["shorter", "gone", "another"])
def test_a_file_that_is_not_as_the_store_says_stays_where_it_is(
    small: Small, tmp_path: Path, what: str
) -> None:
    (path,) = (tmp_path / "far").glob("**/*.warc.gz")
    if what == "shorter":
        path.write_bytes(path.read_bytes()[:-1])
    elif what == "gone":
        path.unlink()
    else:
        mine = tmp_path / "c" / "archive" / path.relative_to(tmp_path / "far")
        mine.parent.mkdir(parents=True)
        mine.write_bytes(b"something else")
    wanted = {"shorter": "wanted", "gone": "No such file", "another": "another file of this name"}
    made = bring(small)
    assert made.files == 0 and wanted[what] in made.left[0][1]
    assert row(small)[1] == "far"


def test_a_run_that_died_before_the_store_heard_is_gone_on_with(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(gathering.tables, "moved", die)
        with pytest.raises(KeyboardInterrupt):
            bring(small)
    assert looked_at(small).problems == ()  # it is there, and is looked at
    engine = OtherNode()
    assert bring(small, engine).files == 1 and engine.read == []
    assert looked_at(small).problems == ()


def test_a_node_that_is_not_there_is_named_and_the_rest_goes_on(small: Small) -> None:
    made = bring(small, LocalEngine())
    assert made.files == 0 and "no node far" in made.left[0][1]


def test_files_of_this_machine_come_to_another_directory_by_a_second_name(
    small: Small, tmp_path: Path
) -> None:
    bring(small)
    assert bring(small, LocalEngine()).files == 0  # what lies here is not spread anew by itself
    made = bring(small, LocalEngine(), destination=str(tmp_path / "all"))
    assert made.files == 1 and row(small)[:2] == (str(tmp_path / "all"), here())
    (come,) = (tmp_path / "all").glob("**/*.warc.gz")
    assert come.stat().st_nlink == 2
    report = looked_at(small)
    assert report.problems == () and report.counts["files.copies"] == 2
    assert bring(small, LocalEngine(), destination=str(tmp_path / "all")).files == 0


def test_a_host_can_be_named_and_open_files_wait(small: Small) -> None:
    assert bring(small, host="elsewhere").files == 0
    small.store.run("UPDATE files SET state = 'open'")
    made = bring(small)
    assert (made.files, made.open) == (0, 1)


def test_two_do_not_gather_at_once(small: Small) -> None:
    lock = gathering.Lock(small.place.lock_path("gather"))
    assert lock.take()
    with pytest.raises(OperatorError, match="somebody else gathers"):
        bring(small)
    lock.release()


def test_agents_keep_their_archive_where_their_node_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept_path("/data/news", "archive") == "/data/news/archive"
    monkeypatch.setenv("GEOMI_ARCHIVE", "/disk")
    monkeypatch.setenv("GEOMI_NODE", "one")
    assert kept_path("/data/news", "archive") == "/disk/news/archive"
    assert kept_path("/data/news", "/other") == "/other"
    assert here() == "one"
