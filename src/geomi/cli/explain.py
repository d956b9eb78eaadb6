"""`geomi explain`: what a URL is to geomi, and what a robots.txt says of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from geomi import config
from geomi import url as urls
from geomi.cli.output import print_json_line, print_line, table
from geomi.cluster.admitted import known_sites
from geomi.cluster.collection import Collection
from geomi.cluster.plan import admission, site_rules
from geomi.config import Settings
from geomi.errors import OperatorError
from geomi.frontier import tables
from geomi.frontier.alias_tables import second_names
from geomi.frontier.scope import Scope, prefix_of
from geomi.seeds.lists import given_seeds
from geomi.seeds.tables import all_seeds
from geomi.store import Store, open_store

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Why geomi does what it does with a URL."
)


def register(into: typer.Typer) -> None:
    into.add_typer(app, name="explain", help="Why geomi does what it does with a URL.")


AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="TABLE.KEY=VALUE", help="Setting as table.key=value; repeatable."
    ),
]
Patterns = list[str] | None

#: What Scope.refusal names, in words.
_REFUSALS = {
    "url_length": "longer than crawl.max_url",
    "depth": "more links from its seed than crawl.max_depth",
    "prefix": "not below the directory of a seed",
    "include": "no expression of crawl.include matches",
    "exclude": "an expression of crawl.exclude matches",
}


@app.command()
def url(
    texts: Annotated[
        list[str], typer.Argument(metavar="[COLLECTION] URL...", help="URLs, as they stand.")
    ],
    collection: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Judge by this collection's seeds and settings."),
    ] = None,
    seeds: Annotated[
        Patterns,
        typer.Option("--seed", metavar="URL", help="Judge as if this were crawled; repeatable."),
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="URL", help="URL of the page that holds the links.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="site|prefix|domain", help="What a seed covers: site, prefix or domain."
        ),
    ] = None,
    include: Annotated[
        Patterns,
        typer.Option(metavar="REGEX", help="Regular expression a URL must match; repeatable."),
    ] = None,
    exclude: Annotated[
        Patterns,
        typer.Option(metavar="REGEX", help="Regular expression of URLs to leave out; repeatable."),
    ] = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> int:
    """Show a URL's canonical form, site, domain, SURT and hash, and whether it is in scope.

    Scope needs a collection (first, or as --collection), or --seed.
    """
    if collection is None and "://" not in texts[0] and Collection(texts[0]).exists:
        collection, texts = Path(texts[0]), texts[1:]
    if not texts:
        raise OperatorError("no URL to explain")
    base_url = urls.canonical(base) if base is not None else None
    if base is not None and base_url is None:
        raise OperatorError(f"--base {base}: no http(s) URL")
    options = {
        "crawl.scope": scope, "crawl.include": include or None, "crawl.exclude": exclude or None
    }  # fmt: skip
    with _scene(collection, seeds or [], sets or [], options) as scene:
        for number, text in enumerate(texts):
            facts = _facts(text, urls.canonical(text, base_url), scene)
            if as_json:
                print_json_line(facts)
                continue
            if number:
                print_line()
            for name, value in facts.items():
                print_line(f"{name.replace('_', ' '):<10}{_shown(value)}")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


_Scene = tuple[Settings, Store]


@contextmanager
def _scene(
    collection: Path | None, seeds: list[str], sets: list[str], options: dict[str, Any]
) -> Iterator[_Scene | None]:
    """Settings and store to judge by; None if the command names nothing to judge by."""
    if collection is not None and seeds:
        raise OperatorError("--seed goes without a collection, which has seeds of its own")
    if collection is not None:
        place = Collection(collection).must_exist()
        settings = place.settings(sets, options)
        address = place.store_address(settings)
        if "://" in address or Path(address).is_file():
            store = place.read_store(settings)
        else:
            store = _made_up(settings, [])
    else:
        settings = config.load(Path(os.devnull), sets, options=options)
        if not seeds:
            yield None
            return
        store = _made_up(settings, seeds)
    try:
        yield settings, store
    finally:
        store.close()


def _made_up(settings: Settings, seeds: list[str]) -> Store:
    """A store in memory as it is at the beginning of a crawl of these seeds."""
    from geomi.cluster.coordinator import Coordinator
    from geomi.cluster.tables import MIGRATIONS
    from geomi.store.migrate import migrate

    found = given_seeds(seeds)
    store = open_store(":memory:")
    migrate(store, MIGRATIONS, where="--seed")
    coordinator = Coordinator(store, settings)
    coordinator.add_seeds(found, now=0.0)
    coordinator.deliver(run=1, now=0.0)
    return store


def _facts(text: str, url: str | None, scene: _Scene | None) -> dict[str, Any]:
    """What is printed of one URL, in order."""
    if url is None:
        hint = "" if "://" in text else urls.canonical(f"http://{text}") or ""
        why = "bad: no http(s) URL" + (f"; perhaps {hint}" if hint else "")
        facts: dict[str, Any] = {"url": text, "canonical": None}
        facts |= dict.fromkeys(("site", "domain", "surt", "hash"))
        return facts | {"in_scope": False, "why": why}
    parts = urls.split(url)
    facts = {
        "url": text,
        "canonical": url,
        "site": parts.site,
        "domain": urls.domain_of(parts.host),
        "surt": urls.surt(url),
        "hash": urls.url_hash(url),
    }
    if scene is None:
        return facts | {"in_scope": None, "why": "no collection and no --seed to judge by"}
    settings, store = scene
    is_in, why = _judged(url, facts["domain"], settings, store)
    facts |= {"in_scope": is_in, "why": why}
    if (name := second_names(store, [parts.site]).get(parts.site)) is not None:
        facts["visited_as"] = urls.under(url, name[1])
    page = _page(store, url)
    if page is not None:
        facts["outcome"] = page[1]
    return facts


def _judged(url: str, domain: str, settings: Settings, store: Store) -> tuple[bool | None, str]:
    """(in scope, why); None where only the address of the site can tell."""
    site = urls.site_of(url)
    admit = admission(settings, store)
    if known_sites(store, [site]):
        why = "its site is crawled"
    elif rule := admit.by_name(site, domain):
        why = f"its site would be admitted by {_RULES[rule]}"
    elif admit.needs_address:
        return None, "site: not crawled yet; its address decides (seeds.admit)"
    else:
        return False, "site: no seed is on it, and no rule of seeds.admit admits it"
    page = _page(store, url)
    kind, depth = (page[5], page[4]) if page is not None else ("a", 0)
    if kind == "s":
        return True, "it is a seed"
    scope = _scope(settings, store, site)
    refusal = scope.refusal(url, kind, depth)
    if refusal:
        return False, f"{refusal}: {_REFUSALS[refusal]}"
    if scope.max_depth is not None and page is None:
        why += f", and it counts if at most {scope.max_depth} links lead to it from a seed"
    return True, why


_RULES = {
    "list": "seeds.admit.sites", "tld": "seeds.admit.tlds",
    "domain": "its domain (crawl.scope or seeds.admit.domains)",
}  # fmt: skip


def _scope(settings: Settings, store: Store, site: str) -> Scope:
    """The site's scope, with the directories of its seeds where they limit it."""
    rules = site_rules(settings, site)
    if not rules.is_prefix:
        return rules.scope
    starts = tables.pages_of(
        store,
        "JOIN sites s ON s.site_id = p.site_id WHERE s.site = ? AND p.kind = 's' AND p.depth = 0",
        (site,),
    )
    urls_of_seeds = {row[0] for row in starts}
    # Seeds just added are no pages yet.
    urls_of_seeds |= {row[1] for row in all_seeds(store) if row[2] == site and row[4] != "found"}
    return replace(rules.scope, prefixes=tuple(sorted(map(prefix_of, urls_of_seeds))))


