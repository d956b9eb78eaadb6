"""How a site is reached where that is special: header lines, password, certificates, proxy, rate.

Made by: the settings (cluster.plan), once a site.   Taken by: `Client`, with each `Fetch` to it.
"""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from dataclasses import dataclass, field

from geomi.errors import OperatorError

_PROXY = re.compile(r"(http|socks5h)://(?:([^@/\s]*)@)?(\[[^\]]+\]|[^:/@\s]+):(\d{1,5})/?")
_AUTHORIZATION = "Authorization"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")

#: In the archive a request keeps a line with a secret, without the secret.
WITHHELD = b"withheld"
_ALWAYS = ("authorization",)
#: Header lines that are set in another way, or would change how an answer is framed.
_NOT_GIVEN = {
    "host": "it follows from the URL",
    "connection": "it is the program's",
    "content-length": "a request has no body",
    "transfer-encoding": "a request has no body",
    "expect": "a request has no body",
    "upgrade": "only HTTP/1.1 is spoken",
    "user-agent": "that is agent.user_agent",
    "cookie": "that is access.cookie_file",
    "proxy-authorization": "that stands in access.proxy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Every field is optional; `None` in place of an Access is all of them empty."""

    user_agent: str = ""  # in the place of the client's own
    auth: str = field(default="", repr=False)  # "user:password", sent as Basic; to no proxy
    headers: tuple[str, ...] = field(default=(), repr=False)  # "Name: value", as they are sent
    withheld: tuple[str, ...] = ()  # names, in lower case, whose values are not archived
    client_cert: str = ""  # PEM file; may hold the key as well
    client_key: str = ""
    client_password: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)  # http://[user:password@]host:port, or socks5h://…
    proxy_address: str = ""  # of the proxy's host, resolved by the caller; empty: host is one
    verify: bool = True  # False: any certificate is taken, and each capture says so
    rate_bytes_per_s: int = 0  # of one connection; 0: no limit


def check(access: Access) -> None:
    """OperatorError, in one sentence that repeats no secret, if it could not be used."""
    if access.auth and ":" not in access.auth:
        raise OperatorError("access.auth: a user and a password with a colon between are wanted")
    if not access.auth.isprintable():
        raise OperatorError("access.auth: control characters cannot be sent")
    if access.user_agent and not _VALUE.fullmatch(access.user_agent):
        raise OperatorError("agent.user_agent: it has characters that cannot be sent")
    names: set[str] = set()
    for line in access.headers:
        name = _checked_name(line)
        if name in names or (name == "authorization" and access.auth):
            raise OperatorError(f"access.headers: {name} is given twice")
        names.add(name)
    if access.client_key and not access.client_cert:
        raise OperatorError("access.client_key: a key alone is of no use, client_cert is missing")
    if access.rate_bytes_per_s < 0:
        raise OperatorError(f"access.rate: {access.rate_bytes_per_s} bytes/s is below nothing")
    if access.proxy:
        proxy_host(access)
        if access.proxy_address and not _literal(access.proxy_address):
            raise OperatorError(f"access.proxy: {access.proxy_address!r} is no IP address")


def _checked_name(line: str) -> str:
    """The name of a header line in lower case; OperatorError if it cannot be sent."""
    name, colon, value = line.partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise OperatorError("access.headers: a line is no `Name: value`")
    if why := _NOT_GIVEN.get(name.lower()):
        raise OperatorError(f"access.headers: {name} cannot be given, {why}")
    if not _VALUE.fullmatch(value.strip(" \t")):
        raise OperatorError(
            f"access.headers: the value of {name} cannot be sent: it is empty, or has control"
            " characters or such beyond ISO 8859-1"
        )
    return name.lower()


def proxy_host(access: Access) -> str:
    """The host of the proxy, to be resolved; OperatorError if there is no such proxy."""
    found = _PROXY.fullmatch(access.proxy)
    if not found or int(found[4]) > 65535:
        seen = "what is given" if "@" in access.proxy else repr(access.proxy)
        raise OperatorError(f"access.proxy: {seen} is not http://host:port or socks5h://host:port")
    return found[3]


def proxy_address(access: Access) -> str:
    """Where sockets to the proxy go; empty if its host is a name and nobody resolved it."""
    return _literal(access.proxy_address or proxy_host(access))


def is_reachable(access: Access) -> bool:
    """False if its proxy's name was not resolved: libcurl is to look nothing up."""
    return not access.proxy or bool(proxy_address(access))


def lines(access: Access) -> tuple[str, ...]:
    """Header lines that belong to it."""
    found = list(access.headers)
    if access.user_agent:
        found.append(f"User-Agent: {access.user_agent}")
    if access.auth:
        found.append(f"{_AUTHORIZATION}: Basic {b64encode(access.auth.encode()).decode()}")
    return tuple(found)


def withheld(own: list[bytes], access: Access) -> list[bytes]:
    """Header lines as they are archived: a secret is nobody's business."""
    secret = {*access.withheld, *(_ALWAYS if access.auth else ())}
    if not secret:
        return own
    found = []
    for line in own:
        name, _, value = line.partition(b":")
        if name.decode("latin-1").lower() in secret:
            scheme = b"Basic " if value.startswith(b" Basic ") else b""
            line = name + b": " + scheme + WITHHELD
        found.append(line)
    return found


def options(access: Access | None) -> list[tuple[str, object]]:
    """libcurl's options by name, for a handle on which none of them was changed before."""
    if access is None:
        return [("PROXY", ""), ("NOPROXY", "*"), ("SSL_VERIFYPEER", 1), ("SSL_VERIFYHOST", 2)]
    found: list[tuple[str, object]] = [
        ("SSL_VERIFYPEER", int(access.verify)),
        ("SSL_VERIFYHOST", 2 if access.verify else 0),
    ]
    if access.client_cert:
        found.append(("SSLCERT", access.client_cert))
        found.append(("SSLKEY", access.client_key or access.client_cert))
        if access.client_password:
            found.append(("KEYPASSWD", access.client_password))
    if access.rate_bytes_per_s:
        found.append(("MAX_RECV_SPEED_LARGE", access.rate_bytes_per_s))
    if not access.proxy:
        return [*found, ("PROXY", ""), ("NOPROXY", "*")]
    # The tunnel ends at the checked address (CONNECT_TO), also for plain http.
    found += [("PROXY", _pinned(access)), ("NOPROXY", ""), ("HTTPPROXYTUNNEL", 1)]
    return found


def _pinned(access: Access) -> str:
    """The proxy with its address in place of its name, so that libcurl looks nothing up."""
    parts = _PROXY.fullmatch(access.proxy)
    assert parts is not None
    address = proxy_address(access)
    host = f"[{address}]" if ":" in address else address
    user = f"{parts[2]}@" if parts[2] else ""
    return f"{parts[1]}://{user}{host}:{parts[4]}"


def _literal(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        return ""
