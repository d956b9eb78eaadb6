"""Evil servers, one table: what each does on the wire, and what a careful visitor makes of it.

The host of an entry is `NAME.evil.test`, its page `/evil/NAME`; each has an address of its own.
A script gives bytes, pauses in seconds (`float`), or STALL: nothing more, and the connection stays.
Scripts may be endless. Where it ends the connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from geomi.world import evil_pages
from geomi.world.evil_words import HTML, STALL, Say, Step, say

DOMAIN = ".evil.test"
_LIVES_S = 300
#: Where the hosts are: one address each, behind all that sites use.
_NETWORK = "127.126.255."

_ANY_HEADER = ("hErr", "hSht", "hNpr", "hTim")
_SKIP = ("skip",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evil:
    """One evil host. `expect`: the outcomes that are right for its page."""

    name: str
    expect: tuple[str, ...]
    script: Callable[[Say], Iterator[Step]] | None = None  # None: an ordinary page
    robots: Callable[[Say], Iterator[Step]] | None = None  # None: only its page is allowed
    # What its name resolves to, the first time and every later time; None: its own address.
    addresses: tuple[tuple[str, ...], ...] | None = None
    url: str = ""  # visited instead of its page; {port} is the world's

    @property
    def host(self) -> str:
        return self.name + DOMAIN

    @property
    def target(self) -> str:
        return f"/evil/{self.name}"


def _bytes(data: bytes, *more: Step) -> Callable[[Say], Iterator[Step]]:
    return lambda _asked: iter((data, *more))


_OK = b"HTTP/1.1 200 OK\r\n"
_TYPE = b"Content-Type: text/html\r\n"
_BODY = b"<title>x</title>x"


def _lines(*lines: bytes, body: bytes = b"") -> Callable[[Say], Iterator[Step]]:
    """An ordinary answer with these header lines as they are."""
    head = _OK + _TYPE + b"".join(line + b"\r\n" for line in lines)
    return _bytes(head + b"\r\n" + body)


def _chunked(data: bytes, *more: Step) -> Callable[[Say], Iterator[Step]]:
    return _bytes(_OK + _TYPE + b"Transfer-Encoding: chunked\r\n\r\n" + data, *more)


def _redirect(location: bytes) -> Callable[[Say], Iterator[Step]]:
    return _bytes(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")


def _redirect_here(asked: Say) -> Iterator[Step]:
    yield from _redirect(asked.target.encode())(asked)


def _forever(start: bytes, again: bytes) -> Callable[[Say], Iterator[Step]]:
    """Without end, and as fast as it is read."""

    def script(_asked: Say) -> Iterator[Step]:
        yield start
        block = again * max(1, 16_384 // len(again))
        while True:
            yield block

    return script


def _drip(start: bytes, drop: bytes) -> Callable[[Say], Iterator[Step]]:
    """A few bytes, and a pause after each."""

    def script(asked: Say) -> Iterator[Step]:
        yield start
        while True:
            yield asked.pause_s
            yield drop

    return script


def _named(*addresses: str) -> tuple[tuple[str, ...], ...]:
    return (addresses,)


EVILS: tuple[Evil, ...] = (
    # -- too little, too slow, too much
    Evil(name="silence", expect=("hTim",), script=_bytes(b"", STALL)),
    Evil(name="hang-up", expect=("hErr",), script=_bytes(b"")),
    Evil(name="slow-header", expect=("hTim",), script=_drip(b"HTTP/1.1 200 OK\r\n", b"X")),
    Evil(
        name="slow-body", expect=("dTim",),
        script=_drip(_OK + _TYPE + b"Content-Length: 1000\r\n\r\n", b"x"),
    ),
    Evil(name="endless-header", expect=("hErr",), script=_forever(_OK, b"X-More: and more\r\n")),
    Evil(name="endless-line", expect=("hErr",), script=_forever(_OK + b"X-More: ", b"x" * 64)),
    Evil(
        name="endless-status", expect=("hErr", "hNpr"), script=_forever(b"HTTP/1.1 200 ", b"x" * 64)
    ),
    Evil(
        name="endless-body", expect=("cut",),
        script=_forever(_OK + _TYPE + b"\r\n", b"<p>more</p>\n" * 100),
    ),
    Evil(
        name="endless-chunks", expect=("cut",),
        script=_forever(
            _OK + _TYPE + b"Transfer-Encoding: chunked\r\n\r\n", b"a\r\n<p>more\n\n\n\r\n"
        ),
    ),
    Evil(
        name="gzip-bomb", expect=("OK",),
        script=lambda _asked: evil_pages.bomb(_OK + _TYPE),
    ),
    Evil(
        name="gzip-thrice", expect=("OK",),
        script=lambda _asked: evil_pages.nested_bomb(_OK + _TYPE),
    ),
    Evil(
        name="gzip-torn", expect=("OK",),
        script=lambda _asked: evil_pages.torn_gzip(_OK + _TYPE),
    ),
    # -- length
    Evil(name="length-more", expect=("dErr",), script=_lines(b"Content-Length: 99", body=_BODY)),
    Evil(name="length-less", expect=("OK",), script=_lines(b"Content-Length: 8", body=_BODY)),
    Evil(
        name="length-two", expect=("hNpr", "dErr", "OK"),
        script=_lines(b"Content-Length: 17", b"Content-Length: 5", body=_BODY),
    ),
    Evil(
        name="length-list", expect=("hNpr", "dErr", "OK"),
        script=_lines(b"Content-Length: 17, 5", body=_BODY),
    ),
    Evil(
        name="length-negative", expect=("hNpr", "dErr", "OK"),
        script=_lines(b"Content-Length: -1", body=_BODY),
    ),
    Evil(
        name="length-huge", expect=("cut", "dErr", "hNpr", "OK"),
        script=_lines(b"Content-Length: 9" + b"9" * 40, body=_BODY),
    ),
    Evil(
        name="length-exa", expect=("cut", "dErr"),
        script=_lines(b"Content-Length: 9000000000000000000", body=_BODY),
    ),
    Evil(
        name="length-word", expect=("hNpr", "dErr", "OK"),
        script=_lines(b"Content-Length: many", body=_BODY),
    ),
    Evil(
        name="length-and-chunks", expect=("OK", "dErr", "hNpr"),
        script=_lines(
            b"Content-Length: 3", b"Transfer-Encoding: chunked",
            body=b"11\r\n" + _BODY + b"\r\n0\r\n\r\n",
        ),
    ),
    # -- chunks
    Evil(name="chunk-torn", expect=("dErr",), script=_chunked(b"ff\r\nonly this")),
    Evil(name="chunk-unended", expect=("dErr",), script=_chunked(b"5\r\nhello\r\n")),
    Evil(name="chunk-word", expect=("dErr",), script=_chunked(b"5\r\nhello\r\nzz\r\nmore\r\n")),
    Evil(name="chunk-negative", expect=("dErr",), script=_chunked(b"-5\r\nhello\r\n0\r\n\r\n")),
    Evil(name="chunk-huge", expect=("dErr",), script=_chunked(b"f" * 40 + b"\r\nhello\r\n")),
    Evil(name="chunk-long-size", expect=("dErr",), script=_chunked(b"0" * 5_000 + b"5\r\nhello")),
    Evil(
        name="chunk-trailers", expect=("OK", "dErr"),
        script=_chunked(b"5\r\nhello\r\n0\r\n" + b"X-Late: 1\r\n" * 200 + b"\r\n"),
    ),
    Evil(name="chunk-stall", expect=("dTim",), script=_chunked(b"5\r\nhel", STALL)),
    # -- not HTTP, or nearly
    Evil(name="http09", expect=("hNpr",), script=_bytes(b"<html><title>x</title>hello</html>\n")),
    Evil(name="ssh", expect=("hNpr",), script=_bytes(b"SSH-2.0-OpenSSH_9.2\r\n")),
    Evil(name="tls-alert", expect=("hNpr",), script=_bytes(b"\x15\x03\x01\x00\x02\x02\x46")),
    Evil(name="nul", expect=("hNpr",), script=_bytes(b"\0" * 2_000)),
    Evil(
        name="two-status", expect=("hNpr", "OK"),
        script=_bytes(_OK + _OK + _TYPE + b"Content-Length: 17\r\n\r\n" + _BODY),
    ),
    Evil(
        name="status-word", expect=("hNpr",), script=_bytes(b"HTTP/1.1 abc OK\r\n\r\n" + _BODY)
    ),
    Evil(
        name="status-long", expect=("hNpr", "code"),
        script=_bytes(b"HTTP/1.1 2000 OK\r\nContent-Length: 17\r\n\r\n" + _BODY),
    ),
    Evil(
        name="status-zero", expect=("hNpr", "code"),
        script=_bytes(b"HTTP/1.1 000 OK\r\nContent-Length: 17\r\n\r\n" + _BODY),
    ),
    Evil(
        name="status-999", expect=("code",),
        script=_bytes(b"HTTP/1.1 999 No\r\nContent-Length: 17\r\n\r\n" + _BODY),
    ),
    Evil(
        name="version-9", expect=("hNpr",),
        script=_bytes(b"HTTP/9.9 200 OK\r\nContent-Length: 17\r\n\r\n" + _BODY),
    ),
    Evil(
        name="flood-1xx", expect=("hErr", "hNpr", "hTim"),
        script=_forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ),
    Evil(
        name="some-1xx", expect=("OK",),
        script=_bytes(
            b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3
            + _OK + _TYPE + b"Content-Length: 17\r\n\r\n" + _BODY
        ),
    ),
    Evil(
        name="switch", expect=("code", "hNpr", "hErr", "hTim", "hSht"),
        script=_bytes(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n\0\0"),
    ),
    Evil(
        name="bare-lf", expect=("OK",),
        script=_bytes(b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n" + _BODY),
    ),
    # -- header lines
    Evil(name="no-colon", expect=("hNpr",), script=_lines(b"this is no field", body=_BODY)),
    Evil(name="header-nul", expect=("hNpr",), script=_lines(b"X-A: a\0b", body=_BODY)),
    Evil(
        name="header-control", expect=("OK", "hNpr"),
        script=_lines(b"X-A: a\x01\x02\x7f\x1b[31m", b"X\x07B: c", body=_BODY),
    ),
    Evil(name="header-latin", expect=("OK",), script=_lines(b"X-A: \xb0\xa1\xff", body=_BODY)),
    Evil(name="header-folded", expect=("OK",), script=_lines(b"X-A: a", b"\t b", body=_BODY)),
    Evil(name="header-blank", expect=("OK", "hNpr"), script=_lines(b": nameless", body=_BODY)),
    Evil(
        name="header-many", expect=("OK", "hErr"),
        script=_lines(*(b"X-%d: %d" % (k, k) for k in range(4_000)), body=_BODY),
    ),
    Evil(
        name="header-long", expect=("hErr",), script=_lines(b"X-A: " + b"a" * 400_000, body=_BODY)
    ),
    Evil(
        name="cookies", expect=("OK", "hErr"),
        script=_lines(
            *(b"Set-Cookie: c%d=%s; Path=/" % (k, b"v" * 40) for k in range(2_000)), body=_BODY
        ),
    ),
    # -- redirects
    Evil(name="redirect-loop", expect=("code",), script=_redirect_here),
    Evil(name="redirect-file", expect=("code",), script=_redirect(b"file:///etc/passwd")),
    Evil(name="redirect-private", expect=("code",), script=_redirect(b"http://10.0.0.1/admin")),
    Evil(
        name="redirect-metadata", expect=("code",),
        script=_redirect(b"http://169.254.169.254/latest/meta-data/"),
    ),
    Evil(name="redirect-loopback", expect=("code",), script=_redirect(b"http://127.0.0.1:22/")),
    Evil(name="redirect-mapped", expect=("code",), script=_redirect(b"http://[::ffff:7f00:1]/")),
    Evil(name="redirect-ftp", expect=("code",), script=_redirect(b"ftp://ftp.evil.test/x")),
    Evil(name="redirect-gopher", expect=("code",), script=_redirect(b"gopher://127.0.0.1:25/_x")),
    Evil(name="redirect-script", expect=("code",), script=_redirect(b"javascript:alert(1)")),
    Evil(name="redirect-data", expect=("code",), script=_redirect(b"data:text/html,x")),
    Evil(name="redirect-bad", expect=("code",), script=_redirect(b"http://[bad/")),
    Evil(name="redirect-empty", expect=("code",), script=_redirect(b"")),
    Evil(name="redirect-bytes", expect=("code",), script=_redirect(b"/\xb0\xa1\xff\x80")),
    Evil(name="redirect-long", expect=("code",), script=_redirect(b"/" + b"a" * 100_000)),
    Evil(
        name="redirect-password", expect=("code",),
        script=_redirect(b"http://user:secret@redirect-password.evil.test/"),
    ),
    # -- pages
    Evil(name="error-inside", expect=("OK",), script=evil_pages.error_inside),
    Evil(name="long-links", expect=("OK",), script=evil_pages.long_links),
    Evil(name="bad-utf8-links", expect=("OK",), script=evil_pages.bad_utf8_links),
    Evil(name="bad-hosts", expect=("OK",), script=evil_pages.bad_hosts),
    Evil(name="nested", expect=("OK", "cut"), script=evil_pages.nested),
    Evil(name="nested-tables", expect=("OK", "cut"), script=evil_pages.nested_tables),
    Evil(name="million-links", expect=("OK", "cut"), script=evil_pages.million_links),
    Evil(name="one-tag", expect=("OK", "cut"), script=evil_pages.one_tag),
    Evil(name="attributes", expect=("OK", "cut"), script=evil_pages.attributes),
    Evil(name="unclosed-comments", expect=("OK", "cut"), script=evil_pages.unclosed),
    Evil(name="big-page", expect=("OK",), script=evil_pages.big_page),
    Evil(name="lies-about-type", expect=("OK",), script=evil_pages.binary_as_html),
    # -- robots.txt
    Evil(
        name="robots-huge", expect=("OK",),
        robots=evil_pages.huge_robots,
    ),
    Evil(name="robots-endless", expect=("OK", "deny"),
         robots=_forever(_OK + b"\r\n", b"Allow: /evil/\n")),
    Evil(name="robots-binary", expect=("OK",), robots=evil_pages.binary_robots),
    Evil(
        name="robots-line", expect=("OK",),
        robots=lambda asked: say(asked, b"Disallow: /" + b"a" * 400_000, mime=b"text/plain"),
    ),
    Evil(name="robots-loop", expect=("OK",), robots=_redirect_here),
    Evil(name="robots-500", expect=("deny",), robots=_bytes(b"HTTP/1.1 500 No\r\n\r\n")),
    Evil(name="robots-silent", expect=("hTim",), robots=_bytes(b"", STALL)),
    Evil(name="robots-torn", expect=("hErr",), robots=_bytes(b"")),
    Evil(name="robots-file", expect=("OK", "deny"), robots=_redirect(b"file:///etc/passwd")),
    Evil(
        name="robots-private", expect=("OK", "deny", "cErr"),
        robots=_redirect(b"http://10.0.0.1/robots.txt"),
    ),
    # -- names and addresses
    Evil(name="to-loopback", expect=_SKIP, addresses=_named("127.0.0.1")),
    Evil(name="to-private", expect=_SKIP, addresses=_named("10.0.0.1")),
    Evil(name="to-private-16", expect=_SKIP, addresses=_named("192.168.0.1")),
    Evil(name="to-metadata", expect=_SKIP, addresses=_named("169.254.169.254")),
    Evil(name="to-nothing", expect=_SKIP, addresses=_named("0.0.0.0")),
    Evil(name="to-broadcast", expect=_SKIP, addresses=_named("255.255.255.255")),
    Evil(name="to-mapped", expect=_SKIP, addresses=_named("::ffff:127.0.0.1")),
    Evil(name="to-nat64", expect=_SKIP, addresses=_named("64:ff9b::7f00:1")),
    Evil(name="to-6to4", expect=_SKIP, addresses=_named("2002:7f00:1::1")),
    Evil(name="to-unique-local", expect=_SKIP, addresses=_named("fd00::1")),
    # First an address that may be visited ("" is its own), later loopback.
    Evil(name="rebinding", expect=("OK", "skip"), addresses=(("",), ("127.0.0.1",))),
    Evil(name="half-private", expect=("OK",), addresses=_named("10.0.0.1", "")),
    # -- URLs
    Evil(name="url-decimal", expect=_SKIP, url="http://2130706433:{port}/"),
    Evil(name="url-octal", expect=_SKIP, url="http://0177.0.0.1:{port}/"),
    Evil(name="url-hex", expect=_SKIP, url="http://0x7f.1:{port}/"),
    Evil(name="url-wide", expect=_SKIP, url="http://１２７.0.0.1:{port}/"),
    Evil(name="url-six", expect=_SKIP, url="http://[::ffff:127.0.0.1]:{port}/"),
    Evil(
        name="url-password", expect=("OK",),
        url="http://user:secret@url-password.evil.test:{port}/evil/url-password",
    ),
)  # fmt: skip
_NUMBERS: Mapping[str, int] = {entry.name: k for k, entry in enumerate(EVILS)}
if len(EVILS) > 250:
    raise AssertionError("one network holds 250 evil hosts")


def find(host: str) -> Evil | None:
    """The entry of a host name, with or without port."""
    name = host.partition(":")[0].lower()
    number = _NUMBERS.get(name.removesuffix(DOMAIN)) if name.endswith(DOMAIN) else None
    return EVILS[number] if number is not None else None


def address(entry: Evil) -> str:
    """Where its server listens."""
    return f"{_NETWORK}{_NUMBERS[entry.name] + 1}"


def url(entry: Evil, port: int) -> str:
    """What to visit; what came of it is in `expect`."""
    if entry.url:
        return entry.url.format(port=port)
    return f"http://{entry.host}{'' if port == 80 else f':{port}'}{entry.target}"


def resolve(name: str, asked: int) -> tuple[tuple[str, ...], int]:
    """(addresses, seconds to live) of an evil name that was asked for so often before."""
    entry = find(name)
    if entry is None:
        return (), 60
    if entry.addresses is None:
        return (address(entry),), _LIVES_S
    said = entry.addresses[min(asked, len(entry.addresses) - 1)]
    ttl_s = 1 if len(entry.addresses) > 1 else _LIVES_S
    return tuple(one or address(entry) for one in said), ttl_s


def script(entry: Evil, asked: Say) -> Iterator[Step]:
    """What its server says to a request."""
    if asked.target == "/robots.txt":
        return (entry.robots or evil_pages.only_evil)(asked)
    if asked.target != entry.target:
        return _bytes(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")(asked)
    return (entry.script or partial(say, body=_BODY, mime=HTML))(asked)
