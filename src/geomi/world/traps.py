"""Traps: few real pages, endlessly many URLs. With Params.trap_steps each ends after so many."""

from __future__ import annotations

import re
from itertools import chain

from geomi.world.corners import Asked, Corner, Found, document, html_type, page

_EVENTS = 3
_MONTH = re.compile(r"\d{4,}-\d\d")
_FIRST_MONTH = 2026 * 12
_FACETS = {"brand": ("a", "b"), "colour": ("red", "blue"), "size": ("l", "s")}
_ITEMS = 3


def _events(asked: Asked) -> list[str]:
    return [f"{asked.folder}event-{k}.html" for k in range(_EVENTS)]


def _calendar(asked: Asked) -> Found | None:
    """Every month links to the next and the one before; the real pages are the events."""
    if asked.rest in ("", *(f"event-{k}.html" for k in range(_EVENTS))):
        anchors = [*_events(asked), f"{asked.folder}?month=2026-01"] if not asked.rest else []
        return page(asked, f"calendar {asked.rest}", anchors)
    month = asked.rest.removeprefix("?month=")
    if not _MONTH.fullmatch(month) or month == asked.rest:
        return None
    year, _, of_year = month.partition("-")
    at = int(year) * 12 + int(of_year) - 1
    anchors = _events(asked)
    for near in (at - 1, at + 1):
        if near >= 0 and asked.goes_on(abs(near - _FIRST_MONTH)):
            anchors.append(f"{asked.folder}?month={near // 12:04d}-{near % 12 + 1:02d}")
    return page(asked, f"month {month}", anchors, trap=True)


def _relative(word: str) -> str:
    return f"<p><a href='{word}'>on</a> <a href='/'>home</a>\n"


def _deep(asked: Asked) -> Found | None:
    """A relative link to a folder that is there in every folder."""
    segments = [segment for segment in asked.rest.split("/") if segment]
    if asked.rest != "".join(f"{segment}/" for segment in segments) or set(segments) - {"a"}:
        return None
    links = [("a", "/")]
    inside = "<p><a href='/'>home</a>\n"
    if asked.goes_on(len(segments)):
        links.append(("a", f"{asked.folder}{asked.rest}a/"))
        inside = _relative("a/")
    return Found(
        headers=(html_type(asked.charset),), links=tuple(links), trap=bool(segments),
        body=document(asked.charset, f"folder {len(segments)}", inside),
    )  # fmt: skip


def _lost(asked: Asked) -> Found | None:
    """A relative link that was meant from the root: each page is found one folder deeper."""
    segments = asked.rest.split("/")
    names = ("board", "view.html"), ("board", "list.html")
    ends = tuple(segments[-2:])
    depth = len(segments) // 2
    if asked.rest and (ends not in names or any(pair != "board" for pair in segments[:-1])):
        return None
    links = [("a", "/")]
    inside = "<p><a href='/'>home</a>\n"
    if asked.goes_on(depth):
        here = asked.folder + asked.rest.rpartition("/")[0]
        for _, name in names:
            links.append(("a", f"{here.rstrip('/')}/board/{name}"))
            inside += _relative(f"board/{name}")
    return Found(
        headers=(html_type(asked.charset),), links=tuple(links),
        trap=len(segments) > 2, body=document(asked.charset, f"board {asked.rest}", inside),
    )  # fmt: skip


def _growing(asked: Asked) -> Found | None:
    """Every link repeats the whole query and adds to it."""
    path, mark, query = asked.rest.partition("?")
    pairs = query.split("&") if query else []
    if (path != "list" and asked.rest) or set(pairs) - {"sort=up", "page=2"}:
        return None
    anchors = ["/"]
    if asked.goes_on(len(pairs)):
        start = f"{asked.folder}list?{query}&" if mark else f"{asked.folder}list?"
        anchors += [f"{start}sort=up", f"{start}page=2"]
    return page(asked, f"list {len(pairs)}", anchors, trap=bool(pairs))


def _facets(asked: Asked) -> Found | None:
    """A few items, and every choice of facets in every order: finite, and of no use."""
    path, _, query = asked.rest.partition("?")
    items = [f"{asked.folder}item-{k}.html" for k in range(_ITEMS)]
    if asked.folder + asked.rest in items:
        return page(asked, f"item {asked.rest}", ["/"])
    chosen = [tuple(pair.partition("=")[::2]) for pair in query.split("&")] if query else []
    names = [name for name, _ in chosen]
    if path or len(set(names)) < len(names):
        return None
    if any(value not in _FACETS.get(name, ()) for name, value in chosen):
        return None
    start = f"{asked.folder}?{query}&" if query else f"{asked.folder}?"
    anchors = chain.from_iterable(
        [f"{start}{name}={value}" for value in values]
        for name, values in _FACETS.items()
        if name not in names
    )
    return page(asked, f"shop {len(chosen)}", [*items, *anchors], trap=bool(chosen))


def _visits(asked: Asked) -> Found | None:
    """A new session at every request: the same three pages for ever."""
    said = asked.query
    name = said.get("page", "0")
    step = int(said.get("n", "0")) if said.get("n", "0").isdecimal() else -1
    if asked.path or name not in "012" or step < 0:
        return None
    fresh = [
        f"{asked.folder}?page={k}&n={step + 1}&sid={asked.key('visit', asked.rest, k)}"
        for k in range(3)
    ]
    return page(
        asked, f"page {name}", fresh if asked.goes_on(step) else [], trap=bool(asked.rest),
        original=asked.folder,
    )  # fmt: skip


CORNERS: tuple[Corner, ...] = (
    Corner(name="calendar", find=_calendar),
    Corner(name="deep", find=_deep),
    Corner(name="lost", find=_lost),
    Corner(name="growing", find=_growing),
    Corner(name="facets", find=_facets),
    Corner(name="visits", find=_visits),
)
