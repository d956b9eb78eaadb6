"""status, pages, story and verify as a user calls them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cluster.small import HOST, SEED, Small, T, some
from geomi.cli.main import run
from geomi.states import Outcome


@pytest.fixture
def small(tmp_path: Path, shared: str) -> Small:
    return some(tmp_path / "c", address=shared)


Out = pytest.CaptureFixture[str]


def said(capsys: Out, *words: str, code: int = 0) -> str:
    assert run(list(words)) == code
    return capsys.readouterr().out


def lines(capsys: Out, *words: str, code: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said(capsys, *words, "--json", code=code).splitlines()]


def listed(capsys: Out, small: Small, *words: str) -> list[str]:
    found = lines(capsys, "pages", str(small.place.path), *words)
    return [one["url"].removeprefix(SEED) for one in found]


# -- status ----------------------------------------------------------------------------------------


def test_status_gives_the_counters_of_the_contract(small: Small, capsys: Out) -> None:
    (facts,) = lines(capsys, "status", str(small.place.path))
    assert facts["pages"] == {
        "known": 5, "pending": 1,
        "by_outcome": {"OK": 2, "code": 1, "deny": 1, "hTim": 1},
    }  # fmt: skip
    assert (facts["visits"], facts["requests"]) == (4, 5)
    assert facts["bytes"] == small.store.one("SELECT sum(size) FROM visits")[0]  # type: ignore[index]
    assert facts["run"] == {
        "run": 1, "kind": "first", "state": "stopped", "why": "", "started": T, "ended": small.now,
    }  # fmt: skip
    assert (facts["seeds"], facts["agents"]) == (1, [])
    assert facts["files"]["number"] == 1
    assert not any(name.startswith("next.") for name in facts["counters"])
    assert facts["seen_expected_loss"] == pytest.approx(5e-9)


def test_status_says_that_pages_of_scripts_are_not_rendered(
    tmp_path: Path, shared: str, capsys: Out
) -> None:
    small = Small(tmp_path / "c", address=shared)
    small.robots()
    small.visit(SEED, body=b"<div id=root></div><script src=/a.js></script>")
    small.end()
    assert "not render" in said(capsys, "status", str(small.place.path))
    (facts,) = lines(capsys, "status", str(small.place.path))
    assert facts["counters"]["scripts.only"] == 1
    assert (
        next(one["why"] for one in lines(capsys, "pages", str(small.place.path))) == "script_only"
    )


def test_status_answers_although_the_options_of_the_last_run_fit_no_more(
    small: Small, capsys: Out
) -> None:
    with small.store.transaction():
        small.store.run('UPDATE runs SET settings = \'{"options": {"manners.preset": "own"}}\'')
    (facts,) = lines(capsys, "status", str(small.place.path))
    assert facts["visits"] == 4


def test_status_names_the_sites_that_wait_long_and_why(small: Small, capsys: Out) -> None:
    with small.store.transaction():
        small.store.run("UPDATE sites SET next_due = 9e9, failures = 0")
    (facts,) = lines(capsys, "status", str(small.place.path))
    assert facts["sites"] == {
        "held": 0, "due": 0, "waiting_later": 1, "soonest": 9e9,
        "later": [{"site": HOST, "pages": 1, "not_before": 9e9,
                   "why": "failed pages are tried again"}],
    }  # fmt: skip
    assert HOST in said(capsys, "status", str(small.place.path))


def test_status_tells_a_killed_crawl_from_a_running_one(
    tmp_path: Path, shared: str, capsys: Out
) -> None:
    small = Small(tmp_path / "c", address=shared)
    small.visit(SEED)
    with small.store.transaction():
        small.store.run("UPDATE agents SET host = ?, pid = ?, facts = '{\"flying\": 3}'",
                        (os.uname().nodename, os.getpid()))  # fmt: skip
    (facts,) = lines(capsys, "status", str(small.place.path))
    assert (facts["run"]["state"], facts["agents"][0]["flying"]) == ("running", 3)
    with small.store.transaction():
        small.store.run("UPDATE agents SET pid = ?", ((1 << 22) + 1,))  # beyond pid_max
    (facts,) = lines(capsys, "status", str(small.place.path))
    assert (facts["run"]["state"], facts["agents"][0]["is_alive"]) == ("interrupted", False)


@pytest.mark.parametrize("command", ["status", "pages", "verify"])
def test_what_is_no_collection_is_told_in_one_sentence(
    tmp_path: Path, capsys: Out, command: str
) -> None:
    assert run([command, str(tmp_path / "none")]) == 2
    error = capsys.readouterr().err
    assert "no collection here" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "none").exists()


# -- pages -----------------------------------------------------------------------------------------


def test_pages_gives_a_line_each_with_its_place(small: Small, capsys: Out) -> None:
    found = {one["url"]: one for one in lines(capsys, "pages", str(small.place.path))}
    b = found[f"{SEED}b"]
    assert {name: b[name] for name in ("outcome", "code", "mime", "depth", "kind")} == {
        "outcome": "OK", "code": 200, "mime": "text/html", "depth": 1, "kind": "a",
    }  # fmt: skip
    assert (b["size_bytes"], b["seconds"], b["via"]) == (8, 0.25, SEED)
    assert b["digest"].startswith("sha1:")
    path = small.place.path / b["place"]["file"]
    data = path.read_bytes()[b["place"]["offset"] :][: b["place"]["length"]]
    assert data.startswith(b"\x1f\x8b")
    assert found[f"{SEED}secret"]["place"] is None
    assert found[f"{SEED}secret"]["why"] == "robots:2"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), ["", "b", "secret", "moved", "later"]),
        (("--outcome", "ok"), ["", "b"]),
        (("--outcome", "OK,deny", "--outcome", "hTim"), ["", "b", "secret", "later"]),
        (("--code", "301"), ["moved"]),
        (("--kind", "s"), [""]),
        (("--kind", "a,f", "--limit", "2"), ["b", "secret"]),
        (("--mime", "text/html", "--depth", "1"), ["b", "moved"]),
        (("--mime", "text/"), ["", "b", "moved"]),
        (("--mime", "text"), []),
        (("--pending",), ["later"]),
        (("--pending", "--depth", "0"), []),
        (("--site", HOST, "--depth", "0"), [""]),
        (("--match", "/(b|moved)$"), ["b", "moved"]),
        (("--match", "e("), []),
        (("--limit", "0"), []),
    ],
)
def test_pages_filters(
    small: Small, capsys: Out, words: tuple[str, ...], wanted: list[str]
) -> None:
    assert listed(capsys, small, *words) == wanted


def test_pages_as_csv_is_a_table_with_a_header(small: Small, capsys: Out) -> None:
    text = said(capsys, "pages", str(small.place.path), "--csv")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["outcome"] for row in rows] == ["OK", "OK", "deny", "code", "hTim"]
    assert int(rows[0]["length"]) > 0
    assert rows[0]["title"] == "Seed"
    assert rows[2]["file"] == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--outcome", "okk"), "did you mean OK?"),
        (("--kind", "x"), "wanted f, a, h, e or s"),
        (("--site", "b.example"), "no such site"),
        (("--csv", "--json"), "give one of them"),
    ],
)
def test_a_wrong_filter_is_told_and_exits_2(
    small: Small, capsys: Out, words: tuple[str, ...], text: str
) -> None:
    assert run(["pages", str(small.place.path), *words]) == 2
    assert text in capsys.readouterr().err


def test_people_see_the_reason_and_no_control_bytes(small: Small, capsys: Out) -> None:
    with small.store.transaction():
        small.store.run("UPDATE pages SET why = 'robots:\x1b[2J' WHERE outcome = 'deny'")
    text = said(capsys, "pages", str(small.place.path))
    assert "robots:\\x1b[2J" in text
    assert "\x1b" not in text


# -- story -----------------------------------------------------------------------------------------


def told(capsys: Out, small: Small, url: str, *, code: int = 0) -> dict[str, Any]:
    (one,) = lines(capsys, "story", str(small.place.path), url, code=code)
    return one


def kinds(one: dict[str, Any]) -> list[str]:
    return [event["what"] for event in one["events"]]


def test_the_story_of_a_page_is_found_asked_stored(small: Small, capsys: Out) -> None:
    one = told(capsys, small, "HTTP://A.example:80/x/../b#top")
    assert (one["url"], one["known"], one["outcome"]) == (f"{SEED}b", True, "OK")
    assert kinds(one) == ["found", "asked", "stored"]
    found, asked, stored = one["events"]
    assert (found["via"], found["kind"], found["depth"]) == (SEED, "a", 1)
    assert found["party"] == {"seed": 1, "url": SEED, "source": "given"}
    assert (asked["outcome"], asked["code"], asked["seconds"]) == ("OK", 200, 0.25)
    assert asked["address"] == "192.0.2.1"
    assert stored["place"]["file"].startswith("archive/")
    assert one["events"] == sorted(one["events"], key=lambda event: event["time"])


def test_the_story_of_a_denied_page_quotes_the_line(small: Small, capsys: Out) -> None:
    one = told(capsys, small, f"{SEED}secret")
    assert kinds(one) == ["found", "denied"]
    assert one["events"][1]["robots"]["line"] == 2
    assert "Disallow: /secret" in one["events"][1]["text"]


def test_the_story_of_a_failed_page_says_what_it_waits_for(small: Small, capsys: Out) -> None:
    one = told(capsys, small, f"{SEED}later")
    assert kinds(one) == ["found", "asked", "waiting"]
    assert one["events"][1]["outcome"] == "hTim"
    assert one["events"][2]["tries"] == 1
    assert one["events"][2]["not_before"] == pytest.approx(small.now + 60)


def test_the_story_of_a_retry_names_the_failure_before_it(small: Small, capsys: Out) -> None:
    small.again()
    small.visit(f"{SEED}b", outcome=Outcome.H_TIM)
    small.visit(f"{SEED}b", code=304, body=b"")
    small.end()
    asked = [e for e in told(capsys, small, f"{SEED}b")["events"] if e["what"] == "asked"]
    assert [(e["run"], e["try"], e["outcome"]) for e in asked] == [
        (1, 1, "OK"), (2, 1, "hTim"), (2, 2, "same"),
    ]  # fmt: skip
    assert asked[1]["reason"] == ["again"]
    assert asked[2]["retried_after"] == "hTim"
    stored = [e for e in told(capsys, small, f"{SEED}b")["events"] if e["what"] == "stored"]
    assert stored[0]["revisit_of"] is None
    assert stored[1]["revisit_of"]["offset"] == stored[0]["place"]["offset"]


def test_a_page_given_up_with_its_site_says_so(small: Small, capsys: Out) -> None:
    with small.store.transaction():
        small.store.run("UPDATE pages SET outcome = 'noIP', why = 'no such name'"
                        " WHERE outcome = 'hTim'")  # fmt: skip
        small.store.run("DELETE FROM pending")
    one = told(capsys, small, f"{SEED}later")
    assert kinds(one) == ["found", "asked", "given up"]
    assert one["events"][2]["why"] == "no such name"


@pytest.mark.parametrize(
    ("url", "what", "text"),
    [
        ("http://other.example/x", "outside", "no rule admits its site other.example"),
        ("http://third.example/", "unknown", "its site third.example is not in the collection"),
        (f"{SEED}nowhere", "unknown", "no page links to it"),
        (f"{SEED}b/", "unknown", f"known is {SEED}b"),
        (f"https://{HOST}/b", "unknown", f"known is {SEED}b"),
    ],
)
def test_an_unknown_url_has_a_story_and_exits_1(
    small: Small, capsys: Out, url: str, what: str, text: str
) -> None:
    one = told(capsys, small, url, code=1)
    assert (one["known"], one["outcome"], kinds(one)) == (False, None, [what])
    assert text in one["events"][0]["text"]


def test_what_is_no_url_exits_2(small: Small, capsys: Out) -> None:
    assert run(["story", str(small.place.path), "mailto:a@b.example"]) == 2
    assert "not a URL" in capsys.readouterr().err


# -- verify ----------------------------------------------------------------------------------------


def test_verify_exits_0_and_says_ok(small: Small, capsys: Out) -> None:
    (facts,) = lines(capsys, "verify", str(small.place.path))
    assert (facts["ok"], facts["problems"]) == (True, [])
    assert said(capsys, "verify", str(small.place.path), "--quick").endswith("ok\n")


def test_verify_exits_1_and_names_each_problem(small: Small, capsys: Out) -> None:
    with small.store.transaction():
        small.store.run("UPDATE counters SET value = 0 WHERE name = 'bytes'")
    (facts,) = lines(capsys, "verify", str(small.place.path), code=1)
    assert facts["ok"] is False
    assert [one["where"] for one in facts["problems"]] == ["counter bytes"]
    assert "counter bytes: says 0" in said(capsys, "verify", str(small.place.path), code=1)


def test_verify_politeness_shows_gaps_and_rates(small: Small, capsys: Out) -> None:
    (facts,) = lines(capsys, "verify", str(small.place.path), "--politeness")
    assert facts["ok"]
    assert facts["smallest_gap"]["host"]["smallest_gap_s"] == pytest.approx(9.75)
    assert facts["greatest_rate"]["60s"]["most_in"]["60s"] == 5
    text = said(capsys, "verify", str(small.place.path), "--politeness")
    assert f"smallest gap of one host: 9.750 s at {HOST}" in text


def test_verify_politeness_exits_1_where_a_rule_was_broken(small: Small, capsys: Out) -> None:
    with small.store.transaction():
        small.store.run(
            "UPDATE visits SET started = started - 9, ended = ended - 9 WHERE visit = 3"
        )
    (facts,) = lines(capsys, "verify", str(small.place.path), "--politeness", code=1)
    assert facts["violations"] == 1
    assert facts["problems"][0]["where"] == f"host {HOST}"
    assert "wanted 5.000 s" in facts["problems"][0]["what"]


def test_no_look_changes_a_byte(small: Small, capsys: Out) -> None:
    place = small.place.path
    small.store.close()
    before = {path: path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
    for words in (["status"], ["pages"], ["verify"], ["verify", "--politeness"]):
        said(capsys, words[0], str(place), *words[1:])
    said(capsys, "story", str(place), SEED)
    after = {path: path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
    passing = {place / "geomi.db-wal", place / "geomi.db-shm"}  # SQLite's own
    assert {p: d for p, d in after.items() if p not in passing} == {
        p: d for p, d in before.items() if p not in passing
    }
