"""Kinds of robots.txt, and what each denies, said without a matcher of robots.txt."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field

from geomi.world.chance import stream

Denies = Callable[[str, bool], bool]
Header = tuple[str, str]

#: RFC 9309: at least five hops are followed; geomi takes a longer way for no robots.txt.
MOST_HOPS = 5
_PRIVATE = "User-agent: *\nDisallow: /private/\n"


def _under(*folders: str) -> Denies:
    return lambda target, _named: target.startswith(folders)


def _never(_target: str, _named: bool) -> bool:
    return False


def _always(_target: str, _named: bool) -> bool:
    return True


def _padded(text: str) -> bytes:
    """Rules, then more comment than anybody reads, then rules that nobody sees."""
    return text.encode() + b"# padding padding padding\n" * 30_000 + b"Disallow: /\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsKind:
    """One way to answer /robots.txt."""

    name: str
    share: float = 0.0
    status: int = 200
    text: str = ""  # {delay} is Params.crawl_delay_s
    denies: Denies = _never  # (path and query, is it the agent geomi)
    delay: bool = False
    fault: str = ""  # the network state that asking for it ends in; then all pages have it
    hops: int = 0  # redirects within the host before it comes
    away: bool = False  # it lies on another host
    mime: str = "text/plain"
    headers: tuple[Header, ...] = field(default=())
    encode: Callable[[str], bytes] = str.encode
    legible: bool = True  # a reader finds the lines of its text, so it may name sitemaps


def onward(kind: RobotsKind, target: str) -> str | None:
    """Where `target` leads on the way to robots.txt: "" is the file itself, None is no part of it.

    The way to another host is the caller's: it begins at the answer `away`.
    """
    step = 0
    if target != "/robots.txt":
        number = target.removeprefix("/robots-").removesuffix(".txt")
        if not (kind.hops and number.isdecimal() and target == f"/robots-{number}.txt"):
            return None
        step = int(number)
        if not 1 <= step <= kind.hops:
            return None
    elif kind.away:
        return "away"
    return f"/robots-{step + 1}.txt" if step < kind.hops else ""


ROBOTS: tuple[RobotsKind, ...] = (
    RobotsKind(name="none", share=0.40, status=404),
    RobotsKind(name="all", share=0.12, text="User-agent: *\nDisallow:\n"),
    RobotsKind(
        name="dirs", share=0.20, denies=_under("/private/", "/cgi/"),
        text="# keep out\nUser-agent: *\nDisallow: /private/\nDisallow: /cgi/\n",
    ),
    RobotsKind(
        name="delay", share=0.03, denies=_under("/private/"), delay=True,
        text="User-agent: *\nCrawl-delay: {delay:g}\nDisallow: /private/\n",
    ),
    RobotsKind(
        name="open", share=0.06,
        text="User-agent: *\nDisallow: /private/\nAllow: /private/open/\n",
        denies=lambda target, _named: (
            target.startswith("/private/") and not target.startswith("/private/open/")
        ),
    ),
    RobotsKind(
        name="named", share=0.05,
        text="User-agent: *\nDisallow: /\n\nUser-agent: Geomi\nDisallow: /cgi/\n",
        denies=lambda target, named: not named or target.startswith("/cgi/"),
    ),
    RobotsKind(
        name="others", share=0.04,
        text="User-agent: BadBot\nUser-agent: Slurp\nDisallow: /\n",
    ),
    RobotsKind(
        name="wild", share=0.04, text="User-agent: *\nDisallow: /*.pdf$\nDisallow: /*from=\n",
        denies=lambda target, _named: target.endswith(".pdf") or "from=" in target,
    ),
    RobotsKind(
        name="pictures", share=0.03, text="User-agent: *\nDisallow: /img\n",
        denies=_under("/img"),
    ),
    RobotsKind(
        name="shut", share=0.01, text="User-agent: *\nDisallow: /\n", denies=_always
    ),
    RobotsKind(name="500", share=0.01, status=500, denies=_always),
    RobotsKind(name="403", share=0.01, status=403),
    RobotsKind(name="401", status=401),
    RobotsKind(name="410", status=410),
    RobotsKind(name="429", status=429, denies=_always),
    RobotsKind(name="503", status=503, denies=_always),
    RobotsKind(name="stall", fault="hTim", legible=False),
    RobotsKind(name="torn", fault="hErr", legible=False),
    RobotsKind(name="hop", hops=1, text=_PRIVATE, denies=_under("/private/")),
    RobotsKind(name="hops5", hops=MOST_HOPS, text=_PRIVATE, denies=_under("/private/")),
    RobotsKind(name="hops6", hops=MOST_HOPS + 1, text=_PRIVATE, legible=False),
    RobotsKind(name="away", away=True, text=_PRIVATE, denies=_under("/private/")),
    RobotsKind(
        name="page", mime="text/html", legible=False,
        text='<!doctype html>\n<title>home</title>\n<p><a href="/ghost.html">hello</a>\n',
    ),
    RobotsKind(name="empty", text="", legible=False),
    RobotsKind(name="huge", text=_PRIVATE, denies=_under("/private/"), encode=_padded,
               legible=False),
    RobotsKind(
        name="binary", mime="application/octet-stream", legible=False,
        encode=lambda _text: stream("robots").randbytes(20_000),
    ),
    RobotsKind(
        name="bom", text=_PRIVATE, denies=_under("/private/"),
        encode=lambda text: b"\xef\xbb\xbf" + text.encode(),
    ),
    RobotsKind(
        name="cr", text=_PRIVATE, denies=_under("/private/"),
        encode=lambda text: text.replace("\n", "\r").encode(),
    ),
    RobotsKind(
        name="gzip", text=_PRIVATE, denies=_under("/private/"),
        headers=(("Content-Encoding", "gzip"),),
        encode=lambda text: gzip.compress(text.encode(), mtime=0),
    ),
    RobotsKind(
        name="euckr", text=f"# 로봇은 들어오지 마시오\n{_PRIVATE}", denies=_under("/private/"),
        encode=lambda text: text.encode("euc_kr"),
    ),
    RobotsKind(
        name="unknown", denies=_under("/private/", "/cgi/"),
        text="Host: x\nUser-agent: *\nRequest-rate: 1/5\nDisallow: /private/\nNoindex: /\nnonsense"
        "\n: /\nVisit-time: 0600-0845\nDisallow: /cgi/\n",
    ),
    RobotsKind(
        name="groups",
        text="User-agent: geomi\nDisallow: /private/\n\nUser-agent: *\nDisallow: /img\n\n"
        "User-agent: them\nUser-agent: GEOMI\nDisallow: /cgi/\n\nUser-agent: *\nDisallow: /cgi/\n",
        denies=lambda target, named: target.startswith(
            ("/private/", "/cgi/") if named else ("/img", "/cgi/")
        ),
    ),
)  # fmt: skip
