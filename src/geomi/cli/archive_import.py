"""`geomi archive import`: archives that others made become part of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geomi.cli import output

if TYPE_CHECKING:
    from geomi.cluster.imports import Report


def register(app: typer.Typer) -> None:
    if "import" not in (command.name for command in app.registered_commands):
        app.command("import")(take_in)


def take_in(
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="Directory of the collection.")
    ],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="WARC or WACZ files, or folders.")
    ],
    link: Annotated[
        bool,
        typer.Option("--link", help="Hard links where a file can be taken as it is, no copies."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Take WARC and WACZ files into a collection: captures become visits and pages.

    A file is in or not, and in only once; a stopped import goes on when it is run again. Exit code
    0: all are in; 1: some were refused.
    """
    from contextlib import closing

    from geomi.cli.archive_progress import Bar
    from geomi.cluster.collection import Collection
    from geomi.cluster.imports import import_files
    from geomi.errors import OperatorError

    place = Collection(collection).must_exist()
    settings = place.settings()
    for path in files:
        if not path.exists():
            raise OperatorError(f"{path}: no such file or folder")
    helm = place.coordinate(settings)
    try:
        with closing(place.open_store(settings)) as store, Bar(is_quiet=as_json) as bar:
            store.fence = helm.fence
            report = import_files(place, store, settings, files, link=link, tell=bar.told)
    finally:
        helm.release()
    if as_json:
        _print_json(report)
    else:
        _print(report)
    return 0 if report.ok else 1


def _print_json(report: Report) -> None:
    for one in report.files:
        output.print_json_line({
            "source": one.source, "state": one.state, "name": one.name or None, "how": one.how,
            "captures": one.captures, "left_out": one.left_out, "why": one.why,
        })  # fmt: skip


def _print(report: Report) -> None:
    for one in report.files:
        if one.state == "refused":
            text = f"refused: {one.why}"
        elif one.state == "there":
            text = f"{one.source}: is in already, as {one.name} ({one.captures:,} captures)"
        else:
            text = f"{one.source}: {one.how} to {one.name}, {one.captures:,} captures"
            if one.left_out:
                text += f"; {one.left_out:,} without a web address or a date are no pages"
        output.print_line(text)
