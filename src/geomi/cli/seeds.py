"""`geomi seeds`: add, list, export, labels; aliases stand in a file of their own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from geomi import clock
from geomi.cli.output import human_seconds, print_json_line, print_line, table
from geomi.cli.problems import tell_problems
from geomi.cluster.collection import Collection
from geomi.errors import OperatorError
from geomi.seeds import tables
from geomi.seeds.lists import (
    Problem,
    Seed,
    format_seed,
    given_seeds,
    parse_label,
    parse_seeds,
    read_seeds,
)
from geomi.store import Store

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Where parties start.")


def register(into: typer.Typer) -> None:
    from geomi.cli.aliases import aliases

    if "aliases" not in (command.name for command in app.registered_commands):
        app.command()(aliases)
    into.add_typer(app, name="seeds", help="Where parties start.")


Where = Annotated[Path, typer.Argument(metavar="COLLECTION", help="The collection.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
Origin = Annotated[
    bool | None,
    typer.Option(
        "--found/--given", help="Only seeds found on the way, or only those given; default: all."
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="KEY=VALUE", help="Only seeds with this label, key=value; repeatable."
    ),
]


class _Row(NamedTuple):
    """A seed as the store has it."""

    seed: int
    url: str
    site: str
    labels: dict[str, str]
    source: str
    outcome: str
    pages: int
    digest: str
    seconds: float


@app.command()
def add(
    collection: Where,
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL]...", help="Seeds.")] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="A list, sitemap or feed; - for standard input; repeatable.",
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="KEY=VALUE",
            help="A label for all that is added, key=value; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Add seeds. A crawl that is running takes them up; else the next one does.

    Exit code 1: some lines could not be read; the others were added.
    """
    place = Collection(collection).must_exist()
    settings = place.settings()
    extra = dict(map(parse_label, labels or []))
    seeds, problems = _told(urls or [], files or [])
    if not seeds:
        raise OperatorError("no seed: give a URL, or --file FILE")
    from geomi.cluster.coordinator import Coordinator

    store = place.open_store(settings)
    try:
        coordinator = Coordinator(store, settings)
        new = coordinator.add_seeds(
            [replace(seed, labels={**seed.labels, **extra}) for seed in seeds], now=store.now()
        )
        coordinator.await_latecomers(clock.pause)
    finally:
        store.close()
    tell_problems(problems)
    if as_json:
        print_json_line({"added": new, "given": len(seeds), "problems": len(problems)})
    else:
        print_line(f"{collection}: {new} seeds added, {len(seeds) - new} were there")
    return 1 if problems else 0


def _told(texts: list[str], files: list[str]) -> tuple[list[Seed], list[tuple[str, Problem]]]:
    """What the command names, read before anything is changed."""
    found = given_seeds(texts)
    problems: list[tuple[str, Problem]] = []
    for name in files:
        if name == "-":
            seeds, wrong = parse_seeds(sys.stdin.buffer.read())
        else:
            seeds, wrong = read_seeds(name)
        if not seeds:
            why = f": {wrong[0].what}" if wrong else ""
            raise OperatorError(f"{name}: no seed in it{why}")
        found += seeds
        problems += [(name, problem) for problem in wrong]
    return found, problems


@app.command("list")
def list_(
    collection: Where,
    origin: Origin = None,
    labels: Labels = None,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="Sites found on the way that no rule admitted.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """List the seeds with what became of their parties, or the candidates."""
    wanted = list(map(parse_label, labels or []))
    with _reading(collection) as store:
        if candidates:
            if origin is not None or wanted:
                raise OperatorError("--candidates goes with neither --found, --given nor --label")
            _list_candidates(store, as_json=as_json)
            return 0
        rows = _rows(store, origin=origin, wanted=wanted)
        if as_json:
            for row in rows:
                print_json_line({**row._asdict(), "seconds": round(row.seconds, 3)})
            return 0
        table(
            ("seed", "url", "from", "outcome", "pages", "time", "labels"),
            (
                (
                    row.seed, row.url, row.source, row.outcome, row.pages,
                    human_seconds(row.seconds) if row.seconds else "", _label_text(row.labels),
                )
                for row in rows
            ),
        )  # fmt: skip
    return 0


def _list_candidates(store: Store, *, as_json: bool) -> None:
    rows = tables.candidates(store)
    if as_json:
        for site, number, url, via in rows:
            print_json_line({"site": site, "urls": number, "url": url, "via": via})
        return
    table(("site", "urls", "url", "found on"), rows)


@app.command()
def export(
    collection: Where,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; default: print."),
    ] = None,
    origin: Origin = None,
    labels: Labels = None,
) -> int:
    """Write all seeds with their labels as a list that a later crawl takes with --seeds."""
    wanted = list(map(parse_label, labels or []))
    with _reading(collection) as store:
        lines = (
            format_seed(Seed(url=row.url, labels=row.labels, source=row.source))
            for row in _rows(store, origin=origin, wanted=wanted)
        )
        if output is None:
            for line in lines:
                print_line(line)
        else:
            number = write_whole(output, lines)
            print(f"{output}: {number} seeds", file=sys.stderr)
    return 0


def write_whole(output: Path, lines: Iterator[str]) -> int:
    """The whole file or none: an earlier export stays until the new one is complete."""
    number = 0
    new = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        try:
            with open(new, "x", encoding="utf-8", newline="\n") as file:
                for line in lines:
                    file.write(line + "\n")
                    number += 1
            os.replace(new, output)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OperatorError(f"{output}: cannot be written: {error.strerror or error}") from error
    return number


@app.command()
def labels(collection: Where, as_json: AsJson = False) -> int:
    """Count seeds and pages by label."""
    counts: dict[tuple[str, str], list[int]] = {}
    with _reading(collection) as store:
        for row in _rows(store):
            for label in row.labels.items():
                count = counts.setdefault(label, [0, 0])
                count[0] += 1
                count[1] += row.pages
    lines = [(key, value, *count) for (key, value), count in sorted(counts.items())]
    if as_json:
        for key, value, seeds, pages in lines:
            print_json_line({"key": key, "value": value, "seeds": seeds, "pages": pages})
    else:
        table(("label", "value", "seeds", "pages"), lines)
    return 0


@contextmanager
def _reading(collection: Path) -> Iterator[Store]:
    store = Collection(collection).read_store()
    try:
        yield store
    finally:
        store.close()


def _rows(
    store: Store, *, origin: bool | None = None, wanted: list[tuple[str, str]] | None = None
) -> Iterator[_Row]:
    for raw in tables.all_seeds(store):
        fields: list[Any] = list(raw)
        fields[3] = json.loads(fields[3])
        row = _Row(*fields)
        if origin is not None and (row.source == "found") != origin:
            continue
        if all(row.labels.get(key) == value for key, value in wanted or ()):
            yield row


def _label_text(labels: dict[str, str]) -> str:
    """The labels as they stand in a list."""
    return format_seed(Seed(url="", labels=labels)).strip()
