"""From settings to what agents need: the one place where names of settings meet the stages."""

from __future__ import annotations

from dataclasses import replace

from geomi import hours
from geomi import url as urls
from geomi.cluster.context import Plan, SiteRules
from geomi.cluster.vault import Vault
from geomi.config import Settings, matches, user_agent
from geomi.extract import Extractor
from geomi.fetch import access as special
from geomi.fetch.access import Access
from geomi.fetch.cookies import for_host
from geomi.fetch.limits import Limits
from geomi.frontier.politeness import Manners
from geomi.frontier.retry import Retry
from geomi.frontier.scope import Admission, Scope
from geomi.frontier.traps import Valves
from geomi.keys import SECRET_HEADERS, is_reference
from geomi.seeds.tables import given_domains
from geomi.store import Store


def site_rules(settings: Settings, site: str) -> SiteRules:
    """The settings of one site."""
    own = settings.for_site(site)
    crawl, manners = own.crawl, own.manners
    return SiteRules(
        manners=Manners(
            rest_s=manners.rest_s,
            rest_factor=manners.rest_factor,
            rest_factor_max_s=manners.rest_factor_max_s,
            address_rest_s=manners.address_rest_s,
            connections=manners.connections,
            is_own=own.own,
            rate_bytes_per_s=own.access.rate_bytes,
        ),
        scope=Scope(
            include=own.include,
            exclude=own.exclude,
            max_depth=crawl.max_depth,
            max_url=crawl.max_url,
            requisites=crawl.requisites,
        ),
        retry=Retry(
            attempts=own.retry.attempts,
            gap_s=own.retry.gap_s,
            gap_factor=own.retry.gap_factor,
            gap_max_s=own.retry.gap_max_s,
        ),
        valves=Valves(
            depth=own.traps.depth,
            segments=own.traps.segments,
            parameters=own.traps.parameters,
            template_pages=own.traps.template_pages,
            site_pages=own.traps.site_pages,
        ),
        is_prefix=crawl.scope == "prefix",
        obey_robots=own.robots.obey,
        max_pages=crawl.max_pages,
        redirects=own.fetch.redirects,
        crawl_delay_max_s=manners.crawl_delay_max_s,
        retry_after_max_s=manners.retry_after_max_s,
        groups=tuple(
            name
            for name, patterns in settings.manners.groups.items()
            if any(matches(pattern, site) for pattern in patterns)
        ),
        cookies=own.access.cookies,
        hours=hours.parse(own.access.hours, own.access.timezone),
        obeys_canonical=own.extract.obey_canonical,
    )


