"""Candidates of a site, verdicts on contents, probes, and the list that is shared."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from geomi.history import meaningless as kinds
from geomi.history import shared_list
from geomi.history.meaningless import Content, Limits, Read, Verdicts, found, shape
from geomi.history.meaningless_tables import Entry
from geomi.history.shared_list import Bad, digest_of

D = [f"sha1:{letter * 32}" for letter in "ABCDEFG"]
LIMITS = Limits(unlike=5, distance=3)


@dataclass(frozen=True)
class _Text:
    name: str
    urls: tuple[str, ...]
    simhash: int = 0
    rule: str = ""
    words: int = 20
    digests: tuple[str, ...] = (D[0],)

    @property
    def content(self) -> Content:
        return Content(
            same=self.name, simhash=self.simhash, words=self.words, rule=self.rule,
            digests=dict.fromkeys(self.digests, 1), urls=self.urls, pages=len(self.urls),
        )  # fmt: skip


def views(number: int) -> tuple[str, ...]:
    return tuple(f"http://a.example/board/view.php?id={k}" for k in range(number))


def told(*texts: _Text, probed: dict[str, str] | None = None) -> list[tuple[str, str, int]]:
    groups = found("a.example", [one.content for one in texts], limits=LIMITS, probed=probed or {})
    return [(one.digest, one.reason, one.count) for one in groups]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.example/x", "https://www.a.example/x/"),
        ("http://a.example/x?a=1&b=2", "http://a.example/x?b=2&a=1"),
        ("http://a.example/x?a=1", "http://a.example/x?a=1&utm_source=m&PHPSESSID=12"),
        ("http://a.example/x;jsessionid=12?a=1", "http://a.example/x?a=1"),
        ("http://a.example/index.html", "http://a.example/"),
        ("http://a.example/(S(abc123))/x.aspx", "http://a.example/x.aspx"),
    ],
)
def test_urls_that_name_one_page_have_one_shape(one: str, other: str) -> None:
    assert shape(one) == shape(other)


def test_urls_that_name_two_pages_have_two_shapes() -> None:
    assert len({shape(url) for url in [*views(3), "http://a.example/board/"]}) == 4
    assert shape("http://a.example") == shape("http://a.example/") == "/"


def test_many_unlike_urls_with_one_text_are_a_candidate_and_few_are_not() -> None:
    assert told(_Text("t", views(5))) == [(D[0], "alike:5", 5)]
    assert told(_Text("t", views(4))) == [(D[0], "", 4)]  # it repeats: worth a probe
    assert told(_Text("t", views(1))) == []
    same = tuple(f"http://a.example/x?utm_source={k}" for k in range(9))
    assert told(_Text("t", same)) == []


def test_near_texts_are_one_candidate_and_the_most_frequent_stands_for_them() -> None:
    groups = told(
        _Text("t", views(3), simhash=0b0, digests=(D[1],)),
        _Text("u", ("http://a.example/p", "http://a.example/q"), simhash=0b11, digests=(D[2],)),
        _Text("far", ("http://a.example/z",), simhash=0b11111, digests=(D[3],)),
    )
    assert groups == [(D[1], "alike:5", 5)]


def test_texts_of_few_words_or_many_are_near_to_none() -> None:
    for words in (2, 1_000):
        assert told(
            _Text("t", views(3), words=words),
            _Text("u", ("http://a.example/p", "http://a.example/q"), words=words, digests=(D[2],)),
        ) == [(D[0], "", 3), (D[2], "", 2)]  # fmt: skip


def test_a_rule_or_a_probe_needs_no_number() -> None:
    assert told(_Text("t", views(1), rule="login")) == [(D[0], "rule:login", 1)]
    assert told(_Text("t", views(1)), probed={"t": "http://a.example/board/"}) == [
        (D[0], "probe:http://a.example/board/", 1)
    ]


def test_only_a_rule_or_probe_with_enough_urls_confirms_itself() -> None:
    def itself(text: _Text, threshold: int | None) -> bool:
        (group,) = found("a", [text.content], limits=LIMITS)
        return kinds.confirms_itself(group, threshold=threshold)

    assert itself(_Text("t", views(6), rule="login"), 6)
    assert not itself(_Text("t", views(5), rule="login"), 6)
    assert not itself(_Text("t", views(6), rule="login"), None)
    assert not itself(_Text("t", views(40)), 6)


@pytest.mark.parametrize(
    ("url", "is_it"),
    [("http://a.example/", True), ("https://a.example:8443/?", True), ("http://a.example", True),
     ("http://a.example/a", False), ("http://a.example/?p=2", False)],
)  # fmt: skip
def test_a_front_page_is_the_root_of_a_site(url: str, is_it: bool) -> None:
    assert kinds.is_front(url) is is_it


def test_a_probe_lies_beside_its_example_and_looks_like_it() -> None:
    probe = kinds.probe_of("http://a.example/b/c/view.php?id=3", "77")
    assert probe == "http://a.example/b/c/geomi-probe-77.php"
    assert kinds.probe_of("http://a.example/b/", "77") == "http://a.example/b/geomi-probe-77"
    assert kinds.directory("http://a.example/b/c?x=/y") == "http://a.example/b/"
    assert kinds.directory("http://a.example") == "http://a.example/"


# -- verdicts --------------------------------------------------------------------------------------


def read(digest: str, *, simhash: int = 0, main: str = "m", rule: str = "", before: str = "",
         words: int = 50) -> Read:  # fmt: skip
    return Read(digest, simhash, main, words, rule, before)


JUDGE = Verdicts({D[0]: (0, "wall"), D[1]: None}, {D[2]: (1 << 40, "fine"), D[3]: None}, distance=3)


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (read(D[0], main="wall"), "confirmed"),
        (read(D[1]), "confirmed"),
        (read(D[4], simhash=0b111), f"near:{D[0]}"),
        (read(D[4], simhash=0xFFFF, main="wall"), f"near:{D[0]}"),
        (read(D[4], simhash=0xFFFF), ""),
        (read(D[4], simhash=0b1, words=2), ""),
        (read(D[4], simhash=0xFFFF, rule="login"), "rule:login"),
        (read(D[3], simhash=0xFFFF, rule="login"), ""),
        (read(D[4], simhash=(1 << 40) + 0b111, rule="login"), ""),
        (read(D[4], simhash=0xFFFF, main="fine", rule="login"), ""),
        (read(D[4], simhash=0xFFFF, before="probe:http://a/"), "probe:http://a/"),
        (read(D[4], simhash=0xFFFF, before=f"near:{D[6]}"), ""),
        (read(D[4], main=""), ""),
    ],
)
def test_a_verdict_follows_the_list_then_nearness_then_rules(one: Read, verdict: str) -> None:
    assert JUDGE.of(one) == verdict


# -- the shared list -------------------------------------------------------------------------------


def test_a_digest_is_read_in_either_spelling() -> None:
    base32 = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    hexadecimal = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
    for text in (base32, f"sha1:{base32}", hexadecimal, f"SHA1:{base32.lower()}"):
        assert digest_of(text) == f"sha1:{base32}"
    for text in ("", "sha1:", base32[:-1], "md5:" + base32, hexadecimal + "0", "한글"):
        assert digest_of(text) == ""


ENTRY = Entry(
    D[0], "confirmed", "rule:login", "a.example", "http://a.example/로그인", 6, "hand", 9.0
)


def test_what_is_written_is_read_with_where_it_is_from() -> None:
    line = shared_list.written(ENTRY).encode()
    (one,) = shared_list.read([line], of="theirs.jsonl", now=50.0)
    assert one == ENTRY._replace(by="import theirs.jsonl of hand", at=50.0)


def test_a_plain_line_is_a_digest_and_a_reason() -> None:
    lines = [b"\xef\xbb\xbf# of ours\r\n", b"\n", f"{D[0]} a wall of ours\n".encode()]
    (one,) = shared_list.read(lines, of="f", now=1.0)
    assert isinstance(one, Entry)
    assert (one.digest, one.reason) == (D[0], "a wall of ours")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"nonsense", "says 'nonsense', wanted a digest"),
        (b"{", "is no JSON"),
        (b'{"digest": 5}', "says '5', wanted a digest"),
        (b'{"reason": "x"}', "says '', wanted a digest"),
        (b'{"digest": "%s", "count": -1}' % D[0].encode(), "says count -1"),
        (b'{"digest": "%s", "count": NaN}' % D[0].encode(), "says count nan"),
        (b'{"digest": "%s", "count": "6"}' % D[0].encode(), "says count 6"),
        (b"\xff\xfe", "is no UTF-8 at byte 0"),
        (b"x" * 20_000, "has 20000 bytes"),
        (b"[" * 10_000, "says"),
        (b'{"a":' * 3_000, "is no JSON"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_by_its_number(line: bytes, what: str) -> None:
    good = json.dumps({"digest": D[0]}).encode()
    one, other = shared_list.read([good, line], of="f", now=1.0)
    assert isinstance(one, Entry)
    assert isinstance(other, Bad)
    assert other.line == 2
    assert other.what.startswith(what)


def test_text_of_others_is_made_plain_and_short() -> None:
    said = {"digest": D[0], "reason": "a\nb\0" + "c" * 900, "example": 7}
    (one,) = shared_list.read([json.dumps(said).encode()], of="f", now=1.0)
    assert isinstance(one, Entry)
    assert one.reason.startswith("a bccc")
    assert len(one.reason) == 200
    assert one.example == ""
