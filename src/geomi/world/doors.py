"""Doors: parts of a site that open only for a visitor they know, by a password or a cookie."""

from __future__ import annotations

from base64 import b64encode

from geomi.world.chance import number
from geomi.world.corners import Asked, Corner, Found, document, html_type, page

_ROOMS = ("room1", "room2", "room3")


def password(seed: int, site: int) -> str:
    """`user:password` of the part of a site that wants one."""
    return f"visitor:{number(seed, site, 'password'):016x}"


def _locked(asked: Asked) -> Found | None:
    """HTTP Basic before everything. The truth is that of a visitor who has no password."""
    if asked.rest not in ("", *_ROOMS):
        return None
    wanted = b64encode(password(asked.seed, asked.site).encode()).decode()
    if (asked.headers or {}).get("authorization") != f"Basic {wanted}":
        return Found(
            status=401,
            headers=(html_type(asked.charset), ("WWW-Authenticate", 'Basic realm="members"')),
            body=document(asked.charset, "401", "<p>Who are you?\n"),
        )
    return page(asked, "members", [asked.folder + room for room in _ROOMS if not asked.rest])


def _lobby(asked: Asked) -> Found | None:
    """The entrance sets a cookie, without which nothing else opens. The truth: it is kept."""
    if asked.rest not in ("", *_ROOMS):
        return None
    cookie = f"seen={asked.key('lobby')}"
    if not asked.rest:
        found = page(asked, "lobby", [asked.folder + room for room in _ROOMS])
        headers = (*found.headers, ("Set-Cookie", f"{cookie}; Path={asked.folder}"))
        return Found(headers=headers, body=found.body, links=found.links)
    if asked.headers is not None and cookie not in asked.headers.get("cookie", "").split("; "):
        return Found(
            status=403,
            headers=(html_type(asked.charset),),
            body=document(asked.charset, "403", "<p>Turn on cookies.\n"),
        )
    return page(asked, asked.rest, ())


CORNERS: tuple[Corner, ...] = (
    Corner(name="locked", find=_locked),
    Corner(name="lobby", find=_lobby),
)
