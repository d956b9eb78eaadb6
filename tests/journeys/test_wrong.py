"""A wrong command or setting: one clear sentence, exit code 2, and nothing changed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from geomi.world import Running
from journeys.crawling import FAST, geomi, settings, to_world

_URL = "http://127.0.0.1:9/"


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((_URL, "--set", "manners.rest=5"), "did you mean"),
        ((_URL, "--set", "maners.rest_s=5"), "maners"),
        ((_URL, "--set", "manners.rest_s=often"), "manners.rest_s"),
        ((_URL, "--set", "manners.rest_s=-1"), "manners.rest_s"),
        ((_URL, "--set", "nonsense"), "wanted table.key=value"),
        ((_URL, "--manners", "rude"), "rude"),
        ((_URL, "--scope", "world"), "world"),
        ((_URL, "--include", "("), "("),
        ((_URL, "--allow-network", "10.0.0.0/99"), "10.0.0.0/99"),
        ((_URL, "--max-depth", "-1"), "max_depth"),
        ((_URL, "--max-pages", "many"), "many"),
        ((_URL, "--agents", "0"), "agents"),
        ((_URL, "--nonsense"), "--nonsense"),
        ((), "needs a seed"),
        (("ftp://example.org/",), "ftp is neither http nor https"),
        (("http://exa mple.org/",), "cannot be a seed"),
        (("--seeds", "missing.txt"), "missing.txt: cannot be read"),
        (("--seeds", "empty.txt"), "no seed in it"),
        (("--seeds", "http://a.example/sitemap.xml"), "a file is wanted; fetch it first"),
        ((_URL, "--set", 'archive.directories=["/proc/none"]'), "archive.directories"),
        ((_URL, "--set", 'store="postgresql://127.0.0.1:9/x"'), "Connection refused"),
        ((_URL, "--set", 'dns.hosts="/nowhere/hosts"'), "/nowhere/hosts"),
    ],
)
def test_what_is_wrong_is_said_once_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("# nothing\n")
    before = everything_in(tmp_path)
    done = geomi("crawl", tmp_path / "c", *words, code=2)
    assert said in done.err
    assert done.err.startswith("geomi: ")
    assert done.err.count("\n") == 1
    assert done.out == ""
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("what", ["a file", "a full directory", "below a file"])
def test_a_place_where_no_collection_can_be_is_left_alone(tmp_path: Path, what: str) -> None:
    place = tmp_path / "c"
    if what == "a full directory":
        place.mkdir()
        (place / "letter.txt").write_text("mine")
    else:
        place.write_text("mine")
        place = place / "below" if what == "below a file" else place
    before = everything_in(tmp_path)
    assert geomi("crawl", place, _URL, code=2).err.count("\n") == 1
    assert everything_in(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0 and not os.access("/proc", os.W_OK), reason="as any user")
def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    assert "/proc/none" in geomi("crawl", "/proc/none", _URL, code=2).err


def test_a_wrong_word_leaves_an_existing_collection_as_it_was(
    tmp_path: Path, plain: Running
) -> None:
    collection = tmp_path / "c"
    geomi("crawl", collection, plain.seeds(1)[0], *to_world(plain), *settings(*FAST),
          "--max-depth", "0")  # fmt: skip
    before = everything_in(collection)
    for words in (("--set", "manners.rest=5"), ("ftp://example.org/",), ("--seeds", "missing")):
        assert geomi("crawl", collection, *words, code=2).err.count("\n") == 1
    assert everything_in(collection) == before
    toml = collection / "geomi.toml"
    toml.write_text(toml.read_text() + "\n[crawll]\nagents = 2\n")
    before = everything_in(collection)
    assert "crawll" in geomi("crawl", collection, code=2).err
    assert everything_in(collection) == before


def test_a_store_of_another_program_is_not_touched(tmp_path: Path) -> None:
    collection = tmp_path / "c"
    geomi("init", collection)
    (collection / "geomi.db").write_text("no database at all, but long enough to be looked at")
    before = everything_in(collection)
    assert "not a geomi store" in geomi("crawl", collection, _URL, code=2).err
    found = everything_in(collection)
    assert found["geomi.db"] == before["geomi.db"]


def test_a_store_of_a_newer_geomi_is_refused(tmp_path: Path, plain: Running) -> None:
    collection = tmp_path / "c"
    geomi("crawl", collection, plain.seeds(1)[0], *to_world(plain), "--max-visits", "1", code=None)
    with sqlite3.connect(collection / "geomi.db") as db:
        db.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    db.close()
    assert "use a newer geomi" in geomi("crawl", collection, code=2).err


def test_an_empty_collection_still_needs_a_seed(tmp_path: Path) -> None:
    geomi("init", tmp_path / "c")
    before = everything_in(tmp_path / "c")
    assert "no seed" in geomi("crawl", tmp_path / "c", code=2).err
    assert everything_in(tmp_path / "c") == before
