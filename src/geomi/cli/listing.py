"""`geomi pages`: lists pages by filters, a line each, as they come from the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomi.cli import output
from geomi.errors import OperatorError

if TYPE_CHECKING:
    from geomi.store import Store

#: A site with fewer pages is read by its index and sorted; a larger one is picked from a scan.
_SORTED = 50_000
_COLUMNS = (
    "url", "outcome", "code", "mime", "depth", "kind", "digest", "size_bytes", "seconds", "file",
    "offset", "length", "why", "via", "title", "visited",
)  # fmt: skip


def pages(
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="Directory of the collection.")
    ],
    outcome: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Outcomes, as OK,code or cTim; repeatable."),
    ] = None,
    code: Annotated[
        list[int] | None, typer.Option(metavar="STATUS", help="HTTP status; repeatable.")
    ] = None,
    site: Annotated[
        str | None, typer.Option(metavar="HOST[:PORT]", help="Host, or host:port.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KINDS", help="Link kinds, as a,f; s is a seed, e a requisite."),
    ] = None,
    mime: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="MIME type; one that ends in / covers all below it."),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(metavar="N", help="Links from the seed, exactly.")
    ] = None,
    pending: Annotated[bool, typer.Option("--pending", help="Only what waits.")] = False,
    match: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Regular expression, or a part, of the URL.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="At most so many.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated, with a header.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> int:
    """List pages: their outcome, type, size, and where they are kept."""
    from geomi.cli.look import opened
    from geomi.frontier.tables import pages_of

    if as_csv and as_json:
        raise OperatorError("--csv and --json: give one of them")
    matcher = _matcher(match) if match is not None else None
    with opened(collection) as (_, _, store):
        where, params = _where(
            store, outcomes=_words(outcome), codes=code or [], site=site, kinds=_words(kind),
            mime=mime, depth=depth,
        )  # fmt: skip
        found = _waiting_of if pending else pages_of
        rows = _rows(store, found(store, where, params))
        if matcher is not None:
            rows = (row for row in rows if matcher(row["url"]))
        rows = islice(rows, limit)
        if as_json:
            for row in rows:
                output.print_json_line(row)
        elif as_csv:
            _print_csv(rows)
        else:
            _print_lines(rows)
    return 0


def _words(given: list[str] | None) -> list[str]:
    return [word.strip() for text in given or [] for word in text.split(",") if word.strip()]


def _matcher(text: str) -> Callable[[str], object]:
    """A search for the expression; for the text itself where that is no expression."""
    try:
        return re.compile(text).search
    except re.error:
        return lambda url: text in url


def _where(
    store: Store, *, outcomes: list[str], codes: list[int], site: str | None, kinds: list[str],
    mime: str | None, depth: int | None,
) -> tuple[str, list[Any]]:  # fmt: skip
    parts: list[str] = []
    params: list[Any] = []

    def one_of(column: str, values: list[Any]) -> None:
        parts.append(f"{column} IN ({', '.join('?' * len(values))})")
        params.extend(values)

    if outcomes:
        one_of("p.outcome", [_outcome(word) for word in outcomes])
    if codes:
        one_of("p.code", codes)
    if kinds:
        if wrong := [word for word in kinds if word not in ("f", "a", "h", "e", "s")]:
            raise OperatorError(f"--kind {wrong[0]}: wanted f, a, h, e or s")
        one_of("p.kind", kinds)
    if mime is not None:
        if mime.endswith("/"):
            parts.append("p.mime LIKE ? ESCAPE '!'")
            params.append(re.sub(r"([!%_])", r"!\1", mime.lower()) + "%")
        else:
            one_of("p.mime", [mime.lower()])
    if depth is not None:
        one_of("p.depth", [depth])
    if site is not None:
        _of_site(store, site, parts, params)
    return ("WHERE " + " AND ".join(parts) if parts else ""), params


def _outcome(word: str) -> str:
    from difflib import get_close_matches

    from geomi.states import Outcome

    names = {str(state).lower(): str(state) for state in Outcome if state is not Outcome.CONN}
    if word.lower() not in names:
        near = get_close_matches(word.lower(), names, n=1)
        hint = f"; did you mean {names[near[0]]}?" if near else ""
        raise OperatorError(f"--outcome {word}: wanted one of {', '.join(names.values())}{hint}")
    return names[word.lower()]


def _of_site(store: Store, site: str, parts: list[str], params: list[Any]) -> None:
    row = store.one("SELECT site_id FROM sites WHERE site = ?", (site.lower(),))
    if row is None:
        raise OperatorError(f"--site {site}: no such site in the collection")
    small = store.one(
        f"SELECT count(*) FROM (SELECT 1 FROM pages WHERE site_id = ? LIMIT {_SORTED}) AS c", row
    )
    # With a plus the index is left alone, so rows come in order and nothing is sorted in memory.
    plus = "" if small is not None and small[0] < _SORTED else "+"
    parts.append(f"{plus}p.site_id = ?")
    params.append(row[0])


def _rows(store: Store, found: Iterator[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    from geomi.archive.tables import all_files

    directories = {row[0]: row[1] for row in all_files(store)}  # one a WARC file: few
    for (
        url, outcome, code, mime, depth, kind, digest, size, seconds, file, offset, length, why,
        via, title, visited, name,
    ) in found:  # fmt: skip
        place = None
        if file:
            place = {"file": f"{directories.get(file, '?')}/{name}", "offset": offset,
                     "length": length}  # fmt: skip
        yield {
            "url": url, "outcome": outcome, "code": code, "mime": mime, "depth": depth,
            "kind": kind, "digest": digest, "size_bytes": size, "seconds": seconds,
            "place": place, "why": why, "via": via, "title": title, "visited": visited or None,
        }  # fmt: skip


def _waiting_of(store: Store, where: str, params: list[Any]) -> Iterator[tuple[Any, ...]]:
    """The columns of frontier.tables.pages_of, in the order of the queues: nothing is sorted."""
    return store.each(
        "SELECT p.url, p.outcome, p.code, p.mime, p.depth, p.kind, p.digest, p.size, p.seconds,"
        ' p.file, p."offset", p.length, p.why, p.via, p.title, p.visited, f.name'
        " FROM pending w CROSS JOIN pages p LEFT JOIN files f ON f.file = p.file"
        f" {where or 'WHERE 1 = 1'} AND p.page = w.page ORDER BY w.site_id, w.depth, w.page",
        params,
    )


def _print_csv(rows: Iterator[dict[str, Any]]) -> None:
    import csv
    import sys

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        place = row.pop("place") or {}
        writer.writerow([place.get(name, "") if name in ("file", "offset", "length")
                         else row[name] for name in _COLUMNS])  # fmt: skip


def _print_lines(rows: Iterator[dict[str, Any]]) -> None:
    """Columns of a set width, so that the first line need not wait for the last."""
    is_first = True
    for row in rows:
        if is_first:
            output.print_line(f"{'state':5} {'code':>4} {'kind':4} {'depth':>5} {'size':>10}  URL")
            is_first = False
        code = row["code"] or ""
        size = output.human_bytes(row["size_bytes"]) if row["size_bytes"] else ""
        why = f"  ({row['why']})" if row["why"] else ""
        output.print_line(
            f"{row['outcome']:5} {code:>4} {row['kind']:4} {row['depth']:>5} {size:>10}"
            f"  {row['url']}{why}"
        )
