"""`geomi archive index`: the index of payloads, brought up to date or made anew."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from geomi.cli import output

_TELL_S = 2.0  # between lines of progress


def register(app: typer.Typer) -> None:
    app.command()(index)


def index(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="The collection.")],
    anew: Annotated[
        bool, typer.Option("--anew", help="Forget what the index has of it, and take all in again.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Facts for another program.")] = False,
) -> int:
    """Bring the index of payloads up to date with the store, and say what it holds.

    A crawl does so by itself. This is for an index that was lost, is older than the store, or is
    shared from now on. Stopped, the same command goes on. Redirects are not taken in: each is
    stored once more when it is met again.
    """
    from geomi.archive import duplicates_tables as tables
    from geomi.cluster.collection import Collection
    from geomi.cluster.indexes import index_address, open_index, size_of

    place = Collection(collection).must_exist()
    settings = place.settings()
    began = told = time.monotonic()

    def tell(number: int) -> None:
        nonlocal told
        if not as_json and time.monotonic() - told > _TELL_S:
            told = time.monotonic()
            print(f"{number:,} payloads", file=sys.stderr, flush=True)

    place.read_store(settings).close()  # says so where nothing was crawled yet
    store = place.open_store(settings)
    try:
        found = open_index(place, settings, store)
        try:
            added = found.renew(tell) if anew else found.catch_up(tell)
            found.fill_bits()
            shared = [folder for _, _, folder, _ in tables.homes(found.store)]
            size = size_of(place, settings, found)
            payloads, every = tables.count(found.store, found.home), tables.count(found.store)
            facts = {
                "collection": str(collection),
                "index": index_address(place, settings) or "in the store",
                "added": added,
                "payloads": payloads,
                "payloads_of_all": every,
                "shared_by": shared,
                "bytes": size,
                "seconds": round(time.monotonic() - began, 3),
            }
        finally:
            found.close()
    finally:
        store.close()
    if as_json:
        output.print_json_line(facts)
    else:
        output.print_line(
            f"{collection}: {payloads:,} payloads, {added:,} of them taken in now;"
            f" {every:,} in {facts['index']} ({output.human_bytes(size)}), of"
            f" {len(shared)} {'collection' if len(shared) == 1 else 'collections'}"
        )
    return 0
