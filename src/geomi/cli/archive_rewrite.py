"""`geomi archive rewrite`: duplicates in finished files become revisits."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomi.cli import output

if TYPE_CHECKING:
    from geomi.cluster.rewriting import Done, Tell

_TELL_S = 2.0  # between lines about the same work


def register(app: typer.Typer) -> None:
    app.command()(rewrite)


def rewrite(
    collection: Annotated[Path, typer.Argument(help="Directory of the collection.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
    ] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Take back a rewrite that was begun and not ended.")
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Remove the files of before; nothing else is done.")
    ] = False,
    recompress: Annotated[
        bool, typer.Option("--recompress", help="Deflate every record anew, denser.")
    ] = False,
    level: Annotated[
        int,
        typer.Option(
            min=1, max=9, metavar="N", help="Level of --recompress: 1-3 ISA-L, 4-9 zlib-ng."
        ),
    ] = 6,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="Status 304 and no Last-Modified in revisits, as paper 004 has it."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Make revisits of duplicates in closed WARC files; the earliest capture keeps the payload.

    Confirmed meaningless pages are kept once, what no visit names is left out. Each file is written
    anew beside the old one, proved, and switched in one transaction; the old one stays until
    --purge. Stopped, the same command goes on. Exit code 1: some files were left as they are. 2: a
    crawl runs, or there is nothing to take back.
    """
    from geomi.archive import rewrite_tables
    from geomi.cluster.collection import Collection
    from geomi.cluster.rewriting import Rewriting, Wish
    from geomi.cluster.workplace import held, seen
    from geomi.errors import OperatorError

    if sum((dry_run, abort, purge)) > 1:
        raise OperatorError("--dry-run, --abort and --purge: wanted one of them at most")
    place = Collection(collection)
    with (seen if dry_run else held)(place) as here:
        work = Rewriting(here.shell, folder_of=here.folder_of,
                         tell=teller(here.check, is_quiet=as_json))  # fmt: skip
        if purge:
            number, size = work.purge()
            facts: dict[str, Any] = {"collection": str(collection), "purged": number, "bytes": size}
            text = f"{number:,} old files removed, {output.human_bytes(size)}"
            _print(facts, as_json, f"{collection}: {text}")
            return 0
        if abort:
            number = work.abort()
            _print({"collection": str(collection), "switched_back": number}, as_json,
                   f"{collection}: as it was before the rewrite; {number:,} files were switched"
                   " back")  # fmt: skip
            return 0
        wish = Wish(level=here.settings.archive.level, dense=level if recompress else 0,
                    paper=paper)  # fmt: skip
        meaningless = rewrite_tables.meaningless(here.store)
        if dry_run:
            counts = work.plan(wish, meaningless=meaningless, sink=lambda _: None)
            facts = {"collection": str(collection), "dry_run": True, "planned": counts}
            _print(facts, as_json, f"{collection}: nothing was changed")
            if not as_json:
                _plan(counts)
            return 0
        done = work.run(wish, meaningless=meaningless)
    _report(collection, done, as_json=as_json)
    return 1 if done.left or done.planned.get("elsewhere") else 0


def teller(check: Any, *, is_quiet: bool) -> Tell:
    """A line now and then: how far, how much, which file. `check` is asked each time."""
    told_at = 0.0

    def tell(done: int, every: int, file: str) -> None:
        nonlocal told_at
        check()
        if not is_quiet and file and time.monotonic() - told_at > _TELL_S:
            told_at = time.monotonic()
            sizes = f"{output.human_bytes(done)} of {output.human_bytes(every)}"
            print(f"{sizes}: {file}", file=sys.stderr, flush=True)

    return tell


def _print(facts: dict[str, Any], as_json: bool, text: str) -> None:
    if as_json:
        output.print_json_line(facts)
    else:
        output.print_line(text)


_WORDS = {
    "captures": "responses looked at",
    "duplicates": "duplicates",
    "meaningless": "of them, confirmed meaningless",
    "duplicate_bytes": "bytes of duplicates, as stored",
    "held": "duplicates that stay: a 304 has its headers from them",
    "pointed": "revisits that will refer to another record",
    "orphans": "extents of no visit",
    "orphan_bytes": "bytes of those",
    "unsound": "responses that are not what they promise: nothing refers to them",
    "elsewhere": "records on other nodes: gather them first",
}


def _plan(counts: dict[str, int]) -> None:
    output.table(
        ("planned", ""),
        [(words, counts[name]) for name, words in _WORDS.items() if counts.get(name)],
    )


def _report(collection: Path, done: Done, *, as_json: bool) -> None:
    saved = done.before_bytes - done.after_bytes
    if as_json:
        output.print_json_line({
            "collection": str(collection), "planned": done.planned, "files": done.files,
            "bytes_before": done.before_bytes, "bytes_after": done.after_bytes,
            "saved": saved, "done": dict(done.actions),
            "left": [{"file": name, "why": why} for name, why in done.left],
        })  # fmt: skip
        return
    _plan(done.planned)
    for name, why in done.left:
        output.print_line(f"{name}: left as it is: {why}")
    output.print_line(
        f"{collection}: {done.files:,} files rewritten, {output.human_bytes(done.before_bytes)}"
        f" became {output.human_bytes(done.after_bytes)}"
        + ("; the old ones stay until --purge" if done.files else "")
    )
