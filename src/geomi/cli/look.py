"""`geomi status`, `pages`, `story` and `verify`: what people look at. Read only.

Imports are inside functions: `status` answers within 0.2 s, Python's start included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomi.cli import output

if TYPE_CHECKING:
    from geomi.cluster.collection import Collection
    from geomi.config import Settings
    from geomi.history.politeness import Politeness, Server
    from geomi.store import Store

LATER_LISTED = 10

CollectionPath = Annotated[
    Path, typer.Argument(metavar="COLLECTION", help="Directory of the collection.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Facts for another program.")]


def register(app: typer.Typer) -> None:
    from geomi.cli.listing import pages

    app.command()(status)
    app.command()(pages)
    app.command()(story)
    app.command()(verify)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Collection, Settings, Store]]:
    """A collection as it stands, for reading, with the options of its last run."""
    import json

    from geomi.cluster import tables
    from geomi.cluster.collection import Collection
    from geomi.errors import OperatorError

    collection = Collection(path).must_exist()
    settings = collection.settings()
    store = collection.read_store(settings)
    try:
        last = tables.last_run(store)
        if last is not None:
            given = json.loads(last[6] or "{}")
            if given.get("sets") or given.get("options"):
                with suppress(OperatorError):  # geomi.toml has changed since
                    settings = collection.settings(given.get("sets", []), given.get("options", {}))
        yield collection, settings, store
    finally:
        store.close()


# -- status ----------------------------------------------------------------------------------------


def status(collection: CollectionPath, as_json: AsJson = False) -> int:
    """How far the crawl is: pages, visits, agents, and what waits."""
    with opened(collection) as (_, settings, store):
        facts = standing_facts(store, settings, now=store.now())
    if as_json:
        output.print_json_line(facts)
    else:
        _print_status(collection, facts)
    return 0


def standing_facts(store: Store, settings: Settings, *, now: float) -> dict[str, Any]:
    """Counters, not counts: the same cost for a thousand pages and for ten million."""
    from geomi.cluster import tables
    from geomi.cluster.standing import standing

    at = standing(store, patience_s=settings.crawl.patience, now=now)
    files = store.one(
        "SELECT count(*), count(*) FILTER (WHERE state = 'open'), coalesce(sum(committed), 0)"
        " FROM files"
    ) or (0, 0, 0)
    seeds = store.one("SELECT count(*) FROM seeds") or (0,)
    is_bloom = settings.crawl.seen == "bloom"
    last = tables.last_run(store)
    agents = _agents(store)
    run = None
    if last is not None:
        state = last[2]
        if state == "running" and not any(agent["is_alive"] for agent in agents):
            state = "interrupted"
        run = {
            "run": last[0], "kind": last[1], "state": state, "why": last[3],
            "started": last[4], "ended": last[5] or None,
        }  # fmt: skip
    return {
        "pages": {"known": at.known, "pending": at.pending, "by_outcome": at.outcomes},
        "visits": at.visits,
        "requests": at.requests,
        "bytes": at.size_bytes,
        "counters": at.counters,
        "run": run,
        "agents": agents,
        "sites": {
            "held": at.held,
            "due": at.due,
            "waiting_later": at.waiting_later,
            "soonest": at.next_due or None,
            "later": _later(store, now + settings.crawl.patience) if at.pending else [],
        },
        "letters": bool(at.letters),
        "seeds": seeds[0],
        "seen_expected_loss": at.known * settings.crawl.seen_error if is_bloom else 0.0,
        "files": {"number": files[0], "open": files[1], "bytes": files[2]},
    }


def _agents(store: Store) -> list[dict[str, Any]]:
    """Agents that did not say goodbye; a dead one's work is taken over by the next crawl."""
    import json
    import os

    from geomi.cluster import tables

    found = []
    here = os.uname().nodename
    for agent, incarnation, host, pid, facts in tables.running_agents(store):
        said = json.loads(facts or "{}")
        found.append({
            "agent": agent, "incarnation": incarnation, "host": host, "pid": pid,
            "is_alive": host != here or _is_alive(pid),
            **{name: said.get(name, 0) for name in ("sites", "active", "resting", "flying")},
        })  # fmt: skip
    return found


