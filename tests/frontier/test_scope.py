from __future__ import annotations

import re

import pytest

from geomi.frontier.scope import Admission, Scope, prefix_of

URL = "http://example.org/docs/a?x=1"


def test_a_scope_without_limits_is_open_and_refuses_only_what_is_too_long() -> None:
    scope = Scope(max_url=30)
    assert scope.is_open
    assert scope.refusal(URL, "a", 10_000) == ""
    assert scope.refusal("http://example.org/" + "a" * 12, "a", 0) == "url_length"


@pytest.mark.parametrize(
    "scope",
    [
        Scope(prefixes=("example.org/",)),
        Scope(include=(re.compile("x"),)),
        Scope(exclude=(re.compile("x"),)),
        Scope(max_depth=0),
    ],
)
def test_a_scope_with_any_limit_is_not_open(scope: Scope) -> None:
    assert not scope.is_open


def test_the_refusal_names_the_limit() -> None:
    assert Scope(max_depth=2).refusal(URL, "a", 3) == "depth"
    assert Scope(prefixes=("example.org/other/",)).refusal(URL, "a", 0) == "prefix"
    assert Scope(include=(re.compile("/articles/"),)).refusal(URL, "a", 0) == "include"
    assert Scope(exclude=(re.compile("docs"),)).refusal(URL, "a", 0) == "exclude"


def test_the_greatest_depth_is_still_inside() -> None:
    assert Scope(max_depth=2).refusal(URL, "a", 2) == ""


def test_one_of_several_prefixes_or_includes_is_enough_and_one_exclude_refuses() -> None:
    scope = Scope(
        prefixes=("example.org/x/", "example.org/docs/"),
        include=(re.compile("nothing"), re.compile(r"/a\b")),
        exclude=(re.compile("nothing"), re.compile(r"y=")),
    )
    assert scope.refusal(URL, "a", 0) == ""
    assert scope.refusal(URL + "&y=1", "a", 0) == "exclude"


def test_a_requisite_follows_its_page_but_an_exclude_keeps_it_out() -> None:
    scope = Scope(
        prefixes=("example.org/other/",), include=(re.compile("nothing"),), max_depth=0,
        exclude=(re.compile(r"\.gif$"),),
    )  # fmt: skip
    assert scope.refusal("http://example.org/style.css", "e", 9) == ""
    assert scope.refusal("http://example.org/ad.gif", "e", 9) == "exclude"
    assert scope.refusal("http://example.org/frame", "f", 9) == "depth"


def test_http_and_https_are_one_prefix() -> None:
    scope = Scope(prefixes=("example.org/docs/",))
    assert scope.refusal("https://example.org/docs/", "a", 0) == ""
    assert scope.refusal("https://example.org/docsx", "a", 0) == "prefix"


@pytest.mark.parametrize(
    ("seed", "prefix"),
    [
        ("http://example.org/", "example.org/"),
        ("https://example.org/docs/", "example.org/docs/"),
        ("http://example.org/docs/index.html", "example.org/docs/"),
        ("http://example.org:81/a/b?path=/c/d", "example.org:81/a/"),
    ],
)
def test_the_prefix_of_a_seed_is_its_directory(seed: str, prefix: str) -> None:
    assert prefix_of(seed) == prefix


def test_without_rules_nobody_is_admitted() -> None:
    assert Admission().by_name("www.example.org", "example.org") == ""
    assert not Admission().needs_address


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        (Admission(sites=("www.example.go.kr",)), "list"),
        (Admission(sites=("*.example.go.kr",)), "list"),
        (Admission(sites=("www.example.go.kr:8080",)), "list"),
        (Admission(sites=("*.other.kr", "example.go.kr")), ""),
        (Admission(domains=frozenset({"example.go.kr"})), "domain"),
        (Admission(tlds=("kr",)), "tld"),
        (Admission(tlds=("go.kr",)), "tld"),
        (Admission(tlds=("o.kr",)), ""),
    ],
)
def test_a_rule_admits_by_name_and_says_which_it_was(rules: Admission, rule: str) -> None:
    assert rules.by_name("www.example.go.kr:8080", "example.go.kr") == rule


def test_a_star_does_not_admit_the_bare_name_or_a_name_that_only_ends_alike() -> None:
    rules = Admission(sites=("*.example.org",))
    assert rules.by_name("example.org", "example.org") == ""
    assert rules.by_name("badexample.org", "badexample.org") == ""
    assert rules.by_name("www.example.org", "example.org") == "list"


def test_a_literal_ipv6_site_is_admitted_by_its_own_name() -> None:
    rules = Admission(sites=("[2001:db8::1]",))
    assert rules.by_name("[2001:db8::1]", "") == "list"
    assert rules.by_name("[2001:db8::1]:8080", "") == "list"
    assert rules.by_name("[2001:db8::2]", "") == ""


def test_countries_and_networks_need_an_address() -> None:
    assert Admission(networks=("192.0.2.0/24",)).needs_address
    assert Admission(countries=frozenset({"KR"})).needs_address
