"""robots.txt by RFC 9309, with what the public suites (Google's, crawler-commons') ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.fetch.robots import LIMIT_BYTES, Robots, from_status, whole_lines


def allows(body: str | bytes, target: str, agent: str = "FooBot") -> bool:
    raw = body.encode() if isinstance(body, str) else body
    robots = Robots.parse(raw)
    answer = robots.for_agent(agent).allows(target)
    assert robots.allowed(agent, target).allowed == answer
    return answer


def closed_but(allow: str) -> str:
    return f"user-agent: FooBot\ndisallow: /\nallow: {allow}\n"


# --- lines ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "user-agent: FooBot\ndisallow: /\n",
        "USER-AGENT: foobot\nDISALLOW: /\n",
        "uSeR-aGeNt:FOOBOT\ndIsAlLoW:/\n",
        "  \tUser-Agent \t : FooBot \t\n\t Disallow\t:\t/  \n",
        "user-agent FooBot\ndisallow /\n",
        "user-agent\tFooBot\ndisallow\t /\n",
        "useragent: FooBot\ndisallow: /\n",
        "user agent: FooBot\ndisallow: /\n",
        "User-agent: FooBot # us\nDisallow: / # all of it\n",
        "User-agent: FooBot\nDisallow: /",
        "User-agent: FooBot\x00\nDisallow: /\x00\n",
        "User-agent: FooBot\n\n\nDisallow: /\n",
        "junk\n<html>\n:\n: /\nUser-agent: FooBot\nmore junk here\nDisallow: /\n",
        *(
            f"user-agent: FooBot\n{typo}: /\n"
            for typo in ("dissallow", "dissalow", "disalow", "diasllow", "disallaw")
        ),
    ],
)
def test_a_rule_is_read_however_it_is_spelled(body: str) -> None:
    assert not allows(body, "/x/y")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\n\n",
        "foo: FooBot\nbar: /\n",
        "disallow: /\n",
        "disallow: /\nuser-agent: FooBot\n",
        "user-agent: FooBot\n# disallow: /\n",
        "# user-agent: FooBot\ndisallow: /\n",
        "user-agent: FooBot\ndisallow:\n",
        "user-agent: FooBot\ndisallow: # /\n",
        "user-agent: FooBot\ndisallow / and more\n",
        "user-agent:\ndisallow: /\n",
        "user-agent: BarBot\ndisallow: /\n",
        "user-agent: FooBot\nallow:\n",
        "user-agent: FooBot\ndisallow: x\n",
        "user-agent: FooBot\ndisallow: http://foo.bar/x\n",
        "<html><title>Not found</title></html>",
    ],
)
def test_what_is_no_rule_for_us_allows(body: str) -> None:
    assert allows(body, "/x/y")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
def test_lines_are_counted_alike_for_every_line_end(end: str, last: str) -> None:
    lines = ["User-Agent: foo", "Allow: /some/path", "User-Agent: bar", "", "", "Disallow: /"]
    body = end.join(lines) + (end if last else "")
    assert Robots.parse(body.encode()).allowed("bar", "/x") == (False, 6, "Disallow: /")


def test_lines_are_counted_in_a_file_of_mixed_line_ends() -> None:
    body = b"User-Agent: foo\nAllow: /some/path\r\nUser-Agent: bar\n\r\n\nDisallow: /"
    assert Robots.parse(body).allowed("bar", "/x").line == 6


@pytest.mark.parametrize("bom", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_a_byte_order_mark_even_a_torn_one_is_skipped(bom: bytes) -> None:
    assert not allows(bom + b"User-Agent: foo\nDisallow: /AnyValue\n", "/AnyValue", "foo")


def test_a_wrong_byte_order_mark_spoils_only_its_line() -> None:
    assert allows(b"\xef\x11\xbfUser-Agent: foo\nDisallow: /\n", "/", "foo")
    assert allows(b"User-Agent: foo\n\xef\xbb\xbfDisallow: /a\nDisallow: /b\n", "/a", "foo")
    assert not allows(b"User-Agent: foo\n\xef\xbb\xbfDisallow: /a\nDisallow: /b\n", "/b", "foo")


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_saved_as_utf_16_is_read(codec: str) -> None:
    body = "\ufeffUser-agent: *\r\nDisallow: /x\r\n".encode(codec)
    assert not allows(body.removeprefix(b"\xff\xfe") if codec == "utf-16" else body, "/x")


def test_a_verdict_names_the_line_and_its_text() -> None:
    robots = Robots.parse(b"User-agent: *\n\nDisallow: /a # why\nAllow: /a/b\n")
    assert robots.allowed("geomi", "/a/c") == (False, 3, "Disallow: /a # why")
    assert robots.allowed("geomi", "/a/b") == (True, 4, "Allow: /a/b")
    assert robots.allowed("geomi", "/c") == (True, 0, "")


# --- groups -----------------------------------------------------------------------------------

GROUPS = """\
allow: /foo/bar/

