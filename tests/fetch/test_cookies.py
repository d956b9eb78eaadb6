"""The jar: what servers may set, and what comes back to whom."""

from __future__ import annotations

import calendar
import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.fetch.cookies import Jar, date, for_host, parse, parse_file, set_by

URL = "https://www.a.example/dir/page?q=/x/y"
NOW = 1_795_036_560.0


def jar(*lines: str, url: str = URL) -> Jar:
    kept = Jar()
    kept.take(lines, url, NOW)
    return kept


@pytest.mark.parametrize(
    ("line", "url", "header"),
    [
        ("a=b", "https://www.a.example/dir/x", "a=b"),
        ("a=b", "https://www.a.example/dir", "a=b"),
        ("a=b", "https://www.a.example/", ""),
        ("a=b", "https://www.a.example/dirs", ""),
        ("a=b; Path=/", "http://www.a.example/", "a=b"),
        ("a=b; Path=/", "https://a.example/", ""),
        ("a=b; Path=/", "https://x.www.a.example/", ""),
        ("a=b; Path=/; Domain=a.example", "https://x.a.example/", "a=b"),
        ("a=b; Path=/; Domain=.A.Example", "https://a.example/", "a=b"),
        ("a=b; Path=/; Domain=b.example", "https://b.example/", ""),
        ("a=b; Path=/; Domain=xa.example", "https://xa.example/", ""),
        ("a=b; Path=/; Domain=x.www.a.example", "https://x.www.a.example/", ""),
        ("a=b; Path=/; Domain=example", "https://b.example/", ""),
        ("a=b; Path=/; Secure", "http://www.a.example/", ""),
        ("a=b; Path=/; secure", "https://www.a.example/", "a=b"),
        ("a=b; Path=/x/", "https://www.a.example/x/y", "a=b"),
        ("a=b; Path=/x/", "https://www.a.example/x", ""),
        ("a=b; Path=x", "https://www.a.example/dir/", "a=b"),
        (" a = b c ; Path=/", "https://www.a.example/", "a=b c"),
        ('a="b"; Path=/', "https://www.a.example/", 'a="b"'),
        ("a=b=c; Path=/", "https://www.a.example/", "a=b=c"),
        ("a; Path=/", "https://www.a.example/", "a"),
        ("=a; Path=/", "https://www.a.example/", "a"),
        ("=; Path=/", "https://www.a.example/", ""),
        ("", "https://www.a.example/dir/", ""),
        ("a=b\r\nX: y; Path=/", "https://www.a.example/", ""),
        ("a=\0; Path=/", "https://www.a.example/", ""),
        ("a=b; Path=/; Max-Age=0", "https://www.a.example/", ""),
        ("a=b; Path=/; Max-Age=-9", "https://www.a.example/", ""),
        ("a=b; Path=/; Max-Age=x", "https://www.a.example/", "a=b"),
        ("a=b; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "https://www.a.example/", ""),
        ("a=b; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9",
         "https://www.a.example/", "a=b"),
        ("a=b; Path=/; Expires=never", "https://www.a.example/", "a=b"),
        ("__Secure-a=b; Path=/", "https://www.a.example/", ""),
        ("__Secure-a=b; Path=/; Secure", "https://www.a.example/", "__Secure-a=b"),
        ("__Host-a=b; Path=/; Secure; Domain=a.example", "https://www.a.example/", ""),
        ("__Host-a=b; Path=/; Secure", "https://www.a.example/", "__Host-a=b"),
        ("a=" + "b" * 5000 + "; Path=/", "https://www.a.example/", ""),
    ],
)  # fmt: skip
def test_a_cookie_comes_back_where_it_belongs(line: str, url: str, header: str) -> None:
    assert jar(line).header(url, NOW) == header


def test_a_public_suffix_keeps_cookies_for_itself_alone() -> None:
    kept = jar("a=b; Domain=co.uk; Path=/", url="https://shop.co.uk/")
    assert len(kept) == 0
    kept = jar("a=b; Domain=github.io; Path=/", url="https://github.io/")
    assert kept.header("https://github.io/", NOW) == "a=b"
    assert kept.header("https://x.github.io/", NOW) == ""


def test_an_address_is_no_domain() -> None:
    assert len(jar("a=b; Domain=0.0.1", url="http://127.0.0.1/")) == 0
    assert jar("a=b", url="http://127.0.0.1/").header("http://127.0.0.1/", NOW) == "a=b"
    assert jar("a=b", url="http://[::1]/").header("http://[::1]/x", NOW) == "a=b"


def test_plain_http_sets_no_secure_cookie() -> None:
    assert len(jar("a=b; Secure", url="http://www.a.example/")) == 0


def test_a_cookie_is_replaced_removed_and_expires() -> None:
    kept = jar("a=1", "a=2; Max-Age=10", "b=3")
    assert kept.header(URL, NOW + 9) == "a=2; b=3"
    assert kept.header(URL, NOW + 10) == "b=3"
    assert len(kept) == 1
    kept.take(["b=; Max-Age=0"], URL, NOW + 11)
    assert (kept.header(URL, NOW), len(kept)) == ("", 0)


def test_longer_paths_come_first_and_then_the_older() -> None:
    kept = Jar()
    for at, line in enumerate(["a=1; Path=/", "b=2; Path=/dir", "c=3; Path=/"]):
        kept.take([line], URL, NOW + at)
    assert kept.header(URL, NOW + 9) == "b=2; a=1; c=3"


def test_the_jar_is_bounded() -> None:
    kept = jar(*(f"n{number}={'x' * 1000}; Path=/" for number in range(60)))
    assert len(kept) == 50
    assert "n9=" not in kept.header(URL, NOW)
    assert "n59=" in kept.header(URL, NOW)
    for number in range(1200):
        kept.take(["a=b"], f"https://h{number}.example/", NOW)
    assert len(kept) <= 1049


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("Sat, 18 Nov 2026 21:16:00 GMT", (2026, 11, 18, 21, 16, 0)),
        ("Saturday, 18-Nov-26 21:16:00 GMT", (2026, 11, 18, 21, 16, 0)),
        ("Sat Nov  8 21:16:00 1997", (1997, 11, 8, 21, 16, 0)),
        ("18 november 2026 1:2:3", (2026, 11, 18, 1, 2, 3)),
        ("29 Feb 2024 00:00:00", (2024, 2, 29, 0, 0, 0)),
        ("29 Feb 2023 00:00:00", None),
        ("31 Apr 2026 00:00:00", None),
        ("18 Nov 2026 24:00:00", None),
        ("18 Nov 1600 00:00:00", None),
        ("18 Nov 2026", None),
        ("", None),
    ],
)
def test_dates_are_read_as_browsers_do(text: str, stamp: tuple[int, ...] | None) -> None:
    assert date(text) == (None if stamp is None else calendar.timegm((*stamp, 0, 0, 0)))


