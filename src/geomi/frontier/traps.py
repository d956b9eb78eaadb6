"""Safety valves against traps: endless paths, growing queries, calendars. Decides only.

The values are far beyond what honest sites have; a URL over one of them is kept as `skip` with a
`why` that names it, and is wanted again once the valve is opened.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

#: Templates counted a site. A site with more than that has no template worth counting.
_TEMPLATES = 10_000
_DIGITS = re.compile(r"\d+")
_VALUE = re.compile(r"=[^&;]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Valves:
    """The limits of one site; 0 opens a valve for good."""

    depth: int = 50
    segments: int = 3  # how often a path segment, or a pair of them, may follow itself
    parameters: int = 30  # parameters in a query
    template_pages: int = 100_000
    site_pages: int = 10_000_000

    def refusal(self, url: str, depth: int) -> str:
        """What the URL alone says; empty: nothing is wrong with it."""
        if self.depth and depth > self.depth:
            return "trap:depth"
        path, _, query = url.partition("?")
        if query and self.parameters and query.count("&") + query.count(";") >= self.parameters:
            return "trap:query"
        # A path with few slashes cannot repeat often: the common case ends here.
        if self.segments and path.count("/") > self.segments + 3 and self._repeats(path):
            return "trap:path"
        return ""

    def _repeats(self, path: str) -> bool:
        """True if one segment, or two in turn, stand more than `segments` times in a row."""
        parts = path.split("/")[3:]
        for step in (1, 2, 3):
            run = 0
            for at in range(step, len(parts)):
                run = run + 1 if parts[at] == parts[at - step] and parts[at] else 0
                if run >= self.segments * step:
                    return True
        return False


class Templates:
    """How many pages of a site share a template: digits and values of parameters left out.

    Memory is bounded by 10,000 templates a site; what comes later is not counted.
    """

    def __init__(self, valves: Valves, *, pages: int) -> None:
        self._valves = valves
        self._pages = pages
        self._count: Counter[str] = Counter()

    def refusal(self, url: str) -> str:
        """Counts one more page. Not empty: the page is one too many, and is not counted."""
        valves = self._valves
        if valves.site_pages and self._pages >= valves.site_pages:
            return "trap:site"
        if valves.template_pages:
            template = template_of(url)
            number = self._count.get(template, 0)
            if number >= valves.template_pages:
                return "trap:template"
            if number or len(self._count) < _TEMPLATES:
                self._count[template] = number + 1
        self._pages += 1
        return ""


def template_of(url: str) -> str:
    """`http://a/b12/c?x=1&y=2` -> `http://a/b0/c?x&y`."""
    path, mark, query = url.partition("?")
    return _DIGITS.sub("0", path) + (mark + _VALUE.sub("", query) if query else "")
