"""One request: what is asked for, and the exact bytes that go over the wire for it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from geomi.fetch.access import Access

_HEADER = re.compile(
    r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*"
    r"([\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)[\t ]*"
)
#: Never taken from a Fetch: they would change what the answer belongs to, or how it is framed.
_OURS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "expect", "upgrade"}
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Fetch(Struct, frozen=True, kw_only=True):
    """One request. Made by: agent.   Taken by: `Client.start`."""

    ticket: int
    url: str
    scheme: str
    host: str  # as it stands in the URL; an IPv6 literal with or without brackets
    port: int
    target: str  # path?query, exactly as it goes into the request line
    address: str  # checked; the socket goes there and nowhere else
    headers: tuple[str, ...] = ()  # "Name: value", in addition; one of ours is replaced
    access: Access | None = None  # of the site, where it is special
    limit_bytes: int = 0  # most of the body that is of use; 0: what its type may have


def is_askable(fetch: Fetch) -> bool:
    """False if the parts could not stand in a request (or would smuggle something into it)."""
    target, host = fetch.target, fetch.host
    return (
        fetch.scheme in _DEFAULT_PORTS
        and target.startswith("/")
        and target.isascii()
        and target.isprintable()
        and " " not in target
        and host != ""
        and host.isascii()
        and host.isprintable()
        and " " not in host
    )


def bracketed(host: str) -> str:
    """An IPv6 literal in brackets; every other host as it is."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def own_lines(*, user_agent: str, contact: str = "") -> list[str]:
    """The header lines of every request, after Host."""
    lines = [f"User-Agent: {user_agent}", "Accept: */*", "Accept-Encoding: identity"]
    return [*lines, f"From: {contact}"] if contact else lines


def merged(own: Iterable[str], extra: Iterable[str]) -> list[bytes]:
    """Our lines and a request's own, which replace ours of the same name.

    A line that is no header line (an ETag with control bytes, say) is left out.
    """
    fields = {line.partition(":")[0].lower(): line for line in own}
    for line in extra:
        found = _HEADER.fullmatch(line)
        if found and found[1].lower() not in _OURS:
            fields[found[1].lower()] = f"{found[1]}: {found[2]}"
    return [line.encode("latin-1") for line in fields.values()]


def block(lines: Iterable[bytes]) -> bytes:
    """Header lines as they end a request, with the blank line."""
    return b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def host_line(scheme: str, host: str, port: int) -> bytes:
    """As libcurl writes it: the port only where it is no default."""
    tail = "" if port == _DEFAULT_PORTS[scheme] else f":{port}"
    return f"Host: {bracketed(host)}{tail}\r\n".encode()


def opening(fetch: Fetch) -> bytes:
    """Request line and Host."""
    line = f"GET {fetch.target} HTTP/1.1\r\n".encode()
    return line + host_line(fetch.scheme, fetch.host, fetch.port)
