"""`geomi archive check`: structure, digests, references and indexes of archives, proved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomi.cli import output

if TYPE_CHECKING:
    from geomi.cluster.checked import Report

Archives = Annotated[
    list[Path],
    typer.Argument(metavar="COLLECTION|FILE…", help="Collections, WARC or WACZ files, folders."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Facts for another program.")]


def register(app: typer.Typer) -> None:
    if "check" not in (command.name for command in app.registered_commands):
        app.command("check")(check)


def check(
    archives: Archives,
    salvage: Annotated[
        Path | None,
        typer.Option(
            "--salvage", metavar="DIRECTORY",
            help="Write what is whole of damaged files to new files there.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:  # fmt: skip
    """Prove archives: structure, checksums, digests, what revisits refer to, index lines.

    What is named together is one archive. Nothing is changed. Exit code 0: all is sound; 1: not.
    """
    from geomi import clock
    from geomi.cli.archive_progress import Bar
    from geomi.cluster.checked import check as look_at

    with Bar(is_quiet=as_json) as bar:
        report = look_at(archives, now=clock.now(), tell=bar.told, salvage_to=salvage)
    if as_json:
        output.print_json_line(_facts(report))
    else:
        _print(report)
    return 0 if report.ok else 1


def _facts(report: Report) -> dict[str, Any]:
    return {
        "ok": report.ok,
        "found": report.found,
        "problems": [
            {"file": one.file, "offset": one.offset, "what": one.what} for one in report.problems
        ],
        "counts": dict(sorted(report.counts.items())),
        "salvaged": [
            {"file": one.path, "records": one.records, "gaps": one.gaps,
             "lost_bytes": one.lost_bytes}
            for one in report.salvaged
        ],
    }  # fmt: skip


def _print(report: Report) -> None:
    say = output.print_line
    for one in report.problems:
        say(str(one))
    if more := report.found - len(report.problems):
        say(f"{more:,} more problems")
    counts = report.counts
    kinds = {
        name.partition(".")[2]: number
        for name, number in sorted(counts.items())
        if name.startswith("records.") and number
    }
    say(f"{counts['files']:,} files, {output.human_bytes(counts['bytes'])},"
        f" {counts['records']:,} records: "
        + ", ".join(f"{number:,} {name}" for name, number in kinds.items()))  # fmt: skip
    if kinds.get("revisit"):
        ways = {name: counts[f"revisits.{name}"] for name in _ways()}
        by = ", ".join(f"{number:,} by {name}" for name, number in ways.items() if number)
        say(f"revisits: {by or 'none'} resolved; {counts['revisits.same file']:,} within their"
            f" file, {counts['revisits.elsewhere']:,} in another,"
            f" {counts['revisits.unresolved']:,} unresolved")  # fmt: skip
    if counts["index lines"]:
        say(f"{counts['index lines']:,} index lines")
    if away := counts["files elsewhere"]:
        say(f"{away:,} files lie on other nodes and were not looked at")
    for done in report.salvaged:
        say(f"{done.path}: {done.records:,} whole records, {done.gaps:,} places left out"
            f" ({output.human_bytes(done.lost_bytes)})")  # fmt: skip
    say("ok" if report.ok else f"{report.found:,} problems")


def _ways() -> tuple[str, ...]:
    from geomi.archive.links import ANSWERS

    return ANSWERS
