"""Walls: many URLs with the same content that means nothing, and servers that ask for patience."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from geomi.world.corners import Asked, Corner, Found, document, html_type, page

_MANY = 6
_PASSWORD = (
    '<form method="post" action="login">\n<p>ID <input name="id"> '
    'Password <input type="password" name="pw"> <input type="submit" value="Login">\n</form>\n'
)
_REAL_NAME = (
    '<form method="post" action="check">\n<p>이 게시판은 본인확인이 필요합니다. 실명인증을 위해 '
    '이름과 주민등록번호를 입력하십시오.\n<p>이름 <input name="name"> 주민등록번호 '
    '<input name="n1" maxlength="6"> - <input type="password" name="n2" maxlength="7">\n</form>\n'
)
_APOLOGY = (
    "<p>Warning: mysql_connect(): Too many connections in /home/www/db.php on line 12\n"
    "<p>페이지를 표시할 수 없습니다. 잠시 후 다시 시도하십시오.\n"
)
_LOST = "<p>The page was not found. 요청하신 페이지를 찾을 수 없습니다.\n"


def _views(asked: Asked) -> list[str]:
    return [f"view.php?id={k}" for k in range(1, _MANY + 1)]


def _wall(asked: Asked, meaning: str, title: str, inside: str) -> Found | None:
    """A list of pages that all have this content."""
    views = _views(asked)
    if not asked.rest:
        return page(asked, "members", [asked.folder + view for view in views])
    if asked.rest not in views:
        return None
    return Found(
        headers=(html_type(asked.charset),),
        body=document(asked.charset, title, inside),
        meaning=meaning,
        original=asked.folder + views[0],
    )


def _members(asked: Asked) -> Found | None:
    return _wall(asked, "login", "login", _PASSWORD)


def _realname(asked: Asked) -> Found | None:
    return _wall(asked, "realname", "실명 확인", _REAL_NAME)


def _apology(asked: Asked) -> Found | None:
    return _wall(asked, "error", "error", _APOLOGY)


def _door(asked: Asked) -> Found | None:
    """Every page sends to the login page, with a note where to return to."""
    if asked.rest in _views(asked):
        back = quote(asked.folder + asked.rest, safe="")
        return Found(status=302, to=f"{asked.folder}login?next={back}")
    if asked.path == "login":
        found = Found(
            headers=(html_type(asked.charset),),
            body=document(asked.charset, "login", _PASSWORD),
            meaning="login",
        )
        return replace(found, original=f"{asked.folder}login") if asked.query else found
    return _wall(asked, "", "", "")


def _app(asked: Asked) -> Found | None:
    """Pages that are nothing until a script has run."""
    if asked.rest not in ("", "app.js"):
        return None
    if asked.rest:
        script = b"render('/ghost.html')\n"
        return Found(headers=(("Content-Type", "text/javascript"),), body=script)
    inside = '<div id="root"></div>\n<noscript>Turn on JavaScript.</noscript>\n'
    head = f'<script defer src="{asked.folder}app.js"></script>\n'
    return Found(
        headers=(html_type(asked.charset),),
        body=document(asked.charset, "app", inside, head=head),
        links=(("e", f"{asked.folder}app.js"),),
        meaning="script",
    )


_BUSY = ("503-seconds", "503-date", "429-seconds", "429-date", "429-nonsense", "503-none")


def _busy(asked: Asked) -> Found | None:
    """Always too busy, and says in each possible way for how long."""
    if not asked.rest:
        return page(asked, "busy", [asked.folder + name for name in _BUSY])
    if asked.rest not in _BUSY:
        return None
    status, _, how = asked.rest.partition("-")
    wait = {"seconds": "1", "date": asked.later(1), "nonsense": "soon"}.get(how)
    return Found(
        status=int(status),
        headers=(("Content-Type", "text/html"), *([("Retry-After", wait)] if wait else [])),
        body=b"<title>busy</title>\n",
    )


def missing(asked: Asked) -> Found:
    """What a site without any 404 says of a name it does not know."""
    return Found(
        headers=(html_type(asked.charset),),
        body=document(asked.charset, "?", _LOST),
        meaning="missing",
    )


CORNERS: tuple[Corner, ...] = (
    Corner(name="members", find=_members),
    Corner(name="door", find=_door),
    Corner(name="realname", find=_realname),
    Corner(name="apology", find=_apology),
    Corner(name="app", find=_app),
    Corner(name="busy", find=_busy),
)
