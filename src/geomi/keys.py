"""One setting as the operator writes it: what it accepts, and the sentence when it does not.

Taken from the tables in settings.py; nothing about a key is written twice.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from geomi import hours
from geomi.errors import OperatorError
from geomi.settings import TABLES

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)")

# A pattern costs time on every URL; these are far beyond any list kept by hand.
_MOST_PATTERNS = 1000
_LONGEST_PATTERN = 2000

_LABEL = r"[\w](?:[\w-]*[\w])?"
_HOST = re.compile(
    rf"(?:(?:\*\.)?{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?", re.UNICODE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of geomi.toml."""

    full: str  # "manners.rest_s"
    type: Any
    default: Any
    meaning: str
    per_site: bool
    bounds: Meta = field(default_factory=Meta)

    @property
    def unit(self) -> dict[str, float]:
        """Words that may stand after a number, with their worth; empty if none may."""
        if self.full.endswith("_s") or self.full == "crawl.patience":
            return dict(_SECONDS)
        return dict(_BYTES) if self.full.endswith("_bytes") else {}

    @property
    def wanted(self) -> str:
        """What the key accepts, in words."""
        if self.full in _WANTED:
            return _WANTED[self.full]
        plain = _plain(self.type)
        if get_origin(plain) is Literal:
            return "one of " + ", ".join(get_args(plain))
        if plain is bool:
            return "true or false"
        if plain is str:
            return "text"
        if plain in (int, float):
            words = "a whole number" if plain is int else "a number"
            if self.unit:
                words = "seconds" if "min" in self.unit else "bytes"
            example = {"seconds": ', as 90 or "10m"', "bytes": ', as 4096 or "8 MiB"'}
            return words + self._range() + example.get(words, "")
        return "a table" if get_origin(plain) is dict else "a list of texts"

    def check(self, value: Any, *, where: str, name: str) -> Any:
        """The value in its proper type, or OperatorError."""
        given = value
        if isinstance(value, str) and self.unit:
            value = self._quantity(value)
        try:
            result = msgspec.convert(value, self.type)
        except msgspec.ValidationError:
            raise self._wrong(given, where, name) from None
        if isinstance(result, float) and not math.isfinite(result):
            raise self._wrong(given, where, name)
        fault = _FAULTS.get(self.full, _control_characters)(result)
        if fault is not None:
            raise self._wrong(fault, where, name)
        return result

    def from_words(self, parsed: Any, raw: str) -> Any:
        """What `--set key=raw` means: a text stays one though it looks like a number."""
        plain = _plain(self.type)
        if (plain is str or get_origin(plain) is Literal) and not isinstance(parsed, str):
            return raw
        if get_origin(plain) is tuple and not isinstance(parsed, list):
            return [parsed if isinstance(parsed, str) else raw]
        return parsed

    def _quantity(self, text: str) -> Any:
        found = _QUANTITY.fullmatch(text.strip())
        if found is None or found[2].lower() not in self.unit:
            return text
        worth = float(found[1]) * self.unit[found[2].lower()]
        return round(worth) if _plain(self.type) is int else worth

    def _range(self) -> str:
        low, above, high = self.bounds.ge, self.bounds.gt, self.bounds.le
        if low is not None and high is not None:
            return f" from {_shown(low)} to {_shown(high)}"
        text = f" of at least {_shown(low)}" if low is not None else ""
        if above is not None:
            text = f" above {_shown(above)}"
        return text + (f" and at most {_shown(high)}" if high is not None else "")

    def _wrong(self, seen: Any, where: str, name: str) -> OperatorError:
        if self.full in SECRET:  # whatever it is, it is not repeated
            return OperatorError(f"{where}: {name} cannot be used; wanted {self.wanted}")
        shown = str(seen).lower() if isinstance(seen, bool) else repr(seen)
        return OperatorError(f"{where}: {name} is {shown}; wanted {self.wanted}")