def with_access(rules: SiteRules, settings: Settings, site: str, vault: Vault) -> SiteRules:
    """The same with what an agent alone needs to know: how the site is reached, and as whom.

    OperatorError if that is something that cannot be sent.
    """
    site_settings = settings.for_site(site)
    own, agent = site_settings.access, user_agent(site_settings.agent)
    parted = (line.partition(":") for line in own.headers)
    pairs = [(name.strip(), text.strip()) for name, _, text in parted]
    lines = [f"{name}: {vault.reveal(text)}" for name, text in pairs]
    cookies = for_host(vault.cookies.get(own.cookie_file, ()), urls.host_of(site))
    secret = {name.lower() for name, text in pairs if is_reference(text)}
    secret |= SECRET_HEADERS & {name.lower() for name, _ in pairs}
    connections = rules.manners.connections
    access = Access(
        user_agent=agent if agent != settings.user_agent else "",
        auth=vault.reveal(own.auth),
        headers=tuple(lines),
        withheld=tuple(sorted(secret | ({"cookie"} if cookies else set()))),
        client_cert=vault.path(own.client_cert),
        client_key=vault.path(own.client_key),
        client_password=vault.reveal(own.client_password),
        proxy=vault.reveal(own.proxy),
        verify=own.verify,
        rate_bytes_per_s=-(-own.rate_bytes // connections),
    )
    special.check(access)
    return replace(rules, access=None if access == _PLAIN else access, own_cookies=cookies)


_PLAIN = Access()


def admission(settings: Settings, store: Store) -> Admission:
    """Which sites beyond the given ones are admitted: `seeds.admit`, and scope `domain`."""
    admit = settings.seeds.admit
    domains = set(admit.domains)
    if settings.crawl.scope == "domain":
        domains |= given_domains(store)
    return Admission(
        domains=frozenset(domains),
        tlds=tuple(tld.lstrip(".") for tld in admit.tlds),
        sites=tuple(admit.sites),
        networks=tuple(admit.networks),
        countries=frozenset(country.upper() for country in admit.countries),
    )


def plan_of(
    settings: Settings, store: Store, *, agent: str, incarnation: int, run: int,
    vault: Vault | None = None,
) -> Plan:  # fmt: skip
    """What one agent is told. `vault`: what was read for these settings; None: they need none."""
    hidden = vault or Vault(folder="")
    cache: dict[str, SiteRules] = {}

    def rules(site: str) -> SiteRules:
        found = cache.get(site)
        if found is None:
            if len(cache) > 10_000:
                cache.clear()
            found = with_access(site_rules(settings, site), settings, site, hidden)
            cache[site] = found
        return found

    return Plan(
        agent=agent,
        incarnation=incarnation,
        run=run,
        agents=settings.crawl.agents,
        rules=rules,
        admission=admission(settings, store),
        contexts=settings.agent.contexts,
        connections=settings.agent.connections,
        window=settings.agent.window,
        waiting=settings.agent.waiting,
        batch_visits=settings.agent.batch_visits,
        batch_bytes=settings.agent.batch_bytes,
        batch_s=settings.agent.batch_s,
        is_exact=settings.crawl.seen == "exact",
        seen_error=settings.crawl.seen_error,
        requests=settings.archive.requests,
        metadata=settings.archive.metadata,
        dns=settings.archive.dns,
        level=settings.archive.level,
        duplicates=settings.archive.duplicates,
        duplicate_bytes=settings.archive.duplicate_bytes,
        duplicate_links=settings.archive.duplicate_links,
        applies_rules=settings.archive.equivalents,
        is_paper_form=settings.archive.revisit_form == "paper",
        drops_void=settings.archive.void == "drop",
        sitemaps=settings.seeds.sitemaps,
        robots_agent=settings.robots.agent,
        robots_cache_s=settings.robots.cache_s,
        robots_limit=settings.robots.limit_bytes,
        outside_per_site=settings.seeds.outside_per_site,
        has_quota=settings.crawl.max_visits is not None,
        has_page_limit=settings.crawl.max_pages is not None
        or any("crawl.max_pages" in table for table in settings.site.values()),
        has_prefix=settings.crawl.scope == "prefix"
        or any(table.get("crawl.scope") == "prefix" for table in settings.site.values()),
        has_depth_limit=settings.crawl.max_depth is not None,
        patience_s=settings.crawl.patience,
        lease_s=settings.cluster.lease_s,
        gap_s=longest_gap_s(settings),
        slots=settings.manners.address_slots if longest_gap_s(settings) else 1,
    )


def longest_gap_s(settings: Settings) -> float:
    """The longest gap that an address of any site has."""
    own = (float(table.get("manners.address_rest_s", 0.0)) for table in settings.site.values())
    return max(settings.manners.address_rest_s, *own, 0.0)


def extractor_of(settings: Settings) -> Extractor:
    """One that reads documents as the settings say; each thread needs its own."""
    wishes = settings.extract
    return Extractor(
        agent=settings.robots.agent,
        max_url=settings.crawl.max_url,
        obey_nofollow=wishes.obey_nofollow,
        obey_meta=wishes.obey_meta,
        forms=wishes.forms,
        scripts=wishes.scripts,
    )


def limits_of(settings: Settings) -> Limits:
    fetch = settings.fetch
    return Limits(
        connect_s=fetch.connect_s,
        idle_s=fetch.idle_s,
        total_s=fetch.total_s,
        head_bytes=fetch.head_bytes,
        html_bytes=fetch.html_bytes,
        other_bytes=fetch.other_bytes,
        spool_bytes=fetch.spool_bytes,
        in_flight_bytes=fetch.in_flight_bytes,
    )
