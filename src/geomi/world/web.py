"""The link structure: which page points at what. Also the life of pages, which links depend on."""

from __future__ import annotations

from functools import lru_cache
from random import Random

from geomi.world import changes, features
from geomi.world.chance import stream
from geomi.world.changes import Event, History, Life
from geomi.world.links import TO_PAGES, Link
from geomi.world.pages import Page, Pages
from geomi.world.sites import Site, Sites

_ALWAYS = Life()
#: Contents that live and change; the others stand still.
_LIVING = ("html", "text", "pdf")


class Web:
    """Links within a site are local with few popular pages; those between sites follow Zipf."""

    def __init__(
        self, sites: Sites, pages: Pages, *, seed: int, per_day: float, horizon_s: float
    ) -> None:
        """`per_day` 0 means that the world stands still."""
        self.sites = sites
        self.pages = pages
        self._seed = seed
        self._per_day = per_day
        self._horizon_s = horizon_s
        self._history = lru_cache(maxsize=100_000)(self._make_history)

    def life(self, n: int, page: Page) -> Life:
        if not self._per_day or page.number < 0 or page.role.content not in _LIVING:
            return _ALWAYS
        return self._life(n, page.same_as if page.same_as >= 0 else page.number)

    def _life(self, n: int, i: int) -> Life:
        return changes.life(self._seed, n, i, per_day=self._per_day, horizon_s=self._horizon_s)

    def _make_history(self, n: int, i: int) -> History:
        return History(self._life(n, i), stream(self._seed, "history", n, i))

    def events(self, n: int, page: Page, until: float) -> list[Event]:
        """What happened to a page, sorted; a page changes too when a child first appears."""
        life = self.life(n, page)
        if life is _ALWAYS:
            return []
        key = page.same_as if page.same_as >= 0 else page.number
        events = self._history(n, key).until(until)
        numbered = self.pages.of(n).numbered
        births = [
            (born, "M")
            for child in numbered[key].children
            if 0.0 < (born := self.life(n, numbered[child]).born_s) <= until and life.is_alive(born)
        ]
        return sorted(events + births) if births else events

    def links(self, site: Site, page: Page, at: float) -> list[Link]:
        """The links of a page in the order in which it shows them."""
        if page.role.content == "css":
            return self._css_links(site, page)
        source = page.number if page.same_as < 0 else page.same_as
        if source < 0 or not page.role.linking:
            return []
        n = site.number
        rng = stream(self._seed, "links", n, source)
        numbered = self.pages.of(n).numbered
        children = [
            site.base + numbered[i].target
            for i in numbered[source].children
            if self.life(n, numbered[i]).born_s <= at
        ]
        if page.role.content == "frameset":
            return [Link("frame", url) for url in children or [self._local(site, rng)]]
        links = self._requisites(site, rng)
        if source == 0 and site.feed:
            links.append(Link("feed", f"{site.base}/{site.feed}.xml"))
        links += self._written(children, rng)
        if source == 0:
            links += [Link("anchor", self.sites[m].seed) for m in self.sites.children(n)]
            links += [Link("anchor", url) for url in self._corners(site)]
        else:
            links.append(Link("anchor", site.home))
        count = min(site.pages, 2 + int(rng.expovariate(1 / 5)))
        links += self._written([self._local(site, rng) for _ in range(count)], rng)
        if rng.random() < 0.35 and len(self.sites) > 1:
            others = [self._far(rng) for _ in range(rng.randint(1, 4))]
            links += [Link("anchor", url) for url in others]
        return links

    @staticmethod
    def _corners(site: Site) -> list[str]:
        """What only the front page knows: corners, further names, pages that are not there."""
        urls = [f"{base}/" for base in site.copies]
        if "soft404" in site.habits:
            urls += [f"{site.base}/lost/{k}.html" for k in range(3)]
        corners = [features.CORNERS[name] for name in site.corners]
        urls += [
            site.base + corner.folder + entrance
            for corner in corners
            for entrance in corner.entrances
        ]
        return urls

    @staticmethod
    def _written(urls: list[str], rng: Random) -> list[Link]:
        links: list[Link] = []
        refreshed = False
        for url in urls:
            form = TO_PAGES.pick(rng.random())
            if form == "refresh" and refreshed:
                form = "anchor"
            refreshed = refreshed or form == "refresh"
            links.append(Link(form, url))
        return links

    def _requisites(self, site: Site, rng: Random) -> list[Link]:
        links = [Link("icon", site.base + "/favicon.ico")] if rng.random() < 0.5 else []
        links.append(Link("sheet", site.base + "/assets/style.css"))
        if rng.random() < 0.6:
            links.append(Link("code", site.base + "/assets/site.js"))
        links.append(Link("image", site.base + "/img/logo.png"))
        for k in rng.sample(range(6), rng.randint(0, 3)):
            links.append(Link("image", f"{site.base}/img/p{k}.png"))
        if rng.random() < 0.05:
            other = self.sites[self.sites.popular(rng.random())]
            links.append(Link("image", other.base + "/img/logo.png"))
        return links

    @staticmethod
    def _css_links(site: Site, page: Page) -> list[Link]:
        if page.target == "/assets/base.css":
            return [Link("css-url", site.base + "/img/bg.png")]
        return [Link("css-import", site.base + "/assets/base.css")]

    def _local(self, site: Site, rng: Random) -> str:
        """A page that is always there and no secret; low numbers are popular."""
        i = int(site.pages * rng.random() ** 3)
        return site.base + (self.pages.target(site.number, i) if self._open(site, i) else "/")

    def _far(self, rng: Random) -> str:
        site = self.sites[self.sites.popular(rng.random())]
        draw = rng.random()
        if draw < 0.15:
            return site.seed
        i = int(site.pages * rng.random())
        if draw < 0.75 or not self._open(site, i):
            return site.home
        return site.base + self.pages.target(site.number, i)

    def _open(self, site: Site, i: int) -> bool:
        n = site.number
        source = i
        if self.pages.role(n, i).name == "duplicate":
            source = self.pages.original(n, i)
        role = self.pages.role(n, source)
        if role.hidden:
            return False
        living = bool(self._per_day) and role.content in _LIVING
        return not (living and self._life(n, source).fleeting)
