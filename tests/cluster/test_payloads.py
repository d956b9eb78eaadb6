"""What becomes of a payload, decided from facts: own copy, another's, void, or stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomi.archive.duplicates import Met, Original
from geomi.archive.names import sha1_b32
from geomi.cluster.context import Context, Plan
from geomi.cluster.payloads import JUDGED, Judge
from geomi.cluster.plan import site_rules
from geomi.config import load
from geomi.frontier.tables import Known
from geomi.records import Capture, Lease, Page
from geomi.states import Outcome

SETTINGS = load(Path("no-such-directory/geomi.toml"), [])
PLAN = Plan(agent="a0", incarnation=1, run=1, rules=lambda site: site_rules(SETTINGS, site))
BODY = b"x" * 1000
DIGEST = sha1_b32(BODY)
ELSEWHERE = Original(uri="http://b.example/", date="date b")
HTML = Page(mime="text/html")


class Known2:
    """Says one thing of every payload."""

    def __init__(self, met: Met) -> None:
        self._met = met

    def met(self, capture: Capture) -> Met:
        return self._met


def context(site: str = "a.example", site_id: int = 1, epoch: int = 1) -> Context:
    lease = Lease(site_id=site_id, site=site, epoch=epoch, until=1e9)
    return Context(lease, PLAN.rules(site), window=10, token=1, until=1e9)


def known(outcome: str = "OK", digest: str = DIGEST) -> Known:
    return Known(
        7, "http://a.example/x", 1, 1, 1, "a", "", 0, outcome, 0, 1, digest, "", "", "date a",
        "urn:uuid:a", digest, 2, 0.0, 0,
    )  # fmt: skip


def capture(
    *, code: int = 200, outcome: Outcome = Outcome.OK, truncated: str = "", url: str = "/x",
    head: bytes = b"",
) -> Capture:  # fmt: skip
    return Capture(
        ticket=1, url=f"http://a.example{url}", address="192.0.2.1", started=1.0, ended=2.0,
        outcome=outcome, code=code, head=head or b"HTTP/1.1 200 OK\r\n\r\n", body=BODY,
        truncated=truncated,
    )  # fmt: skip


def judge(original: Original | None = None, *, void: bool = False, number: int = 1) -> Judge:
    met = Met(digest=DIGEST, original=original, is_void=void)
    return Judge(PLAN, Known2(met), number=lambda: number)


def test_an_unchanged_page_refers_to_its_own_copy() -> None:
    verdict = judge(ELSEWHERE).verdict(context(), known(), capture(), HTML)
    assert verdict.is_own
    assert verdict.original is not None
    assert (verdict.original.uri, verdict.original.date, verdict.original.record_id) == (
        "http://a.example/x", "date a", "urn:uuid:a"
    )  # fmt: skip


def test_a_page_whose_copy_is_anothers_names_that_one() -> None:
    row = known()._replace(stored_url="http://b.example/y")
    verdict = judge().verdict(context(), row, capture(), HTML)
    assert verdict.original is not None
    assert verdict.original.uri == "http://b.example/y"


@pytest.mark.parametrize("outcome", ["gone", "code", "cut", "cErr", "deny", "skip"])
def test_after_anything_else_the_place_of_the_copy_is_asked_for(outcome: str) -> None:
    verdict = judge(ELSEWHERE).verdict(context(), known(outcome), capture(), HTML)
    assert (verdict.is_own, verdict.original) == (False, ELSEWHERE)


@pytest.mark.parametrize(
    "one",
    [
        capture(outcome=Outcome.CUT, truncated="length"),
        capture(outcome=Outcome.CODE, code=404, truncated="time"),
        capture(outcome=Outcome.D_ERR, truncated="disconnect"),
        capture(outcome=Outcome.CODE, code=304),
    ],
)
def test_what_is_not_whole_is_stored(one: Capture) -> None:
    assert judge(ELSEWHERE).verdict(context(), known(), one, HTML).original is None


def test_a_page_that_says_404_is_no_revisit_of_its_copy_that_said_200() -> None:
    one = capture(outcome=Outcome.CODE, code=404)
    assert judge().verdict(context(), known(), one, HTML).original is None


def test_a_fresh_payload_is_referred_to_by_the_same_lease_of_the_site_alone() -> None:
    number = 1
    met = Met(digest=DIGEST)
    decide = Judge(PLAN, Known2(met), number=lambda: number)
    first = Original(uri="http://a.example/1", date="d")
    from geomi.archive.duplicates import key_of

    decide.fresh.put(context(), key_of(DIGEST, code=200), first)
    row = known(digest="other")
    assert decide.verdict(context(), row, capture(), HTML).original is first
    assert decide.verdict(context(epoch=2), row, capture(), HTML).original is None
    assert decide.verdict(context(site_id=2), row, capture(), HTML).original is None
    number = 2
    assert decide.verdict(context(), row, capture(), HTML).original is first
    number = 3  # committed by now: the index knows it
    assert decide.verdict(context(), row, capture(), HTML).original is None


def test_redirects_that_lead_elsewhere_never_meet() -> None:
    decide = Judge(PLAN, Known2(Met(digest=DIGEST)), number=lambda: 1)
    heads = [b"HTTP/1.1 302 Found\r\nLocation: /%d\r\n\r\n" % n for n in (1, 2)]
    one, other = (capture(code=302, outcome=Outcome.CODE, head=head) for head in heads)
    from geomi.cluster.payloads import key_of_capture

    first = Original(uri="u", date="d")
    decide.fresh.put(context(), key_of_capture(one, DIGEST), first)
    assert decide.verdict(context(), known(), one, None).original is first
    assert decide.verdict(context(), known(), other, None).original is None


def test_a_confirmed_content_is_void_but_for_front_pages_other_types_and_each_hundredth() -> None:
    decide = judge(ELSEWHERE, void=True)
    assert decide.verdict(context(), known(), capture(), HTML).is_void
    assert not decide.verdict(context(), known(), capture(url="/"), HTML).is_void
    assert not decide.verdict(context(), known(), capture(), Page(mime="image/gif")).is_void
    assert not decide.verdict(context(), known(), capture(), None).is_void
    got = [decide.verdict(context(), known(), capture(), HTML).is_void for _ in range(2 * JUDGED)]
    assert got.count(False) == 2
