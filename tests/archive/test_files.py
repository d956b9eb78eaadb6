from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomi.archive import files as files_module
from geomi.archive.files import Lock, RealFiles
from geomi.errors import ResourceError


@pytest.fixture
def files() -> Iterator[RealFiles]:
    made = RealFiles()
    yield made
    made.close()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(call, path) of everything that makes bytes or names survive a power cut."""
    seen: list[tuple[str, str]] = []

    def watched(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object) -> object:
            first = args[0]
            path = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else first
            result = real(*args)
            seen.append((name, os.path.basename(str(path))))
            return result

        monkeypatch.setattr(files_module.os, name, call)

    for name in ("fsync", "fdatasync", "rename", "mkdir", "write"):
        watched(name)
    return seen


def test_a_file_grows_by_what_is_appended(files: RealFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "a.warc.gz.open")
    files.create(path)
    assert files.size(path) == 0
    assert files.append(path, [b"one", b"", b"two"]) == 6
    assert files.append(path, iter([b"3"])) == 7
    assert files.append(path, []) == 7
    assert Path(path).read_bytes() == b"onetwo3"


def test_a_file_that_is_there_is_never_created_again(files: RealFiles, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"kept")
    with pytest.raises(ResourceError, match="a: File exists"):
        files.create(str(path))
    assert path.read_bytes() == b"kept"


def test_creating_makes_the_directories_and_syncs_every_entry_on_the_way(
    files: RealFiles, tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    files.create(str(tmp_path / "x" / "y" / "a"))
    assert calls == [
        ("mkdir", "x"), ("fsync", tmp_path.name), ("mkdir", "y"), ("fsync", "x"), ("fsync", "y"),
    ]  # fmt: skip


def test_a_rename_survives_because_the_directory_is_synced_after_it(
    files: RealFiles, tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    old, new = str(tmp_path / "a.open"), str(tmp_path / "a")
    files.create(old)
    calls.clear()
    files.append(old, [b"x"])
    files.sync(old)
    files.rename(old, new)
    assert calls == [
        ("write", "a.open"), ("fdatasync", "a.open"), ("rename", "a.open"),
        ("fsync", tmp_path.name),
    ]  # fmt: skip
    assert files.size(old) is None
    assert files.size(new) == 1


def test_a_whole_file_is_written_beside_synced_and_renamed_over(
    files: RealFiles, tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    path = tmp_path / "a.cdxj"
    files.write(str(path), [b"old"])
    calls.clear()
    files.write(str(path), (line for line in (b"new\n", b"er\n")))
    assert calls == [("fsync", "a.cdxj.new"), ("rename", "a.cdxj.new"), ("fsync", tmp_path.name)]
    assert path.read_bytes() == b"new\ner\n"
    assert os.listdir(tmp_path) == ["a.cdxj"]


def test_what_an_earlier_try_left_is_cut_off_and_appending_goes_on_there(
    files: RealFiles, tmp_path: Path
) -> None:
    path = str(tmp_path / "a")
    files.create(path)
    files.append(path, [b"committed", b"torn"])
    files.truncate(path, 9)
    assert files.append(path, [b"!"]) == 10
    assert Path(path).read_bytes() == b"committed!"


def test_a_file_of_a_dead_process_can_be_cut_and_renamed(files: RealFiles, tmp_path: Path) -> None:
    path = tmp_path / "a.open"
    path.write_bytes(b"committed and more")
    files.truncate(str(path), 9)
    files.rename(str(path), str(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == b"committed"


def test_removing_what_is_not_there_is_no_error(files: RealFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    files.create(path)
    files.remove(path)
    files.remove(path)
    assert files.size(path) is None
    files.create(path)  # the name is free again
    assert files.append(path, [b"x"]) == 1


def test_a_full_disk_is_told_in_its_own_words(files: RealFiles) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with pytest.raises(ResourceError, match="/dev/full: the disk is full"):
        files.append("/dev/full", [b"x"])


def test_a_short_write_is_continued(
    files: RealFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(files_module.os, "write", lambda handle, data: real(handle, data[:3]))
    path = str(tmp_path / "a")
    files.create(path)
    assert files.append(path, [b"0123456789", b"ab"]) == 12
    assert Path(path).read_bytes() == b"0123456789ab"


def test_errors_name_the_file(files: RealFiles, tmp_path: Path) -> None:
    for call in (
        lambda: files.append(str(tmp_path / "none"), [b"x"]),
        lambda: files.sync(str(tmp_path / "none")),
        lambda: files.truncate(str(tmp_path / "none"), 0),
        lambda: files.rename(str(tmp_path / "none"), str(tmp_path / "b")),
        lambda: files.sync_directory(str(tmp_path / "none")),
    ):
        with pytest.raises(ResourceError, match="none: No such file or directory"):
            call()


def test_handles_are_given_back(files: RealFiles, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        path = str(tmp_path / f"{number}.open")
        files.create(path)
        files.append(path, [b"x"])
        files.rename(path, str(tmp_path / str(number)))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_lock_belongs_to_one_and_is_free_again_when_released(tmp_path: Path) -> None:
    first, second = Lock(str(tmp_path / "lock")), Lock(str(tmp_path / "lock"))
    assert first.take()
    first.note("process 17 on here")
    assert not second.take()
    assert second.read_note() == "process 17 on here"
    first.release()
    first.release()
    assert second.take()
    second.note("18")
    assert second.read_note() == "18"
    second.release()


def test_a_lock_is_free_at_the_death_of_the_process_that_holds_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    child = subprocess.Popen(
        [sys.executable, "-c",
         "import sys; from geomi.archive.files import Lock; lock = Lock(sys.argv[1]);"
         " print(lock.take(), flush=True); sys.stdin.read()", path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"True\n"
        lock = Lock(path)
        assert not lock.take()
        child.kill()
        child.wait()
        assert lock.take()
        lock.release()


def test_the_note_of_a_lock_that_never_was_is_empty(tmp_path: Path) -> None:
    assert Lock(str(tmp_path / "none")).read_note() == ""