def _is_alive(pid: int) -> bool:
    import os

    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _later(store: Store, soon: float) -> list[dict[str, Any]]:
    """Sites whose pages wait beyond patience, soonest first, with the reason."""
    from geomi.frontier.tables import CLOSED

    rows = store.all(
        "SELECT site, waiting, next_due, rest_until, state, why, failures FROM sites"
        " WHERE waiting > 0 AND holder = '' AND (state <> 'open'"
        " OR next_due > ? OR rest_until > ?)"
        " ORDER BY CASE WHEN next_due > rest_until THEN next_due ELSE rest_until END, site LIMIT ?",
        (soon, soon, LATER_LISTED),
    )
    return [
        {
            "site": site, "pages": waiting, "not_before": max(next_due, rest_until),
            "why": f"{state}: {why}" if state != "open"
            else f"its server failed {failures} times in a row" if failures
            else "it is outside its hours" if why == CLOSED
            else "its server asked for a rest" if rest_until >= next_due
            else "failed pages are tried again",
        }
        for site, waiting, next_due, rest_until, state, why, failures in rows
    ]  # fmt: skip


def _print_status(path: Path, facts: dict[str, Any]) -> None:
    say = output.print_line
    pages, run, sites = facts["pages"], facts["run"], facts["sites"]
    if run is None:
        say(f"{path}: no crawl yet")
    else:
        why = f", {run['why']}" if run["why"] else ""
        say(f"{path}: run {run['run']} ({run['kind']}) {run['state']}{why},"
            f" begun {output.human_time(run['started'])}")  # fmt: skip
    say(f"pages     {pages['known']:,} known, {pages['pending']:,} pending")
    outcomes = ", ".join(f"{name} {number:,}" for name, number in pages["by_outcome"].items())
    say(f"outcomes  {outcomes or 'none'}")
    say(f"visits    {facts['visits']:,} to pages, {facts['requests']:,} requests in all,"
        f" {output.human_bytes(facts['bytes'])} received")  # fmt: skip
    files = facts["files"]
    say(f"archive   {files['number']:,} files, {files['open']:,} open,"
        f" {output.human_bytes(files['bytes'])}")  # fmt: skip
    say(f"seeds     {facts['seeds']:,}; the seen-filter is expected to have missed"
        f" {facts['seen_expected_loss']:.2g} pages")  # fmt: skip
    if scripts := facts["counters"].get("scripts.only"):
        say(f"scripts   {scripts:,} visits to pages that are empty without scripts:"
            " geomi keeps them and does not render them")  # fmt: skip
    if merged := facts["counters"].get("alias.merged"):
        ends = ("withdrawn", "undone", "never")
        parted = sum(facts["counters"].get(f"alias.{end}", 0) for end in ends)
        skipped = facts["counters"].get("refused.alias", 0)
        say(f"aliases   {merged - parted:,} names are another name of a site, {parted:,} were;"
            f" {skipped:,} of their URLs were not asked for")  # fmt: skip
    say(f"sites     {sites['held']:,} held, {sites['due']:,} due,"
        f" {sites['waiting_later']:,} wait for later")  # fmt: skip
    for agent in facts["agents"]:
        how = "runs" if agent["is_alive"] else "is dead; the next crawl takes over"
        say(f"agent     {agent['agent']} (process {agent['pid']} on {agent['host']}) {how}:"
            f" {agent['sites']} sites, {agent['active']} active, {agent['resting']} resting,"
            f" {agent['flying']} requests under way")  # fmt: skip
    if sites["later"]:
        say()
        output.table(
            ("waits until", "pages", "site", "why"),
            [
                (output.human_time(one["not_before"]), one["pages"], one["site"], one["why"])
                for one in sites["later"]
            ],
        )


# -- story -----------------------------------------------------------------------------------------


def story(
    collection: CollectionPath,
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL, in any spelling.")],
    as_json: AsJson = False,
) -> int:
    """Why a page is here or not: found, asked, refused, kept, waiting, in order of time."""
    from geomi.cluster.story import story as story_of

    with opened(collection) as (place, settings, store):
        told = story_of(store, url, settings=settings, where=place.archive_path, now=store.now())
    if as_json:
        output.print_json_line({
            "url": told.url, "known": told.is_known, "outcome": told.outcome or None,
            "events": [
                {"time": event.at or None, "what": event.what, "text": event.text, **event.facts}
                for event in told.events
            ],
        })  # fmt: skip
    else:
        output.print_line(f"{told.url}: {told.outcome or 'not a page of this collection'}")
        for event in told.events:
            output.print_line(f"{output.human_time(event.at):19}  {event.text}")
    return 0 if told.is_known else 1


# -- verify ----------------------------------------------------------------------------------------


