"""Old visits move to Parquet: nothing is lost, nothing twice, and everybody reads on as before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small import HOST, SEED, Small

from geomi.archive.files import RealFiles
from geomi.cluster import mover as moving
from geomi.cluster.mover import Mover, month_of
from geomi.cluster.politeness import check_politeness, settings_of_run
from geomi.cluster.story import story
from geomi.cluster.verify import verify
from geomi.errors import ResourceError
from geomi.history.past import Past, follow, parts_of
from geomi.settings import History

KEEP = 3


def mover_of(small: Small, *, keep: int = KEEP, keep_requests_s: float = 1e9) -> Mover:
    history = History(keep_visits=keep, keep_requests_s=keep_requests_s)
    return Mover(small.store, RealFiles(), where=small.place.archive_path, keep=history)


def move(small: Small, **more: Any) -> None:
    for _ in mover_of(small, **more).finish(small.now):
        pass


def crawled(path: Path, runs: int, address: str = "") -> Small:
    """A page visited once a run, changed each third time, and robots.txt before it."""
    small = Small(path, address=address)
    for run in range(runs):
        if run:
            small.again()
        small.robots()
        small.visit(SEED, body=b"<p>version %d" % (run // 3))
        small.end()
    return small


def told(small: Small) -> list[Any]:
    one = story(
        small.store, SEED, settings=small.settings, where=small.place.archive_path, now=small.now
    )
    return [(event.at, event.what, event.text, event.facts) for event in one.events]


def problems(small: Small, *, quick: bool = False) -> list[str]:
    report = verify(
        small.store, where=small.place.archive_path, directories=("archive",), quick=quick
    )
    return [f"{one.where}: {one.what}" for one in report.problems]


def politeness(small: Small) -> Any:
    return check_politeness(
        small.store, lambda text: settings_of_run(small.place, text),
        where=small.place.archive_path,
    )  # fmt: skip


def followed(small: Small) -> list[tuple[int, str, int]]:
    return list(follow(small.store, 0, small.place.archive_path))


def number(small: Small, sql: str) -> int:
    row = small.store.one(sql)
    assert row is not None
    return int(row[0])


def test_the_last_visits_of_a_page_stay_and_the_story_tells_all(
    tmp_path: Path, shared: str
) -> None:
    small = crawled(tmp_path / "c", 10, shared)
    before = told(small), followed(small), politeness(small)
    assert problems(small) == []
    move(small)
    assert number(small, "SELECT count(*) FROM visits WHERE page > 0") == KEEP
    assert number(small, "SELECT moved FROM pages") == 10 - KEEP
    assert (told(small), followed(small), politeness(small)) == before
    assert problems(small) == []
    assert problems(small, quick=True) == []


def test_the_visit_whose_record_is_the_copy_of_its_page_stays(tmp_path: Path) -> None:
    small = Small(tmp_path / "c")
    small.visit(SEED, head='ETag: "1"\r\n')
    small.end()
    for _ in range(6):
        small.again()
        small.visit(SEED, code=304)
        small.end()
    before = told(small)
    move(small)
    row = small.store.one('SELECT file, "offset" FROM pages')
    assert row in small.store.all('SELECT file, "offset" FROM visits WHERE revisit = 0')
    assert number(small, "SELECT count(*) FROM visits WHERE page > 0") == KEEP + 1
    assert told(small) == before
    assert problems(small) == []
    move(small)
    assert number(small, "SELECT count(*) FROM past") == 1, "there was nothing more to move"


def test_requests_for_no_page_stay_for_a_time(tmp_path: Path) -> None:
    small = crawled(tmp_path / "c", 6)
    before = politeness(small)
    move(small, keep=100, keep_requests_s=2_500.0)
    assert number(small, "SELECT count(*) FROM visits WHERE page = 0") == 3
    assert number(small, "SELECT count(*) FROM visits WHERE page > 0") == 6
    assert politeness(small) == before
    assert problems(small) == []


def test_the_newest_visit_of_all_never_moves(tmp_path: Path) -> None:
    """The number of the next visit is one more than the greatest in the store."""
    small = Small(tmp_path / "c")
    small.visit(SEED)
    small.robots()
    small.end()
    newest = number(small, "SELECT max(visit) FROM visits")
    move(small, keep_requests_s=-1e6)
    assert number(small, "SELECT max(visit) FROM visits") == newest


def test_visits_in_open_files_stay(tmp_path: Path) -> None:
    small = crawled(tmp_path / "c", 2)
    for _ in range(6):
        small.again()
        small.visit(SEED)  # an agent that does not end
        small.now += 1e5
    move(small, keep=2)
    files = small.store.all("SELECT file FROM files WHERE state = 'open'")
    assert len(files) == 6
    for (file,) in files:
        assert number(small, f"SELECT count(*) FROM visits WHERE file = {file}") == 1


def test_batches_without_a_number_stay(tmp_path: Path) -> None:
    small = crawled(tmp_path / "c", 8)
    with small.store.transaction():
        small.store.run("UPDATE batches SET seq = NULL WHERE seq > 3")
    move(small)
    assert number(small, "SELECT count(*) FROM visits WHERE page > 0") == 7


def test_each_month_has_its_folder(tmp_path: Path) -> None:
    small = Small(tmp_path / "c")
    for run in range(6):
        if run:
            small.now += 20 * 86_400
            small.again()
        small.visit(SEED)
        small.end()
    starts = [row[0] for row in small.store.all("SELECT started FROM visits ORDER BY visit")][:-3]
    move(small)
    months = sorted({month_of(at) for at in starts})
    assert len(months) > 1
    assert sorted(part.month for part in parts_of(small.store, "whole")) == months
    found = sorted(path.parent.name for path in (tmp_path / "c" / "history").rglob("*.parquet"))
    assert found == months


def steps_of(small: Small, pieces: int) -> bool:
    """So many pieces of the work by one process that ends then. True: it was not done yet."""
    steps = mover_of(small).finish(small.now)
    return all(next(steps, "over") is None for _ in range(pieces))


def test_ended_between_any_two_steps_nothing_is_lost_or_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str
) -> None:
    monkeypatch.setattr(moving, "_TAKE_ROWS", 2)
    monkeypatch.setattr(moving, "_FILE_ROWS", 4)
    monkeypatch.setattr(moving, "_MERGED", 2)
    small = crawled(tmp_path / "c", 12, shared)
    before = told(small), politeness(small)
    pieces = 1
    while steps_of(small, pieces):
        assert told(small) == before[0]
        assert politeness(small) == before[1]
        assert problems(small) == [], pieces
        pieces += 1
    assert number(small, "SELECT count(*) FROM visits WHERE page > 0") == KEEP
    assert {row[0] for row in small.store.all("SELECT state FROM past")} <= {"whole", "replaced"}


class Failing(RealFiles):
    """The disk is full when a whole file is written, or that file is there and torn."""

    def write(self, path: str, chunks: Any) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(b"torn")
        raise ResourceError("the disk is full")


def test_a_file_that_was_not_written_to_its_end_is_removed(tmp_path: Path) -> None:
    small = crawled(tmp_path / "c", 8)
    before = told(small)
    keep = History(keep_visits=KEEP)
    broken = Mover(small.store, Failing(), where=small.place.archive_path, keep=keep)
    with pytest.raises(ResourceError):
        list(broken.finish(small.now))
    (part,) = parts_of(small.store, "writing")
    assert (tmp_path / "c" / part.name).read_bytes() == b"torn"
    assert told(small) == before
    assert problems(small) == []
    move(small)
    assert not (tmp_path / "c" / part.name).exists()
    assert told(small) == before
    assert problems(small) == []


def test_many_small_files_of_a_month_become_one_and_go_a_day_later(tmp_path: Path) -> None:
    small = Small(tmp_path / "c")
    for run in range(22):  # they move two by two
        if run:
            small.again()
        small.visit(SEED)
        small.end()
        move(small)
    whole = parts_of(small.store, "whole")
    assert sorted(part.rows for part in whole) == [2, 16]
    old = parts_of(small.store, "replaced")
    assert len(old) == 8
    assert all((tmp_path / "c" / part.name).exists() for part in old)
    assert len(told(small)) == 1 + 2 * 22
    assert problems(small) == []
    small.now += 90_000
    move(small)
    assert parts_of(small.store, "replaced") == []
    assert not any((tmp_path / "c" / part.name).exists() for part in old)
    assert problems(small) == []


def test_a_running_crawl_moves_when_some_more_have_gathered(tmp_path: Path) -> None:
    small = crawled(tmp_path / "c", KEEP + 2)
    mover = mover_of(small)
    while mover.step(small.now):
        pass
    assert number(small, "SELECT count(*) FROM past") == 0
    assert not mover.step(small.now + 1), "pages are not looked at all the time"


def parquet(small: Small) -> Path:
    (part,) = parts_of(small.store, "whole")
    return small.place.path / part.name


def sql(small: Small, sentence: str) -> None:
    with small.store.transaction():
        small.store.run(sentence)


DAMAGES: list[tuple[Callable[[Small], Any], str]] = [
    (lambda s: parquet(s).unlink(), "no such file"),
    (lambda s: parquet(s).write_bytes(b"PAR1"), "4 bytes, wanted"),
    (lambda s: (parquet(s).parent / "visits-9.parquet").write_bytes(b"x"), "does not know"),
    (lambda s: sql(s, "UPDATE pages SET moved = moved + 1, visits = visits + 1"), "says"),
    (lambda s: sql(s, "DELETE FROM visits WHERE page > 0 AND visit IN (SELECT min(visit) FROM"
                      " visits WHERE page > 0)"), "counted"),
    (lambda s: sql(s, "UPDATE past SET state = 'moving', done_page = 0"), "counted"),
    (lambda s: sql(s, "DELETE FROM past"), "counted"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "word"), DAMAGES)
def test_verify_finds_what_is_wrong_with_moved_visits(
    tmp_path: Path, damage: Callable[[Small], Any], word: str
) -> None:
    small = crawled(tmp_path / "c", 8)
    move(small)
    assert problems(small) == []
    damage(small)
    found = problems(small)
    assert any(word in one for one in found), found


def test_what_a_page_came_to_stays_with_it(tmp_path: Path) -> None:
    small = crawled(tmp_path / "c", 10)
    starts = [row[0] for row in small.store.all("SELECT started FROM visits WHERE page > 0")]
    changed = number(small, "SELECT max(visit) FROM visits WHERE changed = 1")
    (at,) = small.store.one("SELECT started FROM visits WHERE visit = ?", (changed,)) or (0,)
    move(small)
    row = small.store.one(
        "SELECT visits, changes, failures, first_visited, last_changed FROM pages"
    )
    assert row == (10, 3, 0, min(starts), at)


def test_moved_visits_can_be_read_without_the_store(tmp_path: Path) -> None:
    small = crawled(tmp_path / "c", 6)
    move(small)
    past = Past.of(small.store, small.place.archive_path)
    rows = list(past.by_visit("url, host, outcome, committed > started"))
    assert rows == [(SEED, HOST, "OK", True)] * 3
