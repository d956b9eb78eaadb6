"""One view over the indexes of closed files and the captures of open ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.small import SEED, Small, some
from geomi.archive import cdxj
from geomi.archive.query import ranges_of
from geomi.cluster.index import ALL, Index, indexed
from geomi.errors import ResourceError


def urls(index: Index, *ranges: tuple[bytes, bytes]) -> list[str]:
    return [cdxj.parse_line(line).url for line in index.lines(ranges or (ALL,))]


def test_closed_files_and_open_ones_are_one_sorted_view(tmp_path: Path, shared: str) -> None:
    small = some(tmp_path / "c", address=shared)
    small.again()
    small.visit(SEED, body=b"<p>another")
    with indexed(small.place, small.store) as index:
        lines = list(index.lines([ALL]))
        assert lines == sorted(lines)
        assert [file.is_open for file in index.files()] == [False, True]
        assert urls(index).count(SEED) == 2
        small.visit(f"{SEED}b", body=b"changed")
        index.refresh(at_once=True)
        assert urls(index).count(f"{SEED}b") == 2
        exact = list(index.lines(ranges_of(f"{SEED}b")))
        assert len({cdxj.parse_line(line).filename for line in exact}) == 2


def test_a_file_that_closes_is_read_from_its_index_and_no_line_comes_twice(tmp_path: Path) -> None:
    small = some(tmp_path / "c")
    small.again()
    small.visit(SEED, body=b"<p>another")
    with indexed(small.place, small.store) as index:
        before = list(index.lines([ALL]))
        small.end()
        index.refresh(at_once=True)
        assert not any(file.is_open for file in index.files())
        assert list(index.lines([ALL])) == before


def test_a_line_of_an_open_file_says_what_its_index_will_say(tmp_path: Path) -> None:
    small = Small(tmp_path / "c")
    small.robots()
    small.visit(SEED, head='ETag: "1"\r\n', body=b"x" * 500)
    with indexed(small.place, small.store) as index:
        grown = list(index.lines([ALL]))
    small.end()
    (closed,) = (tmp_path / "c").glob("archive/**/*.cdxj")
    assert grown == closed.read_bytes().splitlines(keepends=True)


def test_many_indexes_become_one_where_that_is_wanted(tmp_path: Path) -> None:
    small = some(tmp_path / "c")
    small.again()
    small.visit(SEED, body=b"<p>another")
    with indexed(small.place, small.store) as index:
        assert len(index.sources()) == 2
        (merged,) = index.sources(most=1)
        assert Path(merged).read_bytes().splitlines(keepends=True) == list(index.lines([ALL]))


def test_a_missing_index_is_named(tmp_path: Path) -> None:
    small = some(tmp_path / "c")
    (closed,) = (tmp_path / "c").glob("archive/**/*.cdxj")
    closed.unlink()
    with (
        indexed(small.place, small.store) as index,
        pytest.raises(ResourceError, match=r"\.cdxj: no index of this file; geomi verify"),
    ):
        urls(index)


def test_files_of_other_nodes_are_counted_and_left_out(tmp_path: Path) -> None:
    small = some(tmp_path / "c")
    small.store.run("UPDATE files SET node = 'far', base = '/nowhere', directory = '/nowhere'")
    with indexed(small.place, small.store) as index:
        assert len(index.elsewhere) == 1
        assert urls(index) == []


def test_a_name_is_looked_up_among_files_and_never_on_disk(tmp_path: Path) -> None:
    small = some(tmp_path / "c")
    with indexed(small.place, small.store) as index:
        (file,) = index.files()
        assert index.file_of(file.name) == file
        for name in (
            "../geomi.db",
            "geomi.db",
            "",
            file.path,
            f"./{file.name}",
            file.name + ".open",
        ):
            assert index.file_of(name) is None


def test_captures_that_come_one_by_one_stay_in_few_sorted_files(tmp_path: Path) -> None:
    small = Small(tmp_path / "c")
    small.robots()
    small.visit(SEED, body="".join(f"<a href='{n}'>x</a>" for n in range(20)).encode())
    with indexed(small.place, small.store) as index:
        for number in range(20):
            small.visit(f"{SEED}{number}", body=b"x")
            index.refresh(at_once=True)
            assert len(index.sources()) <= 8
            assert len(list(index.lines(ranges_of(f"{SEED}{number}")))) == 1
        assert len(list(index.lines([ALL]))) == 22
