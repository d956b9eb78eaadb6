"""What a complete visitor must find: a search over the generator's own knowledge, no parsing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from geomi.errors import OperatorError
from geomi.states import Outcome
from geomi.world.model import World, rebased
from geomi.world.sites import Site, host_of

#: Depth that one step adds. A redirect's target and what a page needs belong to the page.
STEPS: Mapping[str, int] = {"a": 1, "f": 1, "h": 1, "e": 0, "r": 0, "m": 1}
SEED_HOPS = 5


@dataclass(frozen=True, slots=True)
class Expected:
    """What a URL must come to. `kind` is one by which it can be reached at this depth."""

    outcome: str
    depth: int
    kind: str  # f, a, h, e as in records.Wanted; s a seed, m from a sitemap


@dataclass(frozen=True, slots=True)
class _Fate:
    outcome: str
    to: str = ""  # redirect
    links: tuple[tuple[str, str], ...] = ()  # (kind, URL)


class _Oracle:
    """Knows what one visit to one URL comes to."""

    def __init__(
        self, world: World, *, robots: bool, agent: str, at: float, nofollow: bool, traps: bool
    ) -> None:
        self._world = world
        self._robots = robots
        self._named = agent.lower() == "geomi"
        self._at = at
        self._nofollow = nofollow
        self._traps = traps

    def fate(self, url: str) -> _Fate:
        site, target, page = self._world.find(url)
        if site is None:
            return _Fate(str(Outcome.NO_IP))
        if site.kind.fault:
            return _Fate(site.kind.fault)
        base = url[: len(url) - len(target)]
        place = site.place(base)
        if not place or (url.startswith("https:") and site.tls != "good"):
            return _Fate(str(Outcome.C_ERR))
        if self._robots and target != "/robots.txt":
            if site.robots.fault:
                return _Fate(site.robots.fault)
            if site.robots.denies(target, self._named):
                return _Fate(str(Outcome.DENY))
        code = str(Outcome.CODE)
        if place == "bare":
            return _Fate(code, to=site.base + target)
        if page is None or not self._world.web.life(site.number, page).is_alive(self._at):
            return self._cornered(site, base, target)
        if page.to:
            return _Fate(code, to=rebased(page.to, site, base))
        if page.status != 200:
            return _Fate(code)
        if page.role.outcome != Outcome.OK:
            return _Fate(page.role.outcome)
        links = self._world.web.links(site, page, self._at)
        return _Fate(
            page.role.outcome,
            links=tuple((link.kind, rebased(link.url, site, base)) for link in links),
        )

    def _cornered(self, site: Site, base: str, target: str) -> _Fate:
        found = self._world.corner(site, target)
        code = str(Outcome.CODE)
        if found is None:
            return _Fate(code)
        if found.to:
            return _Fate(code, to=base + found.to)
        if found.status != 200:
            return _Fate(code)
        references = found.links if self._nofollow else found.links + found.nofollow
        links = (
            (kind, base + to if to.startswith("/") else to)
            for kind, to in references
            if self._traps or not self._is_trap(site, to)
        )
        return _Fate(str(Outcome.OK), links=tuple(links))

    def _is_trap(self, site: Site, target: str) -> bool:
        found = self._world.corner(site, target)
        return found is not None and found.trap

    def sitemap(self, site: Site) -> list[str]:
        """URLs that the site's robots.txt leads to through its sitemaps."""
        robots = site.robots
        if not site.sitemap or not robots.legible or robots.status != 200 or site.kind.fault:
            return []
        return [url for url, _ in self._world.listed(site, self._at)]


class _Scope:
    """Admitted places: sites, prefixes or domains, as the rule says."""

    def __init__(self, world: World, rule: str) -> None:
        self._world = world
        self._rule = rule
        self._places: set[str] = set()
        self._prefixes: tuple[str, ...] = ()

    def admit(self, url: str) -> None:
        if self._rule == "prefix":
            self._prefixes += (url.partition("?")[0].rpartition("/")[0] + "/",)
        else:
            self._places.add(self._place(url))

    def holds(self, url: str) -> bool:
        if self._rule == "prefix":
            return url.startswith(self._prefixes)
        return self._place(url) in self._places

    def _place(self, url: str) -> str:
        authority = url.partition("://")[2].partition("/")[0]
        if self._rule == "site":
            return authority
        host = host_of(authority)
        site = self._world.sites.by_host(host)
        if site is not None and f".{host}".endswith(f".{site.domain}"):
            return site.domain
        return host


def reachable(
    world: World,
    seeds: Iterable[str],
    *,
    scope: str = "site",
    requisites: bool = True,
    max_depth: int | None = None,
    robots: bool = True,
    agent: str = "geomi",
    at: float = 0.0,
    sitemaps: bool = False,
    nofollow: bool = True,
    traps: bool = False,
) -> dict[str, Expected]:
    """Every URL in scope that a complete crawl decides, with its outcome and least depth.

    `nofollow`: it is obeyed. URLs in traps (`World.trap`) are left out; `traps` takes them in,
    where they end.
    """
    if traps and not world.params.trap_steps:
        raise OperatorError("the small world: endless traps have no whole truth; set trap_steps")
    oracle = _Oracle(world, robots=robots, agent=agent, at=at, nofollow=nofollow, traps=traps)
    admitted = _Scope(world, scope)
    waiting: deque[tuple[str, int, str]] = deque()
    for seed in seeds:
        url = seed
        for _ in range(SEED_HOPS + 1):
            admitted.admit(url)
            if not (to := oracle.fate(url).to):
                break
            url = to
        waiting.append((seed, 0, "s"))
    found: dict[str, Expected] = {}
    mapped: set[int] = set()
    # Steps are 0 or 1, so the queue stays sorted by depth if steps of 0 go to its front.
    while waiting:
        url, depth, kind = waiting.popleft()
        if url in found:
            continue
        fate = oracle.fate(url)
        found[url] = Expected(fate.outcome, depth, kind)
        steps: list[tuple[str, str]] = [("r", fate.to)] if fate.to else []
        site, _, _ = world.find(url)
        if site is not None:
            steps += fate.links
            if sitemaps and site.number not in mapped:
                mapped.add(site.number)
                steps += [("m", listed) for listed in oracle.sitemap(site)]
        for how, to in steps:
            if (how == "e" and not requisites) or to in found or not admitted.holds(to):
                continue
            deeper = depth + STEPS[how]
            if max_depth is not None and deeper > max_depth:
                continue
            entry = (to, deeper, kind if how == "r" else how)
            if deeper == depth:
                waiting.appendleft(entry)
            else:
                waiting.append(entry)
    return found


def main_name(world: World, url: str) -> str:
    """The URL under the name that the site's pages live under; itself if it is no copy by name.

    http and https are one site to begin with, so the scheme stays.
    """
    scheme, _, rest = url.partition("://")
    authority, _, target = rest.partition("/")
    site = world.sites.by_host(host_of(authority))
    if site is None or host_of(authority) not in site.aliases:
        return url
    return f"{scheme}://{site.host}{authority[len(host_of(authority)) :]}/{target}"


def as_one(world: World, found: Mapping[str, Expected]) -> dict[str, Expected]:
    """The same pages where all names of a site are one: each under its main name, once."""
    merged: dict[str, Expected] = {}
    for url, one in found.items():
        name = main_name(world, url)
        if name not in merged or one.depth < merged[name].depth:
            merged[name] = one
    return merged
