"""`geomi cluster`: a Ray cluster to crawl with."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from geomi.cli import output

app = typer.Typer(no_args_is_help=True)

_PORT = 6379


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
) -> int:
    """Start a node of a Ray cluster on this machine: the head, or with --join one more.

    Ray asks nobody who they are: whoever reaches its ports may run programs here. Bind it to an
    address of a closed network. By default only this machine is reached.
    """
    from geomi.cluster.on_ray import start_node

    start_node(bind=bind, port=port, join=join, cpus=cpus)
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
def stop() -> int:
    """End all Ray processes of this machine. Agents there write what they have, and end."""
    from geomi.cluster.on_ray import stop_nodes

    said = stop_nodes()
    print(said.splitlines()[-1] if said else "stopped", file=sys.stderr)
    return 0
