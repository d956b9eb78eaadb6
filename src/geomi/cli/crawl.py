"""`geomi init` and `geomi crawl`."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated, Any

import typer

from geomi.cli.output import print_line
from geomi.cli.problems import failed_seeds, tell_problems
from geomi.cli.progress import Progress
from geomi.cluster.collection import Collection, NothingYet
from geomi.cluster.drive import Drive, Ending
from geomi.cluster.engines import engine_of
from geomi.cluster.given import must_be_there
from geomi.errors import OperatorError
from geomi.keys import is_bare_secret
from geomi.seeds.lists import Seed, given_seeds, read_seeds
from geomi.store.address import named

#: Options that belong to one crawl command, not to the collection.
_PASSING = frozenset({
    "crawl.max_visits", "crawl.max_time_s", "crawl.max_bytes", "crawl.agents", "cluster.engine",
    "cluster.address",
})  # fmt: skip


def register(app: typer.Typer) -> None:
    app.command()(init)
    app.command()(crawl)


def init(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="Directory to make.")],
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="TABLE.KEY=VALUE", help="Setting as table.key=value; repeatable."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="PostgreSQL: postgresql://user@host/database, perhaps with ?schema=NAME.",
        ),
    ] = None,
) -> None:
    """Make an empty collection with a commented geomi.toml, and its tables in PostgreSQL."""
    from geomi import config

    place = Collection(collection)
    given = _with_store(place, config.load(Path(os.devnull), sets or [], options={"store": store}))
    settings = config.load(Path(os.devnull), sets or [], options=given)
    if given and not place.exists:
        must_be_there(place, settings)
    place.create(_from_sets(settings, sets or []) | given, settings.site, settings=settings)
    typer.echo(f"{collection}: made; edit {collection}/geomi.toml, then: geomi crawl {collection}")


def crawl(
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="The collection; made if it is not there.")
    ],
    urls_: Annotated[list[str] | None, typer.Argument(metavar="[URL]...", help="Seeds.")] = None,
    seeds: Annotated[
        list[Path] | None,
        typer.Option("--seeds", metavar="FILE", help="File of seeds: a list, sitemap or feed."),
    ] = None,
    manners: Annotated[
        str | None,
        typer.Option(metavar="polite|paper|own", help="Preset of rests: polite, paper or own."),
    ] = None,
    own: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="A host of yours, HOST[:PORT] or *.example.org: no rest; repeatable.",
        ),
    ] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CIDR", help="A private network that may be visited, as 10.0.0.0/8; repeatable."
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="site|prefix|domain", help="What a seed covers: site, prefix or domain."
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Regular expression a URL must match; repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Regular expression of URLs to leave out; repeatable."),
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="Most links from the seed.")
    ] = None,
    max_pages: Annotated[
        int | None, typer.Option(metavar="N", help="Most pages of one seed.")
    ] = None,
    max_visits: Annotated[
        int | None, typer.Option(metavar="N", help="Most visits of this crawl.")
    ] = None,
    max_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop after so many seconds.")
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option(metavar="N", help="Stop after so many bytes.")
    ] = None,
    requisites: Annotated[
        bool | None,
        typer.Option("--requisites/--no-requisites", help="Images, styles, scripts of pages."),
    ] = None,
    agents: Annotated[int | None, typer.Option(metavar="N", help="Agent processes.")] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="local|ray", help="What carries the agents: local or ray.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="The Ray cluster, HOST:PORT; default: this machine's."
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Where another crawl goes on, begin when it has ended.")
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="PostgreSQL: end another crawl of it, wherever it runs."),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Visit all known pages once more, as a new run.")
    ] = False,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="TABLE.KEY=VALUE", help="Setting as table.key=value; repeatable."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
) -> int:
    """Crawl: begin, or go on where the last crawl of the collection stopped.

    Exit code 0: ended by itself. 1: stopped by a limit, a signal or the disk. 2: a command or
    setting is wrong.
    """
    options: dict[str, Any] = {
        "manners.preset": manners,
        "manners.own": own or None,
        "guard.allow_networks": allow_network or None,
        "crawl.scope": scope,
        "crawl.include": include or None,
        "crawl.exclude": exclude or None,
        "crawl.max_depth": max_depth,
        "crawl.max_pages": max_pages,
        "crawl.max_visits": max_visits,
        "crawl.max_time_s": max_time,
        "crawl.max_bytes": max_bytes,
        "crawl.requisites": requisites,
        "crawl.agents": agents,
        "cluster.engine": engine,
        "cluster.address": address,
    }
    given = {name: value for name, value in options.items() if value is not None}
    place = Collection(collection)
    found = _seeds(urls_ or [], seeds or [])
    is_new = not place.exists
    settings = place.settings(sets or [], given)  # checked before anything is made
    if is_new:
        if not found:
            raise OperatorError(
                f"{collection}: a new collection needs a seed: a URL, or --seeds FILE"
            )
        shared = _with_store(place, settings)
        settings = place.settings(sets or [], given | shared)
        must_be_there(place, settings)
        kept = _from_sets(settings, sets or [])
        kept |= {name: value for name, value in given.items() if name not in _PASSING}
        place.create(kept | shared, settings.site, settings=settings)
        settings = place.settings(sets or [], given | shared)
    else:
        settings = _as_last(place, sets or [], given, has_seeds=bool(found))
    must_be_there(place, settings)
    kept_options = {name: value for name, value in given.items() if name not in _PASSING}
    with engine_of(settings) as carrier, ExitStack() as held:
        helm = place.coordinate(settings, wait=wait, take_over=take_over, tell=_say)
        held.callback(helm.release)
        store = held.enter_context(closing(place.open_store(settings)))
        store.fence = helm.fence
        progress = held.enter_context(Progress(store, settings, is_quiet=as_json))
        drive = Drive(
            place, settings, store, engine=carrier, check=helm.check, told=progress.told,
            warn=progress.warn,
        )  # fmt: skip
        ending = drive.crawl(
            found, again=again, options={"sets": sets or [], "options": kept_options}
        )
        if settings.archive.scan and ending.why not in ("interrupted", "disk"):
            from geomi.cluster.scanning import Scanner

            Scanner(place, store, settings, has_helm=True).run()
        failed = [] if as_json or ending.why else failed_seeds(store, collection)
    if as_json:
        print(json.dumps(_facts(collection, ending)))
    else:
        _tell(collection, ending)
        for line in failed:
            print_line(line)
    return 1 if ending.why else 0


def _say(text: str) -> None:
    print(f"geomi: {text}", file=sys.stderr, flush=True)


def _with_store(place: Collection, settings: Any) -> dict[str, Any]:
    """The store to write into a new geomi.toml: its address, with a schema."""
    if not settings.store:
        return {}
    if is_bare_secret("store", settings.store):
        raise OperatorError("store: a password would be seen by all; write user:env:NAME@host")
    return {"store": named(settings.store, place.path.absolute().name)}


def _as_last(place: Collection, sets: list[str], given: dict[str, Any], *, has_seeds: bool) -> Any:
    """Settings of a collection: an unfinished run keeps the options it was begun with.

    OperatorError, and nothing is changed, where there is no seed at all.
    """
    from geomi.cluster import tables
    from geomi.cluster.coordinator import NO_SEED, must_have_seeds

    settings = place.settings(sets, given)
    if settings.store != place.settings().store:
        raise OperatorError(
            f"{place.path}: its store is another; geomi store move takes it elsewhere"
        )
    try:
        store = place.read_store(settings)
    except NothingYet:
        if not has_seeds:
            raise OperatorError(NO_SEED) from None
        return settings
    try:
        last = tables.last_run(store)
        if not has_seeds:
            must_have_seeds(store)
    finally:
        store.close()
    if last is None or last[2] == "done":
        return settings
    before = json.loads(last[6])
    merged = {**before.get("options", {}), **given}
    return place.settings([*before.get("sets", []), *sets], merged)


def _from_sets(settings: Any, sets: list[str]) -> dict[str, Any]:
    """What --set gave, by full name, for a new geomi.toml."""
    from geomi.keys import KEYS

    names = set()
    for text in sets:
        name = text.partition("=")[0].strip()
        full = [key for key in KEYS if key == name or key.endswith("." + name)]
        if not full:
            full = [key for key in KEYS if name.startswith(key + ".")]
        names.update(full[:1])
    found = {}
    for name in names:
        value: Any = settings
        for part in name.split("."):
            value = getattr(value, part)
        found[name] = value
    return {name: value for name, value in found.items() if name not in _PASSING}


def _seeds(texts: list[str], files: list[Path]) -> list[Seed]:
    found = given_seeds(texts)
    for path in files:
        seeds, problems = read_seeds(path)
        if not seeds:
            why = f": {problems[0].what}" if problems else ""
            raise OperatorError(f"{path}: no seed in it{why}")
        tell_problems([(path, problem) for problem in problems])
        found += seeds
    return found


def _facts(collection: Path, ending: Ending) -> dict[str, Any]:
    at = ending.standing
    return {
        "collection": str(collection),
        "run": ending.run,
        "ended": ending.why or "by itself",
        "seconds": round(ending.seconds, 3),
        "restarts": ending.restarts,
        "pages": {"known": at.known, "pending": at.pending, "by_outcome": at.outcomes},
        "visits": at.visits,
        "requests": at.requests,
        "bytes": at.size_bytes,
    }


def _tell(collection: Path, ending: Ending) -> None:
    at = ending.standing
    outcomes = ", ".join(f"{name} {number}" for name, number in at.outcomes.items())
    print(f"{collection}: {at.known} pages known, {at.visits} visits, {at.size_bytes} bytes,"
          f" {ending.seconds:.1f} s")  # fmt: skip
    print(f"outcomes: {outcomes or 'none'}")
    if at.pending:
        print(f"{at.pending} pages wait; see: geomi status {collection}")
    if ending.why:
        print(f"stopped: {ending.why}; go on with: geomi crawl {collection}")