user-agent: FooBot
disallow: /
allow: /x/
user-agent: BarBot
disallow: /
allow: /y/


allow: /w/
user-agent: BazBot

user-agent: FooBot
allow: /z/
disallow: /
"""


@pytest.mark.parametrize(
    ("agent", "target", "expected"),
    [
        ("FooBot", "/x/b", True),
        ("FooBot", "/z/d", True),
        ("FooBot", "/y/c", False),
        ("BarBot", "/y/c", True),
        ("BarBot", "/w/a", True),
        ("BarBot", "/z/d", False),
        ("BazBot", "/z/d", True),
        ("FooBot", "/foo/bar/", False),
        ("BarBot", "/foo/bar/", False),
        ("BazBot", "/foo/bar/", False),
        ("QuxBot", "/y/c", True),
    ],
)
def test_groups_of_one_agent_are_one_group(agent: str, target: str, expected: bool) -> None:
    assert allows(GROUPS, target, agent) is expected


@pytest.mark.parametrize(
    "between", ["Sitemap: https://foo.bar/s", "Unknown: x", "Crawl-delay: 5", "", "# c", "junk"]
)
def test_a_line_that_is_no_rule_does_not_end_the_run_of_agents(between: str) -> None:
    body = f"User-agent: BarBot\n{between}\nUser-agent: *\nDisallow: /\n"
    assert not allows(body, "/", "BarBot")
    assert not allows(body, "/", "FooBot")


def test_an_unknown_line_among_rules_does_not_end_the_group() -> None:
    assert not allows("User-agent: FooBot\nAllow: /a\nHost: x\nDisallow: /b\n", "/b")


def test_an_empty_disallow_ends_the_run_of_agents() -> None:
    body = "User-agent: FooBot\nDisallow:\nUser-agent: BarBot\nDisallow: /\n"
    assert allows(body, "/x", "FooBot")
    assert not allows(body, "/x", "BarBot")


def test_a_specific_group_does_not_inherit_from_everyone() -> None:
    body = "User-agent: *\nDisallow: /x/\nUser-agent: FooBot\nDisallow: /y/\n"
    assert allows(body, "/x/page")
    assert not allows(body, "/y/page")
    assert not allows(body, "/x/page", "BarBot")


def test_a_group_without_rules_allows_its_agent_everything() -> None:
    assert allows("User-agent: *\nDisallow: /\nUser-agent: FooBot\n", "/x")


def test_groups_for_everyone_are_merged_wherever_they_stand() -> None:
    body = (
        "User-agent: *\nDisallow: /a\nUser-agent: Bar\nDisallow: /\nUser-agent: *\nDisallow: /b\n"
    )
    assert not allows(body, "/a")
    assert not allows(body, "/b")
    assert allows(body, "/c")


TWO_WORDS = "User-Agent: *\nDisallow: /\nUser-Agent: Foo Bar\nAllow: /x/\nDisallow: /\n"


def test_an_agent_line_counts_up_to_its_first_space_but_two_words_are_no_agent() -> None:
    assert allows(TWO_WORDS, "/x/y", "Foo")
    assert not allows(TWO_WORDS, "/x/y", "Foo Bar")


@pytest.mark.parametrize("line", ["geomi", "GEOMI", "geomi/1.0", "geomi 1.0", "geomi2", "geomi*"])
def test_the_letters_at_the_start_of_an_agent_line_are_the_agent(line: str) -> None:
    body = f"User-agent: {line}\nDisallow: /x\n"
    assert not allows(body, "/x", "geomi")
    assert not allows(body, "/x", "Geomi/0.1 (+https://example.org/bot)")
    assert allows(body, "/x", "geom")
    assert allows(body, "/x", "geomi-images")


def test_an_agent_whose_name_has_digits_finds_its_own_group() -> None:
    body = "User-agent: Agent1\nDisallow: /a\nUser-agent: Agent2\nDisallow: /b\n"
    assert not allows(body, "/a", "Agent1")
    assert allows(body, "/b", "Agent1")


@pytest.mark.parametrize("line", ["*", "* ", "* # all", "* everyone", "*<BR>", "*\u00a0", "*,"])
def test_a_star_is_everyone(line: str) -> None:
    assert not allows(f"User-agent: {line}\nDisallow: /x\n", "/x")


def test_a_star_before_a_name_is_nobody() -> None:
    assert allows("User-agent: *Bot\nDisallow: /x\n", "/x")


def test_an_empty_agent_is_everyone() -> None:
    assert allows("user-agent: FooBot\ndisallow: /\n", "", "")
    assert not allows("user-agent: *\ndisallow: /\n", "", "")


# --- the longest match ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "target", "expected"),
    [
        ("disallow: /x/page.html|allow: /x/", "/x/page.html", False),
        ("allow: /x/page.html|disallow: /x/", "/x/page.html", True),
        ("allow: /x/page.html|disallow: /x/", "/x/", False),
        ("disallow: |allow: ", "/x/page.html", True),
        ("disallow: /|allow: /", "/x/page.html", True),
        ("allow: /|disallow: /", "/x/page.html", True),
        ("disallow: /x|allow: /x/", "/x", False),
        ("disallow: /x|allow: /x/", "/x/", True),
        ("disallow: /x/page.html|allow: /x/page.html", "/x/page.html", True),
        ("allow: /page|disallow: /*.html", "/page.html", False),
        ("allow: /page|disallow: /*.html", "/page", True),
        ("allow: /x/page.|disallow: /*.html", "/x/page.html", True),
        ("allow: /x/page.|disallow: /*.html", "/x/y.html", False),
        ("allow: /p|disallow: /", "/page", True),
        ("allow: /folder|disallow: /folder", "/folder/page", True),
        ("allow: /page|disallow: /*.htm", "/page.htm", False),
        ("allow: /page|disallow: /*.ph", "/page.php5", True),
        ("allow: /$|disallow: /", "/", True),
        ("allow: /$|disallow: /", "/page.html", False),
        ("allow: /x$|disallow: /x", "/x", True),
        ("disallow: /fish**|allow: /fishh", "/fishheads", False),
        ("disallow: /fish*|allow: /fishh", "/fishheads", True),
        ("disallow: /x/|disallow: /X/", "/x/y", False),
        ("disallow: /X/", "/x/y", True),
        # RFC 9309, 5.2
        ("allow: /example/page/|disallow: /example/page/disallowed.gif", "/example/page/a", True),
        (
            "allow: /example/page/|disallow: /example/page/disallowed.gif",
            "/example/page/disallowed.gif",
            False,
        ),
    ],
)
def test_the_longest_rule_wins_and_allow_wins_ties(rules: str, target: str, expected: bool) -> None:
    lines = rules.split("|")
    for order in (lines, lines[::-1]):
        assert allows("user-agent: FooBot\n" + "\n".join(order), target) is expected


FISH = {
    "/fish": (
        "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=any",
        "/Fish.asp /catfish /?id=fish /bar /fis",
    ),
    "/fish*": (
        "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=any",
        "/Fish.asp /catfish /?id=fish /bar /fis",
    ),
    "/fish/": (
        "/fish/ /fish/salmon /fish/?salmon /fish/salmon.html /fish/?id=anything",
        "/fish /fish.html /Fish/Salmon.html /bar",
    ),
    "/*.php": (
        "/filename.php /folder/filename.php /folder/filename.php?parameters "
        "//folder/any.php.file.html /filename.php/ /index?f=filename.php/",
        "/bar /php/ /index?php /windows.PHP",
    ),
    "*.php": ("/filename.php /folder/filename.php?parameters", "/bar /php/"),
    "/*.php$": (
        "/filename.php /folder/filename.php",
        "/bar /filename.php?parameters /filename.php/ /filename.php5 /php/ /filename?php "
        "/aaaphpaaa //windows.PHP",
    ),
    "/fish*.php": (
        "/fish.php /fishheads/catfish.php?parameters /fish.php.php",
        "/Fish.PHP /bar /fish.ph",
    ),
    "/*fish*.php": ("/fish.php /superfishheads/catfish.php?p", "/fishheads/catfish.htm"),
    "/a*b*a$": ("/aba /abba /axbxa /abaaba", "/ab /aba/ /aa /ba"),
    "/a*$": ("/a /ab /a/b?c", "/b"),
    "/*$": ("/ /a", ""),
    "*": ("/ /a?b", ""),
    "/a$b": ("/a$b /a$bc", "/a /ab"),
    "/a$$": ("/a$", "/a /a$b"),
    "/a$*": ("/a$ /a$b", "/a /ab"),
    "/***a": ("/a /xa /x/ab", "/x"),
    "/ab*ba$": ("/abba /abxba", "/aba /ab"),
}


@pytest.mark.parametrize("pattern", FISH)
def test_stars_and_dollars_match_as_documented(pattern: str) -> None:
    matched, unmatched = FISH[pattern]
    for target in matched.split():
        assert allows(closed_but(pattern), target), target
        assert not allows(f"user-agent: *\ndisallow: {pattern}", target), target
    for target in unmatched.split():
        assert not allows(closed_but(pattern), target), target
        assert allows(f"user-agent: *\ndisallow: {pattern}", target), target


def test_a_comment_may_touch_the_path() -> None:
    body = "User-agent: FooBot\n# Disallow: /\nDisallow: /foo/quz#qux\nAllow: /\n"
    assert allows(body, "/foo/bar")
    assert not allows(body, "/foo/quz")


def test_robots_txt_itself_is_always_allowed() -> None:
    body = "User-agent: *\nDisallow: /\nDisallow: /robots.txt\n"
    assert allows(body, "/robots.txt")
    assert not allows(body, "/robots.txt.bak")
    assert Robots.DENY_ALL.for_agent("x").allows("/robots.txt")


def test_an_empty_target_is_the_front_page() -> None:
    assert not allows("user-agent: *\ndisallow: /$\n", "")
    assert allows("user-agent: *\ndisallow: /\nallow: /?a\n", "?a")


def test_an_allowed_index_html_allows_its_directory() -> None:
    body = "User-Agent: *\nAllow: /allowed-slash/index.html\nDisallow: /\n"
    assert allows(body, "/allowed-slash/")
    assert allows(body, "/allowed-slash/index.html")
    assert not allows(body, "/allowed-slash/index.htm")
    assert not allows(body, "/allowed-slash/other")
    assert not allows(body, "/anyother-url")
    assert allows("User-Agent: *\nDisallow: /d/index.html\n", "/d/")


# --- percent-encoding -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/ツ"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7a"),
        (
            "/foo/bar?qux=taz&baz=http://foo.bar?tar&par",
            "/foo/bar?qux=taz&baz=http://foo.bar?tar&par",
        ),
        ("/*u=https://x", "/p?u=https://x"),
        ("/%7Emak", "/~mak"),
        ("/~mak", "/%7emak/mak.html"),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
        ("/path/foo-%24", "/path/foo-$"),
        ("/a(b)", "/a%28b%29"),
        ("/a%5Bb%5D", "/a[b]"),
        ("/a b", "/a%20b"),
        ("/a|b", "/a%7Cb"),
        ("/100%", "/100%25"),
        ("/100%25", "/100%"),
        ("/%ED%95%9C", "/한국"),
    ],
)
def test_spellings_of_one_path_are_one_path(pattern: str, target: str) -> None:
    assert not allows(f"user-agent: *\ndisallow: {pattern}\n", target)


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("/a%2Fb", "/a/b"),
        ("/a/b", "/a%2Fb"),
        ("/a?b", "/a%3Fb"),
        ("/a%26b", "/a&b"),
        ("/a%2Ab", "/axb"),
        ("/a%24", "/a"),
        ("/%4", "/A"),
        ("/Foo", "/foo"),
    ],
)
def test_spellings_of_different_paths_stay_different(pattern: str, target: str) -> None:
    assert allows(f"user-agent: *\ndisallow: {pattern}\n", target)


def test_a_rule_in_another_charset_matches_the_path_in_that_charset() -> None:
    assert not allows(b"user-agent: *\ndisallow: /\xc7\xd1\n", "/%C7%D1")


def test_an_encoded_letter_does_not_make_a_rule_longer() -> None:
    body = "user-agent: *\ndisallow: /%61%61\nallow: /*aaa\n"
    assert allows(body, "/aaa")


# --- limits -----------------------------------------------------------------------------------


def test_at_least_500_kib_are_read_and_a_torn_line_is_ignored() -> None:
    head = b"user-agent: *\n"
    last = b"disallow: /last\n"
    filler = b"#" * (500 * 1024 - len(head) - len(last) - 1) + b"\n"
    assert not allows(head + filler + last, "/last")
    assert not allows(head + filler + last + b"disallow: /beyond\n", "/last")
    assert allows(head + filler + last + b"disallow: /beyond\n", "/beyond")
    assert LIMIT_BYTES >= 500 * 1024


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_file_cut_anywhere_gives_only_whole_lines(end: bytes) -> None:
    lines = [b"user-agent: *", b"allow: /a", b"disallow: /abc", b"disallow: /b"]
    body = end.join(lines) + end
    for limit in range(len(body) + 2):
        whole = body[:limit].count(b"b" + end) + body[:limit].count(b"c" + end)
        rules = Robots.parse(body, limit_bytes=limit).for_agent("x")
        assert rules.allows("/ab")
        assert rules.allows("/b") or whole >= 1
        verdict = rules.verdict("/abc")
        assert verdict.text in ("", "allow: /a", "disallow: /abc")


@pytest.mark.parametrize("limit", range(30))
def test_lines_within_a_limit_are_whole(limit: int) -> None:
    body = b"allow: /a\ndisallow: /b\r\n"
    assert whole_lines(body, limit) in (
        b"",
        b"allow: /a\n",
        b"allow: /a",
        body,
        body[:-1],
        body[:-2],
    )
    assert (whole_lines(body, limit) == body) == (limit >= len(body))


def test_a_hundred_megabytes_are_cut() -> None:
    body = b"user-agent: *\ndisallow: /a\n" + bytes(1_000_000) + b"\ndisallow: /b\n"
    assert not allows(body, "/a")
    assert allows(body, "/b")


def test_a_line_too_long_is_cut_as_google_does() -> None:
    long = "/x/" + "a" * (8 * 2083)
    body = f"user-agent: FooBot\ndisallow: {long}/qux\n"
    assert allows(body, "/fux")
    assert not allows(body, long + "/fux")


def test_very_many_rules_give_the_same_answers() -> None:
    body = "user-agent: *\n" + "".join(
        f"disallow: /p{n}/\nallow: /p{n}/*.css$\n" for n in range(0, 100_000, 2)
    )
    rules = Robots.parse(body.encode(), limit_bytes=10**8).for_agent("x")
    assert not rules.allows("/p99998/a.html")
    assert rules.allows("/p99998/a.css")
    assert not rules.allows("/p99998/a.css?")
    assert rules.allows("/p99997/a.html")


def test_very_many_rules_with_stars_keep_their_order() -> None:
    body = "user-agent: *\n" + "".join(
        f"disallow: /*k{n:05}\nallow: /x*k{n:05}\ndisallow: /x*y*k{n:05}$\n" for n in range(5_000)
    )
    rules = Robots.parse((body + "disallow: /*z\n").encode()).for_agent("x")
    assert not rules.allows("/a/k00777")
    assert rules.allows("/x/k00777")
    assert not rules.allows("/xyk00777")
    assert rules.allows("/xyk00777/")
    assert rules.allows("/a/k9")
    assert not rules.allows("/z")
    assert rules.allows("/xz/k04999")


def test_very_many_agents_with_very_many_rules_share_them() -> None:
    body = "".join(f"user-agent: {'a' * (n % 50)}b{n}\n" for n in range(9_000))
    body += "".join(f"disallow: /{n}\n" for n in range(9_000))
    assert not allows(body.encode(), "/7", "b0")


def test_many_stars_match_without_stepping_back() -> None:
    body = "user-agent: *\ndisallow: /" + "*a" * 2_000 + "b$\n"
    assert allows(body, "/" + "a" * 20_000)
    assert not allows(body, "/" + "a" * 20_000 + "b")


# --- the rest of the file ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "delay_s"),
    [
        ("10", 10.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("2.", 2.0),
        ("0", 0.0),
        ("30<BR>", 30.0),
        ("5 seconds", 5.0),
        ("fast", None),
        ("-5", None),
        ("", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_a_crawl_delay_is_a_number_of_seconds_or_nothing(value: str, delay_s: float | None) -> None:
    robots = Robots.parse(f"User-agent: *\nCrawl-Delay: {value}\nDisallow: /x\n".encode())
    assert robots.for_agent("geomi").crawl_delay_s == delay_s
    assert robots.for_agent("geomi").allows("/")


def test_a_crawl_delay_of_any_length_is_a_finite_number() -> None:
    rules = Robots.parse(b"User-agent: *\nCrawl-delay: " + b"9" * 400).for_agent("geomi")
    assert rules.crawl_delay_s == 999_999_999.0


def test_a_crawl_delay_belongs_to_its_group_and_the_largest_counts() -> None:
    robots = Robots.parse(
        b"Crawl-delay: 99\nUser-agent: a\nCrawl-delay: 3\nDisallow: /x\n"
        b"User-agent: *\nDisallow: /y\nCrawl-delay: 7\nUser-agent: a\nAllow: /\nCrawl-delay: 2\n"
    )
    assert robots.for_agent("a").crawl_delay_s == 3.0
    assert robots.for_agent("b").crawl_delay_s == 7.0
    assert Robots.parse(b"User-agent: a\nDisallow: /\n").for_agent("a").crawl_delay_s is None


def test_sitemaps_belong_to_the_whole_file() -> None:
    robots = Robots.parse(
        b"Sitemap: https://a.example/1.xml\nUser-agent: x\nsitemap:https://a.example/2.xml # b\n"
        b"Disallow: /\nSITE-MAP: /\xed\x95\x9c.xml\nSitemap:\n"
    )
    assert robots.sitemaps == ("https://a.example/1.xml", "https://a.example/2.xml", "/한.xml")


def test_content_signals_are_kept_as_they_stand() -> None:
    robots = Robots.parse(
        b"User-agent: *\nContent-Signal: search=yes, ai-train=no\n"
        b"Content-Usage: /a train-ai=n\nAllow: /\nUser-agent: x\nDisallow:\n"
    )
    assert robots.for_agent("geomi").content_signals == (
        "Content-Signal: search=yes, ai-train=no",
        "Content-Usage: /a train-ai=n",
    )
    assert robots.for_agent("x").content_signals == ()


def test_without_a_file_all_or_nothing_is_allowed() -> None:
    assert Robots.ALLOW_ALL.allowed("geomi", "/x") == (True, 0, "")
    assert Robots.DENY_ALL.allowed("geomi", "/x") == (False, 0, "")


@pytest.mark.parametrize(
    ("codes", "meaning"),
    [
        ((200, 203, 204, 206), "parse"),
        ((301, 302, 308, 400, 401, 403, 404, 410, 418, 451, 499), "allow"),
        ((429, 500, 502, 503, 504, 599, 0, 100, 103, 600, 999), "deny"),
    ],
)
def test_an_answer_means_rules_no_rules_or_no_entry(codes: tuple[int, ...], meaning: str) -> None:
    assert {from_status(code) for code in codes} == {meaning}


# --- anything ---------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["User-agent: *", "User-agent: geomi", "Disallow: /", "Allow: /a", "Disallow: /a*b$", "", "#",
     "Disallow: /%", "Allow: /?", "Disallow:", "Crawl-delay: 1", "x", "Disallow: /b?c=/d"]
)  # fmt: skip
TARGETS = st.text("/abc?%*$=d", max_size=12)


@given(st.binary(max_size=200), st.text(max_size=30), st.text(max_size=30))
def test_any_bytes_are_read_and_any_target_is_answered(
    body: bytes, agent: str, target: str
) -> None:
    for start in (b"", b"user-agent: *\ndisallow: /", b"\xff\xfe", b"\xfe\xff"):
        robots = Robots.parse(start + body, limit_bytes=150)
        assert robots.allowed(agent, target).allowed is robots.for_agent(agent).allows(target)


@given(st.lists(PIECES, max_size=12), TARGETS)
def test_line_ends_do_not_change_a_verdict(lines: list[str], target: str) -> None:
    verdicts = {
        Robots.parse(end.join(lines).encode() + tail).allowed("geomi", target)
        for end in ("\n", "\r\n", "\r")
        for tail in (b"", end.encode())
    }
    assert len(verdicts) == 1


def _plain_match(pattern: str, target: str) -> bool:
    """A slow and obvious matcher to compare with: every way to place a star."""
    if not pattern:
        return True
    if pattern == "$":
        return not target
    if pattern[0] == "*":
        return any(_plain_match(pattern[1:], target[at:]) for at in range(len(target) + 1))
    return bool(target) and target[0] == pattern[0] and _plain_match(pattern[1:], target[1:])


@given(
    st.lists(st.tuples(st.booleans(), st.text("ab*", max_size=6), st.booleans()), max_size=40),
    st.text("ab", max_size=8),
)
def test_the_index_answers_as_trying_every_rule_does(
    rules: list[tuple[bool, str, bool]], path: str
) -> None:
    target = "/" + path
    patterns = [(allow, "/" + text + "$" * end) for allow, text, end in rules]
    body = "user-agent: *\n" + "".join(
        f"{'allow' if allow else 'disallow'}: {pattern}\n" for allow, pattern in patterns
    )
    matching = [(len(p), allow) for allow, p in patterns if _plain_match(p, target)]
    assert allows(body, target) is (max(matching)[1] if matching else True)
