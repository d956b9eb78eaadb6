"""Header fields of an answer, and the codings of its body."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.extract import charset_of, mime_of, parse_head
from geomi.extract.head import robots_tag
from geomi.extract.unpack import unpack

HEAD = (
    b'HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; Charset="EUC-KR"\r\nX-A: 1\r\nx-a:2\r\n'
    b"Set-Cookie: a=1, b\r\nset-cookie: c=2\r\nX-Robots-Tag: a: noindex\r\nX-Robots-Tag: noarchive"
    b"\r\nX-Folded: one\r\n  two\r\n\tthree\r\nno field\r\n more\r\nX-Latin: \xe9\r\n"
    b": x\r\nEmpty:\r\n"
)


def test_fields_have_lower_case_names_and_repeated_ones_are_joined() -> None:
    for end in (b"", b"\r\n", b"\r\nX-Body: no\r\n"):
        assert parse_head(HEAD + end) == {
            "content-type": 'Text/HTML; Charset="EUC-KR"',
            "x-a": "1, 2",
            "set-cookie": "a=1, b\nc=2",
            "x-robots-tag": "a: noindex\nnoarchive",
            "x-folded": "one two three",
            "x-latin": "é",
            "empty": "",
        }


def test_bare_line_feeds_end_lines_too() -> None:
    assert parse_head(HEAD.replace(b"\r\n", b"\n")) == parse_head(HEAD)


def test_every_prefix_of_a_head_gives_the_fields_whose_lines_are_whole() -> None:
    whole = parse_head(HEAD)
    for end in range(len(HEAD)):
        for name, value in list(parse_head(HEAD[:end]).items())[:-1]:
            assert whole[name].startswith(value)


@given(st.binary(max_size=200))
def test_no_head_raises(head: bytes) -> None:
    fields = parse_head(head)
    mime_of(fields)
    charset_of(fields)


@pytest.mark.parametrize(
    ("value", "mime", "charset"),
    [
        ("text/html", "text/html", ""),
        (" TEXT/HTML ;charset=utf8", "text/html", "utf-8"),
        ("text/html; a=b; charset='ks_c_5601-1987'", "text/html", "euc-kr"),
        ('text/html; charset="x-sjis', "text/html", "shift_jis"),
        ("text/html; charset=nonsense", "text/html", ""),
        ("text/html, text/html; charset=big5", "text/html", "big5"),
        ("", "", ""),
        ("; charset=utf-8", "", "utf-8"),
    ],
)
def test_the_content_type_names_type_and_charset(value: str, mime: str, charset: str) -> None:
    assert mime_of({"content-type": value}) == mime
    assert charset_of({"content-type": value}) == charset
    assert mime_of({}) == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("noindex, NoFollow", {"noindex", "nofollow"}),
        ("none", {"none", "noindex", "nofollow"}),
        ("otherbot: noindex, nofollow", set()),
        ("geomi: nofollow", {"nofollow"}),
        ("otherbot: nofollow, geomi: noarchive", {"noarchive"}),
        ("otherbot: nofollow\nnoarchive", {"noarchive"}),
        ("max-snippet: 5, nofollow", {"nofollow", "max-snippet: 5"}),
        ("unavailable_after: 25-Jun-2050 15:00:00 GMT, nofollow",
         {"unavailable_after: 25-jun-2050 15:00:00 gmt", "nofollow"}),
        ("unavailable_after: Sat, 25 Jun 2050 15:00:00 GMT, nofollow",
         {"unavailable_after: sat", "25 jun 2050 15:00:00 gmt", "nofollow"}),
        ("GEOMI: nofollow\nother: noindex\n*: noarchive", {"nofollow", "noarchive"}),
        ("noindex\ngeomi: nofollow", {"noindex", "nofollow"}),
    ],
)  # fmt: skip
def test_x_robots_tag_holds_for_everybody_or_for_the_agent_it_names(
    value: str, expected: set[str]
) -> None:
    assert robots_tag(value, "geomi") == expected


TEXT = b"<html>" + b"links " * 1000
LIMITS = {"limit_bytes": 1 << 20, "ratio": 100.0}
RAW = zlib.compressobj(wbits=-15)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:50]) + gzip.compress(TEXT[50:])),
        ("gzip", gzip.compress(TEXT) + b"tail"),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", RAW.compress(TEXT) + RAW.flush()),
        ("gzip, gzip", gzip.compress(gzip.compress(TEXT))),
        ("identity", TEXT),
        ("", TEXT),
        ("gzip", TEXT),  # said, but not done
    ],
)
def test_a_coding_is_undone(encoding: str, body: bytes) -> None:
    assert unpack(body, encoding, limit_bytes=1 << 20, ratio=100.0) == TEXT


def test_a_body_that_ends_early_is_read_as_far_as_it_goes() -> None:
    packed = gzip.compress(TEXT)
    for end in range(20, len(packed)):
        part = unpack(packed[:end], "gzip", limit_bytes=1 << 20, ratio=100.0)
        assert part is not None
        assert TEXT.startswith(part)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"not gzip"),
        ("gzip", b"\x1f\x8bnot gzip at all"),
        ("deflate", b"\xff\xff\xff"),
        ("compress", TEXT),
        ("gzip, gzip, gzip, gzip", gzip.compress(TEXT)),
    ],
)
def test_what_cannot_be_undone_gives_nothing(encoding: str, body: bytes) -> None:
    assert not unpack(body, encoding, limit_bytes=1 << 20, ratio=100.0)


def test_a_bomb_gives_nothing_and_a_long_body_is_cut() -> None:
    bomb = gzip.compress(bytes(8 << 20))
    assert unpack(bomb, "gzip", limit_bytes=100 << 20, ratio=100.0) is None
    long = unpack(bomb, "gzip", limit_bytes=3 << 20, ratio=1e6)
    assert long == bytes(3 << 20)
    small = gzip.compress(bytes(500_000))  # a great ratio, but not much
    assert unpack(small, "gzip", limit_bytes=1 << 20, ratio=10.0) == bytes(500_000)


@given(st.binary(max_size=100), st.sampled_from(["gzip", "deflate", "br", "deflate, gzip", "x"]))
def test_no_packed_body_raises(body: bytes, encoding: str) -> None:
    unpack(body, encoding, limit_bytes=1 << 16, ratio=10.0)
    unpack(gzip.compress(TEXT)[:20] + body, "gzip", limit_bytes=1 << 16, ratio=10.0)
