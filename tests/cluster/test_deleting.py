"""What is deleted is gone: no byte of it on disk, no crawl asks for it, and others keep theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from isal import isal_zlib

from cluster.rewritten import (
    OTHER,
    TEXT,
    doubled,
    moved,
    not_modified,
    problems,
    replayed,
    rewriting_of,
)
from cluster.small import SEED, Small
from geomi.archive.names import sha1_b32
from geomi.cli.main import run
from geomi.cluster.rewriting import Wish
from geomi.cluster.story import story
from geomi.history.past import follow


def everything(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file of a collection, and what is inside its gzip members."""
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield path, data
            while data.startswith(b"\x1f\x8b"):
                z = isal_zlib.decompressobj(31)
                yield path, z.decompress(data)
                data = z.unused_data


def delete(small: Small, target: str, *words: str) -> int:
    return run(["archive", "delete", str(small.place.path), target, "--yes", *words])


def of_url(small: Small, name: str) -> dict[str, Any]:
    row = small.store.one(
        'SELECT outcome, why, digest, title, file, "offset", stored_id FROM pages WHERE url = ?',
        (f"{SEED}{name}",),
    )
    assert row is not None
    return dict(zip(("outcome", "why", "digest", "title", "file", "offset", "stored_id"), row,
                    strict=True))  # fmt: skip


def test_of_a_deleted_payload_no_byte_is_left(tmp_path: Path, shared: str) -> None:
    small = doubled(tmp_path / "c", address=shared, runs=4)
    not_modified(small)
    moved(small)
    rewriting_of(small).run(Wish())
    before = replayed(small)
    words = TEXT[100:130]
    assert any(words in data for _, data in everything(tmp_path / "c"))
    assert delete(small, sha1_b32(TEXT), "--purge") == 0
    assert [path for path, data in everything(tmp_path / "c") if words in data] == []
    after = replayed(small)
    assert after == {visit: one for visit, one in before.items() if one.payload != TEXT}
    assert problems(small) == []
    assert of_url(small, "a")["outcome"] == "erased"
    assert of_url(small, "other")["outcome"] == "OK"


def test_another_capture_gets_the_payload_when_an_original_goes(
    tmp_path: Path, shared: str
) -> None:
    small = doubled(tmp_path / "c", address=shared, runs=3)
    rewriting_of(small).run(Wish())
    before = replayed(small)
    assert delete(small, f"{SEED}a", "--purge") == 0
    after = replayed(small)
    assert after == {visit: one for visit, one in before.items() if one.url != f"{SEED}a"}
    assert problems(small) == []
    kinds = small.store.all(
        "SELECT v.revisit FROM visits v JOIN pages p ON p.page = v.page WHERE p.url = ?"
        " AND v.page > 0 ORDER BY v.visit",
        (f"{SEED}b",),
    )
    assert kinds == [(0,), (1,), (1,)], "the first has the payload now, the others refer to it"
    certificate = json.loads((tmp_path / "c" / "reports" / "deleted-0002.json").read_text())
    assert certificate["payloads"] == 0, "/b has it yet"
    assert certificate["promoted"] == 1
    assert certificate["records_by_type"] == {"metadata": 3, "request": 3, "response": 1,
                                              "revisit": 2}  # fmt: skip


def test_a_tombstone_is_never_asked_for_again(tmp_path: Path, shared: str) -> None:
    small = doubled(tmp_path / "c", address=shared, runs=1)
    assert delete(small, f"{SEED}a") == 0
    page = of_url(small, "a")
    assert (page["outcome"], page["file"], page["digest"], page["title"]) == ("erased", 0, "", "")
    assert page["why"].startswith("deleted ")
    assert problems(small) == []
    small.again()
    waits = {row[0] for row in small.store.all(
        "SELECT p.url FROM pending w JOIN pages p ON p.page = w.page")}  # fmt: skip
    assert SEED in waits
    assert f"{SEED}a" not in waits
    small.visit(SEED, body=b'<a href="/a">the link is still there</a>')
    assert of_url(small, "a")["outcome"] == "erased"
    small.end()
    assert problems(small) == []


