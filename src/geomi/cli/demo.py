"""`geomi demo`: the main job end to end on the embedded sample web."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from geomi.cli import output
from geomi.errors import OperatorError

#: Rests that a server of one's own on the same machine can bear; faults are tried again at once.
_MANNERS = (
    "manners.rest_s=0.02", "manners.rest_factor=0", "manners.address_rest_s=0",
    "manners.connections=2", "retry.gap_s=0.2", "fetch.idle_s=2", "crawl.seen=exact",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="Where the collection is made.")
    ] = Path("demo"),
    sites: Annotated[
        int, typer.Option(metavar="N", min=1, max=2000, help="Sites of the sample web.")
    ] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Crawl the embedded sample web and show what was found. Needs no network."""
    from geomi.cluster.collection import Collection
    from geomi.cluster.verify import verify
    from geomi.frontier.counters import counter
    from geomi.world import Params, reachable, serve
    from geomi.world.features import PROMPT

    _make_room(collection)
    with serve(Params(seed=1, sites=sites, pages=25, shares=PROMPT)) as running:
        _crawl(collection, running, is_quiet=as_json)
        wanted = reachable(running.world, running.seeds())
    place = Collection(collection)
    settings = place.settings()
    store = place.read_store(settings)
    try:
        got: dict[str, str] = dict(store.all("SELECT url, outcome FROM pages"))
        report = verify(store, where=place.archive_path, directories=settings.archive.directories)
        facts: dict[str, Any] = {
            "collection": str(collection),
            "sites": _number(store, "SELECT count(*) FROM sites"),
            "pages": len(got),
            "outcomes": dict(
                store.all("SELECT outcome, count(*) FROM pages GROUP BY outcome ORDER BY 2 DESC")
            ),
            "types": dict(
                store.all(
                    "SELECT mime, count(*) FROM pages WHERE outcome = 'OK' GROUP BY mime"
                    " ORDER BY 2 DESC LIMIT 6"
                )
            ),
            "bytes": counter(store, "bytes"),
            "stored_bytes": _number(store, "SELECT sum(committed) FROM files"),
            "reachable": len(wanted),
            "as_reachable": got == {url: one.outcome for url, one in wanted.items()},
            "verified": report.ok,
        }
        example = store.one(
            "SELECT url FROM pages WHERE outcome = 'OK' AND depth = 2 AND kind = 'a'"
            " ORDER BY page LIMIT 1"
        )
    finally:
        store.close()
    if as_json:
        print(json.dumps(facts))
    else:
        _tell(collection, facts, str(example[0]) if example else "")
    return 0 if facts["as_reachable"] and facts["verified"] else 1


def _make_room(collection: Path) -> None:
    """An earlier demo is replaced; anything else is left alone."""
    if not collection.exists():
        return
    if not (collection / ".demo").is_file():
        raise OperatorError(f"{collection}: is there already, and no demo; name another directory")
    shutil.rmtree(collection)


def _crawl(collection: Path, running: Any, *, is_quiet: bool) -> None:
    from geomi.cli.progress import Progress
    from geomi.cluster.collection import Collection
    from geomi.cluster.drive import Drive
    from geomi.cluster.local import LocalEngine
    from geomi.seeds.lists import Seed

    place = Collection(collection)
    given = {
        "guard.allow_networks": ("127.64.0.0/10", "127.127.0.0/16"),
        "dns.servers": (f"127.0.0.1:{running.dns_port}",),
    }
    settings = place.settings(list(_MANNERS), given)
    place.create(given)
    (collection / ".demo").touch()
    lock = place.coordinate(settings)
    store = place.open_store(settings)
    try:
        with Progress(store, settings, is_quiet=is_quiet) as progress:
            drive = Drive(
                place, settings, store, engine=LocalEngine(), told=progress.told,
                warn=progress.warn,
            )  # fmt: skip
            drive.crawl(
                [Seed(url=url, source="demo") for url in running.seeds()],
                again=False, options={"sets": list(_MANNERS)},
            )  # fmt: skip
    finally:
        store.close()
        lock.release()


def _number(store: Any, sql: str) -> int:
    row = store.one(sql)
    return int(row[0] or 0) if row else 0


def _command() -> str:
    """How this program is called from here: by its name, or by its path where it is not found."""
    here = Path(sys.argv[0])
    if here.name != "geomi" or shutil.which("geomi"):
        return "geomi"
    return os.path.relpath(here)


def _tell(collection: Path, facts: dict[str, Any], example: str) -> None:
    geomi = _command()
    lines = [
        f"A sample web of {facts['sites']} sites was crawled into {collection}/",
        "",
        f"pages      {facts['pages']:,} known, {facts['reachable']:,} reachable by the rules:"
        f" {'the same' if facts['as_reachable'] else 'NOT the same'}",
        "outcomes   " + ", ".join(f"{name} {n:,}" for name, n in facts["outcomes"].items()),
        "types      " + ", ".join(f"{name or '?'} {n:,}" for name, n in facts["types"].items()),
        f"archive    {output.human_bytes(facts['stored_bytes'])} of WARC for"
        f" {output.human_bytes(facts['bytes'])} received",
        f"verify     {'store, WARC and CDXJ agree' if facts['verified'] else 'PROBLEMS FOUND'}",
        "",
        "Look around:",
        f"  {geomi} status {collection}",
        f"  {geomi} pages {collection} --outcome code",
        f"  {geomi} story {collection} '{example}'",
        f"  {geomi} verify {collection} --politeness",
        "Your own site, politely:",
        f"  {geomi} crawl mine https://www.example.org/",
    ]
    for line in lines:
        output.print_line(line)
