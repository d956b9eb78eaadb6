"""Whether a URL of an admitted site may be visited. Decides only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The limits of one site. `refusal` names the one a URL breaks: the page's `why`."""

    prefixes: tuple[str, ...] = ()  # URLs must start with one of them; empty: any
    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    max_depth: int | None = None
    max_url: int = 2083
    requisites: bool = True

    @property
    def is_open(self) -> bool:
        """True where only the length of a URL can refuse it: the common case, checked once."""
        return not (self.prefixes or self.include or self.exclude) and self.max_depth is None

    def refusal(self, url: str, kind: str, depth: int) -> str:
        """Empty if the URL may be visited; else url_length, depth, prefix, include or exclude.

        Requisites (kind e) belong to the page that shows them, sitemaps (kind m) to the site, and
        where a seed's redirect leads (kind s) is a start of its own: depth, prefix and include do
        not keep them out.
        """
        if len(url) > self.max_url:
            return "url_length"
        is_free = kind in ("e", "m", "s")
        if self.max_depth is not None and depth > self.max_depth and not is_free:
            return "depth"
        if self.prefixes and not is_free and not _starts(url, self.prefixes):
            return "prefix"
        if self.include and not is_free and not any(p.search(url) for p in self.include):
            return "include"
        if any(p.search(url) for p in self.exclude):
            return "exclude"
        return ""


def _starts(url: str, prefixes: Sequence[str]) -> bool:
    rest = url.partition("://")[2]
    return any(rest.startswith(prefix) for prefix in prefixes)


def prefix_of(seed_url: str) -> str:
    """The directory of a seed without its scheme: `example.org/docs/`."""
    rest = seed_url.partition("://")[2]
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    return path[: path.rfind("/") + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Which sites beyond the given ones are admitted."""

    domains: frozenset[str] = frozenset()  # registrable domains
    tlds: tuple[str, ...] = ()  # suffixes of host names: kr, go.kr
    sites: tuple[str, ...] = ()  # host patterns: example.org, *.example.org, example.org:8080
    networks: tuple[str, ...] = ()  # need an address: the coordinator asks
    countries: frozenset[str] = frozenset()

    def by_name(self, site: str, domain: str) -> str:
        """The rule that admits a site by its name alone; empty if none does."""
        host = site.rsplit(":", 1)[0] if not site.endswith("]") else site
        if any(_matches(pattern, site, host) for pattern in self.sites):
            return "list"
        if domain in self.domains:
            return "domain"
        for tld in self.tlds:
            if host.endswith("." + tld):
                return "tld"
        return ""

    @property
    def needs_address(self) -> bool:
        return bool(self.networks or self.countries)


def _matches(pattern: str, site: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return pattern in (site, host)
