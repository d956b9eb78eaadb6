"""The harvest report, as table 2 of paper 004 has it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.history.harvest import FOUND, Finding, Harvest, success_rate, tally, total

with (Path(__file__).parent / "paper_004_table_2.csv").open(encoding="utf-8") as _file:
    PAPER = list(csv.DictReader(_file))


def one(digest: str, size: int = 0, *, outcome: str = "OK", kept: str = "stored") -> Finding:
    return Finding(0, digest, outcome, kept == "revisit", kept != "nothing", size)


def row(*findings: Finding) -> Harvest:
    harvests = [Harvest(name="x")]
    tally(sorted(finding.line() for finding in findings), harvests)
    return harvests[0]


def test_the_paper_has_thirty_nine_institutions() -> None:
    assert len(PAPER) == len({line["institution"] for line in PAPER}) == 39


@pytest.mark.parametrize("line", PAPER, ids=lambda line: line["institution"])
def test_the_rate_is_that_of_the_paper_to_the_printed_digit(line: dict[str, str]) -> None:
    rate = success_rate(int(line["found"]), int(line["distinct"]))
    assert rate is not None
    assert f"{100 * rate:.2f}" == line["success"]
    assert int(line["distinct"]) <= int(line["found"])
    assert int(line["stored_bytes"]) <= int(line["bytes"])


def test_four_institutions_of_the_paper_lose_more_than_a_fifth_as_its_text_says() -> None:
    assert {line["institution"] for line in PAPER if float(line["success"]) < 80} == {
        "중소기업청", "병무청", "국방부", "방위산업청",
    }  # fmt: skip


def test_by_bytes_the_paper_loses_far_less_than_by_records() -> None:
    shares = {line["institution"]: int(line["stored_bytes"]) / int(line["bytes"]) for line in PAPER}
    assert [name for name, share in shares.items() if share < 0.98] == ["국민권익위원회"]
    assert round(shares["국민권익위원회"], 4) == 0.5698


def test_equal_payloads_are_one_record_without_duplicates() -> None:
    seen = row(one("A", 100), one("A", 100, kept="revisit"), one("A", 100), one("B", 50))
    assert (seen.found, seen.distinct, seen.bytes, seen.stored_bytes) == (4, 2, 350, 250)
    assert (seen.identical, seen.identical_bytes) == (1, 100)
    assert seen.success == 0.5


def test_what_was_not_sent_again_saves_what_it_would_have_cost() -> None:
    seen = row(one("A", 100), one("A", outcome="same", kept="revisit"),
               one("A", outcome="same", kept="revisit"))  # fmt: skip
    assert (seen.found, seen.distinct, seen.bytes) == (3, 1, 100)
    assert (seen.same, seen.same_bytes, seen.identical) == (2, 200, 0)


def test_what_is_meaningless_is_found_and_no_record() -> None:
    seen = row(one("A", 70, outcome="void", kept="revisit"), one("A", 70, outcome="void",
               kept="nothing"), one("B", 10))  # fmt: skip
    assert (seen.found, seen.distinct, seen.void, seen.void_bytes) == (3, 1, 2, 140)
    assert seen.stored_bytes == 10


def test_a_content_stored_before_it_was_known_as_meaningless_is_one_record() -> None:
    seen = row(one("A", 70), one("A", 70, outcome="void", kept="revisit"))
    assert (seen.distinct, seen.stored_bytes, seen.void) == (1, 70, 1)


def test_nothing_found_has_no_rate() -> None:
    assert row().success is None
    assert success_rate(0, 0) is None


@given(st.lists(st.builds(
    Finding, st.integers(0, 2), st.sampled_from(["", "A", "B", "C"]),
    st.sampled_from([str(outcome) for outcome in FOUND]), st.booleans(), st.booleans(),
    st.integers(0, 9),
)))  # fmt: skip
def test_groups_add_up(findings: list[Finding]) -> None:
    harvests = [Harvest(name=name) for name in "abc"]
    tally(sorted(finding.line() for finding in findings), harvests)
    everything = total(harvests)
    assert everything.found == len(findings)
    assert everything.bytes == sum(finding.size for finding in findings)
    assert everything.same + everything.identical + everything.void <= everything.found
    for place, harvest in enumerate(harvests):
        mine = [finding for finding in findings if finding.group == place]
        told = [finding for finding in mine if finding.outcome != "void"]
        wanted = len({finding.digest for finding in told} - {""})
        wanted += sum(1 for finding in told if not finding.digest)
        assert harvest.distinct == wanted
        assert [Finding.of(finding.line()) for finding in mine] == mine
