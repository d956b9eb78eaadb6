"""Questions to an index: what is read, what is refused, what is answered."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.archive import cdxj, query
from geomi.archive.query import Range, answer, parse_query, ranges_of
from geomi.errors import OperatorError


def line(url: str, stamp: str, *, mime: str = "text/html", status: str = "200",
         digest: str = "A") -> bytes:  # fmt: skip
    return cdxj.line(cdxj.key_of(url), stamp, url=url, mime=mime, status=status, digest=digest,
                     length=100, offset=7, filename="a.warc.gz")  # fmt: skip


INDEX = sorted([
    line("http://example.org/", "20240101000000", digest="A"),
    line("http://www.example.org/", "20240102000000", digest="A"),
    line("https://example.org/", "20240301000000", digest="B", status="404"),
    line("http://example.org/", "20240501000000", digest="A", mime="warc/revisit", status="-"),
    line("http://example.org/a", "20240101000000"),
    line("http://example.org/a/b", "20240101000000"),
    line("http://example.org/ab", "20240101000000"),
    line("http://example.org:8080/", "20240101000000"),
    line("http://sub.example.org/", "20240101000000"),
    line("http://sub.example.org:81/", "20240101000000"),
    line("http://example.organic/", "20240101000000"),
])  # fmt: skip


def within(ranges: tuple[Range, ...]) -> Iterable[bytes]:
    return [one for start, end in ranges for one in INDEX if start <= one < end]


def ask(text: str) -> list[bytes]:
    return answer(parse_query(text), within).lines


def urls(text: str) -> list[str]:
    return [cdxj.parse_line(one).url for one in ask(text)]


def stamps(text: str) -> list[str]:
    return [cdxj.parse_line(one).timestamp14[:6] for one in ask(text)]


def test_an_exact_query_finds_all_captures_of_one_key() -> None:
    assert urls("url=example.org") == [
        "http://example.org/", "http://www.example.org/", "https://example.org/",
        "http://example.org/",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["url=example.org/a&matchType=prefix", "url=http://example.org/a*"]
)
def test_a_prefix_finds_what_begins_so(text: str) -> None:
    assert urls(text) == ["http://example.org/a", "http://example.org/a/b", "http://example.org/ab"]


def test_a_prefix_with_a_slash_keeps_it() -> None:
    assert urls("url=example.org/a/*") == ["http://example.org/a/b"]


def test_a_host_is_one_host_and_port() -> None:
    assert len(urls("url=example.org&matchType=host")) == 7
    assert urls("url=example.org:8080&matchType=host") == ["http://example.org:8080/"]


@pytest.mark.parametrize("text", ["url=example.org&matchType=domain", "url=*.example.org"])
def test_a_domain_has_its_hosts_and_ports_and_no_neighbour(text: str) -> None:
    found = urls(text)
    assert len(found) == 10
    assert "http://example.organic/" not in found


def test_time_is_bounded_on_both_sides_by_any_number_of_digits() -> None:
    assert stamps("url=example.org&from=202403") == ["202403", "202405"]
    assert stamps("url=example.org&to=20240102") == ["202401", "202401"]
    assert stamps("url=example.org&from=2024-01-02&to=2024-03-31") == ["202401", "202403"]


def test_filters_contain_equal_or_match_and_may_be_turned_round() -> None:
    assert len(ask("url=example.org&filter=!mime:warc/revisit")) == 3
    assert len(ask("url=example.org&filter=!mimetype:warc/revisit&filter==status:200")) == 2
    assert len(ask("url=example.org&filter=~status:4..")) == 1
    assert len(ask("url=example.org&filter=!~original:https")) == 3


def test_the_closest_come_first() -> None:
    assert stamps("url=example.org&closest=20240410000000&sort=closest") == [
        "202405", "202403", "202401", "202401",
    ]  # fmt: skip
    assert stamps("url=example.org&closest=20240101&limit=1") == ["202401"]


def test_an_empty_closest_is_none_as_pywb_sends_it() -> None:
    assert len(ask("url=http%3A%2F%2Fexample.org%2F&closest=&sort=closest&matchType=exact")) == 4


def test_the_last_may_be_asked_for() -> None:
    assert stamps("url=example.org&sort=reverse&limit=2") == ["202405", "202403"]
    assert stamps("url=example.org&limit=-1") == ["202405"]


def test_neighbours_alike_collapse() -> None:
    assert stamps("url=example.org&collapse=digest") == ["202401", "202403", "202405"]
    assert stamps("url=example.org&collapse=timestamp:6") == ["202401", "202403", "202405"]


def test_what_warcprox_asks_is_answered_as_it_reads_it() -> None:
    text = (
        "url=http%3A%2F%2Fexample.org%2F&fl=timestamp%2Cdigest"
        "&filter=%21mimetype%3Awarc%2Frevisit&limit=-1"
    )
    assert ask(text) == [b"20240301000000 B\n"]


def test_the_outputs_say_the_same() -> None:
    first = INDEX[0]
    assert ask("url=example.org&limit=1") == [first]
    (as_json,) = ask("url=example.org&limit=1&output=json")
    assert json.loads(as_json) == {
        "urlkey": "org,example)/", "timestamp": "20240101000000", "url": "http://example.org/",
        "mime": "text/html", "status": "200", "digest": "A", "length": "100", "offset": "7",
        "filename": "a.warc.gz",
    }  # fmt: skip
    assert ask("url=example.org&limit=1&output=text") == [
        b"org,example)/ 20240101000000 http://example.org/ text/html 200 A - - 100 7 a.warc.gz\n"
    ]
    assert ask("url=example.org&limit=1&output=cdxj&fl=urlkey,timestamp,status") == [
        b'org,example)/ 20240101000000 {"status":"200"}\n'
    ]


def test_an_answer_that_was_cut_goes_on_where_it_ended() -> None:
    seen, key = [], ""
    for _ in range(20):
        asked = parse_query(f"url=*.example.org&limit=3&resumeKey={key.replace('=', '%3D')}")
        found = answer(asked, within)
        seen += found.lines
        key = found.resume
        if not key:
            break
    assert seen == list(within(ranges_of("*.example.org")))


def test_no_answer_looks_at_more_lines_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "SCANNED_MOST", 5)
    found = answer(parse_query("url=*.example.org&filter=status:999"), within)
    assert found.lines == []
    assert found.resume == INDEX[4].decode().rstrip("\n")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "url: not given"),
        ("matchType=exact", "url: not given"),
        ("url=a&url=b", "url: given twice"),
        ("url=a.org&matchType=range", "matchType: 'range', wanted one of exact, prefix"),
        ("url=a.org&from=soon", "from: 'soon', wanted up to 14 digits"),
        ("url=a.org&to=202411181234567", "to: '202411181234567', wanted up to 14"),
        ("url=a.org&limit=0", "limit: 0, wanted at least 1"),
        ("url=a.org&limit=many", "limit: 'many', wanted a number"),
        ("url=a.org&output=xml", "output: 'xml', wanted one of cdxj, json, text"),
        ("url=a.org&sort=up", "sort: 'up', wanted"),
        ("url=a.org&fl=colour", "'colour' is no field of a line"),
        ("url=a.org&filter=status", "filter: 'status', wanted"),
        ("url=a.org&filter=~url:(", r"filter: pattern '\('"),
        ("url=a.org&filter=~url:(a*)*b", "no repeated group"),
        ("url=a.org&filter=~url:a*a*a*b", "at most two repetitions"),
        ("url=a.org&collapse=status:x", "collapse: 'status:x'"),
        ("url=a.org&page=2", "page: pages are not offered"),
        ("url=a.org&colour=red", "'colour' is no field of a query"),
        ("url=ftp://a.org/&matchType=host", "is no http"),
        ("url=a.org&" + "&".join(f"filter={n}:1" for n in range(120)), "more than 100 fields"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused_with_a_sentence(text: str, what: str) -> None:
    with pytest.raises(OperatorError, match=what):
        parse_query(text)


@given(st.text(max_size=60), st.sampled_from(["", *query.MATCHES]))
def test_any_url_is_a_query_or_an_error(url: str, match: str) -> None:
    try:
        ranges = ranges_of(url, match)
    except OperatorError:
        return
    assert all(start < end for start, end in ranges)


def test_a_timestamp_that_is_no_date_is_near_its_month() -> None:
    assert query.seconds_of("20240230000000") == query.seconds_of("20240201000000")
