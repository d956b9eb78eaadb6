"""Pages of one site: roles, paths and the tree. A path follows from numbers, without the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote

from geomi.world import features, text
from geomi.world.chance import Choice, number, stream, unit
from geomi.world.features import Role
from geomi.world.sites import Site, Sites

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_FRAMES = 3


@dataclass(slots=True, kw_only=True)
class Page:
    """A document of a site. Assets and robots.txt have negative numbers."""

    number: int
    target: str  # path and query as in a request line
    role: Role
    status: int = 200
    to: str = ""  # where a redirect leads, absolute
    same_as: int = -1  # the page whose content a duplicate repeats
    parent: int = -1
    # Numbers of the pages whose place in the tree is below this one. Filled by Pages._build().
    children: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Structure:
    """All documents of one site by target, and the numbered ones in order."""

    numbered: list[Page]
    by_target: dict[str, Page]


def _asset(name: str, content: str) -> Role:
    return Role(name=name, content=content)


ASSETS: Mapping[str, Role] = {
    "/assets/style.css": _asset("css", "css"),
    "/assets/base.css": _asset("css", "css"),
    "/assets/site.js": _asset("js", "js"),
    "/favicon.ico": _asset("icon", "png"),
    "/img/logo.png": _asset("image", "png"),
    "/img/bg.png": _asset("image", "png"),
    **{f"/img/p{k}.png": _asset("image", "png") for k in range(6)},
}
_SITEMAPS: Mapping[str, tuple[str, ...]] = {
    "": (),
    "plain": ("/sitemap.xml",),
    "gzip": ("/sitemap.xml.gz",),
    "index": ("/sitemap-index.xml", "/sitemap-1.xml", "/sitemap-2.xml.gz"),
}
_SUFFIX = {"text": ".txt", "pdf": ".pdf", "png": ".png"}


class Pages:
    """Makes the pages of sites on demand; keeps the trees of the sites looked at last."""

    def __init__(self, sites: Sites, *, seed: int, shares: Mapping[str, float]) -> None:
        self._sites = sites
        self._seed = seed
        self._roles = Choice(features.ROLES, [shares[role.name] for role in features.ROLES])
        self.of = lru_cache(maxsize=2_000)(self._build)

    def role(self, n: int, i: int) -> Role:
        """Cheap: needs no tree."""
        if self._sites.kind(n).name == "moved":
            return features.ROLE["away"]
        if i == 0:
            return features.ROLE["html"]
        return self._roles.pick(unit(self._seed, "role", n, i))

    def target(self, n: int, i: int) -> str:
        """Path and query of page `i` of site `n`. Cheap: needs no tree."""
        if i == 0:
            return "/"
        role = self.role(n, i)
        if role.name == "duplicate":
            return self._copy_target(self.target(n, self.original(n, i)), i)
        return self._plain_target(self._sites[n], i, role)

    def original(self, n: int, i: int) -> int:
        """The page that the duplicate `i` repeats: an earlier page that holds links."""
        j = number(self._seed, "original", n, i) % i
        while j and not self.role(n, j).linking:
            j -= 1
        return j

    @staticmethod
    def _copy_target(target: str, i: int) -> str:
        # In the same directory, so that the same bytes hold the same links.
        if target.endswith("/"):
            return f"{target}index{i}.html"
        return f"{target}{'&' if '?' in target else '?'}from={i}"

    def _plain_target(self, site: Site, i: int, role: Role) -> str:
        rng = stream(self._seed, "path", site.number, i)
        style, folder_at = rng.random(), rng.random()
        count = 1 + int(site.pages**0.5)
        k = int(count * folder_at * folder_at)
        words = text.FOLDERS
        name = words[(k + site.number) % len(words)]
        folder = f"/{name}" if k < len(words) else f"/{name}{k // len(words)}"
        if role.folder:
            folder = role.folder + ("/open" if role.name == "private" and style < 0.3 else "")
        word = rng.choice(words)
        if suffix := _SUFFIX.get(role.content):
            return f"{folder}/{word}{i}{suffix}"
        if style < 0.12:
            return f"{folder}/{i}/"
        if style < 0.30:
            return f"{folder}/view.php?id={i}&cat={rng.randint(1, 9)}"
        if style < 0.42:
            return f"{folder}/{rng.choice(words)}/{word}-{i}.htm"
        if site.korean and style < 0.48 and not role.folder:
            return quote(f"/{rng.choice(text.KOREAN_FOLDERS)}/글{i}.html")
        return f"{folder}/{word}{i}.html"

    def _build(self, n: int) -> Structure:
        site = self._sites[n]
        rng = stream(self._seed, "tree", n)
        numbered: list[Page] = []
        growing: list[int] = []  # pages that may still get children
        extra: list[Page] = []
        for i in range(site.pages):
            role = self.role(n, i)
            page = Page(number=i, target=self.target(n, i), role=role, status=role.status)
            numbered.append(page)
            if i and not role.hidden:
                before = numbered[i - 1]
                if before.role.name in ("redirect", "chain"):
                    page.parent = i - 1  # reached through the redirect
                else:
                    slot = int(len(growing) * rng.random() ** 1.5)
                    page.parent = growing[slot]
                    parent = numbered[page.parent]
                    parent.children.append(i)
                    full = len(parent.children) >= _MAX_FRAMES
                    if parent.role.content == "frameset" and full:
                        growing.pop(slot)
            if role.linking:
                growing.append(i)
            if role.name == "duplicate":
                page.same_as = self.original(n, i)
                page.role = numbered[page.same_as].role
                if page.role.flaky or page.role.hidden:
                    page.role = features.ROLE["html"]
            elif role.content == "redirect":
                extra += self._redirect(site, page)
        by_target = {page.target: page for page in numbered}
        by_target.update((page.target, page) for page in extra)
        files = list(ASSETS.items())
        files += [(target, _asset("sitemap", "sitemap")) for target in _SITEMAPS[site.sitemap]]
        if site.feed:
            files.append((f"/{site.feed}.xml", _asset("feed", site.feed)))
        robots = site.robots
        error = robots.status != 200
        files.append(("/robots.txt", _asset("robots", "error" if error else "robots")))
        for k, (target, role) in enumerate(files):
            by_target[target] = Page(number=-1 - k, target=target, role=role)
        by_target["/robots.txt"].status = robots.status
        return Structure(numbered, by_target)

    def _redirect(self, site: Site, page: Page) -> list[Page]:
        """Sets where a redirect leads; gives the further hops of a chain or a loop."""
        n, i = site.number, page.number
        page.status = _REDIRECTS[number(self._seed, "code", n, i) % len(_REDIRECTS)]
        onward = site.base + (self._onward(n, i + 1) if i + 1 < site.pages else "/")
        glue = "&" if "?" in page.target else "?"
        if page.role.name == "away":
            start = n + 1 + number(self._seed, "away", n, i) % max(1, len(self._sites) - 1)
            page.to = self._sites[self._sites.healthy(start % len(self._sites))].home
            return []
        if page.role.name == "redirect":
            page.to = onward
            return []
        hops = [f"{page.target}{glue}hop={k}" for k in (1, 2)]
        page.to = site.base + hops[0]
        last = onward if page.role.name == "chain" else site.base + page.target
        return [
            Page(number=i, target=hop, role=page.role, status=302, to=to)
            for hop, to in zip(hops, (site.base + hops[1], last), strict=True)
        ]

    def _onward(self, n: int, i: int) -> str:
        return self.target(n, i) if not self.role(n, i).hidden else "/"
