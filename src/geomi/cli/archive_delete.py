"""`geomi archive delete`: captures removed for good, with a certificate."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from geomi.cli import output


def register(app: typer.Typer) -> None:
    app.command()(delete)


def delete(
    collection: Annotated[Path, typer.Argument(help="Directory of the collection.")],
    target: Annotated[
        str,
        typer.Argument(
            metavar="URL|SITE|DIGEST", help="A page, a whole site, or all of one payload."
        ),
    ] = "",
    purge: Annotated[
        bool,
        typer.Option("--purge", help="Remove the old files too, and rewrite the database."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a deletion that was begun.")
    ] = False,
    by: Annotated[
        str, typer.Option("--by", metavar="NAME", help="Who asked; default: the user.")
    ] = "",
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why, for the record.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Remove a page, a site or a payload from the archive for good.

    Records, indexes, history; the page stays as a tombstone that no crawl asks for. A capture that
    referred to one that goes gets the payload. Without --purge the old files stay on disk until
    `geomi archive rewrite --purge`. A certificate is written under reports/. Exit code 1: something
    is left, --resume goes on. 2: a crawl runs, or there is no such page.
    """
    from geomi.archive import rewrite_tables
    from geomi.cli.archive_rewrite import teller
    from geomi.cluster.collection import Collection
    from geomi.cluster.deleting import Deleting, certificate_name, target_of
    from geomi.cluster.indexes import sharers
    from geomi.cluster.rewriting import Rewriting
    from geomi.cluster.workplace import held
    from geomi.errors import OperatorError

    if resume == bool(target):
        raise OperatorError("wanted what to delete, or --resume")
    with (
        held(Collection(collection)) as here,
        sharers(here.collection, here.settings, here.store) as sharing,
    ):
        work = Rewriting(here.shell, folder_of=here.folder_of,
                         tell=teller(here.check, is_quiet=as_json))  # fmt: skip
        deleting = Deleting(here, work, sharing=sharing)
        job = rewrite_tables.under_way(here.store)
        if resume:
            if job is None or job.kind != "delete":
                raise OperatorError(f"{collection}: no deletion was begun, so none can go on")
        else:
            _must_be_free(job, collection)
            wanted = target_of(here.store, target)
            if dry_run or not yes:
                counts = deleting.plan(wanted, lambda _: None)
                _tell(collection, counts, as_json=as_json and dry_run)
                if dry_run:
                    return 0
                _ask(str(wanted))
            with here.store.transaction():
                if job is not None:
                    rewrite_tables.set_job(here.store, job.rewrite, "aborted", {}, here.store.now())
                job = rewrite_tables.begin(
                    here.store, "delete",
                    {
                        "kind": wanted.kind, "value": wanted.value, "purge": purge, "why": why,
                        "by": by or _who(), "level": here.settings.archive.level,
                    },
                    here.store.now(),
                )  # fmt: skip
        done = deleting.run(job)
        path = str(here.collection.path / certificate_name(job))
    facts = {name: value for name, value in done.planned.items() if name != "digests"}
    if as_json:
        output.print_json_line({
            "collection": str(collection), **facts, "files": done.files,
            "left": [{"file": name, "why": text} for name, text in done.left],
            "certificate": None if done.left else f"{path}.json",
        })  # fmt: skip
    else:
        for name, text in done.left:
            output.print_line(f"{name}: {text}")
        output.print_line(
            f"{collection}: not over; --resume goes on" if done.left else
            f"{collection}: {facts.get('records', 0):,} records are gone; {path}.txt"
        )  # fmt: skip
    return 1 if done.left else 0


def _must_be_free(job: Any, collection: Path) -> None:
    from geomi.errors import OperatorError

    if job is None or (job.kind, job.state) == ("delete", "planning"):
        return
    how = "`geomi archive delete --resume`" if job.kind == "delete" else (
        "`geomi archive rewrite`, or its --abort,"
    )  # fmt: skip
    raise OperatorError(f"{collection}: a {job.kind} was begun and is not over: {how} first")


def _tell(collection: Path, counts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json_line({"collection": str(collection), "dry_run": True, **counts})
        return
    output.print_line(
        f"{collection}: {counts['target']}: {counts.get('records', 0):,} records,"
        f" {output.human_bytes(counts.get('bytes', 0))}; {counts['payloads']:,} payloads would be"
        f" nowhere any more; {counts.get('response', 0):,} captures would get the payload"
    )


def _ask(what: str) -> None:
    from geomi.errors import OperatorError

    if not sys.stdin.isatty():
        raise OperatorError("nothing was deleted: say --yes, or answer at a terminal")
    if not typer.confirm(f"Delete {what} for good?", default=False):
        raise typer.Abort


def _who() -> str:
    return f"{getpass.getuser()} on {os.uname().nodename}"
