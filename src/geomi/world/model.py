"""The world as others see it: questions by host and target, answers that depend on nothing else."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from geomi.errors import OperatorError
from geomi.world import features, render
from geomi.world.chance import number, stream
from geomi.world.changes import DAY_S, EPOCH_S, Event
from geomi.world.links import Link
from geomi.world.pages import Page, Pages
from geomi.world.render import Draft
from geomi.world.sites import Site, SiteRules, Sites
from geomi.world.web import Web

Header = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Describes a world completely: equal parameters, equal worlds, in every process."""

    seed: int
    sites: int = 50
    pages: int = 30  # mean pages of a site; the sizes are heavy-tailed
    port: int = 80  # of every site; 80 is not written in URLs
    korean: float = 0.6  # share of Korean sites
    addresses: int = 0  # size of the pool; 0: one for each site, at most 1,000
    changes: bool = False
    changes_per_day: float = 0.2  # mean of the pages that change at all
    horizon_days: float = 60.0  # pages appear and vanish within this time
    crawl_delay_s: float = 1.0
    retry_after_s: int = 1
    delay_s: float = 0.0  # mean wait of sites with the habit `slow`
    shares: Mapping[str, float] = field(default_factory=dict)  # see features.SHARES

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server says. With a `fault` the wire shows only that much of it, see serve.py."""

    status: int
    headers: tuple[Header, ...]  # without those of framing
    body: bytes
    fault: str = ""  # an outcome of geomi.states; empty: none
    delay_s: float = 0.0
    flaky: int = 0  # so many requests for this URL get FLAKY first
    chunked: bool = False


#: What a flaky page answers first.
FLAKY = Answer(
    status=503, headers=(("Content-Type", "text/html"),), body=render.error_body(503, "busy")
)


def _no_such_page(target: str, *, chunked: bool = False) -> Answer:
    body = render.error_body(404, target)
    headers = (("Content-Type", "text/html"),)
    return Answer(status=404, headers=headers, body=body, chunked=chunked)


def _all_shares(given: Mapping[str, float]) -> dict[str, float]:
    for name, share in given.items():
        if name not in features.SHARES:
            near = difflib.get_close_matches(name, features.SHARES, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise OperatorError(f"the small world: unknown share {name}{hint}")
        if not 0 <= share <= 1:
            raise OperatorError(f"the small world: share {name} is {share}, wanted 0 to 1")
    return {**features.SHARES, **given}


class World:
    """A synthetic web. Pure: asking changes nothing but caches."""

    def __init__(self, params: Params) -> None:
        shares = _all_shares(params.shares)
        if params.sites < 1 or params.pages < 1:
            raise OperatorError("the small world: needs at least one site and one page")
        self.params = params
        rules = SiteRules(
            seed=params.seed, sites=params.sites, pages=params.pages, port=params.port,
            korean=params.korean, addresses=params.addresses or min(params.sites, 1_000),
            delay_s=params.delay_s, shares=shares,
        )  # fmt: skip
        self.sites = Sites(rules)
        self.pages = Pages(self.sites, seed=params.seed, shares=shares)
        self.web = Web(
            self.sites,
            self.pages,
            seed=params.seed,
            per_day=params.changes_per_day if params.changes else 0.0,
            horizon_s=params.horizon_days * DAY_S,
        )

    def seeds(self, n: int | None = None) -> list[str]:
        """The front pages of the first `n` sites, by the names people know."""
        return [site.seed for site in self.sites[: n if n is not None else len(self.sites)]]

    def find(self, url: str) -> tuple[Site | None, str, Page | None]:
        """(site, target, page) of a canonical URL; a bare name that redirects has no page."""
        authority, _, target = url.partition("://")[2].partition("/")
        host = authority.partition(":")[0]
        site = self.sites.by_host(host)
        target = "/" + target
        if site is None or host == site.bare:
            return site, target, None
        return site, target, self.pages.of(site.number).by_target.get(target)

    def links(self, url: str, at: float = 0.0) -> list[Link]:
        """The links of a page in its order; none if the URL has no page."""
        site, _, page = self.find(url)
        return self.web.links(site, page, at) if site is not None and page is not None else []

    def changes(self, url: str, until: float) -> list[Event]:
        """When a page appeared (A), changed (M) and vanished (D), in order, up to `until`."""
        site, _, page = self.find(url)
        if site is None or page is None:
            return []
        return self.web.events(site.number, page, until)

    def urls(self, site: Site) -> list[str]:
        """Every URL of a site that is a page, reachable or not; no assets."""
        return [site.base + page.target for page in self.pages.of(site.number).numbered]

    def resolve(self, name: str) -> tuple[tuple[str, ...], int]:
        """(addresses, seconds to live) of a name; no addresses if it has none."""
        site = self.sites.by_host(name.lower().rstrip("."))
        return (site.addresses, site.ttl_s) if site is not None else ((), 60)

    def dns_code(self, name: str) -> str:
        """NOERROR, NXDOMAIN or SERVFAIL."""
        site = self.sites.by_host(name.lower().rstrip("."))
        return site.kind.dns if site is not None else "NXDOMAIN"

    def addresses(self) -> list[str]:
        """Every address somebody should listen on, sorted by first use."""
        used: dict[str, None] = {}
        for site in self.sites:
            if not site.kind.fault:
                used.update(dict.fromkeys(site.addresses))
        return list(used)

    def hosts_lines(self) -> Iterator[str]:
        """All names that resolve, in the format of /etc/hosts."""
        for site in self.sites:
            for address in site.addresses:
                yield f"{address}\t{' '.join(site.hosts)}\n"

    def answer(
        self,
        host: str,
        target: str,
        *,
        scheme: str = "http",
        at: float = 0.0,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """What the server says `at` seconds after the world's start.

        `headers` are the request's, names in lower case; only those of conditions matter.
        """
        name = host.partition(":")[0].lower()
        site = self.sites.by_host(name)
        if site is None or scheme != "http" or site.kind.fault:
            return _no_such_page(target)
        chunked = "chunked" in site.habits
        page = self.pages.of(site.number).by_target.get(target)
        if name == site.bare and target != "/robots.txt":
            return self._redirect(site.base + target, 301)
        if page is None:
            return _no_such_page(target, chunked=chunked)
        life = self.web.life(site.number, page)
        if not life.is_alive(at):
            return _no_such_page(target, chunked=chunked)
        if page.to:
            return self._redirect(page.to, page.status)
        return self._document(site, page, at=at, headers=headers or {})

    @staticmethod
    def _redirect(url: str, status: int) -> Answer:
        body = b"<html><head><title>moved</title></head><body>moved</body></html>\n"
        return Answer(
            status=status, headers=(("Location", url), ("Content-Type", "text/html")), body=body
        )

    def _document(self, site: Site, page: Page, *, at: float, headers: Mapping[str, str]) -> Answer:
        n, source = site.number, page.number if page.same_as < 0 else page.same_as
        events = self.web.events(n, page, at) if self.params.changes else []
        version = len(events)
        age_s = number(self.params.seed, "age", n, source) % (400 * 86_400)
        changed_s = float(int(events[-1][0])) if events else -float(age_s)
        validators = self._validators(site, page, version=version, changed_s=changed_s)
        if validators and _unchanged(validators, headers):
            return Answer(status=304, headers=tuple(validators), body=b"")
        content = page.role.content
        listed: list[tuple[str, float]] = []
        if content in ("sitemap", "rss", "atom"):
            listed = self.listed(site, at)
        draft = Draft(
            site=site, page=page, links=self.web.links(site, page, at), version=version,
            changed_s=changed_s, rng=stream(self.params.seed, "draft", n, source), urls=listed,
            crawl_delay_s=self.params.crawl_delay_s,
        )  # fmt: skip
        mime, body = render.RENDERERS[content](draft)
        extra: list[Header] = [("Content-Type", mime), *validators]
        if page.status == 503:
            extra.append(("Retry-After", str(self.params.retry_after_s)))
        return Answer(
            status=page.status, headers=tuple(extra), body=body, fault=page.role.fault,
            delay_s=site.delay_s, flaky=page.role.flaky, chunked="chunked" in site.habits,
        )  # fmt: skip

    def _validators(
        self, site: Site, page: Page, *, version: int, changed_s: float
    ) -> list[Header]:
        if page.status != 200 or page.role.content in ("sitemap", "rss", "atom", "robots"):
            return []
        found: list[Header] = []
        if "etag" in site.habits:
            key = number(self.params.seed, "etag", site.number, page.target)
            found.append(("ETag", f'"{key:016x}-{version}"'))
        if "modified" in site.habits:
            found.append(("Last-Modified", http_date(EPOCH_S + changed_s)))
        return found

    def listed(self, site: Site, at: float) -> list[tuple[str, float]]:
        """What sitemaps and feeds name: living html pages, those that no page links to as well."""
        rows: list[tuple[str, float]] = []
        for page in self.pages.of(site.number).numbered:
            if not (page.role.linking and page.status == 200) or page.same_as >= 0:
                continue
            if self.web.life(site.number, page).is_alive(at):
                events = self.web.events(site.number, page, at) if self.params.changes else []
                rows.append((site.base + page.target, events[-1][0] if events else 0.0))
        return rows


def http_date(time_s: float) -> str:
    """Seconds since 1970 as HTTP writes a date."""
    return format_datetime(datetime.fromtimestamp(int(time_s), UTC), usegmt=True)


def _unchanged(validators: list[Header], headers: Mapping[str, str]) -> bool:
    """RFC 9110, 13.2.2: If-None-Match first, If-Modified-Since only without it."""
    known = dict(validators)
    if (wanted := headers.get("if-none-match")) is not None:
        tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
        return "*" in tags or known.get("ETag", "") in tags
    since = headers.get("if-modified-since")
    if since is None or "Last-Modified" not in known:
        return False
    try:
        return parsedate_to_datetime(known["Last-Modified"]) <= parsedate_to_datetime(since)
    except ValueError:
        return False
