"""Every setting: its type, bounds, default and meaning. The reference and `geomi init` read this.

The text in each annotation is what users read. A key marked SITE may differ per site.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from geomi.sieve import Sieve

SITE = Meta(extra={"site": True})

Seconds = Annotated[float, Meta(ge=0)]
Limit = Annotated[float, Meta(gt=0)]  # seconds after which something is given up
Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Bytes = Annotated[int, Meta(ge=1)]
Names = tuple[str, ...]

Relation = Literal["www", "address", "content"]
Preset = Literal["polite", "paper", "own"]
Scope = Literal["site", "prefix", "domain"]


class Crawl(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What belongs to the crawl, and when it ends."""

    scope: Annotated[
        Scope,
        SITE,
        "What a seed covers: its site, the directory of its URL, or its registrable domain",
    ] = "site"
    include: Annotated[
        Names, SITE, "Regular expressions; if there are any, a URL must match one to be visited"
    ] = ()
    exclude: Annotated[
        Names, SITE, "Regular expressions; a URL that matches one is not visited"
    ] = ()
    max_depth: Annotated[
        Natural | None, SITE, "Greatest number of links from the seed; without it there is no limit"
    ] = None
    max_pages: Annotated[
        Count | None, SITE, "Most pages of one seed; without it there is no limit"
    ] = None
    max_visits: Annotated[
        Count | None, "Most visits of the whole crawl; without it there is no limit"
    ] = None
    max_time_s: Annotated[
        Limit | None, "The crawl stops after this time; without it there is no limit"
    ] = None
    max_bytes: Annotated[
        Bytes | None, "The crawl stops after this many bytes received; without it there is no limit"
    ] = None
    requisites: Annotated[
        bool, SITE, "Fetch the images, styles and scripts that a page of the scope needs"
    ] = True
    patience: Annotated[Seconds, "The crawl ends when all that is left waits longer than this"] = (
        600.0
    )
    agents: Annotated[int, Meta(ge=1, le=256), "Agent processes on this machine"] = 1
    seen: Annotated[
        Literal["bloom", "exact"],
        "Whether a URL that the seen-filter may know is dropped, or looked up in the store",
    ] = "bloom"
    seen_error: Annotated[
        float, Meta(gt=0, le=0.01), "Share of new URLs that the seen-filter may take for known ones"
    ] = 1e-9
    max_url: Annotated[int, SITE, Meta(ge=32, le=65_536), "Longest URL, in characters"] = 2083