def unknown(full: str, among: Mapping[str, Key], *, where: str, prefix: str = "") -> OperatorError:
    """The error for a key nobody knows, with the nearest one that exists."""
    last = full.rpartition(".")[2]
    near = [key for key in among if key.rpartition(".")[2] == last]  # only the table is wrong
    near = near or difflib.get_close_matches(full, among, n=1, cutoff=0.75)
    if not near:
        by_last = {key.rpartition(".")[2]: key for key in among}
        words = difflib.get_close_matches(last, by_last, n=1, cutoff=0.75)
        near = [by_last[word] for word in words]
    if not near and "." not in full:
        near = difflib.get_close_matches(full, TABLES, n=1)
    hint = f"; did you mean {prefix}{near[0]}?" if near else "; `geomi init` lists all settings"
    return OperatorError(f"{where}: unknown setting {prefix}{full}{hint}")


def _shown(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:g}"


def _plain(of: Any) -> Any:
    """A type without its bounds and without None."""
    if get_origin(of) is Annotated:
        return _plain(get_args(of)[0])
    if get_origin(of) in (Union, UnionType):
        kinds = [kind for kind in get_args(of) if kind is not NoneType]
        return _plain(kinds[-1])
    return of


def _metadata(of: Any) -> list[Any]:
    if get_origin(of) is Annotated:
        inner, *own = get_args(of)
        return [*_metadata(inner), *own]
    if get_origin(of) in (Union, UnionType):
        return [word for kind in get_args(of) for word in _metadata(kind)]
    return []


def _collect() -> dict[str, Key]:
    keys = {
        "store": Key(
            full="store",
            type=str,
            default="",
            meaning="Where the state is kept: empty for SQLite in the collection, or"
            " `postgresql://user@host/database?schema=name`; a password is written"
            " `user:env:NAME@` or `user:file:PATH@`",
            per_site=False,
        )
    }
    for table, struct in TABLES.items():
        hints = get_type_hints(struct, include_extras=True)
        defaults = struct()
        for name in struct.__struct_fields__:
            full = f"{table}.{name}"
            if full in TABLES:
                continue
            words = _metadata(hints[name])
            metas = [word for word in words if isinstance(word, Meta)]
            bounded = [meta for meta in metas if (meta.ge, meta.gt, meta.le) != (None,) * 3]
            keys[full] = Key(
                full=full,
                type=hints[name],
                default=getattr(defaults, name),
                meaning=next(word for word in words if isinstance(word, str)),
                per_site=any((meta.extra or {}).get("site") for meta in metas),
                bounds=bounded[-1] if bounded else Meta(),
            )
    return keys


# Each of these names what is wrong in a value that has the right type, or answers None.


def _control_characters(value: Any) -> str | None:
    texts = [value] if isinstance(value, str) else value if isinstance(value, tuple) else []
    return next((text for text in texts if not text.isprintable()), None)


_ADDRESS = re.compile(r"postgresql://(?:[^@:]*(?P<password>:[^@]*)?@)?[^@]*")


def _store(value: str) -> str | None:
    if value == "" or _ADDRESS.fullmatch(value):
        return None
    return re.sub("//.*@", "//…@", value)  # whatever stands there, it is not repeated


def _expressions(value: tuple[str, ...]) -> str | None:
    if len(value) > _MOST_PATTERNS:
        return f"a list of {len(value)}"
    for text in value:
        if len(text) > _LONGEST_PATTERN:
            return text[:40] + "…"
        try:
            re.compile(text)
        except (re.error, RecursionError, OverflowError):
            return text
    return None


def _hosts(value: tuple[str, ...]) -> str | None:
    return next((text for text in value if not _HOST.fullmatch(text)), None)


def _networks(value: tuple[str, ...]) -> str | None:
    for text in value:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            return text
    return None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _servers(value: tuple[str, ...]) -> str | None:
    for text in value:
        host, _, port = text.rpartition(":")
        with_port = port.isdecimal() and _is_address(host.strip("[]"))
        if not with_port and not _is_address(text):
            return text
    return None


