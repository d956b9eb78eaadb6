"""`geomi archive restore`: a copy that needs no other file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geomi.cli import output


def register(app: typer.Typer) -> None:
    app.command()(restore)


def restore(
    collection: Annotated[Path, typer.Argument(help="Directory of the collection.")],
    destination: Annotated[Path, typer.Argument(help="A directory outside the collection.")],
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Write a self-contained copy of the archive: every revisit is a response again.

    WARC files and their indexes; the collection stays as it is. Stopped, the same command goes on.
    Exit code 1: some could not be restored. 2: a crawl runs, or the directory lies in the archive.
    """
    from geomi.cli.archive_rewrite import teller
    from geomi.cluster.collection import Collection
    from geomi.cluster.restoring import Restoring
    from geomi.cluster.workplace import held

    with held(Collection(collection)) as here:
        made = Restoring(here, destination, tell=teller(here.check, is_quiet=as_json)).run()
    if as_json:
        output.print_json_line({
            "collection": str(collection), "destination": made.destination, "files": made.files,
            "there": made.there, "bytes": made.size_bytes, "responses": made.responses,
            "left": [{"file": name, "why": why} for name, why in made.left],
        })  # fmt: skip
    else:
        for name, why in made.left:
            output.print_line(f"{name}: {why}")
        before = f", {made.there:,} were there" if made.there else ""
        output.print_line(
            f"{made.destination}: {made.files:,} files, {output.human_bytes(made.size_bytes)}"
            f"{before}; {made.responses:,} revisits are responses there"
        )
    return 1 if made.left else 0