class Manners(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How servers are treated. Rests are from the end of a visit to the start of the next one."""

    preset: Annotated[Preset, "Defaults for rests and limits; `own` needs hosts under `own`"] = (
        "polite"
    )
    own: Annotated[
        Names,
        "Hosts that belong to the operator: `host`, `host:port` or `*.example.org`; "
        "not rested, and may have private addresses",
    ] = ()
    own_connections: Annotated[
        int, Meta(ge=1, le=256), "Connections at once to a host under `own`"
    ] = 8
    rest_s: Annotated[Seconds, SITE, "Least rest of a host after a visit"] = 2.0
    rest_factor: Annotated[
        Seconds, SITE, "Least rest of a host as a multiple of the last download's time"
    ] = 10.0
    rest_factor_max_s: Annotated[Seconds, SITE, "Longest rest that `rest_factor` asks for"] = 300.0
    address_rest_s: Annotated[
        Seconds, "Least gap between visits to one address or group, across all agents"
    ] = 0.25
    address_slots: Annotated[
        int, Meta(ge=1, le=16), "Agents that may take turns where an address has very many sites"
    ] = 16
    connections: Annotated[int, SITE, Meta(ge=1, le=256), "Connections at once to a host"] = 1
    crawl_delay_max_s: Annotated[Seconds, SITE, "A longer `Crawl-delay` parks the site"] = 3600.0
    retry_after_max_s: Annotated[Seconds, SITE, "A longer `Retry-After` parks the site"] = 86400.0
    groups: Annotated[
        dict[str, Names], "Hosts that share one server: name of the group = list of host patterns"
    ] = {}


class Agent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one agent process holds, and how it introduces itself."""

    contexts: Annotated[int, Meta(ge=1, le=100_000), "Seed contexts held at once"] = 512
    connections: Annotated[int, Meta(ge=1, le=10_000), "Connections open at once"] = 256
    user_agent: Annotated[str, SITE, "The `User-Agent` line; empty: `geomi/VERSION (+CONTACT)`"] = (
        ""
    )
    contact: Annotated[
        str, "Address at which owners of sites reach you: a URL or a mail address"
    ] = ""
    window: Annotated[
        int,
        Meta(ge=10, le=1_000_000),
        "Waiting pages of a site kept in memory; the rest waits in the store",
    ] = 1000
    waiting: Annotated[
        int,
        Meta(ge=1000, le=10_000_000),
        "Waiting pages of all sites kept in memory; where they are many, each keeps its share",
    ] = 50_000
    batch_visits: Annotated[
        int, Meta(ge=1, le=100_000), "A batch is written after this many visits"
    ] = 250
    batch_bytes: Annotated[Bytes, "A batch is written after this many bytes of records"] = 8 * 2**20
    batch_s: Annotated[Limit, "A batch is written after this time"] = 1.0


class Fetch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one request."""

    connect_s: Annotated[Limit, SITE, "Longest time to connect"] = 10.0
    idle_s: Annotated[Limit, SITE, "Longest time without any data"] = 20.0
    total_s: Annotated[Limit, SITE, "Longest time in all"] = 600.0
    head_bytes: Annotated[Bytes, SITE, "Longest header"] = 256 * 2**10
    html_bytes: Annotated[
        Bytes, SITE, "Longest HTML body; longer ones are kept truncated and marked"
    ] = 10 * 2**20
    other_bytes: Annotated[
        Bytes, SITE, "Longest body of any other type; longer ones are kept truncated and marked"
    ] = 2**30
    spool_bytes: Annotated[Bytes, "Larger bodies wait on disk instead of in memory"] = 2**20
    in_flight_bytes: Annotated[
        Bytes, "Memory that all bodies under way share; beyond it they go to disk"
    ] = 64 * 2**20
    redirects: Annotated[
        int, SITE, Meta(ge=0, le=20), "Redirects followed from a seed's own URL"
    ] = 5
    ca_file: Annotated[str, "File of certificate authorities; empty: the system's"] = ""


class Access(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who geomi is to a site, and by which way it goes there.

    A secret is written `env:NAME` or `file:PATH`: it is read when a crawl starts and stands neither
    in this file nor in the store, the log or the archive. Paths are relative to the collection.
    """

    headers: Annotated[
        Names, SITE, "Further header lines, `Name: value`; a value may be `env:NAME` or `file:PATH`"
    ] = ()
    cookies: Annotated[
        bool, SITE, "Keep the cookies a site sets, and send them back to it while it is visited"
    ] = True
    cookie_file: Annotated[
        str, SITE, "Cookies to begin with: a file as browsers and curl export it (Netscape's form)"
    ] = ""
    auth: Annotated[
        str, SITE, "`user:password` for HTTP Basic; a secret, and only in a table `[site]`"
    ] = ""
    client_cert: Annotated[
        str, SITE, "PEM file of the certificate to show; may hold its key as well"
    ] = ""
    client_key: Annotated[str, SITE, "PEM file of its key, where that is another file"] = ""
    client_password: Annotated[str, SITE, "Password of the key; a secret"] = ""
    proxy: Annotated[
        str,
        SITE,
        "`http://host:port` or `socks5h://host:port`, before the host perhaps `user:password@`; "
        "a secret. Addresses are looked up and checked here all the same",
    ] = ""
    verify: Annotated[
        bool,
        SITE,
        "Check the certificates of https; false only in a table `[site]`, and each capture says so",
    ] = True
    hours: Annotated[
        Names,
        SITE,
        "When a site may be asked, as `22:00-06:00` or `Sat-Sun 00:00-24:00`; empty: always",
    ] = ()
    timezone: Annotated[str, SITE, "Time zone of `hours`, as `Asia/Seoul`"] = "UTC"
    rate_bytes: Annotated[
        Natural, SITE, "Most bytes a second from a site, over all connections; 0: no limit"
    ] = 0


class Retry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Failures that may pass: no address, no connection, broken or stalled answers, 5xx."""

    attempts: Annotated[
        int, SITE, Meta(ge=1, le=100), "Visits to a failing page in one run, the first included"
    ] = 3
    gap_s: Annotated[Seconds, SITE, "Wait before the second visit"] = 60.0
    gap_factor: Annotated[
        float, SITE, Meta(ge=1, le=1000), "Each further wait is this many times the one before"
    ] = 4.0
    gap_max_s: Annotated[Seconds, SITE, "Longest wait"] = 86_400.0


class Dns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where names are looked up. The system's hosts file always counts, after `hosts`."""

    hosts: Annotated[
        str | dict[str, str | Names],
        "Addresses of names, asked first: a table of name = address(es), "
        "or the path of a file in the format of /etc/hosts",
    ] = {}
    servers: Annotated[Names, "Name servers, `address` or `address:port`; empty: the system's"] = ()
    timeout_s: Annotated[Limit, "Longest wait for one answer"] = 5.0


class Guard(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which addresses may be connected to. Public ones always may."""

    allow_networks: Annotated[
        Names, "Private or otherwise special networks that may be visited, as `10.0.0.0/8`"
    ] = ()


class Archive(Sieve, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How captures are kept."""

    directories: Annotated[
        Names,
        Meta(min_length=1),
        "Where WARC files are written; sites are spread; relative to the collection",
    ] = ("archive",)
    file_bytes: Annotated[int, Meta(ge=2**10), "A WARC file is finished after this size"] = (
        1_000_000_000
    )
    requests: Annotated[bool, "Write request records"] = True
    metadata: Annotated[bool, "Write metadata records, with the outlinks"] = True
    dns: Annotated[bool, "Write the answers of name servers"] = True
    level: Annotated[
        int, Meta(ge=0, le=3), "Effort of compression (ISA-L); 0 is fastest, 3 is densest"
    ] = 1


class History(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stays in the store of visits; older ones move to Parquet, and are read from there."""

    keep_visits: Annotated[
        int, Meta(ge=2, le=1_000_000), "Last visits of each page that stay in the store"
    ] = 20
    keep_requests_s: Annotated[
        Seconds, "How long requests that are for no page stay there: robots.txt and probes"
    ] = 30 * 86_400.0


class Admit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sites found on the way become seeds. Any one rule is enough; none: only given sites."""

    domains: Annotated[Names, "Registrable domains, as `example.org`"] = ()
    tlds: Annotated[Names, "Top-level domains, as `kr`"] = ()
    networks: Annotated[Names, "Networks of the site's address"] = ()
    countries: Annotated[
        Names, "Two-letter countries of the site's address; needs `seeds.country_database`"
    ] = ()
    sites: Annotated[Names, "Host patterns, as `*.example.org`"] = ()


class Seeds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where parties start."""

    country_database: Annotated[
        str, "File in MaxMind's format that gives an address its country"
    ] = ""
    outside_per_site: Annotated[
        Natural, "Most candidate seeds remembered from the links of one site"
    ] = 1000
    sitemaps: Annotated[bool, "Read the sitemaps that robots.txt names"] = False
    admit: Admit = Admit()


class Alias(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sites with two names: recognised by their content, and visited under one of them."""

    detect: Annotated[bool, "Look for names with the same content, and visit it once"] = False
    relations: Annotated[
        tuple[Relation, ...], "What names with equal front pages share besides; `content`: nothing"
    ] = ("www", "address")
    sample: Annotated[Count, "Pages below the front page that are compared before a merge"] = 5
    agree: Annotated[float, Meta(gt=0, le=1), "Share of them that must be equal"] = 1.0
    check: Annotated[float, Meta(ge=0, le=1), "Share compared again each run; 0: none"] = 0.05


class Robots(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """robots.txt."""

    obey: Annotated[bool, SITE, "Keep to robots.txt; without it you need the owner's consent"] = (
        True
    )
    cache_s: Annotated[
        float, Meta(ge=0, le=86_400), "Time after which a robots.txt is fetched again"
    ] = 86_400.0
    limit_bytes: Annotated[int, Meta(ge=500 * 2**10), "How much of a robots.txt is read"] = 512_000
    agent: Annotated[
        str, Meta(pattern="^[A-Za-z_-]+$"), "Product token by which robots.txt addresses us"
    ] = "geomi"


class Extract(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is read in documents, and which wishes of their authors are obeyed.

    All of them are recorded with the capture, obeyed or not.
    """

    obey_nofollow: Annotated[bool, "Leave out links that say `rel=nofollow`"] = True
    obey_meta: Annotated[
        bool, "Leave out the links of pages whose robots element or `X-Robots-Tag` says nofollow"
    ] = True
    obey_canonical: Annotated[
        bool,
        SITE,
        "Where a page names another one of its site as `rel=canonical`, take that one's links "
        "instead of its own",
    ] = False
    forms: Annotated[bool, "Visit the addresses of forms that ask with GET, as they stand"] = False
    scripts: Annotated[
        bool, "Take what looks like an address in scripts; often it is no page, see kind h"
    ] = False


class Traps(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Safety valves against endless sites. A URL over one is kept as `skip`; 0 opens a valve."""

    depth: Annotated[Natural, SITE, "Greatest number of links from the seed"] = 50
    segments: Annotated[
        Natural, SITE, "How often a path segment, or up to three in turn, may follow itself"
    ] = 3
    parameters: Annotated[Natural, SITE, "Most parameters of a query"] = 30
    template_pages: Annotated[
        Natural, SITE, "Most pages of a site whose URLs differ only in digits and values"
    ] = 100_000
    site_pages: Annotated[Natural, SITE, "Most pages of a site"] = 10_000_000


class Cluster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What carries the agents."""

    engine: Annotated[
        Literal["local", "ray"], "Processes of this machine, or actors on a Ray cluster"
    ] = "local"
    address: Annotated[
        str, "Address of the Ray cluster, `host:port`; `auto`: the one of this machine"
    ] = "auto"


#: Tables of geomi.toml, in the order of the reference. `store` stands above them.
TABLES: dict[str, type[Struct]] = {
    "crawl": Crawl,
    "manners": Manners,
    "agent": Agent,
    "fetch": Fetch,
    "access": Access,
    "retry": Retry,
    "dns": Dns,
    "guard": Guard,
    "archive": Archive,
    "history": History,
    "seeds": Seeds,
    "seeds.admit": Admit,
    "alias": Alias,
    "robots": Robots,
    "extract": Extract,
    "traps": Traps,
    "cluster": Cluster,
}

#: What a preset sets, where the operator set nothing.
PRESETS: dict[str, dict[str, int | float]] = {
    "polite": {},
    "paper": {
        "manners.rest_s": 30.0,
        "fetch.idle_s": 5.0,
        "agent.contexts": 15,
    },
    "own": {},
}

#: What holds for a host under `manners.own`, in the place of all but its own [site] table.
OWN: dict[str, int | float] = {"rest_s": 0.0, "rest_factor": 0.0, "address_rest_s": 0.0}
