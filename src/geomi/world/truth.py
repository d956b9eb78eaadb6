"""What a complete visitor must find: a search over the generator's own knowledge, no parsing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from geomi.states import Outcome
from geomi.world.model import World
from geomi.world.pages import Page
from geomi.world.sites import Site

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
    page: Page | None = None


class _Oracle:
    """Knows what one visit to one URL comes to."""

    def __init__(self, world: World, *, robots: bool, agent: str, at: float) -> None:
        self._world = world
        self._robots = robots
        self._named = agent.lower() == "geomi"
        self._at = at

    def fate(self, url: str) -> _Fate:
        site, target, page = self._world.find(url)
        if site is None:
            return _Fate(str(Outcome.NO_IP))
        if site.kind.fault:
            return _Fate(site.kind.fault)
        if self._robots and target != "/robots.txt" and site.robots.denies(target, self._named):
            return _Fate(str(Outcome.DENY))
        code = str(Outcome.CODE)
        if page is None:
            bare = url.startswith(site.bare_base + "/") if site.bare else False
            return _Fate(code, to=site.base + target if bare else "")
        if not self._world.web.life(site.number, page).is_alive(self._at):
            return _Fate(code)
        if page.to:
            return _Fate(code, to=page.to)
        if page.status != 200:
            return _Fate(code)
        return _Fate(page.role.outcome, page=page)

    def links(self, site: Site, page: Page) -> Iterator[tuple[str, str]]:
        for link in self._world.web.links(site, page, self._at):
            yield link.kind, link.url

    def sitemap(self, site: Site) -> list[str]:
        """URLs that the site's robots.txt leads to through its sitemaps."""
        if not site.sitemap or site.robots.status != 200 or site.kind.fault:
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
        site = self._world.sites.by_host(authority.partition(":")[0])
        return site.domain if site is not None else authority


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
) -> dict[str, Expected]:
    """Every URL in scope that a complete crawl decides, with its outcome and least depth."""
    oracle = _Oracle(world, robots=robots, agent=agent, at=at)
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
            if fate.page is not None and fate.outcome == Outcome.OK:
                steps += oracle.links(site, fate.page)
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