def verify(
    collection: CollectionPath,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out digests; sample the records of each file.")
    ] = False,
    politeness: Annotated[
        bool,
        typer.Option("--politeness", help="Look at the visits instead: gaps, rates, broken rules."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Prove that store and archive agree, or, with --politeness, that every server was rested.

    Exit code 0: nothing found. 1: problems.
    """
    with opened(collection) as (place, settings, store):
        if politeness:
            return _politeness(place, store, as_json=as_json)
        from geomi.cluster.indexes import Elsewhere
        from geomi.cluster.verify import verify as look_at

        elsewhere = Elsewhere(place, settings, store)
        report = look_at(
            store, where=place.archive_path, directories=settings.archive.directories, quick=quick,
            elsewhere=elsewhere,
        )  # fmt: skip
        elsewhere.close()
    if as_json:
        output.print_json_line({
            "ok": report.ok,
            "problems": [{"what": one.what, "where": one.where} for one in report.problems],
            "counts": report.counts,
        })  # fmt: skip
    else:
        counts = report.counts
        output.print_line(
            f"{collection}: {counts.get('pages.known', 0):,} pages,"
            f" {counts.get('requests', 0):,} visits, {counts.get('files', 0):,} files,"
            f" {counts.get('captures', 0):,} captures looked at"
        )
        if away := counts.get("files.elsewhere"):
            output.print_line(
                f"{away:,} files lie on other nodes and were not looked at"
                f" (geomi cluster gather {collection})"
            )
        for one in report.problems:
            output.print_line(f"{one.where}: {one.what}" if one.where else one.what)
        output.print_line("ok" if report.ok else f"{len(report.problems)} problems")
    return 0 if report.ok else 1


def _politeness(place: Collection, store: Store, *, as_json: bool) -> int:
    from geomi.cluster import politeness

    seen = politeness.check_politeness(
        store, lambda text: politeness.settings_of_run(place, text), where=place.archive_path
    )
    if as_json:
        output.print_json_line(_politeness_facts(seen))
    else:
        _print_politeness(place.path, seen)
    return 0 if seen.ok else 1


def _server(one: Server) -> dict[str, Any]:
    from geomi.history.politeness import WINDOWS_S

    return {
        "kind": one.kind, "name": one.name, "own": one.is_own, "requests": one.requests,
        "smallest_gap_s": one.smallest_gap_s, "violations": one.violations,
        "wanted_gap_s": one.wanted_s if one.violations else None,
        "seen_gap_s": one.seen_s if one.violations else None,
        "time": one.at if one.violations else None,
        "most_in": {f"{window_s}s": most
                    for window_s, most in zip(WINDOWS_S, one.most, strict=True)},
    }  # fmt: skip


def _politeness_facts(seen: Politeness) -> dict[str, Any]:
    return {
        "ok": seen.ok,
        "problems": [
            {"what": _broken(one), "where": f"{one.kind} {one.name}"}
            for one in seen.worst
            if one.violations
        ],
        "requests": seen.requests,
        "servers": seen.servers,
        "violations": seen.violations,
        "smallest_gap": {kind: _server(one) for kind, one in seen.smallest.items()},
        "greatest_rate": {f"{window_s}s": _server(one) for window_s, one in seen.busiest.items()},
        "worst": [_server(one) for one in seen.worst],
    }


def _broken(one: Server) -> str:
    return (
        f"{one.violations} gaps below the rule; the worst was {one.seen_s:.3f} s,"
        f" wanted {one.wanted_s:.3f} s, at {output.human_time(one.at)}"
    )


def _print_politeness(path: Path, seen: Politeness) -> None:
    say = output.print_line
    say(f"{path}: {seen.requests:,} requests to {seen.servers.get('host', 0):,} hosts"
        f" on {seen.servers.get('address', 0):,} addresses")  # fmt: skip
    for kind, one in seen.smallest.items():
        say(f"smallest gap of one {kind}: {one.smallest_gap_s:.3f} s at {one.name}")
    for window_s, one in seen.busiest.items():
        most = max(one.most[: list(seen.busiest).index(window_s) + 1])
        own = ", your own" if one.is_own else ""
        say(f"greatest rate in {window_s} s: {most:,} requests at {one.name} ({one.kind}{own})")
    if seen.worst:
        say()
        output.table(
            ("kind", "server", "own", "requests", "gap s", "in 1 s", "in 10 s", "in 60 s",
             "broken"),
            [
                (
                    one.kind, one.name, one.is_own, one.requests,
                    "" if one.smallest_gap_s is None else f"{one.smallest_gap_s:.3f}",
                    *one.most, one.violations,
                )
                for one in seen.worst
            ],
        )  # fmt: skip
    for one in seen.worst:
        if one.violations:
            say(f"{one.kind} {one.name}: {_broken(one)}")
    say("ok" if seen.ok else f"{seen.violations} gaps were below the rule")