def _page(store: Store, url: str) -> tuple[Any, ...] | None:
    """The page's row of a listing; None if it is not known."""
    rows = tables.pages_of(
        store,
        "JOIN sites s ON s.site_id = p.site_id WHERE s.site = ? AND p.url_hash = ? AND p.url = ?",
        (urls.site_of(url), urls.url_hash(url), url),
    )
    return next(rows, None)


@app.command()
def robots(
    where: Annotated[str, typer.Argument(metavar="FILE|URL", help="The robots.txt.")],
    texts: Annotated[
        list[str], typer.Argument(metavar="URL...", help="URLs, or paths with their query.")
    ],
    agent: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", help="Product token; default: robots.agent of the settings."),
    ] = None,
    own: Annotated[
        Patterns,
        typer.Option(
            metavar="HOST[:PORT]", help="A host of yours; its address may be private; repeatable."
        ),
    ] = None,
    allow_network: Annotated[
        Patterns,
        typer.Option(metavar="CIDR", help="A private network that may be asked; repeatable."),
    ] = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> int:
    """Show which URLs a robots.txt allows an agent, and by which line (0: no line says)."""
    settings = config.load(
        Path(os.devnull),
        sets or [],
        options={"manners.own": own or None, "guard.allow_networks": allow_network or None},
    )
    name = agent if agent is not None else settings.robots.agent
    from geomi.cli.robots_file import load_robots

    targets = [_target(text) for text in texts]  # before anything is asked for
    found = load_robots(where, settings)
    rows: list[tuple[str, bool | None, int, str]] = []
    for text, (authority, target) in zip(texts, targets, strict=True):
        if authority and found.authority and authority != found.authority:
            why = f"{found.authority} does not speak for {authority}"
            rows.append((text, None, 0, why))
            continue
        verdict = found.robots.allowed(name, target)
        rows.append((text, verdict.allowed, verdict.line, verdict.text or found.note))
    if as_json:
        for text, allowed, line, rule in rows:
            print_json_line({"url": text, "allowed": allowed, "line": line, "rule": rule})
    else:
        table(
            ("url", "allowed", "line", "rule"),
            ((text, _shown(allowed), line, rule) for text, allowed, line, rule in rows),
        )
    return 0


def _target(text: str) -> tuple[str, str]:
    """(authority or "", path and query) of a URL, or of a path on the file's own host."""
    if text.startswith("/"):
        url = urls.canonical(f"http://host.invalid{text}")
    else:
        url = urls.canonical(text if "://" in text else f"http://{text}")
    if url is None:
        raise OperatorError(f"{text}: neither an http(s) URL nor a path")
    parts = urls.split(url)
    return ("" if text.startswith("/") else parts.authority), parts.target
