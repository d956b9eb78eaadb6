"""Rules of equal URLs: what they make of a URL, and what teaches them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.frontier.equivalences import (
    Numbered,
    Rule,
    applied,
    candidates,
    is_believed,
    parse,
    standing,
    weighed,
)

A = "http://a.example"


@pytest.mark.parametrize(
    ("rule", "url", "wanted"),
    [
        ("drop sid", "/x?sid=1", "/x"),
        ("drop sid", "/x?a=2&sid=1&b=3", "/x?a=2&b=3"),
        ("drop sid", "/x?a=2&sid", "/x?a=2"),
        ("drop sid", "/x?side=1", "/x?side=1"),
        ("drop sid", "/sid=1", "/sid=1"),
        ("order", "/x?b=1&a=2&b=0", "/x?a=2&b=1&b=0"),
        ("order", "/x", "/x"),
        ("index index.html", "/index.html", "/"),
        ("index index.html", "/d/index.html?a=1", "/d/?a=1"),
        ("index index.html", "/d/myindex.html", "/d/myindex.html"),
        ("slash", "/d/", "/d"),
        ("slash", "/d/?a=1", "/d?a=1"),
        ("slash", "/", "/"),
        ("slash", "/?a=/", "/?a=/"),
    ],
)
def test_a_rule_says_which_url_stands_for_one(rule: str, url: str, wanted: str) -> None:
    found = parse(rule)
    assert found is not None
    assert applied(found, A + url) == A + wanted
    assert str(found) == rule


def test_the_scheme_changes_where_the_port_does_not_tell() -> None:
    rule = Rule("scheme", "https")
    assert applied(rule, "http://a.example/x") == "https://a.example/x"
    assert applied(rule, "http://a.example:8080/x") == "http://a.example:8080/x"
    assert applied(rule, "http://[2001:db8::1]/x") == "https://[2001:db8::1]/x"
    assert applied(rule, "https://a.example/x") == "https://a.example/x"


@pytest.mark.parametrize(
    "text", ["", "drop", "order x", "slash /", "scheme", "scheme ftp", "www", "index", "Drop sid"]
)
def test_what_is_no_rule_is_told_apart(text: str) -> None:
    assert parse(text) is None


_URLS = st.builds(
    "{}://a.example/{}{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", "d", "d/", "index.html", "d/index.php", "d/e/"]),
    st.lists(st.sampled_from(["a=1", "b=2", "sid=3", "b", ""]), max_size=4).map(
        lambda words: "?" + "&".join(words) if words else ""
    ),
)


@given(_URLS, st.lists(_URLS, max_size=30))
def test_a_url_that_stands_for_others_stands_for_itself(url: str, others: list[str]) -> None:
    for rule in candidates([url, *others]):
        once = applied(rule, url)
        assert applied(rule, once) == once


def test_several_rules_are_applied_in_turn_and_the_first_gives_its_number() -> None:
    rules = [Numbered(3, Rule("drop", "sid")), Numbered(7, Rule("index", "index.html"))]
    assert standing(rules, f"{A}/index.html?sid=4") == (3, f"{A}/")
    assert standing(rules, f"{A}/index.html") == (7, f"{A}/")
    assert standing(rules, f"{A}/x") is None


def pairs(number: int, *, wrong: int = 0, contents: int = 100) -> list[tuple[str, str]]:
    """Pages with and without a session; so many of the pairs differ."""
    found = []
    for n in range(number):
        digest = f"d{n % contents}"
        found.append((f"{A}/p{n}", digest))
        found.append((f"{A}/p{n}?sid={n}", "other" if n < wrong else digest))
    return found


def test_a_rule_is_believed_for_many_right_pairs_of_several_contents() -> None:
    evidence = weighed(Rule("drop", "sid"), pairs(60))
    assert (evidence.support, evidence.against) == (60, 0)
    assert evidence.precision > 0.93
    assert evidence.example == (f"{A}/p0", f"{A}/p0?sid=0")
    assert is_believed(evidence, 0.9)


def test_few_pairs_or_a_wrong_share_are_not_enough() -> None:
    rule = Rule("drop", "sid")
    assert not is_believed(weighed(rule, pairs(5)), 0.9)
    wrong = weighed(rule, pairs(60, wrong=10))
    assert (wrong.support, wrong.against) == (50, 10)
    assert not is_believed(wrong, 0.9)
    assert wrong.example == (f"{A}/p0", f"{A}/p0?sid=0")


def test_one_content_for_all_urls_teaches_nothing() -> None:
    evidence = weighed(Rule("drop", "sid"), pairs(500, contents=1))
    assert evidence.support == 500
    assert not is_believed(evidence, 0.9)


def test_a_parameter_that_matters_is_not_believed() -> None:
    pages = [(f"{A}/list?page={n}", f"d{n}") for n in range(50)]
    evidence = weighed(Rule("drop", "page"), pages)
    assert (evidence.support, evidence.against) == (0, 49)
    assert evidence.precision == 0.0


def test_candidates_come_from_the_urls_of_the_site() -> None:
    assert set(map(str, candidates([f"{A}/d/index.html?b=1&a=2", "https://a.example/d/"]))) == {
        "drop a", "drop b", "order", "index index.html", "slash", "scheme https",
    }  # fmt: skip
    assert candidates([f"{A}/x"]) == []
