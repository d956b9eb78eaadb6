"""Settings: geomi.toml, then --set, then options; checked key by key, and resolved site by site."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from geomi import __version__
from geomi import url as urls
from geomi.errors import OperatorError
from geomi.keys import BY_SITE, KEYS, Key, is_bare_secret, unknown
from geomi.settings import (
    OWN,
    PRESETS,
    TABLES,
    Access,
    Agent,
    Alias,
    Archive,
    Cluster,
    Crawl,
    Dns,
    Extract,
    Fetch,
    Guard,
    History,
    Manners,
    Retry,
    Robots,
    Seeds,
    Traps,
)

FILE_NAME = "geomi.toml"
_SET = "--set"

Values = dict[str, Any]  # "manners.rest_s" -> 2.0


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one site: presets, own hosts and its [site] tables resolved."""

    own: bool  # the operator named it; its address may be private
    crawl: Crawl
    manners: Manners
    agent: Agent
    fetch: Fetch
    access: Access
    retry: Retry
    robots: Robots
    extract: Extract
    traps: Traps
    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]


class Settings(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything the operator may decide, with defaults filled in."""

    store: str = ""
    crawl: Crawl = Crawl()
    manners: Manners = Manners()
    agent: Agent = Agent()
    fetch: Fetch = Fetch()
    access: Access = Access()
    retry: Retry = Retry()
    dns: Dns = Dns()
    guard: Guard = Guard()
    archive: Archive = Archive()
    history: History = History()
    seeds: Seeds = Seeds()
    alias: Alias = Alias()
    robots: Robots = Robots()
    extract: Extract = Extract()
    traps: Traps = Traps()
    cluster: Cluster = Cluster()
    site: dict[str, Values] = {}  # host pattern -> what its table says

    @property
    def user_agent(self) -> str:
        """The User-Agent line that is sent, but for sites with one of their own."""
        return user_agent(self.agent)

    def for_site(self, site: str) -> SiteSettings:
        """What holds for a site (`host`, or `host:port` off the default ports)."""
        # Site -> settings. Sites without rules of their own share one object.
        cache: dict[str, SiteSettings] = self.__dict__.setdefault("_by_site", {})
        found = cache.get(site)
        if found is not None:
            return found
        own = any(matches(pattern, site) for pattern in self.manners.own)
        tables = [pattern for pattern in self.site if matches(pattern, site)]
        if not own and not tables:
            found = cache.get("") or self._resolve(False, [])
            cache[""] = found
        else:
            found = self._resolve(own, sorted(tables, key=_exactness))
        if len(cache) > 100_000:
            cache.clear()
        cache[site] = found
        return found

    def is_own(self, site: str) -> bool:
        """True if the operator says that the site is theirs."""
        return self.for_site(site).own

    def dump(self) -> dict[str, Any]:
        """All values as plain data that JSON can carry; `restore` reads it."""
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return plain

    def _resolve(self, own: bool, tables: list[str]) -> SiteSettings:
        values: Values = {}
        if own:
            values = {f"manners.{name}": value for name, value in OWN.items()}
            values["manners.connections"] = self.manners.own_connections
        for pattern in tables:
            values |= self.site[pattern]
        changed = {
            name: _replace(getattr(self, name), name, values)
            for name in (
                "crawl",
                "manners",
                "agent",
                "fetch",
                "access",
                "retry",
                "robots",
                "extract",
                "traps",
            )
        }
        crawl: Crawl = changed["crawl"]
        return SiteSettings(
            own=own,
            include=tuple(map(re.compile, crawl.include)),
            exclude=tuple(map(re.compile, crawl.exclude)),
            **changed,
        )


def user_agent(agent: Agent) -> str:
    """The User-Agent line that these settings mean."""
    if agent.user_agent:
        return agent.user_agent
    contact = f" (+{agent.contact})" if agent.contact else ""
    return f"geomi/{__version__}{contact}"


def load(
    path: Path, sets: Sequence[str] = (), *, options: Mapping[str, Any] | None = None
) -> Settings:
    """Read geomi.toml (a missing file means defaults), then `--set table.key=value`, then options.

    `options` are typed values by key, from the command line; None means not given; a list is added
    to what the file and --set say. Raises OperatorError with one sentence.
    """
    values: Values = {}
    sites: dict[str, Values] = {}
    _take(_read(path), values, sites, where=path.name)
    for text in sets:
        where, tree = _parse_set(text)
        _take(tree, values, sites, where=where)
    for name, value in (options or {}).items():
        if value is None:
            continue
        checked = KEYS[name].check(value, where="command line", name=name)
        if isinstance(checked, tuple):
            checked = tuple(dict.fromkeys((*values.get(name, ()), *checked)))
        values[name] = checked
    preset = PRESETS[values.get("manners.preset", "polite")]
    settings = _build({**preset, **values}, sites)
    _must_name_sites(values, sites, where=path.name)
    if settings.manners.preset == "own" and not settings.manners.own:
        raise OperatorError(
            f"{path.name}: manners.preset is own, but manners.own names no host; "
            "name each host that is yours (--own HOST[:PORT])"
        )
    if settings.seeds.admit.countries and not settings.seeds.country_database:
        raise OperatorError(
            f"{path.name}: seeds.admit.countries needs seeds.country_database, "
            "a file in MaxMind's format"
        )
    return settings


#: Settings of [access] that are only for sites the operator names.
_NAMED_ONLY = {
    "access.auth": "a password for all sites would be sent to every server",
    "access.verify": "certificates that are not checked must be named site by site",
}


def _must_name_sites(values: Values, sites: Mapping[str, Values], *, where: str) -> None:
    """OperatorError if something dangerous holds for all sites, or for all below a suffix."""
    tables = [(values, ""), *((table, f'site."{host}".') for host, table in sites.items())]
    for table, prefix in tables:
        host = prefix.removeprefix('site."').removesuffix('".')
        names_a_site = host and not (host.startswith("*.") and urls.is_suffix(host[2:]))
        for name, why in _NAMED_ONLY.items():
            if table.get(name, KEYS[name].default) != KEYS[name].default and not names_a_site:
                raise OperatorError(
                    f"{where}: {prefix}{name}: {why}; "
                    f'set it in a table [site."host"] of the site that is meant'
                )


def restore(dumped: Mapping[str, Any]) -> Settings:
    """The settings that `dump` made plain data of."""
    settings = msgspec.convert(dict(dumped), Settings)
    for table in settings.site.values():  # JSON has no tuples
        table.update({key: tuple(val) for key, val in table.items() if isinstance(val, list)})
    return settings


def matches(pattern: str, site: str) -> bool:
    """True if a host pattern (`host`, `host:port`, `*.example.org`) covers a site.

    Without a port every port is covered; the star covers all names below, not the name itself.
    """
    host, port = _host_port(pattern.lower())
    site_host, site_port = _host_port(site)
    if port and port != site_port and not (port in ("80", "443") and not site_port):
        return False
    if host.startswith("*."):
        return site_host.endswith(host[1:]) and len(site_host) >= len(host)
    return host == site_host


def _host_port(site: str) -> tuple[str, str]:
    if site.startswith("["):
        host, _, port = site[1:].partition("]")
        return _shortest(host), port.removeprefix(":")
    host, colon, port = site.rpartition(":")
    return (host, port) if colon else (site, "")


def _shortest(address: str) -> str:
    """An IPv6 address as it stands in canonical URLs, however the operator spelt it."""
    try:
        return str(ipaddress.IPv6Address(address))
    except ValueError:
        return address


def _exactness(pattern: str) -> tuple[bool, int]:
    """Orders patterns so that the most exact comes last, and so wins."""
    return not pattern.startswith("*"), len(pattern)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OperatorError(f"{path}: cannot be read: {said}") from error
    except tomllib.TOMLDecodeError as error:
        raise OperatorError(f"{path.name}: not valid TOML: {error}") from error


def _parse_set(text: str) -> tuple[str, dict[str, Any]]:
    """`table.key=value`, or `key=value` where one table alone has the key."""
    name, equals, raw = text.partition("=")
    where = _SET
    try:
        tree = tomllib.loads(f"{name.strip()} = 0") if equals and "\n" not in name else {}
    except tomllib.TOMLDecodeError:
        tree = {}
    path: list[str] = []
    at: Any = tree
    while isinstance(at, dict) and len(at) == 1:
        path.append(next(iter(at)))
        at = at[path[-1]]
    if not path or (path[0] in TABLES and len(path) == 1):
        raise OperatorError(f"{where} {text}: wanted table.key=value, as manners.rest_s=5")
    if len(path) == 1 and path[0] not in KEYS:
        path = _by_last_name(path[0], KEYS, where=where).split(".")
    try:
        parsed = tomllib.loads(f"value = {raw}")
        value = parsed["value"] if len(parsed) == 1 else raw
    except tomllib.TOMLDecodeError:
        value = raw.strip()
    key = KEYS.get(".".join(path if path[0] != "site" else path[2:]))
    if key is not None:
        value = key.from_words(value, raw.strip())
    return where, _nest(path, value)


def _nest(path: list[str], value: Any) -> dict[str, Any]:
    *above, last = path
    tree = {last: value}
    for part in reversed(above):
        tree = {part: tree}
    return tree


def _take(tree: Mapping[str, Any], values: Values, sites: dict[str, Values], *, where: str) -> None:
    """Check a parsed tree and add what it says to values and sites."""
    tree = dict(tree)
    by_host = tree.pop("site", {})
    _walk(tree, "", values, where=where, resolve=KEYS.get)
    if not isinstance(by_host, dict):
        raise OperatorError(f'{where}: site is {by_host!r}; wanted tables [site."host"]')
    for host, table in by_host.items():
        prefix = f'site."{host}"'
        if not isinstance(table, dict):
            raise OperatorError(f"{where}: {prefix} is {table!r}; wanted a table")
        host = host.lower()
        KEYS["manners.own"].check([host], where=where, name=prefix)
        found: Values = {}
        for name, value in table.items():
            full = name
            if not isinstance(value, dict):
                full = _by_last_name(name, BY_SITE, where=where, prefix=prefix)
            branch = _nest(full.split("."), value)
            _walk(branch, "", found, where=where, resolve=_site_key(where, prefix), prefix=prefix)
        sites.setdefault(host, {}).update(found)


def _site_key(where: str, prefix: str) -> Callable[[str], Key | None]:
    def resolve(name: str) -> Key | None:
        key = KEYS.get(name)
        if key is not None and not key.per_site:
            raise OperatorError(f"{where}: {prefix}.{name} cannot differ per site")
        return key

    return resolve


def _walk(
    tree: Mapping[str, Any],
    above: str,
    values: Values,
    *,
    where: str,
    resolve: Callable[[str], Key | None],
    prefix: str = "",
) -> None:
    shown = f"{prefix}." if prefix else ""
    for name, value in tree.items():
        full = f"{above}.{name}" if above else name
        key = resolve(full)
        if key is not None:
            values[full] = checked = key.check(value, where=where, name=shown + full)
            if where == _SET and is_bare_secret(full, checked):
                raise OperatorError(
                    f"{where}: {shown}{full} would be remembered with the run; "
                    "give a secret as env:NAME or file:PATH"
                )
        elif any(known.startswith(f"{full}.") for known in KEYS):
            if not isinstance(value, dict):
                raise OperatorError(f"{where}: {shown}{full} is {value!r}; wanted a table")
            _walk(value, full, values, where=where, resolve=resolve, prefix=prefix)
        else:
            raise unknown(full, BY_SITE if prefix else KEYS, where=where, prefix=shown)


def _by_last_name(name: str, among: Mapping[str, Key], *, where: str, prefix: str = "") -> str:
    """The full name of a key given without its table."""
    shown = f"{prefix}." if prefix else ""
    found = [full for full in among if full == name or full.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise OperatorError(f"{where}: {shown}{name} may mean {' or '.join(found)}; name the table")
    if prefix and any(full.endswith(f".{name}") for full in KEYS):
        raise OperatorError(f"{where}: {shown}{name} cannot differ per site")
    raise unknown(name, among, where=where, prefix=shown)


def _build(values: Values, sites: dict[str, Values]) -> Settings:
    tree: dict[str, Any] = {"site": sites}
    for full, value in values.items():
        *tables, name = full.split(".")
        at = tree
        for table in tables:
            at = at.setdefault(table, {})
        at[name] = value
    return msgspec.convert(tree, Settings)


def _replace(table: Any, name: str, values: Values) -> Any:
    mine = {
        full.partition(".")[2]: value
        for full, value in values.items()
        if full.startswith(f"{name}.")
    }
    return msgspec.structs.replace(table, **mine) if mine else table