def test_a_deleted_site_is_gone_with_its_robots_and_takes_no_letters(
    tmp_path: Path, shared: str
) -> None:
    small = doubled(tmp_path / "c", address=shared)
    assert delete(small, "a.example", "--purge") == 0
    assert small.store.all("SELECT DISTINCT outcome FROM pages") == [("erased",)]
    assert small.store.one("SELECT count(*) FROM robots") == (0,)
    assert replayed(small) == {}
    assert problems(small) == []
    for words in (TEXT[100:130], OTHER[100:130]):
        assert [path for path, data in everything(tmp_path / "c") if words in data] == []
    assert small.store.one("SELECT state FROM sites") == ("refused",)


def test_followers_hear_of_what_was_removed(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c", runs=3)
    moved(small)
    last = max(seq for seq, *_ in follow(small.store, 0, small.place.archive_path))
    gone = {visit for visit, one in replayed(small).items() if one.url == f"{SEED}a"}
    assert delete(small, f"{SEED}a") == 0
    told = list(follow(small.store, last, small.place.archive_path))
    assert {visit for _, change, visit in told if change == "removed"} == gone


def test_the_certificate_says_what_went_and_who_asked(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c", runs=1)
    assert delete(small, f"{SEED}other", "--by", "the owner", "--why", "by request 7") == 0
    folder = tmp_path / "c" / "reports"
    facts = json.loads((folder / "deleted-0001.json").read_text())
    assert facts["asked_by"] == "the owner"
    assert facts["why"] == "by request 7"
    assert facts["target"] == {"kind": "url", "value": f"{SEED}other"}
    assert facts["payload_digests"] == [sha1_b32(OTHER + b"0")]
    (file,) = facts["files"]
    assert file["before_sha256"] != file["after_sha256"]
    assert not facts["purged"]
    text = (folder / "deleted-0001.txt").read_text()
    assert "by request 7" in text
    assert "still on disk, until they are purged" in text
    assert run(["archive", "rewrite", str(tmp_path / "c"), "--purge"]) == 0
    assert OTHER[50:80] not in b"".join(data for _, data in everything(tmp_path / "c" / "archive"))


def test_a_dry_run_deletes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = doubled(tmp_path / "c", runs=1)
    before = replayed(small)
    assert run(["archive", "delete", str(tmp_path / "c"), f"{SEED}a", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 3
    assert replayed(small) == before
    assert of_url(small, "a")["outcome"] == "OK"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["http://a.example/nowhere", "--yes"], "the collection knows no such page"),
        (["b.example", "--yes"], "no site of the collection"),
        ([f"{SEED}a"], "say --yes"),
        (["--resume"], "no deletion was begun"),
        ([], "wanted what to delete"),
        (["http://[/", "--yes"], "not a URL"),
    ],
)
def test_what_cannot_be_deleted_is_said(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = doubled(tmp_path / "c", runs=1)
    before = replayed(small)
    assert run(["archive", "delete", str(tmp_path / "c"), *words]) == 2
    assert said in capsys.readouterr().err
    assert replayed(small) == before


def test_the_story_tells_that_a_page_was_rewritten_and_deleted(tmp_path: Path) -> None:
    small = doubled(tmp_path / "c")
    rewriting_of(small).run(Wish())
    told = story(small.store, f"{SEED}b", settings=small.settings,
                 where=small.place.archive_path, now=small.now)  # fmt: skip
    assert [one.text.partition("; ")[2] for one in told.events if one.what == "stored"] == [
        "rewritten, generation 1"
    ] * 2
    assert delete(small, f"{SEED}b") == 0
    told = story(small.store, f"{SEED}b", settings=small.settings,
                 where=small.place.archive_path, now=small.now)  # fmt: skip
    assert [one.what for one in told.events] == ["found", "asked", "asked", "deleted"]
    assert told.events[-1].text.endswith("nobody asks for it again")
    assert problems(small) == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE pages SET file = 1 WHERE outcome = 'erased'", "has a copy in file 1"),
        ("INSERT INTO edits (file, \"offset\", length, action) VALUES (1, 0, 9, 'drop')",
         "no job is under way"),
        ("UPDATE generations SET generation = 7", "has generation 7 behind it"),
    ],
)  # fmt: skip
def test_verify_finds_what_a_deletion_cannot_leave(tmp_path: Path, sql: str, said: str) -> None:
    small = doubled(tmp_path / "c", runs=1)
    assert delete(small, f"{SEED}a") == 0
    assert problems(small) == []
    with small.store.transaction():
        small.store.run(sql)
    assert [one for one in problems(small) if said in one] != []
