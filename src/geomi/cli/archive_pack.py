"""`geomi archive pack`: a collection, or a part of it, as one WACZ file."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from geomi.cli import output
from geomi.cli.look import AsJson, CollectionPath, opened

_TELL_S = 2.0  # between lines of progress
_LISTED = 10


def register(into: typer.Typer) -> None:
    into.command()(pack)


def pack(
    collection: CollectionPath,
    file: Annotated[Path, typer.Argument(metavar="FILE.wacz", help="The package to write.")],
    site: Annotated[
        list[str] | None,
        typer.Option(
            "--site", metavar="HOST", help="Only this host, or *.HOST with all below; repeatable."
        ),
    ] = None,
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Only captures from then on: 202611.")
    ] = "",
    until: Annotated[
        str, typer.Option("--to", metavar="TIME", help="Only captures up to then: 20261118.")
    ] = "",
    self_contained: Annotated[
        bool,
        typer.Option(
            "--self-contained",
            help="Revisits that refer to what is not in the package become responses.",
        ),
    ] = False,
    text: Annotated[
        bool, typer.Option("--text", help="With the text of each page, to be searched.")
    ] = False,
    title: Annotated[
        str, typer.Option("--title", help="What the package is called; default: the collection.")
    ] = "",
    created: Annotated[
        str,
        typer.Option("--created", metavar="TIME", help="Say that it was made then; default: now."),
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Write it in the place of a file that is there.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Pack the collection, or a part of it, as one WACZ file for ReplayWeb.page and others.

    Of a crawl that is running it takes what is committed. Exit code 1: revisits should have become
    responses and their original was not to be had, or files lie on other nodes.
    """
    from geomi.archive.query import parse_time, seconds_of
    from geomi.archive.selection import selection_of
    from geomi.cluster.index import indexed
    from geomi.cluster.pack import Order
    from geomi.cluster.pack import pack as write

    selection = selection_of(site or [], since, until)
    moment = parse_time("--created", created, pad="0")
    began = last = time.monotonic()

    def tell(done: int, every: int, what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if not as_json and now - last > _TELL_S:
            last = now
            share = 100 * done / every if every else 0.0
            print(f"{output.plain(what)}: {share:.0f} %", file=sys.stderr, flush=True)

    with opened(collection) as (place, _, store), indexed(place, store) as index:
        order = Order(
            selection=selection,
            created=seconds_of(moment) if moment else datetime.now(UTC).timestamp(),
            title=title or place.path.absolute().name,
            self_contained=self_contained, text=text, replace=replace,
        )  # fmt: skip
        done = write(store, index, file, order, tell=tell)
        elsewhere = len(index.elsewhere)
    fell_short = elsewhere > 0 or (self_contained and done.missing_number > 0)
    if as_json:
        output.print_json_line({
            "file": done.path, "bytes": done.bytes, "warc_files": done.files,
            "captures": done.captures, "pages": done.pages, "unfolded": done.unfolded,
            "outside": done.outside, "requires": done.requires,
            "missing": done.missing_number, "elsewhere": elsewhere,
            "seconds": round(time.monotonic() - began, 3),
        })  # fmt: skip
        return 1 if fell_short else 0
    output.print_line(
        f"{file}: {done.captures:,} captures, {done.pages:,} pages,"
        f" {output.human_bytes(done.bytes)}"
    )
    if done.unfolded:
        output.print_line(f"{done.unfolded:,} revisits became responses")
    if done.outside:
        output.print_line(
            f"{done.outside:,} revisits refer to what is not in it; it says so in relation.requires"
        )
    for one in done.missing[:_LISTED]:
        output.print_line(f"{one.name} at {one.offset}: revisit without its payload: {one.what}")
    if elsewhere:
        print(f"geomi: {elsewhere} files lie on other nodes and are left out", file=sys.stderr)
    return 1 if fell_short else 0
