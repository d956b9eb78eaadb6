"""The world as others see it: questions by host and target, answers that depend on nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from geomi.errors import OperatorError
from geomi.states import Outcome
from geomi.world import evil, features, render
from geomi.world.chance import number, stream
from geomi.world.changes import DAY_S, EPOCH_S, Event
from geomi.world.corners import Asked, Found
from geomi.world.links import Link
from geomi.world.pages import Page, Pages
from geomi.world.render import Draft
from geomi.world.robots import onward
from geomi.world.sites import Site, SiteRules, Sites, host_of
from geomi.world.walls import missing
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
    tls_port: int = 443  # of every site that speaks https; 443 is not written in URLs
    trap_steps: int = 0  # so many steps lead into a trap; 0: endlessly many
    evil: bool = False  # the hosts of evil.EVILS are there too
    pause_s: float = 60.0  # between the bytes of those who are slow on purpose
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


class World:
    """A synthetic web. Pure: asking changes nothing but caches."""

    def __init__(self, params: Params) -> None:
        shares = features.all_shares(params.shares)
        if params.sites < 1 or params.pages < 1:
            raise OperatorError("the small world: needs at least one site and one page")
        self.params = params
        rules = SiteRules(
            seed=params.seed, sites=params.sites, pages=params.pages, port=params.port,
            korean=params.korean, addresses=params.addresses or min(params.sites, 1_000),
            delay_s=params.delay_s, shares=shares, tls_port=params.tls_port,
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

    def seeds(self, n: int | None = None, *, copies: bool = False) -> list[str]:
        """The front pages of the first `n` sites, by the names people know.

        `copies`: also by the further names and schemes under which they answer.
        """
        sites = self.sites[: n if n is not None else len(self.sites)]
        urls = [site.seed for site in sites]
        if copies:
            urls += [f"{base}/" for site in sites for base in site.copies]
        return urls

    def find(self, url: str) -> tuple[Site | None, str, Page | None]:
        """(site, target, page) of a canonical URL; where everything is redirected is no page."""
        scheme, _, rest = url.partition("://")
        authority, _, target = rest.partition("/")
        site = self.sites.by_host(host_of(authority))
        target = "/" + target
        if site is None or site.place(f"{scheme}://{authority}") in ("", "bare"):
            return site, target, None
        return site, target, self.pages.of(site.number).by_target.get(target)

    def corner(
        self, site: Site, target: str, *, now_s: float = EPOCH_S,
        headers: Mapping[str, str] | None = None,
    ) -> Found | None:  # fmt: skip
        """What one of the site's corners says of a target; None if it belongs to none.

        Without `headers`: what a complete visitor finds there.
        """
        asked = Asked(
            seed=self.params.seed, site=site.number, charset=site.charset, korean=site.korean,
            folder="/", rest=target[1:], steps=self.params.trap_steps, now_s=now_s, headers=headers,
        )  # fmt: skip
        if target.startswith("/~"):
            name, slash, rest = target[2:].partition("/")
            if slash and name in site.corners:
                corner = features.CORNERS[name]
                found = corner.find(replace(asked, folder=corner.folder, rest=rest))
                if found is not None:
                    return found
        return missing(asked) if "soft404" in site.habits else None

    def trap(self, url: str) -> str:
        """The name of the trap that a URL lies in; empty if it is a real page, or none."""
        found = self._corner_of(url)
        return url.partition("/~")[2].partition("/")[0] if found and found.trap else ""

    def meaning(self, url: str) -> str:
        """What a page is that is no content: login, realname, missing, error or script."""
        found = self._corner_of(url)
        return found.meaning if found else ""

    def original(self, url: str) -> str:
        """The first of all URLs with this content; the URL itself if there is no other."""
        site, target, page = self.find(url)
        if site is None:
            return url
        if page is not None and page.same_as >= 0:
            return site.base + self.pages.target(site.number, page.same_as)
        found = self._corner_of(url)
        if found is not None and found.original:
            return site.base + found.original
        if site.place(url[: len(url) - len(target)]):
            return site.base + target
        return url

    def _corner_of(self, url: str) -> Found | None:
        site, target, page = self.find(url)
        if site is None or page is not None:
            return None
        if site.place(url[: len(url) - len(target)]) in ("", "bare"):
            return None
        return self.corner(site, target)

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

    def resolve(self, name: str, *, asked: int = 0) -> tuple[tuple[str, ...], int]:
        """(addresses, seconds to live) of a name; no addresses if it has none.

        `asked`: how often it was resolved before; only evil names care.
        """
        name = name.lower().rstrip(".")
        if self.params.evil and name.endswith(evil.DOMAIN):
            return evil.resolve(name, asked)
        site = self.sites.by_host(name)
        return (site.addresses, site.ttl_s) if site is not None else ((), 60)

    def dns_code(self, name: str) -> str:
        """NOERROR, NXDOMAIN or SERVFAIL."""
        name = name.lower().rstrip(".")
        if self.params.evil and name.endswith(evil.DOMAIN):
            return "NOERROR" if evil.resolve(name, 0)[0] else "NXDOMAIN"
        site = self.sites.by_host(name)
        return site.kind.dns if site is not None else "NXDOMAIN"

    def addresses(self) -> list[str]:
        """Every address somebody should listen on, sorted by first use."""
        used: dict[str, None] = {}
        for site in self.sites:
            if not site.kind.fault:
                used.update(dict.fromkeys(site.addresses))
        return list(used)

    def tls_addresses(self) -> list[str]:
        """Every address somebody should listen on for https."""
        used: dict[str, None] = {}
        for site in self.sites:
            if site.tls:
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
        now_s: float | None = None,
    ) -> Answer:
        """What the server says `at` seconds after the world's start.

        `headers` are the request's, names in lower case; conditions, cookies and passwords count.
        `now_s`: the time since 1970 that dates in answers go by; unset: that of the world.
        """
        site = self.sites.by_host(host_of(host.lower()))
        answer = self._answer(host, target, scheme=scheme, at=at, headers=headers, now_s=now_s)
        if site is None or "stamped" not in site.habits or answer.status != 200:
            return answer
        key = number(self.params.seed, "stamp", site.number, target, at, now_s)
        body = render.stamped(answer.body, key, EPOCH_S + at if now_s is None else now_s)
        return replace(answer, body=body)

    def _answer(
        self, host: str, target: str, *, scheme: str, at: float,
        headers: Mapping[str, str] | None, now_s: float | None,
    ) -> Answer:  # fmt: skip
        site = self.sites.by_host(host_of(host.lower()))
        if site is None or site.kind.fault:
            return _no_such_page(target)
        chunked = "chunked" in site.habits
        base = site.base_of(scheme, host_of(host.lower()))
        place = site.place(base)
        if scheme == "https" and (not place or site.tls != "good"):
            return Answer(status=0, headers=(), body=b"", fault=str(Outcome.C_ERR))
        if target.startswith("/robots"):
            robots = self._robots(site, base, target)
            if robots is not None:
                return robots
        if place == "bare" and target != "/robots.txt":
            return self._redirect(site.base + target, 301)
        page = self.pages.of(site.number).by_target.get(target)
        if page is None or not self.web.life(site.number, page).is_alive(at):
            now_s = EPOCH_S + at if now_s is None else now_s
            found = self.corner(site, target, now_s=now_s, headers=headers or {})
            if found is None:
                return _no_such_page(target, chunked=chunked)
            if found.to:
                return self._redirect(base + found.to, found.status)
            return Answer(
                status=found.status, headers=found.headers, body=found.body, chunked=chunked
            )
        if page.to:
            return self._redirect(rebased(page.to, site, base), page.status)
        return self._document(site, page, at=at, headers=headers or {})

    def _robots(self, site: Site, base: str, target: str) -> Answer | None:
        """The way to a robots.txt that does not simply lie where it should; None: it does."""
        if target.startswith("/robots-for-"):
            number = target[len("/robots-for-") :].removesuffix(".txt")
            owner = int(number) if number.isdecimal() else len(self.sites)
            if site.number == 0 and owner < len(self.sites) and self.sites[owner].robots.away:
                return self._document(
                    self.sites[owner], self.pages.of(owner).by_target["/robots.txt"],
                    at=0.0, headers={},
                )  # fmt: skip
            return None
        way = onward(site.robots, target)
        if way is None:
            return None
        if target == "/robots.txt" and site.robots.fault:
            return Answer(status=200, headers=(), body=b"", fault=site.robots.fault)
        if way == "away":
            return self._redirect(f"{self.sites[0].base}/robots-for-{site.number}.txt", 301)
        if way:
            return self._redirect(base + way, 302)
        page = self.pages.of(site.number).by_target["/robots.txt"]
        return self._document(site, page, at=0.0, headers={})

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
        if content == "robots":
            extra += site.robots.headers
        elif page.status == 503:
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


def rebased(url: str, site: Site, base: str) -> str:
    """A URL of the site's main name under another base; others stay as they are."""
    return base + url[len(site.base) :] if url.startswith(site.base + "/") else url


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