def _names(value: Any) -> str | None:
    if isinstance(value, str):
        return None
    for name, addresses in value.items():
        for text in (addresses,) if isinstance(addresses, str) else addresses:
            if not _is_address(text):
                return f"{name} = {text}"
    return None


def _countries(value: tuple[str, ...]) -> str | None:
    return next((text for text in value if not re.fullmatch("[A-Za-z]{2}", text)), None)


def _hours(value: tuple[str, ...]) -> str | None:
    for text in value:
        try:
            hours.span(text)
        except ValueError:
            return text
    return None


def _zone(value: str) -> str | None:
    try:
        hours.zone_of(value)
    except ValueError:
        return value
    return None


def is_reference(text: str) -> bool:
    """True if it says where a secret is to be read."""
    return _REFERENCE.fullmatch(text) is not None


def is_bare_secret(full: str, value: Any) -> bool:
    """True if a value holds a secret itself, so that it must not be remembered."""
    if full == "access.headers":
        pairs = (text.partition(":") for text in value)
        return any(
            name.strip().lower() in SECRET_HEADERS and not is_reference(text.strip())
            for name, _, text in pairs
        )
    if full == "store":
        found = _ADDRESS.fullmatch(value)
        return bool(found and found["password"] and not is_reference(found["password"][1:]))
    if full not in SECRET or not value or is_reference(value):
        return False
    return full != "access.proxy" or "@" in value


#: Keys whose values are not repeated in a message.
SECRET = frozenset({"access.headers", "access.auth", "access.client_password", "access.proxy"})
#: Header lines that say who we are: their values are never archived.
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")

_PATTERNS = 'host patterns, as "example.org", "127.0.0.1:8080" or "*.example.org"'
_REGEXES = (
    f"regular expressions, at most {_MOST_PATTERNS}, each of at most {_LONGEST_PATTERN} characters"
)
_CIDRS = 'networks, as "10.0.0.0/8"'

_FAULTS: dict[str, Callable[[Any], str | None]] = {
    "store": _store,
    "crawl.include": _expressions,
    "crawl.exclude": _expressions,
    "manners.own": _hosts,
    "manners.groups": lambda groups: next(filter(None, map(_hosts, groups.values())), None),
    "dns.hosts": _names,
    "dns.servers": _servers,
    "guard.allow_networks": _networks,
    "access.hours": _hours,
    "access.timezone": _zone,
    "seeds.admit.networks": _networks,
    "seeds.admit.sites": _hosts,
    "seeds.admit.countries": _countries,
}
_WANTED = {
    "store": '"" (SQLite in the collection) or a postgresql:// address',
    "crawl.include": _REGEXES,
    "crawl.exclude": _REGEXES,
    "manners.own": _PATTERNS,
    "manners.groups": f"a table of lists of {_PATTERNS}",
    "dns.hosts": "a table of name = address or list of addresses, or the path of a hosts file",
    "dns.servers": 'name servers, as "192.0.2.1" or "127.0.0.1:5353"',
    "guard.allow_networks": _CIDRS,
    "access.headers": 'header lines, as "Name: value" or "Name: env:NAME"',
    "access.auth": '"user:password", "env:NAME" or "file:PATH"',
    "access.client_password": 'text, "env:NAME" or "file:PATH"',
    "access.proxy": '"http://host:port", "socks5h://host:port", "env:NAME" or "file:PATH"',
    "access.hours": 'hours, as "22:00-06:00", "Mon-Fri 09:00-17:30" or "Sat,Sun 00:00-24:00"',
    "access.timezone": 'a time zone, as "UTC" or "Asia/Seoul"',
    "seeds.admit.networks": _CIDRS,
    "seeds.admit.sites": _PATTERNS,
    "seeds.admit.countries": 'two-letter countries, as "KR"',
    "archive.directories": "a list of at least one directory",
    "robots.agent": "a product token of letters, - and _",
}

#: Every key by its full name, in the order of the reference.
KEYS: dict[str, Key] = _collect()

#: The keys that a [site."host"] table may set.
BY_SITE: dict[str, Key] = {full: key for full, key in KEYS.items() if key.per_site}
