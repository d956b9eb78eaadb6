"""Two collections that share an index: the second stores what the first has as revisits."""

from __future__ import annotations

import shutil
import sqlite3
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path

import pytest

from archive.replayed import replayed
from geomi.world import Params, serve
from geomi.world.features import PLAIN
from journeys.crawling import FAST, geomi, must_be_sound, settings, to_world


def stored(collection: Path, run: int) -> tuple[int, int, int]:
    """(captures, revisits, payload bytes stored) of a run."""
    with sqlite3.connect(f"file:{collection}/geomi.db?mode=ro", uri=True) as db:
        row = db.execute(
            "SELECT count(*), sum(revisit), sum((1 - revisit) * size) FROM visits"
            " WHERE file > 0 AND run = ?",
            (run,),
        ).fetchone()
    return int(row[0]), int(row[1] or 0), int(row[2] or 0)


def test_what_another_collection_has_is_referred_to_and_replays(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with serve(Params(seed=5, sites=2, pages=12, shares=PLAIN)) as running:
        words = [*running.seeds(), *to_world(running)]
        words += settings(*FAST, "archive.index=../digests.db", "crawl.agents=1")
        geomi("crawl", first, *words)
        geomi("crawl", second, *words)
        again = geomi("crawl", second, "--again").code
    assert again == 0
    had, has, repeated = stored(first, 1), stored(second, 1), stored(second, 2)
    assert has[2] < 0.1 * had[2], "redirects and tiny payloads alone are stored again"
    assert has[1] > 0.5 * has[0]
    assert repeated[2] < 0.1 * had[2]
    must_be_sound(first)
    must_be_sound(second)
    facts = geomi("archive", "index", second, "--json").facts
    assert len(facts["shared_by"]) == 2
    assert facts["added"] == 0
    if find_spec("pywb") is not None:
        with sqlite3.connect(f"file:{second}/geomi.db?mode=ro", uri=True) as db:
            rows = db.execute(
                "SELECT v.stored_date, p.url, v.size, v.outcome FROM visits v"
                " JOIN pages p ON p.page = v.page WHERE v.revisit = 1 AND v.code IN (200, 304)"
            ).fetchall()
        assert len(rows) > 20
        folders = [first / "archive", second / "archive"]
        asked = [("".join(c for c in date if c.isdigit())[:14], url) for date, url, _, _ in rows]
        for (_, url, size, outcome), (status, digest, length) in zip(
            rows, replayed(folders, asked), strict=True
        ):
            assert status == 200, url
            assert digest != sha1(b"").hexdigest(), url
            assert length == size or outcome == "same", url
    lent = geomi("archive", "delete", first, running.seeds()[0], "--yes", code=2)
    assert "have their payload from what is to be deleted" in lent.err
    shutil.rmtree(first)
    broken = geomi("verify", second, "--json", code=1).facts
    assert any("which cannot be asked" in one["what"] for one in broken["problems"])


def test_a_lost_index_is_made_anew_by_the_next_crawl_and_by_hand(
    tmp_path: Path, shared: str
) -> None:
    collection = tmp_path / "c"
    with serve(Params(seed=6, sites=1, pages=8, shares=PLAIN)) as running:
        words = ["crawl", collection, *running.seeds(), *to_world(running), *settings(*FAST)]
        words += settings(f"store={shared}") if shared else []
        geomi(*words)
        before = geomi("archive", "index", collection, "--json").facts
        assert before["payloads"] > 5
        assert before["added"] == 0
        if not shared:
            for name in ("digests.db", "digests.db.bits"):
                (collection / name).write_bytes(b"no database at all, but bytes enough for one" * 9)
        geomi("crawl", collection, "--again")
    after = geomi("archive", "index", collection, "--json").facts
    assert after["payloads"] >= before["payloads"]
    anew = geomi("archive", "index", collection, "--anew", "--json").facts
    assert anew["payloads"] <= after["payloads"]
    assert "payloads" in geomi("archive", "index", collection).out
    must_be_sound(collection)


def test_rules_of_equal_urls_are_given_listed_applied_and_taken_back(tmp_path: Path) -> None:
    collection = tmp_path / "c"
    with serve(Params(seed=3, sites=1, pages=12, shares=PLAIN)) as running:
        sets = settings(*FAST, "archive.equivalents=true")
        geomi("crawl", collection, *running.seeds(), *to_world(running), *sets)
        (seed,) = running.seeds()
        site = seed.split("/")[2]
        (line,) = geomi("archive", "rules", collection, "add", site, "drop", "from").out.split(
            "\n"
        )[:1]
        assert "is active" in line
        geomi("crawl", collection, "--again")
    rows = [
        one
        for one in geomi("archive", "rules", collection, "--json").rows
        if (one["kind"], one["what"]) == ("drop", "from")
    ]
    assert [(one["site"], one["state"], one["by"]) for one in rows] == [(site, "active", "hand")]
    assert "drop from" in geomi("archive", "rules", collection).out
    assert "nothing new" in geomi("archive", "rules", collection, "learn").out
    number = rows[0]["rule"]
    said = geomi("archive", "rules", collection, "remove", number, "--json").facts["decided"]
    assert said == f"rule {number} is removed; {rows[0]['skipped']:,} URLs wait again"
    must_be_sound(collection)
    for words, wrong in (
        (("add", site), "wanted one of"), (("forget",), "wanted one of"),
        (("remove", "x"), "wanted the number"), (("remove", 999), "none of that number"),
        (("add", "nowhere.example", "slash"), "not a site"),
        (("add", site, "slash", "x"), "wanted"),
    ):  # fmt: skip
        assert wrong in geomi("archive", "rules", collection, *words, code=2).err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("archive.index=no/such/directory/x.db",), "no such directory"),
        (("archive.duplicate_bytes=0",), "duplicate_bytes"),
        (("archive.revisit_form=other",), "revisit_form"),
    ],
)
def test_a_setting_that_cannot_be_is_said_at_once(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = geomi("crawl", tmp_path / "c", "http://a.example/", *settings(*words), code=2)
    assert said in done.err


def test_there_is_no_index_before_the_first_crawl(tmp_path: Path) -> None:
    geomi("init", tmp_path / "c")
    assert "nothing was crawled yet" in geomi("archive", "index", tmp_path / "c", code=2).err
