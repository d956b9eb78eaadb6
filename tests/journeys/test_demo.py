"""`geomi demo`: what a newcomer sees first."""

from __future__ import annotations

from pathlib import Path

from journeys.crawling import geomi, must_be_sound


def test_the_demo_finds_what_is_reachable_is_proven_and_was_polite(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    for _ in range(2):  # the second one replaces the first
        facts = geomi("demo", demo, "--sites", "6", "--json").facts
        assert facts["as_reachable"] and facts["verified"]
        assert facts["pages"] == facts["reachable"] > 50
    must_be_sound(demo)
    assert geomi("verify", demo, "--politeness", "--json").facts["ok"]


def test_the_demo_says_what_to_look_at_next(tmp_path: Path) -> None:
    said = geomi("demo", tmp_path / "demo", "--sites", "4").out
    assert "store, WARC and CDXJ agree" in said
    for command in ("status", "pages", "story", "verify", "crawl"):
        assert f"geomi {command}" in said


def test_the_demo_leaves_a_directory_alone_that_is_no_demo(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    said = geomi("demo", tmp_path / "mine", code=2).err
    assert "no demo" in said
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
