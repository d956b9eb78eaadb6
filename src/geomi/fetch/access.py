"""How a site is reached where that is special: password, certificates, proxy, rate.

Made by: agent, once a site.   Taken by: `Client`, with each `Fetch` to that site.
"""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from dataclasses import dataclass

from geomi.errors import OperatorError

_PROXY = re.compile(r"(http|socks5h)://(?:([^@/\s]*)@)?(\[[^\]]+\]|[^:/@\s]+):(\d{1,5})/?")
_AUTHORIZATION = "Authorization"

#: In the archive a request keeps the line, without the secret.
WITHHELD = b"Authorization: Basic withheld"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Every field is optional; `None` in place of an Access is all of them empty."""

    auth: str = ""  # "user:password", sent as Basic to the host of the Fetch and to no proxy
    client_cert: str = ""  # PEM file; may hold the key as well
    client_key: str = ""
    proxy: str = ""  # http://[user:password@]host:port, or socks5h://…
    proxy_address: str = ""  # of the proxy's host, resolved by the caller; empty: host is one
    verify: bool = True  # False: any certificate is taken, and each capture says so
    rate_bytes_per_s: int = 0  # of one connection; 0: no limit


def check(access: Access) -> None:
    """OperatorError, in one sentence, if it could not be used."""
    if access.auth and ":" not in access.auth:
        raise OperatorError("access.auth: a user and a password with a colon between are wanted")
    if not access.auth.isprintable():
        raise OperatorError("access.auth: control characters cannot be sent")
    if access.client_key and not access.client_cert:
        raise OperatorError("access.client_key: a key alone is of no use, client_cert is missing")
    if access.rate_bytes_per_s < 0:
        raise OperatorError(f"access.rate: {access.rate_bytes_per_s} bytes/s is below nothing")
    if access.proxy:
        proxy_host(access)
        if access.proxy_address and not _literal(access.proxy_address):
            raise OperatorError(f"access.proxy: {access.proxy_address!r} is no IP address")


def proxy_host(access: Access) -> str:
    """The host of the proxy, to be resolved; OperatorError if there is no such proxy."""
    found = _PROXY.fullmatch(access.proxy)
    if not found or int(found[4]) > 65535:
        raise OperatorError(
            f"access.proxy: {access.proxy!r} is not http://host:port or socks5h://host:port"
        )
    return found[3]


def proxy_address(access: Access) -> str:
    """Where sockets to the proxy go; empty if its host is a name and nobody resolved it."""
    return _literal(access.proxy_address or proxy_host(access))


def is_reachable(access: Access) -> bool:
    """False if its proxy's name was not resolved: libcurl is to look nothing up."""
    return not access.proxy or bool(proxy_address(access))


def lines(access: Access) -> tuple[str, ...]:
    """Header lines that belong to it."""
    if not access.auth:
        return ()
    return (f"{_AUTHORIZATION}: Basic {b64encode(access.auth.encode()).decode()}",)


def withheld(own: list[bytes]) -> list[bytes]:
    """Header lines as they are archived: a password is nobody's business."""
    secret = f"{_AUTHORIZATION.lower()}:".encode()
    return [WITHHELD if line.lower().startswith(secret) else line for line in own]


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
