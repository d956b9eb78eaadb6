"""Sites: names, addresses and habits, each made from its number alone when somebody looks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import overload

from geomi.world import features, text
from geomi.world.chance import Choice, number, stream, unit
from geomi.world.charsets import CHARSETS, CharsetKind
from geomi.world.features import SiteKind
from geomi.world.robots import ROBOTS, RobotsKind

_SUFFIXES_KO = ("co.kr", "co.kr", "go.kr", "or.kr", "ac.kr", "pe.kr", "kr", "com", "net")
_SUFFIXES_EN = ("com", "com", "org", "net", "info", "co.uk")
_SUBDOMAINS = ("blog", "cafe", "shop", "lab", "m")
_NUMBERED = re.compile(r"[a-z]+(\d+)")


@dataclass(frozen=True, kw_only=True)
class Site:
    """What is known of a site before any of its pages is made."""

    number: int
    host: str  # the name its pages live under
    bare: str  # the name that sends everything to `host`; empty if there is none
    domain: str  # registrable
    kind: SiteKind
    addresses: tuple[str, ...]
    ttl_s: int
    pages: int
    korean: bool
    charset: CharsetKind
    robots: RobotsKind
    base: str  # http://host[:port]; https where the kind is `secure`
    bare_base: str  # where everything is sent to `base` from; empty if there is no such place
    aliases: tuple[str, ...] = ()  # further names with the same content
    tls: str = ""  # how its https is certified, see features.TLS; empty: it has none
    copies: tuple[str, ...] = ()  # further schemes and authorities with the same content
    corners: tuple[str, ...] = ()  # names in features.CORNERS
    sitemap: str = ""  # plain, gzip or index
    feed: str = ""  # rss or atom
    habits: frozenset[str] = field(default_factory=frozenset)
    delay_s: float = 0.0

    @property
    def home(self) -> str:
        """The URL of its front page."""
        return self.base + "/"

    @property
    def seed(self) -> str:
        """The URL by which people know it."""
        return (self.bare_base or self.base) + "/"

    @property
    def hosts(self) -> tuple[str, ...]:
        names = [self.host, self.bare, *self.aliases]
        return tuple(name for name in names if name and not _is_literal(name))

    def base_of(self, scheme: str, host: str) -> str:
        """The scheme and authority by which it answers there; empty if it does not."""
        start = f"{scheme}://{host}"
        for base in (self.base, self.bare_base, *self.copies):
            if base == start or base.startswith(f"{start}:"):
                return base
        return ""

    def place(self, base: str) -> str:
        """What answers at a scheme and authority: main, copy, bare, or nothing (empty)."""
        if not base:
            return ""
        if base == self.base:
            return "main"
        if base in self.copies:
            return "copy"
        return "bare" if base == self.bare_base else ""


def host_of(authority: str) -> str:
    """The name or address, in brackets if it is IPv6, of a host with or without port."""
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    return authority.partition(":")[0]


def _is_literal(host: str) -> bool:
    return host[0] == "[" or host.replace(".", "").isdigit()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRules:
    """The part of the parameters that sites depend on, with all shares filled in."""

    seed: int
    sites: int
    pages: int
    port: int
    korean: float
    addresses: int
    delay_s: float
    shares: dict[str, float]
    tls_port: int = 443


class Sites(Sequence[Site]):
    """All sites of a world, made on demand and forgotten when many others were looked at."""

    def __init__(self, rules: SiteRules) -> None:
        self._rules = rules
        share = rules.shares
        self._kinds = Choice(features.SITE_KINDS, [share[k.name] for k in features.SITE_KINDS])
        self._robots = Choice(ROBOTS, [share[f"robots.{k.name}"] for k in ROBOTS])
        self._tls = Choice(list(features.TLS), [share[f"tls.{name}"] for name in features.TLS])
        self._corners = [name for name in features.CORNERS if share[f"corner.{name}"]]
        # Where literal IPv6 leads: all sites of the habit `six` share the one address.
        self._six = next((n for n in range(min(rules.sites, 500)) if self._is_six(n)), -1)
        self._charsets = {
            korean: Choice(kinds, [share[f"charset.{k.name}"] for k in kinds])
            for korean in (True, False)
            for kinds in [[k for k in CHARSETS if k.korean is korean]]
        }
        self._made = lru_cache(maxsize=20_000)(self._make)

    def __len__(self) -> int:
        return self._rules.sites

    @overload
    def __getitem__(self, index: int) -> Site: ...
    @overload
    def __getitem__(self, index: slice) -> list[Site]: ...
    def __getitem__(self, index: int | slice) -> Site | list[Site]:
        if isinstance(index, slice):
            return [self._made(n) for n in range(*index.indices(len(self)))]
        if not 0 <= index < self._rules.sites:
            raise IndexError(index)
        return self._made(index)

    def by_host(self, host: str) -> Site | None:
        """The site that has this name (lower case, no port); None if no site has it."""
        if host and _is_literal(host):
            return self._by_literal(host)
        for label in host.split("."):
            if match := _NUMBERED.fullmatch(label):
                n = int(match[1])
                if n < self._rules.sites:
                    site = self._made(n)
                    if host in site.hosts:
                        return site
                return None
        return None

    def _by_literal(self, host: str) -> Site | None:
        n = self._six
        if host[0] != "[":
            numbers = [int(part) for part in host.split(".")]
            if len(numbers) != 4:
                return None
            n = ((numbers[1] - 64) << 16 | numbers[2] << 8 | numbers[3]) - 1
        site = self._made(n) if 0 <= n < self._rules.sites else None
        return site if site is not None and host in site.aliases else None

    def _is_six(self, n: int) -> bool:
        return not self.kind(n).fault and self.has(n, "six")

    def kind(self, n: int) -> SiteKind:
        """Cheap: makes no site. The first site is always a plain one."""
        if n == 0:
            return features.SITE_KINDS[0]
        return self._kinds.pick(unit(self._rules.seed, "kind", n))

    def has(self, n: int, habit: str) -> bool:
        """Cheap: makes no site."""
        return unit(self._rules.seed, habit, n) < self._rules.shares[f"habit.{habit}"]

    def is_child(self, n: int) -> bool:
        return n % 10 != 0 and self.has(n, "child")

    def children(self, n: int) -> list[int]:
        """Sites that live below this site's domain."""
        if n % 10:
            return []
        return [m for m in range(n + 1, min(n + 10, self._rules.sites)) if self.is_child(m)]

    def healthy(self, n: int) -> int:
        """The first site from `n` on (round the end) that neither fails nor moved."""
        for step in range(self._rules.sites):
            m = (n + step) % self._rules.sites
            kind = self.kind(m)
            if not kind.fault and kind.name != "moved":
                return m
        return 0

    def popular(self, at: float) -> int:
        """A site drawn by Zipf's law from `at` in [0, 1): low numbers are popular."""
        return min(int(self._rules.sites**at), self._rules.sites) - 1

    def address(self, k: int) -> str:
        """The k-th address of the pool in 127.64.0.0/10. 127.127.0.0/16 stays empty."""
        k += 1
        return f"127.{64 + (k >> 16) % 63}.{(k >> 8) & 255}.{k & 255}"

    def _addresses(self, n: int, kind: SiteKind) -> tuple[str, ...]:
        if kind.name == "cErr":
            return (f"127.127.{(n >> 8) & 255}.{n & 255}",)
        if kind.fault:
            return ()
        seed, pool = self._rules.seed, self._rules.addresses
        if self._is_six(n):
            return ("::1",)
        if n and self.has(n, "shared"):
            first = number(seed, "crowd", n) % max(1, pool // 20)
        else:
            first = n % pool
        more = ("::1",) if self.has(n, "dual") else ()
        if self.has(n, "two") and pool > 1:
            second = (first + 1 + number(seed, "second", n) % (pool - 1)) % pool
            return (self.address(first), self.address(second), *more)
        return (self.address(first), *more)

    def _aliases(self, n: int, name: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
        """Further names: all follow from the number of the site, so that by_host finds it."""
        kind = self.kind(n)
        if kind.fault or kind.name in ("www", "moved", "secure"):
            return ()
        names = [f"www.{name}"] if self.has(n, "alias") else []
        if self.has(n, "domain"):
            names.append(f"other{n}.net")
        if n == self._six:
            names.append("[::1]")
        elif self.has(n, "literal") and addresses[0] == self.address(n):
            names.append(addresses[0])
        return tuple(names)

    def _tls_of(self, n: int) -> str:
        kind = self.kind(n)
        if kind.name == "secure":
            return "good"
        if kind.fault or kind.name == "moved" or not self.has(n, "https"):
            return ""
        return self._tls.pick(unit(self._rules.seed, "tls", n))

    def _make(self, n: int) -> Site:
        rules = self._rules
        if self.is_child(n):
            parent = self._made(n - n % 10)
            name = f"{_SUBDOMAINS[number(rules.seed, 'sub', n) % len(_SUBDOMAINS)]}{n}"
            own = self._build(n, korean=parent.korean, name=f"{name}.{parent.domain}")
            return replace(own, domain=parent.domain)
        korean = unit(rules.seed, "korean", n) < rules.korean
        names = text.KOREAN_NAMES if korean else text.ENGLISH_NAMES
        suffixes = _SUFFIXES_KO if korean else _SUFFIXES_EN
        pick = number(rules.seed, "name", n)
        name = f"{names[pick % len(names)]}{n}.{suffixes[(pick >> 16) % len(suffixes)]}"
        return self._build(n, korean=korean, name=name)

    def _build(self, n: int, *, korean: bool, name: str) -> Site:
        rules = self._rules
        seed = rules.seed
        rng = stream(seed, "site", n)
        kind = self.kind(n)
        www = kind.name == "www"
        host = f"www.{name}" if www else name
        port = "" if rules.port == 80 else f":{rules.port}"
        # Heavy-tailed sizes: log-normal with sigma 1 has the mean exp(mu + 1/2).
        size = int(rules.pages * rng.lognormvariate(-0.5, 1.0) + 0.5)
        robots = self._robots.pick(unit(seed, "robots", n))
        if n == 0 and (robots.denies("/", True) or robots.fault):
            robots = ROBOTS[0]
        slow = self.has(n, "slow")
        addresses = self._addresses(n, kind)
        aliases = self._aliases(n, name, addresses)
        tls = self._tls_of(n)
        tls_base = f"https://{host}" + ("" if rules.tls_port == 443 else f":{rules.tls_port}")
        base, bare_base = f"http://{host}{port}", f"http://{name}{port}" if www else ""
        copies = [f"http://{alias}{port}" for alias in aliases]
        if kind.name == "secure":
            base, bare_base = tls_base, base
        elif tls:
            copies.append(tls_base)
        return Site(
            number=n,
            host=host,
            bare=name if www else "",
            domain=name,
            kind=kind,
            addresses=addresses,
            ttl_s=rng.choice((60, 300, 300, 3600)),
            pages=1 if kind.name == "moved" else max(1, min(size, 50 * rules.pages)),
            korean=korean,
            charset=self._charsets[korean].pick(unit(seed, "charset", n)),
            robots=robots,
            base=base,
            bare_base=bare_base,
            aliases=aliases,
            tls=tls,
            copies=tuple(copies),
            corners=tuple(
                corner
                for corner in self._corners
                if kind.name != "moved"
                and unit(seed, "corner", corner, n) < rules.shares[f"corner.{corner}"]
            ),
            sitemap=rng.choice(("plain", "gzip", "index")) if self.has(n, "sitemap") else "",
            feed=rng.choice(("rss", "atom")) if self.has(n, "feed") else "",
            habits=frozenset(
                habit
                for habit in ("etag", "modified", "chunked", "soft404", "stamped")
                if self.has(n, habit)
            ),
            delay_s=rules.delay_s * rng.lognormvariate(-0.5, 1.0) if slow else 0.0,
        )
