"""Documents of evil servers: what costs a careless reader memory or time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from functools import cache

from geomi.world.chance import stream
from geomi.world.evil_words import Say, Step, say

_MIB = 2**20
_LONG = 100_000
_PAGE = b"<!doctype html><title>x</title>\n"


def _block(text: bytes) -> bytes:
    return text * (65_536 // len(text))


# -- compressed --------------------------------------------------------------------------------


def bomb(head: bytes) -> Iterator[Step]:
    """3 GiB of blanks in 3 MB of gzip: members are equal, so making it costs nothing."""
    yield from _sized(head + b"Content-Encoding: gzip\r\n", [_member()] * 300)


@cache
def _member() -> bytes:
    return gzip.compress(b" " * (10 * _MIB), 9, mtime=0)


def nested_bomb(head: bytes) -> Iterator[Step]:
    """Three layers: 10 GiB in some 30 KB."""
    middle = gzip.compress(_member() * 100, 9, mtime=0)
    outside = gzip.compress(middle * 10, 9, mtime=0)
    yield from _sized(head + b"Content-Encoding: gzip, gzip, gzip\r\n", [outside])


def torn_gzip(head: bytes) -> Iterator[Step]:
    """Its compressed stream ends early, behind one link."""
    whole = gzip.compress(_PAGE + stream("torn").randbytes(5_000).hex().encode(), mtime=0)
    yield from _sized(head + b"Content-Encoding: gzip\r\n", [whole[: len(whole) // 2]])


def _sized(head: bytes, parts: list[bytes]) -> Iterator[Step]:
    yield head + b"Content-Length: %d\r\n\r\n" % sum(map(len, parts))
    yield from parts


# -- links -------------------------------------------------------------------------------------


def error_inside(asked: Say) -> Iterator[Step]:
    """A 200 that is none."""
    yield from say(
        asked,
        _PAGE + b"<h1>HTTP Error 500.0 - Internal Server Error</h1>\n<p>Fatal error: Uncaught"
        b" PDOException: SQLSTATE[HY000] [2002] in /home/www/db.php:12\n",
    )


def long_links(asked: Say) -> Iterator[Step]:
    """URLs of 100 kB: in the path, the query, the host, a script, a refresh."""
    long = b"a" * _LONG
    yield from say(
        asked,
        _PAGE + b'<a href="/' + long + b'">x</a>\n<a href="?' + long + b'">x</a>\n'
        b'<a href="http://' + long + b'.test/">x</a>\n<img src="/' + b"%20" * 30_000 + b'">\n'
        b"<script>location.href = '/" + long + b"';</script>\n"
        b'<meta http-equiv=refresh content="9; url=/' + long + b'">\n'
        b'<a href="' + b"../" * 30_000 + b'evil/../nowhere">x</a>\n',
    )


def bad_utf8_links(asked: Say) -> Iterator[Step]:
    """Invalid UTF-8 in path, query, host; lone surrogates; overlong forms; a stray NUL."""
    bads = (b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82", b"\0")
    links = b"".join(
        b'<a href="/bad/%b">x</a> <a href="?q=%b">x</a> <a href="http://%b.test/">x</a>\n'
        % (bad, bad, bad)
        for bad in bads
    )
    body = b'<!doctype html><meta charset="utf-8"><title>\xff\xc0</title>\n' + links
    yield from say(asked, body)


_HOSTS = (
    "", ":80", "[::1", "[1::2::3]", "a b.test", "a%00b.test", "256.256.256.256", "1.2.3.4.5",
    "test:99999", "test:-1", "test:http", "-.test", "xn--a.test", "a..b.test", "." * 300,
    "a" * 64 + ".test", "%zz.test", "a<b.test", "[fe80::1%25eth0]", "user:pass@", "0x100000000",
    "\u202etest.test", "ａ．ｔｅｓｔ:０", "한글.test:80:80",
)  # fmt: skip


def bad_hosts(asked: Say) -> Iterator[Step]:
    """Hosts that are none."""
    links = "".join(f'<a href="http://{host}/x">x</a>\n' for host in _HOSTS)
    body = '<!doctype html><meta charset="utf-8"><title>x</title>\n' + links
    yield from say(asked, body.encode())


@cache
def _links(count: int) -> bytes:
    return b"".join(b"<a href=%x>" % k for k in range(count))


def million_links(asked: Say) -> Iterator[Step]:
    """A million links, some 15 MB."""
    yield from say(asked, _PAGE + _links(1_000_000))


# -- markup ------------------------------------------------------------------------------------


def nested(asked: Say) -> Iterator[Step]:
    """10 MB of elements in elements."""
    yield from say(asked, (_PAGE + b"<div>" * (2 * _MIB))[: 10 * _MIB])


def nested_tables(asked: Say) -> Iterator[Step]:
    """The same with elements that a parser moves about, and formatting it has to carry along."""
    yield from say(asked, (_PAGE + b"<table><b><a href=x><font>" * 400_000)[: 10 * _MIB])


def one_tag(asked: Say) -> Iterator[Step]:
    """One tag of 10 MB that never ends."""
    yield from say(asked, _PAGE + b'<a href="' + b"x" * (10 * _MIB - 100))


def attributes(asked: Say) -> Iterator[Step]:
    """One tag with a million attributes."""
    yield from say(asked, (_PAGE + b"<a " + b"a=1 " * (5 * _MIB // 2))[: 10 * _MIB - 100] + b">")


def unclosed(asked: Say) -> Iterator[Step]:
    """Beginnings of comments, scripts and strings: bait for a search that always starts anew."""
    start = b"<!--<script><style>'\"<!-- --!<![CDATA[ url( location.href='"
    yield from say(asked, _PAGE + _block(start) * 100)


def big_page(asked: Say) -> Iterator[Step]:
    """5 MB of honest text."""
    text = b"<p>This is a paragraph of text, and not the last one.</p>\n"
    yield from say(asked, _PAGE + text * 90_000)


def binary_as_html(asked: Say) -> Iterator[Step]:
    """A compressed file that is called text/html."""
    yield from say(asked, b"PK\x03\x04" + zlib.compress(stream("zip").randbytes(200_000)))


# -- robots.txt --------------------------------------------------------------------------------


def only_evil(asked: Say) -> Iterator[Step]:
    """Nothing but the page to be visited, so that it leads no visitor about the host."""
    yield from say(asked, _rules(asked), mime=b"text/plain")


def _rules(asked: Say) -> bytes:
    return f"User-agent: *\nDisallow: /\nAllow: {asked.page}$\n".encode()


def huge_robots(asked: Say, *, megabytes: int = 100) -> Iterator[Step]:
    """Rules, much more than is read, and then a rule that nobody reads."""
    rules = _rules(asked)
    block = _block(b"# and so on\n")
    count = megabytes * _MIB // len(block)
    last = b"Disallow: /evil/\n"
    size = len(rules) + count * len(block) + len(last)
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % size
    yield rules
    for _ in range(count):
        yield block
    yield last


def binary_robots(asked: Say) -> Iterator[Step]:
    """Bytes without any rule."""
    yield from say(asked, stream("robots").randbytes(300_000), mime=b"text/plain")
