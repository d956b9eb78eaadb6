"""`geomi flow`: the map of geomi itself."""

from __future__ import annotations

from typing import Annotated

import typer

from geomi.cli import output


def register(app: typer.Typer) -> None:
    app.command()(flow)


def flow(
    as_json: Annotated[bool, typer.Option("--json", help="A line for each part.")] = False,
    picture: Annotated[
        bool, typer.Option("--picture", help="The same as a Mermaid flowchart.")
    ] = False,
) -> None:
    """The map: parts in order, what each takes and gives, and where it touches the world."""
    from geomi import flow as the_map

    if as_json:
        for facts in the_map.facts():
            output.print_json_line(facts)
        return
    if picture:
        for line in the_map.picture().splitlines():
            output.print_line(line)
        return
    output.table(
        ("part", "role", "takes", "gives", "shell", "does"),
        [
            (
                one.name, one.role, ", ".join(one.takes), ", ".join(one.gives),
                ", ".join(one.shell), one.does,
            )
            for one in the_map.PARTS
        ],
    )  # fmt: skip
