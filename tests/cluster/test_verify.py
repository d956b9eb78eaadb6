"""What verify finds: nothing in a sound collection, and every single thing that was broken."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.small import HOST, SEED, Small, T, some
from geomi.cluster.politeness import check_politeness, settings_of_run
from geomi.cluster.verify import BytesDisk, Report, verify


def looked_at(small: Small, *, quick: bool = False) -> Report:
    return verify(
        small.store, where=small.place.archive_path,
        directories=small.settings.archive.directories, quick=quick,
    )  # fmt: skip


def archive_file(small: Small, ending: str = ".warc.gz") -> Path:
    (path,) = (small.place.path / "archive").rglob(f"*{ending}")
    return path


@pytest.mark.parametrize("quick", [False, True])
def test_nothing_is_found_in_a_sound_collection(tmp_path: Path, shared: str, quick: bool) -> None:
    small = some(tmp_path / "c", address=shared)
    report = looked_at(small, quick=quick)
    assert report.problems == ()
    assert report.counts["captures"] == 4  # robots.txt, the seed, /b, /moved
    assert report.counts["pages.pending"] == 1
    assert report.counts["requests"] == 5


def test_a_revisit_and_its_original_are_sound(tmp_path: Path, shared: str) -> None:
    small = some(tmp_path / "c", address=shared)
    small.again()
    small.visit(f"{SEED}b", code=304, body=b"")
    small.end()
    assert small.store.one("SELECT outcome FROM pages WHERE url = ?", (f"{SEED}b",)) == ("same",)
    assert looked_at(small).problems == ()


def test_a_crawl_that_was_killed_is_sound_before_it_goes_on(tmp_path: Path, shared: str) -> None:
    small = Small(tmp_path / "c", address=shared)
    small.robots()
    small.visit(SEED, body=b"<a href='/b'>")
    path = archive_file(small, ".warc.gz.open")
    with path.open("ab") as file:
        file.write(b"half a batch that was never committed")
    report = looked_at(small)
    assert report.problems == ()
    assert report.counts["files.open"] == 1
    assert report.counts["sites.held"] == 1
    assert report.counts["batches.unnumbered"] == 2


def test_a_refused_capture_is_an_orphan_and_no_problem(tmp_path: Path, shared: str) -> None:
    small = Small(tmp_path / "c", address=shared)
    with small.store.transaction():
        small.store.run("UPDATE sites SET epoch = epoch + 1, holder = 'a1/9'")
        small.store.run("INSERT INTO agents VALUES ('a1', 9, 'elsewhere', 1, 0, 0, 'running', '')")
    small.visit(SEED)
    report = looked_at(small)
    assert report.problems == ()
    # Of an orphan's records all are known: response, request, metadata.
    assert report.counts["records.orphaned"] == 3
    with small.store.transaction():
        small.store.run("DELETE FROM orphans")
    assert [p.what for p in looked_at(small).problems] == [
        f"a response of {SEED} that no visit names"
    ]


def run_sql(sql: str) -> Callable[[Small], None]:
    def breaks(small: Small) -> None:
        with small.store.transaction():
            assert small.store.run(sql) > 0

    breaks.__name__ = sql
    return breaks


B = f"(SELECT page FROM pages WHERE url = '{SEED}b')"
PUT_ADDRESS = "INSERT INTO addresses (address, slot, holder, epoch, until) VALUES"
LATER = f"(SELECT page FROM pages WHERE url = '{SEED}later')"


@pytest.mark.parametrize(
    ("breaks", "where", "what"),
    [
        (run_sql("UPDATE counters SET value = value + 1 WHERE name = 'visits'"),
         "counter visits", "says 5, counted 4"),
        (run_sql("UPDATE counters SET value = 7 WHERE name = 'outcome.OK'"),
         "counter outcome.OK", "says 7, counted 2"),
        (run_sql(f"UPDATE pages SET outcome = 'perhaps' WHERE page = {B}"),
         "pages", "1 pages in state 'perhaps', wanted one of geomi.states"),
        (run_sql(f"UPDATE pages SET outcome = 'NULL' WHERE page = {B}"),
         f"{SEED}b", "was never asked and waits nowhere: it is lost"),
        (run_sql(f"DELETE FROM pages WHERE page = {LATER}"),
         "page 10", "waits at site 1, but is no page"),
        (run_sql(f"UPDATE pages SET outcome = 'skip' WHERE page = {LATER}"),
         f"{SEED}later", "waits, but is settled as skip"),
        (run_sql("INSERT INTO pending SELECT site_id, depth + 4, page, 2, 0, 0, 0 FROM pending"),
         f"{SEED}later", "waits twice, wanted once"),
        (run_sql("DELETE FROM pending"), f"site {HOST}", "says 1 pages wait, counted 0"),
        (run_sql("UPDATE sites SET next_due = next_due + 1e9"),
         f"site {HOST}", "is due at "),
        (run_sql("INSERT INTO pages (page, site_id, url, url_hash, depth, party, kind, via, found,"
                 " run, outcome) SELECT 777, site_id, url, url_hash, 9, 1, 'a', '', 0, 1, 'deny'"
                 f" FROM pages WHERE page = {B}"),
         f"{SEED}b", "2 pages of one URL, wanted one"),
        (run_sql(f"UPDATE pages SET url_hash = 5 WHERE page = {B}"),
         f"{SEED}b", "hash 5, wanted "),
        (run_sql(f"UPDATE pages SET url = 'http://b.example/b' WHERE page = {B}"),
         "http://b.example/b", f"filed under {HOST}, wanted b.example"),
        (run_sql(f"UPDATE pages SET visits = 2 WHERE page = {B}"),
         f"{SEED}b", "OK and 2 visits, 1 are in the history"),
        (run_sql(f'UPDATE pages SET "offset" = 3 WHERE page = {B}'),
         f"{SEED}b", "at 3, where no visit put it"),
        (run_sql("UPDATE visits SET epoch = 9"), "visit 1", "carries epoch 9"),
        (run_sql("INSERT INTO visits SELECT 99, page, site_id, url, purpose, run, reason, epoch,"
                 " host, address, started, ended, outcome, code, mime, digest, size, changed, file,"
                 ' "offset", length, stored_date, revisit, batch, detail FROM visits'
                 f" WHERE page = {B}"),
         f"{SEED}b", "and 99 both settled it in run 1"),
        (run_sql("UPDATE batches SET seq = NULL WHERE seq = 2"),
         "batches", "batches are numbered from 1 to "),
        (run_sql("UPDATE batches SET visits = 9 WHERE seq = 1"),
         "batch 1", "says 9 visits, counted 1"),
        (run_sql("DELETE FROM log WHERE batch = 1"), "batch 1", "0 entries for a batch of 1"),
        (run_sql("UPDATE sites SET holder = 'a0/1'"),
         f"site {HOST}", "held by a0/1, which has ended"),
        (run_sql(f"{PUT_ADDRESS} ('192.0.2.1', 0, 'a0/1', 0, 0)"),
         "address 192.0.2.1", "claimed by a0/1, which has ended"),
        (run_sql("UPDATE seeds SET url = 'http://a.example/lost'"),
         "http://a.example/lost", "a seed that is neither a page nor in the inbox"),
        (run_sql("INSERT INTO inbox (site, url, kind, via, depth, party, reason, not_before,"
                 " weight, hops, admit) VALUES ('b.example', 'http://B.example', 'a', '', 0, 1, 2,"
                 " 0, 0, 0, '')"),
         "letter ", "is not a canonical URL of it"),
        (run_sql("UPDATE visits SET length = 1000000000 WHERE file > 0"),
         "visit 1", "beyond what is committed of it"),
        (run_sql("UPDATE visits SET file = 99 WHERE visit = 1"),
         "visit 1", "which is not in the store"),
        (run_sql(f"UPDATE visits SET digest = 'sha1:X' WHERE page = {B}"),
         " at ", "says 'sha1:X'"),
        (run_sql(f'UPDATE visits SET "offset" = "offset" + 1 WHERE page = {B}'),
         " at ", "says a record is here, there is none"),
        (run_sql(f"UPDATE visits SET length = length - 1 WHERE page = {B}"),
         " at ", "length is "),
        (run_sql(f"UPDATE visits SET code = 404 WHERE page = {B}"), " at ", "status is 200"),
        (run_sql(f"DELETE FROM visits WHERE page = {B}"), " at ",
         f"a response of {SEED}b that no visit names"),
        (run_sql("UPDATE files SET committed = committed + 1"), ".warc.gz", "bytes, wanted "),
        (run_sql("UPDATE files SET state = 'open', committed = committed - 1"),
         ".warc.gz at ", "gzip member"),
        (run_sql("DELETE FROM files"), ".warc.gz", "a file the store does not know"),
    ],
    ids=lambda value: getattr(value, "__name__", "")[:60] or None,
)  # fmt: skip
def test_what_is_broken_in_the_store_is_named(
    tmp_path: Path, shared: str, breaks: Callable[[Small], None], where: str, what: str
) -> None:
    small = some(tmp_path / "c", address=shared)
    page = small.store.one(f"SELECT {LATER}")
    assert page is not None
    breaks(small)
    wanted = where.replace("page 10", f"page {page[0]}")
    found = [(p.where, p.what) for p in looked_at(small).problems]
    assert any(wanted in seen and what in said for seen, said in found), found


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def _lose_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))


@pytest.mark.parametrize(
    ("breaks", "what"),
    [
        (lambda s: _flip(archive_file(s), -300), "broken gzip member"),
        (lambda s: os.unlink(archive_file(s)), "no such file, wanted "),
        (lambda s: os.truncate(archive_file(s), 900), "900 bytes, wanted "),
        (lambda s: os.unlink(archive_file(s, ".cdxj")), "no such index"),
        (lambda s: _lose_line(archive_file(s, ".cdxj")), "wanted "),
        (lambda s: archive_file(s, ".cdxj").write_bytes(b""), "no line, wanted "),
        (lambda s: archive_file(s).with_name("b.warc.gz").write_bytes(b"x"), "does not know"),
        (lambda s: archive_file(s).with_name("b.warc.gz.open").write_bytes(b""), "does not know"),
    ],
)  # fmt: skip
def test_what_is_broken_on_disk_is_named(
    tmp_path: Path, shared: str, breaks: Callable[[Small], None], what: str
) -> None:
    small = some(tmp_path / "c", address=shared)
    breaks(small)
    found = looked_at(small).problems
    assert any(what in one.what for one in found), found


def test_a_quick_look_sees_lost_files_and_wrong_heads_but_no_digests(
    tmp_path: Path, shared: str
) -> None:
    small = some(tmp_path / "c", address=shared)
    _flip(archive_file(small), -300)  # within the last metadata record
    assert looked_at(small, quick=True).ok
    with small.store.transaction():
        small.store.run(f"UPDATE visits SET digest = 'sha1:X' WHERE page = {B}")
    assert any("sha1:X" in one.what for one in looked_at(small, quick=True).problems)


def test_a_status_in_a_revisit_line_of_the_index_does_not_matter(
    tmp_path: Path, shared: str
) -> None:
    small = some(tmp_path / "c", address=shared)
    small.again()
    small.visit(f"{SEED}b", code=304, body=b"")
    small.end()
    index = next(
        path for path in (small.place.path / "archive").rglob("*.cdxj")
        if b"warc/revisit" in path.read_bytes()
    )  # fmt: skip
    line = b'"mime": "warc/revisit", '
    index.write_bytes(index.read_bytes().replace(line, line + b'"status": "304", '))
    assert looked_at(small).problems == ()


def test_many_problems_of_one_kind_are_counted_and_twenty_listed(
    tmp_path: Path, shared: str
) -> None:
    small = some(tmp_path / "c", address=shared)
    with small.store.transaction():
        for number in range(100, 150):
            small.store.run(
                "INSERT INTO log (entry, batch, change, visit) VALUES (?, 1, 'added', 0)",
                (number,),
            )
            small.store.run(
                f"{PUT_ADDRESS} (?, 0, 'a0/1', 0, 0)",
                (f"192.0.2.{number}",),
            )
    said = [one.what for one in looked_at(small).problems]
    assert said.count("claimed by a0/1, which has ended") == 20
    assert "claims: 30 more like this" in said


def test_an_archive_in_memory_is_looked_at_in_the_same_way(tmp_path: Path, shared: str) -> None:
    small = some(tmp_path / "c", address=shared)
    files = {
        str(path): path.read_bytes()
        for path in (small.place.path / "archive").rglob("*")
        if path.is_file()
    }
    report = verify(small.store, where=small.place.archive_path, disk=BytesDisk(files))
    assert report.problems == ()
    assert report.counts["captures"] == 4
    warc = next(path for path in files if path.endswith(".warc.gz"))
    files[warc] = files[warc][:-1]
    assert not verify(small.store, where=small.place.archive_path, disk=BytesDisk(files)).ok


def test_visits_are_judged_by_the_settings_of_their_run(tmp_path: Path, shared: str) -> None:
    small = some(
        tmp_path / "c", address=shared
    )  # ten seconds lie between two ends; each takes a quarter of one
    seen = check_politeness(small.store, lambda text: settings_of_run(small.place, text),
        where=small.place.archive_path)  # fmt: skip
    assert seen.ok
    assert seen.requests == 5
    assert seen.smallest["host"].smallest_gap_s == pytest.approx(9.75)
    with small.store.transaction():
        small.store.run('UPDATE runs SET settings = \'{"sets": ["manners.rest_s=60"]}\'')
    seen = check_politeness(small.store, lambda text: settings_of_run(small.place, text),
        where=small.place.archive_path)  # fmt: skip
    assert (seen.violations, seen.worst[0].wanted_s) == (4, 60.0)


def test_a_crawl_delay_binds_once_its_robots_txt_is_known(tmp_path: Path, shared: str) -> None:
    small = Small(tmp_path / "c", address=shared)
    small.visit(SEED, body=b"<a href='/b'>")
    small.robots(b"User-agent: *\nCrawl-delay: 30\n")
    small.visit(f"{SEED}b")
    small.end()
    seen = check_politeness(small.store, lambda text: settings_of_run(small.place, text),
        where=small.place.archive_path)  # fmt: skip
    assert seen.violations == 0  # the robots.txt itself ended when it became known
    with small.store.transaction():
        small.store.run("UPDATE robots SET fetched = ?", (T,))
    seen = check_politeness(small.store, lambda text: settings_of_run(small.place, text),
        where=small.place.archive_path)  # fmt: skip
    assert (seen.violations, seen.worst[0].wanted_s) == (2, 30.0)
