"""`geomi archive rules`: which URLs of a site are one page, why, and the operator's word on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geomi.cli import output
from geomi.errors import OperatorError

_ACTIONS = "list, learn, add SITE RULE, remove NUMBER"


def register(app: typer.Typer) -> None:
    app.command()(rules)


def rules(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="The collection.")],
    action: Annotated[str, typer.Argument(metavar="[ACTION]", help=_ACTIONS)] = "list",
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD]...", help="What the action needs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> int:
    """List rules by which URLs of a site are one page, with their evidence; learn; decide by hand.

    A rule is `drop NAME` (a parameter), `order` (of parameters), `index NAME`, `slash` or `scheme
    https`. Crawls apply them where `archive.equivalents` is set. Exit code 2: a crawl runs.
    """
    from geomi.cluster import learning
    from geomi.cluster.collection import Collection
    from geomi.frontier import equivalence_tables as tables

    given = words or []
    wanted = {"list": 0, "learn": 0, "add": 2, "remove": 1}.get(action)
    if action == "add" and len(given) > 2:
        given = [given[0], " ".join(given[1:])]
    if wanted is None or len(given) != wanted:
        raise OperatorError(f"{' '.join((action, *given))}: wanted one of: {_ACTIONS}")
    if action == "remove" and not given[0].isdigit():
        raise OperatorError(f"remove {given[0]}: wanted the number of a rule")
    place = Collection(collection).must_exist()
    settings = place.settings()
    place.read_store(settings).close()  # says so where nothing was crawled yet
    if action != "list":
        helm = place.coordinate(settings)
        store = place.open_store(settings)
        try:
            if action == "learn":
                done = learning.learn(store, confidence=settings.archive.equivalent_confidence)
                said = ", ".join(f"{number} {state}" for state, number in sorted(done.items()))
                said = said or "nothing new"
            elif action == "add":
                row = learning.add(store, *given)
                said = f"rule {row.rule} is active"
            else:
                row, again = learning.remove(store, int(given[0]))
                said = f"rule {row.rule} is removed; {again:,} URLs wait again"
        finally:
            store.close()
            helm.release()
        if as_json:
            output.print_json_line({"decided": said})
        else:
            output.print_line(f"{collection}: {said}")
        return 0
    store = place.read_store(settings)
    try:
        rows = tables.listed(store)
    finally:
        store.close()
    if as_json:
        for one in rows:
            output.print_json_line(one)
        return 0
    output.table(
        ("rule", "site", "says", "state", "by", "right", "wrong", "skipped", "example"),
        [
            (
                one["rule"], one["site"], f"{one['kind']} {one['what']}".strip(), one["state"],
                one["by"], one["support"], one["against"], one["skipped"],
                one["counter"] or one["example"],
            )
            for one in rows
        ],
    )  # fmt: skip
    return 0
