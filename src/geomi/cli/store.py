"""`geomi store`: where a collection keeps its state."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from geomi.cli import output

app = typer.Typer(no_args_is_help=True)

_TELL_S = 2.0  # between lines about one table


def register(into: typer.Typer) -> None:
    into.add_typer(app, name="store", help="Where a collection keeps its state.")


@app.callback()
def _group() -> None:
    """One command so far; without this it would have no name."""


@app.command()
def move(
    collection: Annotated[Path, typer.Argument(help="Directory of the collection.")],
    destination: Annotated[
        str,
        typer.Argument(help="postgresql://user@host/database[?schema=NAME], or sqlite."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Take the state from SQLite to PostgreSQL, or back. The archive stays where it is.

    All or nothing: only when every row is there and counted, geomi.toml names the new store. The
    old one is kept under another name. Exit code 2: a crawl runs, or something is there already.
    """
    from geomi.cluster.collection import Collection
    from geomi.cluster.transfer import move as take

    told: dict[str, float] = {}

    def tell(table: str, done: int, every: int) -> None:
        now = time.monotonic()
        if not as_json and now - told.setdefault(table, now) > _TELL_S and done < every:
            told[table] = now
            print(f"{table}: {done:,} of {every:,} rows", file=sys.stderr, flush=True)

    moved = take(Collection(collection), destination, tell=tell)
    if as_json:
        output.print_json_line({
            "collection": str(collection), "to": moved.to, "kept": moved.kept, "rows": moved.rows,
            "seconds": round(moved.seconds, 3),
        })  # fmt: skip
    else:
        output.table(("table", "rows"), sorted(moved.rows.items()))
        output.print_line(
            f"{collection}: {sum(moved.rows.values()):,} rows are in {moved.to} now"
            f" ({moved.seconds:.1f} s); the old state is kept as {moved.kept}"
        )
    return 0
