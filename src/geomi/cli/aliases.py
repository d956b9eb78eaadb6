"""`geomi seeds aliases`: which names are one site, why, and the operator's word on it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from geomi.cli import output
from geomi.cluster import alias_orders
from geomi.cluster.collection import Collection
from geomi.errors import OperatorError

_Pair = tuple[str, str] | None


def aliases(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="The collection.")],
    sites: Annotated[
        list[str] | None, typer.Argument(metavar="[SITE]...", help="Only these, with evidence.")
    ] = None,
    merge: Annotated[
        _Pair, typer.Option("--merge", metavar="SITE ALIAS", help="ALIAS is another name of SITE.")
    ] = None,
    undo: Annotated[
        str | None, typer.Option("--undo", metavar="ALIAS", help="A name is its own site again.")
    ] = None,
    never: Annotated[
        _Pair, typer.Option("--never", metavar="SITE SITE", help="Two names stay two sites.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> int:
    """List names that are one site, or were compared, with the evidence; or decide by hand.

    A crawl that is running takes a decision up; else the next one does.
    """
    orders = [order for order in (merge, undo, never) if order]
    if len(orders) > 1 or (orders and sites):
        raise OperatorError("--merge, --undo, --never: give one of them, and no other site")
    place = Collection(collection).must_exist()
    if orders:
        with place.writing(), closing(place.open_store(place.settings())) as store:
            now = store.now()
            if merge:
                said = alias_orders.merge(store, *merge, now=now)
            elif undo:
                said = alias_orders.undo(store, undo, now=now)
            else:
                assert never is not None
                said = alias_orders.never(store, *never, now=now)
        if as_json:
            output.print_json_line({"decided": said})
        else:
            output.print_line(f"{collection}: {said}, from the next step of a crawl on")
        return 0
    store = place.read_store()
    try:
        facts = alias_orders.facts(store, sites or [])
    finally:
        store.close()
    if as_json:
        for one in facts:
            output.print_json_line(one)
    elif sites:
        for one in facts:
            _print_pair(one)
    else:
        output.table(
            ("site", "other name", "state", "skipped", "relation", "why"),
            [
                (
                    one["site"], one["alias"], one["state"], one["skipped"], one["relation"],
                    one["why"],
                )
                for one in facts
            ],
        )  # fmt: skip
    return 0


def _print_pair(one: dict[str, Any]) -> None:
    since = output.human_time(one["decided"] or one["found"])
    why = f": {one['why']}" if one["why"] else ""
    output.print_line(
        f"{one['alias']} beside {one['site']} ({one['relation']}): {one['state']}{why}, {since};"
        f" {one['skipped']:,} URLs not asked for"
    )
    output.table(
        ("test", "verdict", "url", "said", "other name said", "when"),
        [
            (
                test["test"], test["verdict"], test["url"], test["said"], test["alias_said"],
                output.human_time(test["decided"] or test["made"]),
            )
            for test in one["evidence"]
        ],
    )  # fmt: skip
