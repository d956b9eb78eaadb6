"""What two names must have in common to be one site, and what counts against it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi import url as urls
from geomi.frontier import aliases
from geomi.frontier.aliases import Again, Face, State, Tally, Twin, Verdict
from geomi.states import Outcome

A, B = "sha1:A", "sha1:B"


def page(
    digest: str = A, *, outcome: str = "OK", code: int = 200, visited: float = 1.0, visits: int = 1
) -> Twin:
    return Twin(outcome, code, digest, visited, visits)


def face(site_id: int, site: str, *, address: str = "192.0.2.1", pages: int = 5) -> Face:
    return Face(site_id, site, A, address, False, pages)


# -- who is compared -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "twin"),
    [
        ("a.example", "www.a.example", "www.a.example"),
        ("www.a.example", "a.example", "a.example"),
        ("a.example:81", "www.a.example:81", "www.a.example:81"),
        ("192.0.2.1", "", ""),
        ("[::1]:8080", "", ""),
    ],
)
def test_www_goes_in_front_of_names_alone(one: str, other: str, twin: str) -> None:
    assert aliases.www_twin(one) == twin == other


def test_names_need_a_reason_to_be_compared_besides_their_front_page() -> None:
    one = face(1, "a.example")
    every = ("www", "address", "content")
    assert aliases.relation(one, face(2, "www.a.example"), allowed=every) == "www"
    assert aliases.relation(one, face(2, "b.example"), allowed=every) == "address 192.0.2.1"
    far = face(2, "b.example", address="192.0.2.2")
    assert aliases.relation(one, far, allowed=every) == "content"
    assert aliases.relation(one, far, allowed=("www", "address")) == ""
    assert aliases.relation(one, face(2, "www.a.example:81"), allowed=every) == ""
    assert aliases.relation(one, one, allowed=every) == ""


def test_a_name_is_kept_before_an_address_and_the_larger_site_before_the_smaller() -> None:
    literal, named = face(1, "192.0.2.1", pages=9), face(2, "a.example", pages=1)
    assert aliases.kept(literal, named) is named
    large = face(3, "b.example", pages=7)
    assert aliases.kept(named, large) is large is aliases.kept(large, named)
    given = named._replace(is_given=True)
    assert aliases.kept(given, large) is given
    assert aliases.kept(face(5, "x.example"), face(4, "y.example")).site_id == 4


# -- one page --------------------------------------------------------------------------------------


def test_equal_contents_agree_whatever_their_code() -> None:
    assert aliases.compared(page(), page(), again=None) is Verdict.AGREE
    assert aliases.compared(page(), page(outcome="same", code=304), again=None) is Verdict.AGREE


@pytest.mark.parametrize("outcome", ["NULL", "noIP", "hTim", "dErr"])
def test_what_fails_or_was_not_asked_is_waited_for(outcome: str) -> None:
    assert aliases.compared(page(), page(outcome=outcome, code=0), again=None) is Verdict.OPEN


def test_a_busy_server_says_nothing_yet() -> None:
    busy = page(outcome="code", code=503)
    assert aliases.compared(page(), busy, again=None) is Verdict.OPEN


@pytest.mark.parametrize("outcome", ["deny", "skip", "bad"])
def test_what_may_not_be_asked_says_nothing(outcome: str) -> None:
    assert aliases.compared(page(), page(outcome=outcome, code=0), again=None) is Verdict.UNKNOWN


def test_two_pages_without_content_say_nothing() -> None:
    missing = page(outcome="code", code=404)
    moved = page(outcome="code", code=301)
    assert aliases.compared(missing, moved, again=None) is Verdict.UNKNOWN


def test_a_difference_counts_once_the_older_visit_was_made_again() -> None:
    kept, alias = page(A, visited=1), page(B, visited=2)
    again = aliases.compared(kept, alias, again=None)
    assert again == Again(of_alias=False, visits=1, was=A)
    assert aliases.compared(kept, alias, again=again) is Verdict.OPEN
    assert aliases.compared(page(A, visits=2), alias, again=again) is Verdict.DIFFER


def test_a_page_that_changed_between_two_visits_agrees_if_it_is_equal_now() -> None:
    alias = page(B, visited=2)
    again = aliases.compared(page(A, visited=1), alias, again=None)
    assert isinstance(again, Again)
    assert aliases.compared(page(B, visits=2), alias, again=again) is Verdict.AGREE


def test_a_page_that_changes_at_every_visit_says_nothing() -> None:
    alias = page(B, visited=2)
    again = aliases.compared(page(A, visited=1), alias, again=None)
    assert isinstance(again, Again)
    assert aliases.compared(page("sha1:C", visits=2), alias, again=again) is Verdict.UNKNOWN


def test_content_beside_a_missing_page_is_a_difference() -> None:
    kept, alias = page(visited=2), page(outcome="code", code=404, visited=1)
    again = aliases.compared(kept, alias, again=None)
    assert again == Again(of_alias=True, visits=1, was="code 404")
    later = alias._replace(visits=2, outcome=str(Outcome.GONE))
    assert aliases.compared(kept, later, again=again) is Verdict.UNKNOWN
    assert aliases.compared(kept, alias._replace(visits=2), again=again) is Verdict.DIFFER


# -- the sample ------------------------------------------------------------------------------------


def test_a_sample_that_agrees_merges_and_one_difference_refuses() -> None:
    def judged(**counts: int) -> State:
        return aliases.judged(Tally(**counts), sample=5, share=1.0)

    assert judged(agree=4) is State.TESTING
    assert judged(agree=5) is State.MERGING
    assert judged(agree=4, differ=1) is State.REFUSED
    assert judged(differ=1) is State.REFUSED
    assert judged(agree=4, unknown=20) is State.REFUSED
    assert judged(agree=5, unknown=19) is State.MERGING


def test_with_a_share_below_one_some_may_differ() -> None:
    assert aliases.judged(Tally(agree=4, differ=1), sample=5, share=0.8) is State.MERGING
    assert aliases.judged(Tally(agree=3, differ=1), sample=5, share=0.8) is State.TESTING
    assert aliases.judged(Tally(agree=3, differ=2), sample=5, share=0.8) is State.REFUSED


counts = st.integers(0, 30)


@given(counts, counts, counts, st.integers(1, 20), st.floats(0.05, 1))
def test_nothing_is_merged_below_the_share(
    agree: int, differ: int, unknown: int, sample: int, share: float
) -> None:
    tally = Tally(agree, differ, unknown)
    if aliases.judged(tally, sample=sample, share=share) is State.MERGING:
        assert agree + differ >= sample
        assert agree >= share * (agree + differ)


def test_pages_that_both_have_come_first_and_one_content_counts_once() -> None:
    kept = {"/a": "1", "/b": "2", "/c": "3", "/same": "1", "/front": "F"}
    alias = {"/b": "2", "/d": "4", "/c": "3"}
    chosen = aliases.sampled(
        kept, alias, front="F", tested=["/c"], number=9, hashed=lambda url: ord(url[1])
    )
    assert chosen == ["/b", "/a", "/d"]


def test_a_server_with_one_answer_to_every_question_gives_no_sample() -> None:
    lost = {f"/{n}": "F" for n in range(9)}
    assert not aliases.sampled(lost, lost, front="F", tested=[], number=5, hashed=urls.url_hash)


def test_each_turn_begins_elsewhere_and_within_all_hashes() -> None:
    begins = [aliases.part_begins(turn) for turn in range(64)]
    assert len(set(begins)) == 64
    assert all(-(1 << 63) <= one < 1 << 63 for one in begins)
    gaps = [b - a for a, b in pairwise(sorted(begins))]
    assert max(gaps) < 4 * (1 << 64) // 64
