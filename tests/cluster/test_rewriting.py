"""Rewriting a finished archive: duplicates become revisits, and nothing that replays changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.rewritten import (
    TEXT,
    doubled,
    moved,
    not_modified,
    problems,
    replayed,
    rewriting_of,
)
from cluster.small import SEED, Small
from geomi.archive.reader import members, read_at
from geomi.cluster.rewriting import Wish
from geomi.errors import OperatorError


def types(small: Small) -> list[tuple[str, str, int]]:
    """(path of the URL, date, 1 for a revisit) of the captures of TEXT and the like."""
    return small.store.all(
        "SELECT coalesce(p.url, v.url), v.stored_date, v.revisit FROM visits v LEFT JOIN pages p"
        " ON p.page = v.page AND v.page > 0 WHERE v.file > 0 ORDER BY v.visit"
    )


def current_files(small: Small) -> list[Path]:
    return [
        Path(small.place.archive_path(directory)) / name
        for directory, name in small.store.all("SELECT directory, name FROM files ORDER BY file")
    ]


def size_of(small: Small) -> int:
    return sum(path.stat().st_size for path in current_files(small))


def test_every_capture_replays_as_before(tmp_path: Path, shared: str) -> None:
    small = doubled(tmp_path / "c", address=shared)
    not_modified(small)
    before, size = replayed(small), size_of(small)
    assert problems(small) == []
    done = rewriting_of(small).run(Wish())
    assert done.left == []
    assert replayed(small) == before
    assert problems(small) == []
    assert problems(small, quick=True) == []
    assert size_of(small) < size
    assert done.before_bytes - done.after_bytes == size - size_of(small)


def test_the_earliest_capture_stays_the_original(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    rewriting_of(small).run(Wish())
    kinds: dict[str, list[int]] = {}
    for url, _, revisit in types(small):
        kinds.setdefault(url.removeprefix(SEED), []).append(revisit)
    assert kinds["a"] == [0, 1]
    assert kinds["b"] == [1, 1], "another URL, the same payload and status"
    assert kinds["missing"] == [0, 1], "another status is another answer"
    assert kinds["left"] == [0, 1]
    assert kinds["right"] == [0, 1], "another Location is another answer"
    assert kinds["left2"] == [1, 1]
    assert kinds["tiny"] == [0, 0], "a tiny payload costs less than a record"
    assert kinds["tiny2"] == [0, 0]
    assert kinds["other"] == [0, 0]
    assert kinds["robots.txt"] == [0, 1]


def test_a_revisit_keeps_id_date_uri_digest_address_and_headers(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c", runs=1)
    (path,) = current_files(small)
    before = {m.record_id: dict(m.headers.lines) for m in members(path)}
    rewriting_of(small).run(Wish())
    (path,) = current_files(small)
    (row,) = small.store.all(
        'SELECT v."offset", v.length FROM visits v JOIN pages p ON p.page = v.page'
        " WHERE p.url = ? AND v.page > 0",
        (f"{SEED}b",),
    )
    member = read_at(path, *row)
    was = before[member.record_id]
    assert member.type == "revisit"
    for name in ("WARC-Date", "WARC-Target-URI", "WARC-Payload-Digest", "WARC-IP-Address",
                 "WARC-Warcinfo-ID", "Content-Type"):  # fmt: skip
        assert member.headers.get(name) == was[name] != ""
    assert member.headers.get("WARC-Refers-To-Target-URI") == f"{SEED}a"
    assert member.headers.get("WARC-Refers-To") in [f"<{one}>" for one in before]
    assert member.read_all() == b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\nX-Other: 0\r\n\r\n"
    assert small.store.one("SELECT generation FROM files") == (1,)
    assert path.name.endswith("-g1.warc.gz")


def test_records_that_are_not_touched_stay_byte_for_byte(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c", runs=1)
    (old,) = current_files(small)
    data = old.read_bytes()
    kept = {m.record_id: data[m.offset : m.offset + m.length] for m in _all(old)}
    rewriting_of(small).run(Wish())
    (new,) = current_files(small)
    data = new.read_bytes()
    same = changed = 0
    for member in _all(new):
        if member.type == "revisit":
            changed += 1
        else:
            assert data[member.offset : member.offset + member.length] == kept[member.record_id]
            same += 1
    assert (changed, same + changed) == (2, len(kept))


def _all(path: Path) -> list[object]:
    found = []
    for member in members(path):
        _ = member.length
        found.append(member)
    return found


def test_what_a_bare_revisit_refers_to_stays_a_response(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    not_modified(small, "b")
    before = replayed(small)
    done = rewriting_of(small).run(Wish())
    assert (done.planned["held"], done.actions["point"]) == (1, 0)
    assert replayed(small) == before, "it has no headers but those of what it refers to"
    # One that has headers of its own: as another program may have written it.
    revisits = small.store.all(
        'SELECT v.file, v."offset", v.length FROM visits v JOIN pages p ON p.page = v.page'
        " WHERE p.url = ? AND v.page > 0 AND v.revisit = 1 ORDER BY visit",
        (f"{SEED}b",),
    )
    member = read_at(current_files(small)[0], *revisits[0][1:])
    assert member.headers.get("WARC-Refers-To-Target-URI") == f"{SEED}a"


def test_a_revisit_of_what_becomes_a_revisit_refers_to_its_original(tmp_path: Path) -> None:
    small = Small(tmp_path / "c")
    small.visit(SEED, body=b'<a href="/a"><a href="/b">')
    small.visit(f"{SEED}b", body=TEXT)
    small.end()
    small.again()
    small.visit(f"{SEED}b", body=TEXT, head="X-Second: 1\r\n")
    small.end()
    rewriting_of(small).run(Wish())
    small.now = 1_600_000_000.0  # an older capture of the same is gathered, or imported
    small.again()
    small.visit(f"{SEED}a", body=TEXT)
    small.end()
    before = replayed(small)
    done = rewriting_of(small).run(Wish())
    assert (done.planned["pointed"], done.actions["point"], done.actions["revisit"]) == (1, 1, 1)
    assert replayed(small) == before
    assert problems(small) == []
    refers = [
        m.headers.get("WARC-Refers-To-Target-URI")
        for path in current_files(small)
        for m in members(path)
        if m.type == "revisit"
    ]
    assert refers == [f"{SEED}a"] * 2


def test_a_page_whose_payload_is_kept_elsewhere_is_asked_without_conditions(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    rewriting_of(small).run(Wish())
    rows = {
        url.removeprefix(SEED): rest
        for url, *rest in small.store.all("SELECT url, etag, stored_date FROM pages")
    }
    first = small.store.one(
        "SELECT v.stored_date FROM visits v JOIN pages p ON p.page = v.page WHERE p.url = ?"
        " AND v.page > 0 ORDER BY v.visit",
        (f"{SEED}a",),
    )
    assert rows["a"] == ['"1"', *(first or ())], "a 304 refers to the first copy of its own URL"
    assert rows["b"][0] == ""
    small.again()
    small.visit(f"{SEED}a", code=304, body=b"")
    small.end()
    assert problems(small) == []
    assert max(replayed(small).items())[1].payload == TEXT


def test_the_log_tells_followers_what_moved_and_what_was_replaced(
    tmp_path: Path, shared: str
) -> None:
    from geomi.history.past import follow

    small = doubled(tmp_path / "c", address=shared)
    last = max(seq for seq, *_ in follow(small.store, 0, small.place.archive_path))
    rewriting_of(small).run(Wish())
    told = list(follow(small.store, last, small.place.archive_path))
    replaced = {visit for _, change, visit in told if change == "replaced"}
    assert replaced == {row[0] for row in small.store.all(
        "SELECT visit FROM visits WHERE revisit = 1")}  # fmt: skip
    here = {row[0] for row in small.store.all("SELECT visit FROM visits WHERE file > 0")}
    assert {visit for _, change, visit in told if change == "moved"} == here


def test_visits_in_parquet_have_their_new_places(tmp_path: Path, shared: str) -> None:
    small = doubled(tmp_path / "c", address=shared, runs=5)
    moved(small)
    assert small.store.one("SELECT count(*) FROM past WHERE state = 'whole'") != (0,)
    before = replayed(small)
    done = rewriting_of(small).run(Wish())
    assert done.files == 5
    assert replayed(small) == before
    assert problems(small) == []
    assert rewriting_of(small).run(Wish()).files == 0, "there is nothing left to do"
    assert replayed(small) == before


def test_a_confirmed_meaningless_page_is_kept_once_however_small(tmp_path: Path) -> None:
    from cluster.rewritten import TINY
    from geomi.archive.names import sha1_b32

    small = doubled(tmp_path / "c")
    before = replayed(small)
    done = rewriting_of(small).run(Wish(), meaningless=frozenset({sha1_b32(TINY)}))
    assert done.planned["meaningless"] == 3
    assert replayed(small) == before
    assert problems(small) == []


def test_orphans_are_left_out(tmp_path: Path) -> None:
    small = Small(tmp_path / "c")
    small.visit(SEED, body=TEXT + b'<a href="/b">')
    with small.store.transaction():
        small.store.run("UPDATE sites SET epoch = epoch + 1")
    small.visit(f"{SEED}b", body=TEXT)
    small.end()
    assert small.store.one("SELECT count(*) FROM orphans") == (1,)
    before = replayed(small)
    done = rewriting_of(small).run(Wish())
    assert done.actions["orphan"] == 1
    assert small.store.one("SELECT count(*) FROM orphans") == (0,)
    assert len(_all(current_files(small)[0])) == 4  # warcinfo, and three of the capture
    assert replayed(small) == before
    assert problems(small) == []


@pytest.mark.parametrize("dense", [0, 9])
def test_a_rewrite_can_be_taken_back(tmp_path: Path, shared: str, dense: int) -> None:
    small = doubled(tmp_path / "c", address=shared, runs=4)
    not_modified(small)
    moved(small)
    rows = small.store.all(
        'SELECT visit, file, "offset", length, revisit FROM visits ORDER BY visit'
    )
    before, files = replayed(small), current_files(small)
    work = rewriting_of(small)

    class Enough(Exception):
        pass

    names: list[str] = []

    def stop(_done: int, _all: int, name: str) -> None:
        names.append(name)
        if len(names) == 3:
            raise Enough

    work._tell = stop
    with pytest.raises(Enough):
        work.run(Wish(dense=dense))
    assert replayed(small) == before
    assert problems(small) == []
    with pytest.raises(OperatorError, match="a rewrite was begun"):
        rewriting_of(small).purge()
    assert rewriting_of(small).abort() == 2
    assert current_files(small) == files
    assert replayed(small) == before
    assert problems(small) == []
    assert rows == small.store.all(
        'SELECT visit, file, "offset", length, revisit FROM visits ORDER BY visit'
    )
    with pytest.raises(OperatorError, match="nothing to take back"):
        rewriting_of(small).abort()


def test_old_files_stay_until_they_are_purged(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    old = current_files(small)
    rewriting_of(small).run(Wish())
    assert all(path.exists() for path in old)
    number, size = rewriting_of(small).purge()
    assert (number, size > 0) == (2, True)
    assert not any(path.exists() or path.with_suffix("").with_suffix(".cdxj").exists()
                   for path in old)  # fmt: skip
    assert problems(small) == []
    assert rewriting_of(small).purge() == (0, 0)


def test_recompressed_records_have_the_same_bytes_inside(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    before, size = replayed(small), size_of(small)
    done = rewriting_of(small).run(Wish(dense=9))
    assert done.left == []
    assert replayed(small) == before
    assert problems(small) == []
    assert size_of(small) < size


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    taken: list[object] = []
    counts = rewriting_of(small).plan(Wish(), meaningless=frozenset(), sink=taken.extend)
    assert len(taken) == counts["duplicates"] > 0
    assert small.store.one("SELECT count(*) FROM rewrites") == (0,)
    assert [path.name for path in current_files(small)] == [
        path.name for path in sorted((small.place.path / "archive").rglob("*.warc.gz"))
    ]


def test_a_duplicate_whose_payload_is_damaged_is_left_as_it_is(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c", runs=1)
    (path,) = current_files(small)
    (row,) = small.store.all(
        'SELECT v."offset", v.length FROM visits v JOIN pages p ON p.page = v.page'
        " WHERE p.url = ? AND v.page > 0",
        (f"{SEED}b",),
    )
    data = bytearray(path.read_bytes())
    from isal import isal_zlib

    from geomi.archive.record import gzip_member

    content = isal_zlib.decompress(bytes(data[row[0] : row[0] + row[1]]), 31)
    broken = next(
        made
        for place in range(len(content) - 5, 0, -1)
        if len(made := gzip_member(content[:place] + b"z" + content[place + 1 :])) == row[1]
    )
    data[row[0] : row[0] + row[1]] = broken
    path.write_bytes(data)
    done = rewriting_of(small).run(Wish())
    assert done.actions["left"] == 1
    assert small.store.one(
        "SELECT v.revisit FROM visits v JOIN pages p ON p.page = v.page WHERE p.url = ?"
        " AND v.page > 0",
        (f"{SEED}b",),
    ) == (0,)


def test_the_papers_form_says_304_and_has_no_last_modified(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c", runs=1)
    rewriting_of(small).run(Wish(paper=True))
    revisits = [m.read_all() for m in members(current_files(small)[0]) if m.type == "revisit"]
    assert [one.split(b"\r\n")[0] for one in revisits] == [b"HTTP/1.1 304 Not Modified"] * 2
    assert problems(small) == []
