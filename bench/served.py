"""A corpus while it is served: nginx for documentation, the small world by its own server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from corpus import Corpus
from nginx import requests_served, serving

#: The small world that is crawled: one site of some thousand pages, under its address.
_WORLD = {"seed": 11, "sites": 1, "pages": 30000}
SMALL_WORLD = "small world"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where crawls of it start, one seed a host, and how many requests were answered until now."""

    seeds: tuple[str, ...]
    requests: Callable[[], int]


@contextmanager
def serve(corpus: Corpus | None, *, hosts: int = 1, copies: int | None = None) -> Iterator[Served]:
    """nginx with a corpus and its copies, on each of so many addresses; None: the small world."""
    if corpus is None:
        yield from _small_world()
        return
    for path in corpus.folder.resolve().rglob("*"):  # into the page cache, for the first one's sake
        if path.is_file():
            path.read_bytes()
    with TemporaryDirectory(prefix="geomi-corpus-") as text:
        root = Path(text)
        root.chmod(0o755)  # root's nginx reads as another user
        links = []
        for number in range(copies or corpus.copies):
            (root / f"c{number}").symlink_to(corpus.folder.resolve())
            links.append(f'<p><a href="c{number}/{corpus.seed}">{corpus.name}</a>\n')
        (root / "index.html").write_text("<title>All</title>\n" + "".join(links))
        with serving({"all": root}, addresses=hosts) as port:
            yield Served(
                seeds=tuple(f"http://127.0.0.{n + 1}:{port}/all/index.html" for n in range(hosts)),
                requests=lambda: requests_served(port),
            )


def _small_world() -> Iterator[Served]:
    from geomi.world import Params, serve
    from geomi.world.features import PLAIN

    shares = {**PLAIN, "habit.literal": 1.0}  # the names of its sites are known to it alone
    with serve(Params(**_WORLD, shares=shares)) as running:
        (seed,) = (url for url in running.seeds(copies=True) if "//127." in url)
        yield Served(seeds=(seed,), requests=lambda: len(running.log()))