@given(st.integers(0, 4_000_000_000))
def test_every_http_date_is_read(seconds: int) -> None:
    assert date(email.utils.formatdate(seconds, usegmt=True)) == seconds


@given(st.text(max_size=80), st.sampled_from([URL, "http://127.0.0.1/", "http://x/"]))
def test_any_text_is_taken_and_never_breaks_a_header(line: str, url: str) -> None:
    kept = jar(line, url=url)
    assert not set(kept.header(url, NOW)) & set("\r\n\0")
    cookie = parse(line, url, NOW)
    assert (cookie is None) or cookie.path.startswith("/")


# -- files and heads -------------------------------------------------------------------------------


def test_a_file_of_cookies_is_read_as_browsers_and_curl_write_it() -> None:
    text = (
        "# Netscape HTTP Cookie File\r\n\r\n"
        ".Example.org\tTRUE\t/a\tFALSE\t0\tone\t1=2\r\n"
        "#HttpOnly_www.example.org\tFALSE\t/\tTRUE\t2000\ttwo\t\r\n"
        "www.example.org\tFALSE\t/\tFALSE\t500\told\tx\n"
        "www.example.org\tFALSE\t/\tFALSE\t0\tempty\n"
    )
    jar = Jar()
    jar.put(parse_file(text), now=1000.0)
    assert jar.header("http://b.example.org/a/x", 1000.0) == "one=1=2"
    assert jar.header("https://www.example.org/a", 1000.0) == "one=1=2; two=; empty="
    assert jar.header("http://www.example.org/", 1000.0) == "empty="
    assert jar.header("https://www.example.org/", 2000.0) == "empty="
    assert jar.header("https://other.org/", 1000.0) == ""


