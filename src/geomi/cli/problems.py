"""Lines of seed files that cannot be read, and seeds that came to nothing: told, not too often."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from geomi.cli.output import plain
from geomi.seeds.lists import Problem
from geomi.store import Store

_MOST = 10  # lines about one command; a file of another kind has a problem a line

#: Outcomes of a seed's own page that need no word.
_WELL = ("OK", "NULL", "same", "cut", "void")


def tell_problems(problems: Sequence[tuple[object, Problem]]) -> None:
    """One line each on stderr, and how many more there are."""
    for name, problem in problems[:_MOST]:
        line = f" line {problem.line}" if problem.line else ""
        text = f": {problem.text}" if problem.text else ""
        print(plain(f"geomi: {name}{line}: {problem.what}{text}"), file=sys.stderr)
    if len(problems) > _MOST:
        print(f"geomi: and {len(problems) - _MOST} more lines that cannot be read", file=sys.stderr)


def failed_seeds(store: Store, collection: Path) -> list[str]:
    """A line for each of the first seeds whose own page did not come, with what to do about it."""
    marks = ", ".join("?" * len(_WELL))
    rows = store.all(
        "SELECT s.url, s.site, s.outcome, p.why, p.code FROM seeds s"
        " JOIN sites t ON t.site = s.site"
        " JOIN pages p ON p.site_id = t.site_id AND p.url_hash = s.url_hash AND p.url = s.url"
        f" WHERE s.outcome NOT IN ({marks}) AND p.code NOT BETWEEN 300 AND 399"
        " AND substr(p.why, 1, 6) <> 'alias:' ORDER BY s.seed"
        f" LIMIT {_MOST + 1}",
        _WELL,
    )
    lines = [_failed(*row) for row in rows[:_MOST]]
    if len(rows) > _MOST:
        lines.append(f"and more seeds; see: geomi seeds list {collection}")
    return lines


def _failed(url: str, site: str, outcome: str, why: str, code: int) -> str:
    if why.startswith("guard:"):
        kind = why.removeprefix("guard:")
        return f"seed {url} was not asked: its address is {kind}; if you mean it, give --own {site}"
    what = f"{outcome} {code}" if code else outcome
    return f"seed {url}: {what}{f', {why}' if why else ''}"
