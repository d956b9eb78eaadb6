"""`geomi cluster`: a Ray cluster to crawl with."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from geomi.cli import output

app = typer.Typer(no_args_is_help=True)

_PORT = 6379
_TELL_S = 2.0  # between lines of progress


def register(into: typer.Typer) -> None:
    into.add_typer(app, name="cluster", help="A Ray cluster to crawl with.")


@app.command()
def start(
    bind: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address of this machine by which other nodes reach it."
        ),
    ] = "127.0.0.2",
    port: Annotated[
        int, typer.Option(metavar="N", min=1, max=65_535, help="Port of the head.")
    ] = _PORT,
    join: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Join the cluster whose head is at HOST:PORT.")
    ] = "",
    cpus: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Cores to offer; default: all.")
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the node; default: the machine's.")
    ] = "",
    archive: Annotated[
        str,
        typer.Option(
            metavar="DIRECTORY",
            help="Agents here keep archives below it, in place of the collection's directory.",
        ),
    ] = "",
) -> int:
    """Start a node of a Ray cluster on this machine: the head, or with --join one more.

    Ray asks nobody who they are: whoever reaches its ports may run programs here. Bind it to an
    address of a closed network. By default only this machine is reached.
    """
    from geomi.cluster.on_ray import start_node

    start_node(bind=bind, port=port, join=join, cpus=cpus, name=name, archive=archive)
    head = join or f"{bind}:{port}"
    print(f"a node of the Ray cluster at {head} runs on this machine")
    print(f"more nodes:  geomi cluster start --join {head} --bind ADDRESS")
    print(f"crawl on it: geomi crawl COLLECTION URL --engine ray --address {head} --agents 4")
    return 0


@app.command()
def status(
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="The head, HOST:PORT; default: this machine's cluster."
        ),
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Show the nodes of a Ray cluster. Exit code 1 where one is gone."""
    from geomi.cluster.on_ray import RayEngine

    engine = RayEngine(address)
    try:
        nodes = engine.nodes
    finally:
        engine.close()
    if as_json:
        print(json.dumps({"nodes": [asdict(node) for node in nodes]}))
    else:
        output.table(
            ["node", "machine", "address", "cores", "alive"],
            [
                [n.name, n.machine, n.address, f"{n.cpus:g}", "yes" if n.is_alive else "no"]
                for n in nodes
            ],
        )
    return 0 if all(node.is_alive for node in nodes) else 1


@app.command()
def gather(
    collection: Annotated[Path, typer.Argument(help="Directory of the collection.")],
    destination: Annotated[
        str,
        typer.Argument(help="An archive directory; default: the first of `archive.directories`."),
    ] = "",
    host: Annotated[
        str, typer.Option("--from", metavar="HOST", help="Files of this node alone.")
    ] = "",
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="The Ray cluster whose nodes have them; default: settings."
        ),
    ] = "",
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the originals once the copies are safe.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Bring closed WARC files and indexes of other nodes into one archive directory.

    With DESTINATION, all that lie anywhere else. Each file is compared by length and digest before
    the store names its new place. Stopped, the same command goes on. Exit code 1: some are left.
    """
    from geomi.cluster.collection import Collection
    from geomi.cluster.engines import engine_of
    from geomi.cluster.gather import gather as bring

    place = Collection(collection).must_exist()
    given = {"cluster.engine": "ray", "cluster.address": address} if address else {}
    told_at = time.monotonic()

    def tell(done: int, every: int, file: str) -> None:
        nonlocal told_at
        if not as_json and time.monotonic() - told_at > _TELL_S:
            told_at = time.monotonic()
            sizes = f"{output.human_bytes(done)} of {output.human_bytes(every)}"
            print(f"{sizes}: {file}", file=sys.stderr, flush=True)

    with place.writing():
        settings = place.settings((), given)
        with engine_of(settings, agents=0) as engine, closing(place.open_store(settings)) as store:
            made = bring(
                place, store, settings, engine, destination=destination, host=host, remove=remove,
                tell=tell,
            )  # fmt: skip
    if as_json:
        output.print_json_line({
            "collection": str(collection), "destination": made.destination, "files": made.files,
            "bytes": made.size_bytes, "removed": made.removed, "open": made.open,
            "left": [{"file": name, "why": why} for name, why in made.left],
        })  # fmt: skip
    else:
        for name, why in made.left:
            output.print_line(f"{name}: {why}")
        still = f"; {made.open} are still open" if made.open else ""
        output.print_line(
            f"{collection}: {made.files:,} files, {output.human_bytes(made.size_bytes)}, are in"
            f" {made.destination} now{still}"
        )
    return 1 if made.left else 0


@app.command()
def stop() -> int:
    """End all Ray processes of this machine. Agents there write what they have, and end."""
    from geomi.cluster.on_ray import stop_nodes

    said = stop_nodes()
    print(said.splitlines()[-1] if said else "stopped", file=sys.stderr)
    return 0
