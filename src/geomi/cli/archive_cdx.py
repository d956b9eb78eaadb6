"""`geomi archive cdx`: look up captures, or serve look-ups to replay tools."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from geomi.cli import output
from geomi.cli.look import AsJson, CollectionPath, opened


def register(into: typer.Typer) -> None:
    into.command()(cdx)


def cdx(
    collection: CollectionPath,
    query: Annotated[
        str,
        typer.Option("--query", metavar="QUERY", help="Answer this one: 'url=…&matchType=prefix'."),
    ] = "",
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8081,
    as_json: AsJson = False,
) -> int:
    """Serve look-ups in the index as a CDX server, and the WARC files by name and range.

    pywb takes /cdx as index and /archive/ as archive path. Without --query it serves until it is
    stopped. Captures are found as soon as their batch is committed.
    """
    from geomi.cluster.cdx_server import CdxServer, look_up
    from geomi.cluster.index import indexed

    with opened(collection) as (place, _, store), indexed(place, store) as index:
        if index.elsewhere:
            print(
                f"geomi: {len(index.elsewhere)} files lie on other nodes and are left out;"
                " geomi cluster gather brings them here",
                file=sys.stderr,
            )
        if query:
            asked, found = look_up(index, f"{query}&output=json" if as_json else query)
            for line in found.lines:
                output.print_line(line.decode("utf-8", "replace").rstrip("\n"))
            if found.resume:
                more = found.resume if asked.shows_resume else "add showResumeKey=1 to see where"
                print(output.plain(f"geomi: there is more: {more}"), file=sys.stderr)
            return 0

        def ready(url: str) -> None:
            if as_json:
                output.print_json_line({"cdx": f"{url}/cdx", "archive": f"{url}/archive/"})
            else:
                output.print_line(f"{collection}: {url}/cdx and {url}/archive/; stop with Ctrl-C")
            sys.stdout.flush()

        CdxServer(index, bind=bind, port=port).run(ready)
    return 0
