"""`geomi archive replay`: the archive in a browser, through pywb."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from geomi.cli import output
from geomi.cli.look import AsJson, CollectionPath, opened


def register(into: typer.Typer) -> None:
    into.command()(replay)


def replay(
    collection: CollectionPath,
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8080,
    as_json: AsJson = False,
) -> int:
    """Show what was archived in a browser, through pywb, until it is stopped.

    pywb reads indexes and WARC files where they lie: what was committed when it started. It is
    installed with the extra geomi[replay].
    """
    from geomi.cluster import replay as pywb
    from geomi.cluster.index import indexed

    pywb.must_be_installed()
    with opened(collection) as (place, _, store), indexed(place, store) as index:
        if index.elsewhere:
            print(f"geomi: {len(index.elsewhere)} files lie on other nodes and are left out",
                  file=sys.stderr)  # fmt: skip
        files = {file.name: file.paths for file in index.files()}
        with pywb.wayback(
            index.sources(most=pywb.INDEXES_MOST), files,
            name=place.path.absolute().name, bind=bind, port=port,
        ) as running:  # fmt: skip
            address = running.address
            if as_json:
                output.print_json_line({"replay": f"{address}/", "files": len(files)})
            else:
                output.print_line(
                    f"{collection}: {len(files)} WARC files at {address}/; stop with Ctrl-C"
                )
            sys.stdout.flush()
            running.wait()
    return 0
