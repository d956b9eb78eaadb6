"""A robots.txt for `geomi explain robots`: from a file, or asked for as an agent would."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from geomi import url as urls
from geomi.cluster.given import hosts_of
from geomi.cluster.guise import proxy_of, through
from geomi.cluster.plan import limits_of, site_rules, with_access
from geomi.cluster.vault import read_vault
from geomi.config import Settings
from geomi.errors import OperatorError, ResourceError
from geomi.extract.head import parse_head
from geomi.fetch.client import Client
from geomi.fetch.dns import Resolver
from geomi.fetch.guard import Guard
from geomi.fetch.request import Fetch
from geomi.fetch.robots import Robots, from_status
from geomi.records import Capture
from geomi.states import Outcome

_REDIRECTS = 5  # RFC 9309: at least so many
_ANSWERED = frozenset({Outcome.OK, Outcome.CUT, Outcome.CODE})


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsFile:
    """The rules, and for whom they speak."""

    robots: Robots
    authority: str  # scheme://host[:port]; empty for a local file
    note: str = ""  # why there are no rules to read, if so


def load_robots(where: str, settings: Settings) -> RobotsFile:
    """OperatorError if a file cannot be read, ResourceError if a server does not answer."""
    if where.lower().startswith(("http://", "https://")):
        url = urls.canonical(where)
        if url is None:
            raise OperatorError(f"{where}: no http(s) URL")
        parts = urls.split(url)
        if parts.target == "/":
            url = f"{parts.authority}/robots.txt"
        return asyncio.run(_ask(url, settings))
    try:
        body = Path(where).read_bytes()
    except OSError as error:
        raise OperatorError(f"{where}: cannot be read: {error.strerror or error}") from error
    limit = settings.robots.limit_bytes
    return RobotsFile(robots=Robots.parse(body, limit_bytes=limit), authority="")


async def _ask(url: str, settings: Settings) -> RobotsFile:
    authority = urls.split(url).authority
    for _ in range(_REDIRECTS + 1):  # one that redirects further is not available
        capture = await _fetch(url, settings)
        if capture.outcome not in _ANSWERED:
            said = f": {capture.detail}" if capture.detail else ""
            raise ResourceError(
                f"{url}: {capture.outcome}{said}; until it answers, nothing there may be fetched"
            )
        is_redirect = 300 <= capture.code < 400
        location = parse_head(capture.head).get("location", "") if is_redirect else ""
        target = urls.canonical(location, url) if location else None
        if target is None:
            break
        url = target
    meaning = from_status(capture.code)
    if meaning == "parse":
        limit = settings.robots.limit_bytes
        robots = Robots.parse(capture.body, limit_bytes=limit)
        return RobotsFile(robots=robots, authority=authority)
    answer = f"{url} answered {capture.code}"
    if meaning == "allow":
        note = f"{answer}: no rules, all is allowed"
        return RobotsFile(robots=Robots.ALLOW_ALL, authority=authority, note=note)
    note = f"{answer}: nothing may be fetched until it gives its rules"
    return RobotsFile(robots=Robots.DENY_ALL, authority=authority, note=note)


async def _fetch(url: str, settings: Settings) -> Capture:
    """One request, to an address that the guard lets pass."""
    loop = asyncio.get_running_loop()
    parts = urls.split(url)
    vault = read_vault(settings, ".")
    access = with_access(site_rules(settings, parts.site), settings, parts.site, vault).access
    async with Resolver(
        loop,
        hosts=hosts_of(settings),
        servers=tuple(settings.dns.servers),
        timeout_s=settings.dns.timeout_s,
    ) as resolver:
        answer = await resolver.resolve(parts.host)
        if proxy := proxy_of(access):
            found = (await resolver.resolve(proxy)).addresses
            access = through(access, found[0] if found else "")
    if not answer.addresses:
        raise ResourceError(f"{url}: {parts.host} has no address: {answer.error}")
    guard = Guard(settings.guard.allow_networks)
    is_named = settings.is_own(parts.site)
    whys = [guard.refusal(address, host_is_named=is_named) for address in answer.addresses]
    if "" not in whys:
        raise OperatorError(
            f"{url}: its address {answer.addresses[0]} is {whys[0]};"
            f" if you mean it, give --own {parts.site} or --allow-network"
        )
    done: asyncio.Future[Capture] = loop.create_future()
    room = settings.robots.limit_bytes + 1  # one more shows that the file is longer
    limits = structs.replace(
        limits_of(settings), html_bytes=room, other_bytes=room, spool_bytes=2 * room,
        in_flight_bytes=4 * room,
    )  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as spool_dir,
        Client(
            loop,
            limits=limits,
            user_agent=settings.user_agent,
            spool_dir=spool_dir,
            done=done.set_result,
            ca_file=settings.fetch.ca_file,
        ) as client,
    ):
        client.start(
            Fetch(
                ticket=1, url=url, scheme=parts.scheme, host=parts.host, port=parts.port,
                target=parts.target, address=answer.addresses[whys.index("")], access=access,
            )
        )  # fmt: skip
        return await done
