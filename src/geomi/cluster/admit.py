"""Admission by address: the rules `networks` and `countries` need to know where a site lives."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable

from geomi import url as urls
from geomi.cluster.given import hosts_of
from geomi.config import Settings
from geomi.fetch.dns import Resolver
from geomi.seeds.countries import Countries


def rules_by_address(settings: Settings, sites: Iterable[str]) -> list[tuple[str, str]]:
    """(site, rule that admits it or empty) for each site; asks name servers."""
    return asyncio.run(_ask(settings, list(sites)))


async def _ask(settings: Settings, sites: list[str]) -> list[tuple[str, str]]:
    admit = settings.seeds.admit
    networks = [ipaddress.ip_network(text, strict=False) for text in admit.networks]
    wanted = {country.upper() for country in admit.countries}
    countries = Countries(settings.seeds.country_database) if wanted else None
    resolver = Resolver(
        asyncio.get_running_loop(),
        hosts=hosts_of(settings),
        servers=tuple(settings.dns.servers),
        timeout_s=settings.dns.timeout_s,
    )
    async with resolver:
        answers = await asyncio.gather(*(resolver.resolve(urls.host_of(site)) for site in sites))
    found = []
    for site, answer in zip(sites, answers, strict=True):
        rule = ""
        for address in answer.addresses:
            ip = ipaddress.ip_address(address)
            if any(ip.version == network.version and ip in network for network in networks):
                rule = "network"
            elif countries is not None and countries.country(address) in wanted:
                rule = f"country {countries.country(address)}"
            if rule:
                break
        found.append((site, rule))
    return found
