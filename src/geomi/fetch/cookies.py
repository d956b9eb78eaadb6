"""A jar of cookies for one party (RFC 6265), bounded. Pure: `now` is an argument.

A cookie for a public suffix is taken only by the very host that set it, as browsers do.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from geomi.url import is_suffix

_PER_HOST = 50  # RFC 6265, 6.1; the longest unused go first
_LONGEST = 4096  # name, value and attributes together
_HOSTS = 1000
# Of names, values and paths in one jar. A server can set cookies for each of its parent domains;
# with 512 jars of an agent this is 32 MiB at the worst. No server takes a longer Cookie line.
_JAR_BYTES = 64 * 1024
_MOST_LINES = 100  # of one answer
_MOST_AGE_S = 400 * 86_400.0  # as browsers cap it (RFC 6265bis)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_UNSENDABLE = re.compile(r"[^\x20-\x3a\x3c-\x7e]")
_DELIMITERS = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?!\d)")
_DAY = re.compile(r"(\d{1,2})(?!\d)")
_YEAR = re.compile(r"(\d{2,4})(?!\d)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SESSION = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """One cookie, as it is kept."""

    name: str
    value: str
    domain: str  # lower case, no dot before it
    host_only: bool
    path: str
    secure: bool
    expires: float  # UTC seconds; infinite: for as long as the jar lives
    created: float


class Jar:
    """Takes what servers set and gives the header line for the next request."""

    def __init__(self) -> None:
        # By domain; inside by (name, path), the one set longest ago first.
        self._cookies: dict[str, dict[tuple[str, str], Cookie]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._cookies.values()))

    def take(self, set_cookie_lines: Iterable[str], url: str, now: float) -> None:
        """The values of the Set-Cookie lines of an answer to `url`. Bad ones are left out."""
        for line in set_cookie_lines:
            cookie = parse(line, url, now)
            if cookie is not None:
                self._keep(cookie, now)

    def put(self, cookies: Iterable[Cookie], now: float) -> None:
        """Cookies that the operator gives."""
        for cookie in cookies:
            self._keep(cookie, now)

    def header(self, url: str, now: float) -> str:
        """The value of the Cookie line of a request for `url`; empty: no line."""
        scheme, host, path = _parts(url)
        found = []
        for domain in _domains(host):
            for cookie in list(self._cookies.get(domain, {}).values()):
                if cookie.expires <= now:
                    self._drop(cookie)
                elif (
                    (domain == host or not cookie.host_only)
                    and (scheme == "https" or not cookie.secure)
                    and _is_within(path, cookie.path)
                ):
                    found.append(cookie)
        found.sort(key=lambda cookie: (-len(cookie.path), cookie.created))
        return "; ".join(
            f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in found
        )

    def _keep(self, cookie: Cookie, now: float) -> None:
        key = (cookie.name, cookie.path)
        of_domain = self._cookies.get(cookie.domain, {})
        if cookie.expires <= now:
            if key in of_domain:
                self._drop(of_domain[key])
            return
        if key in of_domain:
            self._bytes -= _size(of_domain.pop(key))
        of_domain[key] = cookie
        self._bytes += _size(cookie)
        self._cookies[cookie.domain] = of_domain
        if len(of_domain) > _PER_HOST:
            self._drop(next(iter(of_domain.values())))
        while self._bytes > _JAR_BYTES or len(self._cookies) > _HOSTS:
            self._drop(next(iter(next(iter(self._cookies.values())).values())))

    def _drop(self, cookie: Cookie) -> None:
        of_domain = self._cookies[cookie.domain]
        del of_domain[cookie.name, cookie.path]
        self._bytes -= _size(cookie)
        if not of_domain:
            del self._cookies[cookie.domain]


def _size(cookie: Cookie) -> int:
    return len(cookie.name) + len(cookie.value) + len(cookie.path)


def parse(line: str, url: str, now: float) -> Cookie | None:
    """One Set-Cookie value; None if it may not be kept."""
    if len(line) > _LONGEST or _CONTROL.search(line):
        return None
    scheme, host, asked = _parts(url)
    first, *rest = line.split(";")
    name, equals, value = first.partition("=")
    if not equals:
        name, value = "", first
    name, value = name.strip(" \t"), value.strip(" \t")
    attributes = {}  # of several the last counts
    for part in rest:
        key, _, text = part.partition("=")
        attributes[key.strip(" \t").lower()] = text.strip(" \t")
    domain = attributes.get("domain", "").removeprefix(".").lower()
    host_only = not domain
    if domain and (domain not in _domains(host) or is_suffix(domain)):
        if domain != host:
            return None
        host_only = True
    path = attributes.get("path", "")
    secure = "secure" in attributes
    if (not name and not value) or (secure and scheme != "https"):
        return None
    if not path.startswith("/"):
        path = asked.rpartition("/")[0] or "/"
    lower = name.lower()
    if lower.startswith("__secure-") and not secure:
        return None
    if lower.startswith("__host-") and not (secure and host_only and attributes.get("path") == "/"):
        return None
    return Cookie(
        name=name, value=value, domain=domain or host, host_only=host_only, path=path,
        secure=secure, expires=_expires(attributes, now), created=now,
    )  # fmt: skip


def set_by(head: bytes) -> list[str]:
    """The values of the first Set-Cookie lines of a head; almost always none: 0.2 us."""
    if b"\nset-cookie:" not in head.lower():
        return []
    pairs = (line.partition(b":") for line in head.split(b"\n"))
    return [
        value.strip(b" \t\r").decode("latin-1")
        for name, _, value in pairs
        if name.lower() == b"set-cookie"
    ][:_MOST_LINES]


def parse_file(text: str) -> list[Cookie]:
    """Cookies as Netscape wrote them to a file, and browsers and curl still do.

    ValueError names the line that is none (never what stands in it: cookies are secrets).
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.removeprefix("#HttpOnly_")
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) == 6:  # an empty value, and an editor that cuts blanks at the end
            fields.append("")
        if len(fields) != 7 or not fields[4].isascii() or not fields[4].isdigit():
            raise ValueError(f"line {number} is no cookie of seven fields with tabs between")
        domain, below, path, secure, expires, name, value = fields
        if any(_UNSENDABLE.search(part) for part in (name, value)):
            raise ValueError(f"line {number}: its name or value cannot be sent")
        domain = domain.removeprefix(".").lower()
        found.append(Cookie(
            name=name, value=value, domain=domain,
            host_only=below.upper() != "TRUE" or is_suffix(domain),
            path=path if path.startswith("/") else "/",
            secure=secure.upper() == "TRUE", expires=float(expires) or _SESSION, created=0.0,
        ))  # fmt: skip
    return found


