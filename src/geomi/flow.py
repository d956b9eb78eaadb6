"""The map: every part of geomi in order, what it takes and gives, and where it touches the world.

A module imports only from lines above its own. Stages import words and the store, never another
stage; they meet in `cluster` and in the doors. `geomi flow`, the picture in the docs and the tests
of all this are made from the table below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What a part may import, beside words and what belongs to it."""

    WORDS = "words"  # nothing but words above
    STORE = "store"
    STAGE = "stage"  # the store
    WORLD = "world"  # words alone: the small world must not know whom it judges
    SETTINGS = "settings"
    MEETING = "meeting"  # all above
    DOOR = "door"  # all above


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One line of the map."""

    name: str  # module or package below geomi
    role: Role
    does: str  # the first line of its docstring
    takes: tuple[str, ...] = ()  # records, by name
    gives: tuple[str, ...] = ()
    # Modules that touch a socket, file, clock, database server or random source. The rest decides.
    # A stage's tables.py speaks SQL to the store it is given and touches nothing itself.
    shell: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()  # what it keeps in the store


PARTS = (
    Part(
        name="flow", role=Role.WORDS,
        does="The map: every part of geomi in order, what it takes and gives, and where it touches"
        " the world.",
    ),
    Part(
        name="states", role=Role.WORDS,
        does="The network states of a page, and which may follow which: one table for code,"
        " counters and docs.",
    ),
    Part(name="errors", role=Role.WORDS, does="Every error geomi raises, by who must act."),
    Part(
        name="clock", role=Role.WORDS, shell=("clock",),
        does="Where time comes from. What decides gets `now` as an argument; only shells hold a"
        " clock.",
    ),
    Part(
        name="url", role=Role.WORDS,
        does="URLs: one canonical spelling, the site they belong to, and the keys they are filed"
        " under.",
    ),
    Part(
        name="hours", role=Role.WORDS,
        does="Hours of the week, as `Sat-Sun 00:00-24:00` in a time zone: open now, or when.",
    ),
    Part(
        name="records", role=Role.WORDS,
        does="What crosses a border between stages: frozen records with named fields, times in"
        " UTC seconds.",
    ),
    Part(
        name="store", role=Role.STORE, shell=("postgres", "sqlite"),
        does="The store: one database a collection, asked in SQL that SQLite and PostgreSQL"
        " understand.",
    ),
    Part(
        name="seeds", role=Role.STAGE, gives=("Wanted",), shell=("countries", "lists"),
        tables=("seeds", "outside", "asked"),
        does="Seeds: where parties start, from lists, sitemaps and feeds, and from links out of"
        " known sites.",
    ),
    Part(
        name="frontier", role=Role.STAGE, takes=("Wanted",), gives=("page",),
        tables=("sites", "pages", "pending", "inbox", "addresses", "robots", "counters", "faces",
                "aliases", "alias_tests", "recalled", "rules"),
        does="The frontier: decides which page of which party comes next, and when.",
    ),
    Part(
        name="fetch", role=Role.STAGE, takes=("Fetch",), gives=("Capture",),
        shell=("alarm", "client", "dns", "reply", "sockets"),
        does="Asks servers for pages: names to addresses, HTTP/1.1 over libcurl, byte for byte,"
        " within limits.",
    ),
    Part(
        name="extract", role=Role.STAGE, takes=("Capture",), gives=("Page",),
        does="Reads documents: charset, title, links by kind, what robots may do with them.",
    ),
    Part(
        name="archive", role=Role.STAGE, takes=("Capture", "Page"), gives=("Place",),
        shell=("bits", "check", "files", "given", "package", "salvage", "sorted", "sorting",
               "source", "unpacked"),
        tables=("files", "orphans", "imports", "refers", "payloads", "homes", "reflected",
                "rewrites", "edits", "generations"),
        does="Archive: keeps what came over the wire, as WARC 1.1 and CDXJ that any replay tool"
        " reads.",
    ),
    Part(
        name="history", role=Role.STAGE, gives=("visits",), shell=("parquet",),
        tables=("visits", "batches", "log", "past", "meaningless", "features", "hidden",
                "unsettled", "probes"),
        does="History: every visit is one line, and committed batches are numbered.",
    ),
    Part(
        name="world", role=Role.WORLD,
        shell=("__main__", "dns", "running", "server"),
        does="The small world: a seeded synthetic web, without sockets or served on loopback with"
        " its own DNS.",
    ),
    Part(
        name="sieve", role=Role.SETTINGS,
        does="The settings of [archive] about pages that mean nothing.",
    ),
    Part(
        name="thrift", role=Role.SETTINGS,
        does="The settings of [archive] about what is not stored twice.",
    ),
    Part(
        name="settings", role=Role.SETTINGS,
        does="Every setting: its type, bounds, default and meaning. The reference and `geomi init`"
        " read this.",
    ),
    Part(
        name="keys", role=Role.SETTINGS,
        does="One setting as the operator writes it: what it accepts, and the sentence when it does"
        " not.",
    ),
    Part(
        name="config", role=Role.SETTINGS, shell=("config",),
        does="Settings: geomi.toml, then --set, then options; checked key by key, and resolved site"
        " by site.",
    ),
    Part(
        name="sheet", role=Role.SETTINGS,
        does="The settings on paper: a commented geomi.toml, and the table of the reference.",
    ),
    Part(
        name="cluster", role=Role.MEETING,
        shell=("admit", "asking", "cdx_server", "checked", "collection", "doubles", "drive",
               "forked", "gather", "given", "harvest", "helm", "imports", "index", "indexes",
               "ledger", "local", "node", "on_ray", "pack", "pieces", "reading", "recover",
               "replay", "restoring", "scanning", "shell", "simfiles", "transfer", "vault",
               "verify_archive", "wayback", "workplace"),
        tables=("meta", "runs", "agents", "coordinator"),
        does="Where the stages meet: the agent (a step machine and its shells), the coordinator,"
        " the engine.",
    ),
    Part(
        name="cli", role=Role.DOOR,
        does="The command line: a door. Parses words, calls the rest, prints; decides nothing.",
    ),
)  # fmt: skip

#: Each library in as few files as can be, so that it can be replaced; doors use `typer`, `rich`.
LIBRARIES = {
    "ada_url": ("url",),
    "aiodns": ("fetch.dns",),
    "chardetng_py": ("extract.guess",),
    "duckdb": ("history.parquet",),
    "gevent": ("cluster.wayback",),
    "isal": ("archive.generation", "archive.record", "archive.source", "extract.unpack"),
    "maxminddb": ("seeds.countries",),
    "psycopg": ("store.postgres",),
    "publicsuffixlist": ("url",),
    "pycurl": ("fetch.client",),
    "pywb": ("cluster.wayback",),
    "ray": ("cluster.on_ray",),
    "rbloom": ("frontier.seen",),
    "sqlite3": ("store.sqlite",),
    "uvloop": ("cluster.shell", "world.__main__"),
    "xxhash": ("history.likeness", "url", "world.chance"),
    "zlib_ng": ("archive.generation",),
}

#: The river: what moves from part to part while pages are collected. (from, to, what)
RIVER = (
    ("seeds", "frontier", "Wanted"),
    ("frontier", "fetch", "next page"),
    ("fetch", "extract", "Capture"),
    ("fetch", "archive", "Capture"),
    ("extract", "archive", "Page"),
    ("extract", "frontier", "links: Wanted"),
    ("archive", "history", "Place"),
    ("fetch", "history", "visits"),
)


def part(name: str) -> Part:
    """The part with this name; KeyError if there is none."""
    for one in PARTS:
        if one.name == name:
            return one
    raise KeyError(name)


def stages() -> Iterator[Part]:
    return (one for one in PARTS if one.role is Role.STAGE)


def may_import(one: str, other: str) -> bool:
    """True if modules of part `one` may import those of part `other`."""
    if one == other:
        return True
    names = [each.name for each in PARTS]
    if names.index(other) > names.index(one):
        return False
    role, wanted = part(one).role, part(other).role
    if role in (Role.MEETING, Role.DOOR):
        return True
    if role is Role.SETTINGS:
        return wanted in (Role.WORDS, Role.SETTINGS)
    return wanted is Role.WORDS or (role is Role.STAGE and wanted is Role.STORE)


def facts() -> list[dict[str, Any]]:
    """The map as plain values, for --json."""
    return [asdict(one) for one in PARTS]


def picture() -> str:
    """The map as a Mermaid flowchart, for the docs."""
    words = ", ".join(one.name for one in PARTS if one.role is Role.WORDS)
    return "\n".join([
        "flowchart LR",
        f"    %% words, known to all: {words}",
        "    cli --> cluster",
        '    subgraph cluster["cluster: agents and coordinator"]',
        *(f"        {one.name}" for one in stages()),
        "    end",
        *(f'    {source} -- "{what}" --> {target}' for source, target, what in RIVER),
        *(
            f"    {one.name} -. \"{', '.join(one.tables)}\" .-> store[(store)]"
            for one in PARTS
            if one.tables
        ),
    ])  # fmt: skip
