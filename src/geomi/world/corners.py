"""Corners: parts of a site below `/~NAME/` that are made from the request alone.

A corner is one entry of a table in traps, walls, variants or marks. What it says of a request is
the whole truth about it: the bytes, the links that a careful reader finds, and what it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from html import escape
from urllib.parse import parse_qsl

from geomi.world.chance import number
from geomi.world.charsets import CharsetKind

#: (kind as in records.Wanted, target from the root of the same name, or a whole URL)
Reference = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request to a corner, and what it may depend on."""

    seed: int
    site: int
    charset: CharsetKind
    korean: bool
    folder: str  # /~NAME/
    rest: str  # of the target, behind the folder
    steps: int  # traps end after so many; 0: never
    now_s: float  # since 1970
    # Of the request, names in lower case; None: the question is what a complete visitor finds, who
    # keeps cookies and has no password.
    headers: Mapping[str, str] | None = None

    @property
    def path(self) -> str:
        """The rest without its query."""
        return self.rest.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.rest.partition("?")[2], keep_blank_values=True))

    def key(self, *of: object) -> str:
        """32 hexadecimal digits that depend on the site and `of` alone."""
        return f"{number(self.seed, self.site, *of):016x}" * 2

    def goes_on(self, step: int) -> bool:
        """True if a trap has a step after this one."""
        return not self.steps or step < self.steps

    def later(self, seconds: int) -> str:
        """A date that many seconds from now, as HTTP writes it."""
        return formatdate(int(self.now_s) + seconds, usegmt=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a corner answers. Links of an answer other than 200 are none."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    links: tuple[Reference, ...] = ()
    nofollow: tuple[Reference, ...] = ()  # only for robots that do not obey nofollow
    to: str = ""  # target a redirect leads to
    trap: bool = False  # one of endlessly many
    meaning: str = ""  # login, realname, missing, error or script: no content of its own
    original: str = ""  # target of the same content's first name; empty: this one


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """One entry: what the front page links to (behind the folder), and what answers."""

    name: str
    find: Callable[[Asked], Found | None]
    entrances: tuple[str, ...] = ("",)
    share: float = 0.0

    @property
    def folder(self) -> str:
        return f"/~{self.name}/"


def html_type(charset: CharsetKind) -> tuple[str, str]:
    """The Content-Type field of an HTML page."""
    return "Content-Type", f"text/html; charset={charset.header}" if charset.header else "text/html"


def meta(charset: CharsetKind) -> str:
    """The meta element that names the charset, if there is one."""
    if not charset.meta:
        return ""
    if charset.meta == "utf-8":
        return '<meta charset="utf-8">\n'
    return f'<meta http-equiv="Content-Type" content="text/html; charset={charset.meta}">\n'


def document(charset: CharsetKind, title: str, inside: str, *, head: str = "") -> bytes:
    """An HTML page in the charset of the site."""
    text = (
        f"<!doctype html>\n<html>\n<head>\n{meta(charset)}<title>{title}</title>\n{head}</head>\n"
        f"<body>\n{inside}</body>\n</html>\n"
    )
    return text.encode(charset.codec, "xmlcharrefreplace")


def page(
    asked: Asked, title: str, anchors: Iterable[str], *, more: str = "", trap: bool = False,
    original: str = "",
) -> Found:  # fmt: skip
    """A page with anchors, given as targets from the root."""
    targets = tuple(anchors)
    lines = [f'<p><a href="{escape(target)}">{k}</a>\n' for k, target in enumerate(targets)]
    return Found(
        headers=(html_type(asked.charset),),
        body=document(asked.charset, title, f"<h1>{title}</h1>\n{more}{''.join(lines)}"),
        links=tuple(("a", target) for target in targets),
        trap=trap,
        original=original,
    )