@pytest.mark.parametrize(
    "line",
    [
        "a.example\tFALSE\t/\tFALSE\t0", "a.example FALSE / FALSE 0 a b", "words",
        "a.example\tFALSE\t/\tFALSE\tsoon\ta\tb", "a.example\tFALSE\t/\tFALSE\t²\ta\tb",
        "a.example\tFALSE\t/\tFALSE\t0\ta\tb;c", "a.example\tFALSE\t/\tFALSE\t0\ta\tb\x01c",
        "a.example\tFALSE\t/\tFALSE\t0\ta\t거미",
    ],
)  # fmt: skip
def test_a_line_that_is_no_cookie_is_named_by_its_number_alone(line: str) -> None:
    with pytest.raises(ValueError, match="line 2") as error:
        parse_file(f"# Netscape\n{line}\n")
    assert line not in str(error.value)


def test_what_an_answer_sets_is_found_in_its_head() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nset-cookie:  a=1; Path=/ \r\nX: Set-Cookie: no\r\n"
        b"SET-COOKIE: b=2\r\n\r\n"
    )
    assert set_by(head) == ["a=1; Path=/", "b=2"]
    assert set_by(b"HTTP/1.1 200 OK\r\nX-Set-Cookie: a=1\r\n\r\n") == []
    assert set_by(b"HTTP/1.1 200 Set-Cookie: a\n\n") == []


def test_only_cookies_for_a_host_come_along_to_it() -> None:
    text = (
        "example.org\tFALSE\t/\tFALSE\t0\thost\t1\n.example.org\tTRUE\t/\tFALSE\t0\tall\t1\n"
        "::1\tFALSE\t/\tFALSE\t0\tsix\t1\n"
    )
    cookies = parse_file(text)
    assert [one.name for one in for_host(cookies, "example.org")] == ["host", "all"]
    assert [one.name for one in for_host(cookies, "a.example.org")] == ["all"]
    assert [one.name for one in for_host(cookies, "::1")] == ["six"]
    assert for_host(cookies, "1") == ()


def test_a_jar_stays_small_whatever_a_server_sets() -> None:
    host = ".".join(["a"] * 60) + ".example.org"
    kept = Jar()
    for level in range(60):
        domain = host.split(".", level)[-1]
        lines = [f"c{n}={'x' * 3000}; Domain={domain}" for n in range(20)]
        kept.take(lines, f"http://{host}/", NOW)
        assert len(kept.header(f"http://{host}/", NOW)) <= 64 * 1024 + 3 * 50
    assert 15 <= len(kept) <= 22
    kept.take([f"c{n}=; Max-Age=0; Domain={host.split('.', 59)[-1]}" for n in range(20)],
              f"http://{host}/", NOW)  # fmt: skip
    kept.take(["small=1"], f"http://{host}/", NOW)
    assert "small=1" in kept.header(f"http://{host}/", NOW)
    many = b"HTTP/1.1 200 OK\r\n" + b"Set-Cookie: a=1\r\n" * 5000 + b"\r\n"
    assert len(set_by(many)) == 100


def test_a_cookie_of_the_operator_is_never_for_a_public_suffix() -> None:
    cookies = parse_file(".co.kr\tTRUE\t/\tFALSE\t0\tall\t1 and more\n")
    assert for_host(cookies, "www.example.co.kr") == ()