def for_host(cookies: Iterable[Cookie], host: str) -> tuple[Cookie, ...]:
    """Those that a request to this host may carry."""
    domains = _domains(host)
    return tuple(
        one
        for one in cookies
        if one.domain == host or (one.domain in domains and not one.host_only)
    )


def _expires(attributes: dict[str, str], now: float) -> float:
    age = attributes.get("max-age", "")
    if re.fullmatch(r"-?\d+", age):
        seconds = float(age[:20])
        return now + min(seconds, _MOST_AGE_S) if seconds > 0 else 0.0
    at = date(attributes["expires"]) if "expires" in attributes else None
    return _SESSION if at is None else min(at, now + _MOST_AGE_S)


def date(text: str) -> float | None:
    """A cookie's date (RFC 6265, 5.1.1) in UTC seconds; None if it is none."""
    time: tuple[int, int, int] | None = None
    day = month = year = -1
    for word in _DELIMITERS.split(text):
        found = _TIME.match(word)
        if time is None and found:
            time = int(found[1]), int(found[2]), int(found[3])
        elif day < 0 and (found := _DAY.match(word)):
            day = int(found[1])
        elif month < 0 and word[:3].lower() in _MONTHS:
            month = _MONTHS.index(word[:3].lower())
        elif year < 0 and (found := _YEAR.match(word)):
            year = int(found[1])
    if 70 <= year <= 99:
        year += 1900
    elif 0 <= year <= 69:
        year += 2000
    if time is None or month < 0 or not 1 <= day <= 31 or year < 1601:
        return None
    if time[0] > 23 or time[1] > 59 or time[2] > 59:
        return None
    return _seconds(year, month + 1, day, time)


def _seconds(year: int, month: int, day: int, time: tuple[int, int, int]) -> float | None:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if day > lengths[month - 1]:
        return None
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400 - 719_162
    days += sum(lengths[: month - 1]) + day - 1
    return days * 86_400.0 + time[0] * 3600 + time[1] * 60 + time[2]


def _parts(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.path or "/"


def _domains(host: str) -> list[str]:
    """The host and all that it is below of; an address is below nothing."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        labels = host.split(".")
        return [".".join(labels[at:]) for at in range(len(labels))]
    return [host]


def _is_within(path: str, of: str) -> bool:
    return path == of or (path.startswith(of) and (of.endswith("/") or path[len(of)] == "/"))
