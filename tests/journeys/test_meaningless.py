"""Pages that mean nothing, from the crawl to the mark and back, judged by what the world knows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from geomi.store import open_store
from geomi.world import Params, Running, World, serve
from geomi.world.features import PLAIN, PROMPT
from journeys.crawling import (
    FAST,
    end,
    geomi,
    must_be_sound,
    outcomes,
    pages,
    settings,
    start,
    to_world,
)

#: What has no content of its own and stands under many URLs. Pages that wait for a script are
#: known otherwise (`why`), and are content here: marking one counts as an error.
WALLS = frozenset({"login", "realname", "error", "missing"})
CORNERS = ("members", "door", "realname", "apology", "app", "session", "tracking", "order",
           "pathsession", "search", "signs", "frames")  # fmt: skip
#: Sessions and clocks inside most pages; besides walls what only looks like many copies.
SHARES = {**PROMPT, "habit.soft404": 0.5, "habit.stamped": 0.7,
          **{f"corner.{name}": 0.5 for name in CORNERS}}  # fmt: skip


def hidden_pages(place: Path) -> set[str]:
    """URLs of which a capture is hidden; probes are none."""
    store = open_store(str(place / "geomi.db"), readonly=True)
    try:
        return {
            row[0]
            for row in store.all(
                "SELECT DISTINCT p.url FROM hidden h JOIN pages p ON p.page = h.page"
                " WHERE h.reason <> 'probe'"
            )
        }
    finally:
        store.close()


def judged(world: World, rows: Iterable[Mapping[str, Any]], marked: set[str]) -> dict[str, int]:
    """Of what came as a whole HTML page: marked and meant, marked in vain, missed, content."""
    counts = {"right": 0, "vain": 0, "missed": 0, "content": 0}
    for row in rows:
        if row["outcome"] != "OK" or row["mime"] != "text/html" or "geomi-probe" in row["url"]:
            continue
        is_wall = world.meaning(row["url"]) in WALLS
        if row["url"] in marked:
            counts["right" if is_wall else "vain"] += 1
        else:
            counts["missed" if is_wall else "content"] += 1
    return counts


def crawl(running: Running, place: Path, *words: str) -> None:
    made = [*to_world(running), "--json", *settings(*FAST, "crawl.seen=exact")]
    geomi("crawl", place, *words, *made, timeout_s=600.0, code=None)


def measured(tmp_path: Path, *, seed: int, sites: int, pages_of_site: int) -> dict[str, int]:
    """A crawl, a scan, the crawl that makes its probes, a scan; then precision and recall."""
    params = Params(seed=seed, sites=sites, pages=pages_of_site, shares=SHARES, trap_steps=3)
    place = tmp_path / "c"
    with serve(params) as running:
        crawl(running, place, *running.seeds())
        geomi("archive", "meaningless", "scan", place, timeout_s=300.0)
        crawl(running, place)
        facts = geomi("archive", "meaningless", "scan", place, "--json", timeout_s=300.0).facts
        assert facts["probes_answered"] > 0
        found = judged(running.world, pages(place), hidden_pages(place))
        must_be_sound(place)
    precision = found["right"] / (found["right"] + found["vain"])
    recall = found["right"] / (found["right"] + found["missed"])
    assert precision >= 0.99, found
    assert recall >= 0.95, found
    return found


def test_walls_of_a_small_world_are_marked_and_content_is_not(tmp_path: Path) -> None:
    found = measured(tmp_path, seed=11, sites=8, pages_of_site=12)
    assert found["right"] > 50


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, 4])
def test_walls_of_a_larger_world_are_marked_and_content_is_not(tmp_path: Path, seed: int) -> None:
    found = measured(tmp_path, seed=seed, sites=120, pages_of_site=40)
    print(json.dumps({"seed": seed, **found}))
    assert found["right"] > 1_000


#: One site: a wall under six names and nothing else of note.
MEMBERS = Params(seed=6, sites=1, pages=6, shares={**PLAIN, "corner.members": 1.0})


def test_what_a_person_decides_is_obeyed_shared_and_taken_back(tmp_path: Path) -> None:
    place, other, walls = tmp_path / "c", tmp_path / "d", tmp_path / "walls.jsonl"
    with serve(MEMBERS) as running:
        crawl(running, place, *running.seeds())
        crawl(running, other, *running.seeds())
    assert geomi("archive", "meaningless", place, "--json").rows == []
    (one,) = geomi("archive", "meaningless", place, "--scan", "--json").rows
    assert (one["state"], one["reason"], one["count"]) == ("candidate", "rule:login", 6)
    marked = hidden_pages(place)
    assert len(marked) == 6
    assert one["example"] in marked
    digest = one["digest"]

    assert geomi("archive", "meaningless", "reject", place, digest, "--json").facts == {
        "rejected": 1, "given": 1,
    }  # fmt: skip
    facts = geomi("archive", "meaningless", "scan", place, "--json").facts
    assert (facts["shown"], facts["hidden"], facts["payloads"]) == (6, 0, 0)
    assert hidden_pages(place) == set()
    geomi("archive", "meaningless", "confirm", place, digest)
    geomi("archive", "meaningless", "scan", place)
    assert hidden_pages(place) == marked
    must_be_sound(place)

    geomi("archive", "meaningless", "export", place, walls)
    walls.write_text(f"# of theirs\nnonsense\n{walls.read_text()}")
    done = geomi("archive", "meaningless", "import", other, walls, "--json", code=1)
    assert done.facts == {"taken": 1, "left": 0, "problems": 1}
    assert "walls.jsonl line 2 says 'nonsense', wanted a digest" in done.err
    geomi("archive", "meaningless", other, "--scan")
    (theirs,) = geomi("archive", "meaningless", other, "--state", "confirmed", "--json").rows
    assert theirs["by"] == "import walls.jsonl of hand"
    assert hidden_pages(other) == marked
    geomi("archive", "meaningless", "remove", other, digest)
    assert geomi("archive", "meaningless", other, "--json").rows == []


def test_a_threshold_confirms_and_a_crawl_may_end_with_a_scan(tmp_path: Path) -> None:
    place = tmp_path / "c"
    with serve(MEMBERS) as running:
        crawl(running, place, *running.seeds(), "--set", "archive.scan=true",
              "--set", "archive.confirm_at=6")  # fmt: skip
        (one,) = geomi("archive", "meaningless", place, "--json").rows
        assert (one["state"], one["by"]) == ("confirmed", "threshold")
        assert len(hidden_pages(place)) == 6
        crawl(running, place)  # makes the probe of the scan, and scans again
        crawl(running, place, "--again")  # the directory is not asked again
        names = [row.target for row in running.log() if "geomi-probe-" in row.target]
    assert len(names) == 1
    assert [url for url in outcomes(place) if url.endswith(names[0])]
    must_be_sound(place)


def test_payloads_that_cannot_be_read_are_counted_and_read_when_they_are_back(
    tmp_path: Path,
) -> None:
    place = tmp_path / "c"
    with serve(MEMBERS) as running:
        crawl(running, place, *running.seeds())
    (place / "archive").rename(tmp_path / "away")
    done = geomi("archive", "meaningless", "scan", place, "--json", code=1)
    assert done.facts["elsewhere"] > 0
    assert done.facts["hidden"] == 0
    (tmp_path / "away").rename(place / "archive")
    facts = geomi("archive", "meaningless", "scan", place, "--anew", "--json").facts
    assert (facts["elsewhere"], facts["hidden"]) == (0, 6)


WRONG = (
    (["confirm", "{place}", "sha1:short"], "sha1:short: wanted a digest"),
    (["confirm", "{place}", "A" * 32], f"sha1:{'A' * 32}: not in the list"),
    (["add", "{place}", "no-such-file"], "no-such-file: no such file, and not a digest"),
    (["import", "{place}", "no-such-file"], "no-such-file: cannot be read"),
    (["{place}", "--state", "odd"], "--state odd: wanted candidate, confirmed, rejected"),
    (["{place}", "--threshold", "3"], "--threshold and --anew go with --scan"),
    (["nothing-here"], "nothing-here: no collection here"),
)


def test_a_wrong_order_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "c"
    geomi("init", place)
    geomi("seeds", "add", place, "http://a.example/")
    running = [
        start("archive", "meaningless", *(word.format(place=place) for word in words))
        for words, _ in WRONG
    ]
    for process, (_, said) in zip(running, WRONG, strict=True):
        done = end(process)
        assert done.code == 2
        assert said in done.err
        assert len(done.err.splitlines()) == 1
