"""Sorted lines: found by halving, made from more than memory holds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.archive.sorted import LINE_MAX_BYTES, Runs, ends_of, lines_between
from geomi.errors import RemoteError, ResourceError

LINES = sorted(
    f"org,example)/{number:05d} 2026 {'x' * (number % 200)}\n".encode() for number in range(5000)
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sorted") / "a.cdxj"
    path.write_bytes(b"".join(LINES))
    return path


def test_every_range_gives_just_its_lines(index: Path) -> None:
    chance = random.Random(1)
    for _ in range(200):
        start, end = sorted(
            f"org,example)/{chance.randrange(-5, 5100):05d}".encode() for _ in range(2)
        )
        wanted = [line for line in LINES if start <= line < end]
        assert list(lines_between(str(index), start, end)) == wanted


def test_the_whole_is_a_range_too_and_beyond_it_is_nothing(index: Path) -> None:
    assert list(lines_between(str(index), b"", b"\xff")) == LINES
    assert list(lines_between(str(index), b"p", b"\xff")) == []
    assert list(lines_between(str(index), b"", b"org")) == []


def test_a_look_up_reads_a_few_pieces_of_a_large_file(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    read = [0]

    class Counting(io.FileIO):
        def readinto(self, buffer: object) -> int:
            got = super().readinto(buffer)
            read[0] += got or 0
            return got

    def counting(path: str, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(Counting(path), 4096)

    monkeypatch.setattr("geomi.archive.sorted.open", counting, raising=False)
    assert len(list(lines_between(str(index), b"org,example)/02500 ", b"org,example)/02500!"))) == 1
    assert read[0] < index.stat().st_size / 5


@given(
    st.lists(st.binary(max_size=300).map(lambda raw: raw.replace(b"\n", b"") + b"\n")),
    st.binary(max_size=4),
    st.binary(max_size=4),
)
def test_any_lines_are_found(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], start: bytes, end: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "a"
    path.write_bytes(b"".join(sorted(lines)))
    wanted = [line for line in sorted(lines) if start <= line < end]
    assert list(lines_between(str(path), start, end)) == wanted


def test_the_ends_of_a_file_are_its_first_and_last_line(tmp_path: Path, index: Path) -> None:
    assert ends_of(str(index)) == (LINES[0], LINES[-1].rstrip(b"\n"))
    (tmp_path / "empty").write_bytes(b"")
    assert ends_of(str(tmp_path / "empty"))[0] == b""
    (tmp_path / "long").write_bytes(b"a\n" + b"b" * 50_000 + b"\n")
    assert ends_of(str(tmp_path / "long"))[1] == b"b" * 50_000


def test_a_last_line_without_its_end_counts(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(b"a\nb\nc")
    assert list(lines_between(str(tmp_path / "cut"), b"b", b"d")) == [b"b\n", b"c\n"]


def test_a_line_beyond_all_bounds_is_an_error_that_says_where(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"a\n" + b"b" * (LINE_MAX_BYTES + 20_000))
    with pytest.raises(RemoteError, match="a line over 1048576 bytes, wanted an index"):
        list(lines_between(str(tmp_path / "long"), b"", b"c"))


def test_a_file_that_is_replaced_meanwhile_is_no_mixture(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"".join(LINES))
    found = lines_between(str(path), b"", b"\xff")
    next(found)
    (tmp_path / "b").write_bytes(b"other\n")
    (tmp_path / "b").rename(path)
    with pytest.raises(ResourceError, match="was replaced while it was read"):
        list(found)


def test_runs_sort_more_lines_than_they_hold(tmp_path: Path) -> None:
    runs = Runs(tmp_path, "r", run_bytes=2000)
    shuffled = list(LINES)
    random.Random(2).shuffle(shuffled)
    runs.extend(shuffled)
    assert list(runs) == LINES
    assert list(runs) == LINES  # as often as asked for
    runs.add(b"a last one\n")
    assert list(runs) == [b"a last one\n", *LINES]
    assert len(list(tmp_path.iterdir())) == len(runs.paths()) == 1
