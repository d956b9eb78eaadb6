"""Rules of which URLs of a site are one page: what the store keeps of them.

Written while no crawl runs, by who learns or an operator; read with a site's facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from geomi.frontier.equivalences import WHY, Evidence, Numbered, Rule
from geomi.store import Store

RULES = (
    """CREATE TABLE rules (
        rule INTEGER PRIMARY KEY,
        site_id INTEGER NOT NULL,
        kind TEXT NOT NULL,                   -- drop, order, index, slash, scheme
        what TEXT NOT NULL,                   -- of drop, index, scheme: which
        state TEXT NOT NULL,                  -- proposed, active, withdrawn, removed
        "by" TEXT NOT NULL,                   -- digests, hand
        at REAL NOT NULL,                     -- when it took its state
        support INTEGER NOT NULL DEFAULT 0,   -- pages it makes one that had the same content
        against INTEGER NOT NULL DEFAULT 0,   -- and another one
        contents INTEGER NOT NULL DEFAULT 0,  -- different contents among the former
        example TEXT NOT NULL DEFAULT '',     -- two URLs that it makes one; where some had other
        counter TEXT NOT NULL DEFAULT ''      -- content, two of those
    )""",
    "CREATE UNIQUE INDEX rules_of_site ON rules (site_id, kind, what)",
)


class Row(NamedTuple):
    """One rule, as the store has it."""

    rule: int
    site_id: int
    kind: str
    what: str
    state: str
    by: str
    at: float
    support: int
    against: int
    contents: int
    example: str
    counter: str


_COLUMNS = (
    'rule, site_id, kind, what, state, "by", at, support, against, contents, example, counter'
)


def active(store: Store, site_id: int) -> tuple[Numbered, ...]:
    """What an agent applies."""
    return tuple(
        Numbered(number, Rule(kind, what))
        for number, kind, what in sorted(
            store.all(
                "SELECT rule, kind, what FROM rules WHERE site_id = ? AND state = 'active'",
                (site_id,),
            )
        )
    )


def of_site(store: Store, site_id: int) -> dict[Rule, Row]:
    """All rules of a site."""
    rows = [
        Row(*row)
        for row in store.all(f"SELECT {_COLUMNS} FROM rules WHERE site_id = ?", (site_id,))
    ]
    return {Rule(row.kind, row.what): row for row in rows}


def by_number(store: Store, number: int) -> Row | None:
    row = store.one(f"SELECT {_COLUMNS} FROM rules WHERE rule = ?", (number,))
    return Row(*row) if row else None


def put(
    store: Store, site_id: int, rule: Rule, evidence: Evidence, *, state: str, by: str, at: float
) -> None:
    """Makes a rule, or tells what is known of it now. `at` of one that keeps its state stays."""
    pair = " ".join(evidence.example)
    example, counter = ("", pair) if evidence.against else (pair, "")
    store.run(
        f"INSERT INTO rules ({_COLUMNS.removeprefix('rule, ')})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site_id, kind, what) DO UPDATE SET"
        " at = CASE WHEN rules.state = excluded.state THEN rules.at ELSE excluded.at END,"
        ' state = excluded.state, "by" = excluded."by", support = excluded.support,'
        " against = excluded.against, contents = excluded.contents,"
        " example = CASE WHEN excluded.example = '' THEN rules.example ELSE excluded.example END,"
        " counter = excluded.counter",
        (
            site_id, rule.kind, rule.what, state, by, at, evidence.support, evidence.against,
            evidence.contents, example, counter,
        ),
    )  # fmt: skip


def listed(store: Store) -> list[dict[str, Any]]:
    """Every rule with its site, and how many URLs it skips."""
    found = []
    for row in store.all(
        f"SELECT s.site, {', '.join('r.' + name for name in _COLUMNS.split(', '))}"
        " FROM rules r JOIN sites s ON s.site_id = r.site_id ORDER BY s.site, r.rule"
    ):
        one = Row(*row[1:])
        found.append({"site": row[0], **one._asdict(), "skipped": skipped(store, one)})
    return found


def skipped(store: Store, row: Row) -> int:
    """URLs that are not asked for because of a rule."""
    mark = f"{WHY}{row.rule}:"
    found = store.one(
        "SELECT count(*) FROM pages WHERE site_id = ? AND outcome = 'skip'"
        " AND substr(why, 1, CAST(? AS INTEGER)) = ?",
        (row.site_id, len(mark), mark),
    )
    return int(found[0]) if found else 0


def some_skipped(store: Store, row: Row, limit: int) -> list[tuple[int, int]]:
    """(page, depth) of some of them."""
    mark = f"{WHY}{row.rule}:"
    return store.all(
        "SELECT page, depth FROM pages WHERE site_id = ? AND outcome = 'skip'"
        " AND substr(why, 1, CAST(? AS INTEGER)) = ? LIMIT ?",
        (row.site_id, len(mark), mark, limit),
    )


def contents_of(store: Store, site_id: int, limit: int) -> list[tuple[str, str]]:
    """(URL, digest) of pages that came whole at their last visit."""
    return store.all(
        "SELECT url, digest FROM pages WHERE site_id = ? AND outcome IN ('OK', 'same')"
        " AND digest <> '' ORDER BY page LIMIT ?",
        (site_id, limit),
    )


def sites(store: Store) -> Iterator[tuple[int, str]]:
    """(id, name) of all sites."""
    return store.each("SELECT site_id, site FROM sites ORDER BY site_id")
