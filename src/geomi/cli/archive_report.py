"""`geomi archive report`: what was collected for each institution."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomi.cli import output
from geomi.cli.look import AsJson, CollectionPath, opened

if TYPE_CHECKING:
    from geomi.history.harvest import Harvest


def register(into: typer.Typer) -> None:
    into.command()(report)


def report(
    collection: CollectionPath,
    by: Annotated[
        str, typer.Option("--by", metavar="LABEL", help="The label of seeds that makes a row.")
    ] = "institution",
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Only visits from then on: 2026.")
    ] = "",
    until: Annotated[
        str, typer.Option("--to", metavar="TIME", help="Only visits before then: 2027.")
    ] = "",
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV, numbers as they are.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="As a table in Markdown.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """The harvest by institution: bytes, records, duplicates, rate of success, what filters saved.

    Rows come from a label of the seeds. Old visits in Parquet are counted too.
    """
    from geomi.archive.query import parse_time, seconds_of
    from geomi.cluster.harvest import harvest
    from geomi.errors import OperatorError
    from geomi.history.harvest import total

    if as_csv + as_markdown + as_json > 1:
        raise OperatorError("--json, --csv and --markdown: wanted one of them")
    start, end = (
        seconds_of(text) if (text := parse_time(name, given, pad="0")) else other
        for name, given, other in (("--from", since, 0.0), ("--to", until, 1e18))
    )
    with opened(collection) as (place, _, store):
        rows = harvest(store, lambda name: str(place.path / name), label=by, since=start, until=end)
    everything = total(rows)
    if as_json:
        for row in [*rows, everything]:
            output.print_json_line({by: row.name, **_facts(row)})
    elif as_csv:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow([by, *_facts(everything)])
        out.writerows([output.plain(row.name), *_facts(row).values()] for row in rows)
    elif as_markdown:
        for line in _markdown([by, *_HEADERS], [_cells(row) for row in [*rows, everything]]):
            output.print_line(line)
    else:
        output.table([by, *_HEADERS], [_cells(row) for row in [*rows, everything]])
    return 0


_HEADERS = ("bytes", "found", "without duplicates", "stored bytes", "success",
            "not sent again", "kept as revisit", "meaningless")  # fmt: skip


def _facts(row: Harvest) -> dict[str, Any]:
    return {
        "seeds": row.seeds, "bytes": row.bytes, "found": row.found, "distinct": row.distinct,
        "stored_bytes": row.stored_bytes,
        "success": None if row.success is None else round(row.success, 6),
        "same": row.same, "same_bytes": row.same_bytes,
        "identical": row.identical, "identical_bytes": row.identical_bytes,
        "void": row.void, "void_bytes": row.void_bytes,
    }  # fmt: skip


def _cells(row: Harvest) -> list[object]:
    return [
        row.name, row.bytes, row.found, row.distinct, row.stored_bytes,
        "" if row.success is None else f"{100 * row.success:.2f}%",
        _saved(row.same, row.same_bytes), _saved(row.identical, row.identical_bytes),
        _saved(row.void, row.void_bytes),
    ]  # fmt: skip


def _saved(number: int, size: int) -> str:
    return f"{number:,} ({output.human_bytes(size)})" if number else ""


def _markdown(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    def line(cells: Sequence[object]) -> str:
        texts = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells)
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    return [line(headers), "|---|" + "---:|" * (len(headers) - 1), *map(line, rows)]
