"""Names to addresses: own names, the hosts file, then c-ares. The only file that names aiodns."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aiodns

from geomi.errors import OperatorError
from geomi.records import Answer

_LEAST_S, _MOST_S = 30.0, 86_400.0  # what is believed of an answer's lifetime
_FAILED_S = 60.0
_FOREVER_S = _MOST_S  # literals and the hosts file
_LONGEST_CHAIN = 16  # CNAMEs; BIND and Unbound stop at about as many

#: c-ares' numbers, in the words of DNS. An answer without a record of the type is no failure.
_NO_DATA = 1
_WORDS = {
    2: "FORMERR", 3: "SERVFAIL", 4: "NXDOMAIN", 5: "NOTIMP", 6: "REFUSED", 8: "bad name",
    10: "bad answer", 11: "server unreachable", 12: "timeout", 16: "cancelled", 24: "cancelled",
}  # fmt: skip


def literal(host: str) -> str:
    """The address that `host` itself is, in its shortest form; empty if it is a name."""
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        return ""


def parse_hosts(text: str) -> dict[str, list[str]]:
    """A hosts file: names in lower case to their addresses, in order. Bad lines are skipped."""
    hosts: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        address = literal(words[0]) if words else ""
        for name in words[1:] if address else ():
            known = hosts.setdefault(_plain(name), [])
            if address not in known:
                known.append(address)
    return hosts


def dns_text(answer: Answer, now: float) -> bytes:
    """The block of a WARC `dns:` record, in the text/dns form that Heritrix writes."""
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(now))
    lines = [stamp]
    for address in answer.addresses:
        kind = "AAAA" if ":" in address else "A"
        lines.append(f"{answer.host}.\t{answer.ttl_s:.0f}\tIN\t{kind}\t{address}")
    return ("\n".join(lines) + "\n").encode()


class Resolver:
    """Asks for addresses. They are unchecked (guard decides) and not cached (the agent does)."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        hosts: Mapping[str, Sequence[str]] | None = None,
        hosts_file: str = "/etc/hosts",
        servers: Sequence[str] = (),
        timeout_s: float = 5.0,
        tries: int = 2,
    ) -> None:
        self._loop = loop
        self._hosts_file = hosts_file
        self._servers = [_server(server) for server in servers]
        self._timeout_s = timeout_s
        self._tries = tries
        self._own = {_plain(name): _checked(name, found) for name, found in (hosts or {}).items()}
        self._file: dict[str, list[str]] | None = None  # read when the first name is asked for
        self._cares: aiodns.DNSResolver | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Questions under way are answered "cancelled"."""
        cares, self._cares = self._cares, None
        if cares is not None:
            await cares.close()

    async def resolve(self, host: str) -> Answer:
        """Every address of `host`, IPv4 first, lowest first. Failing is an Answer with `error`."""
        itself = literal(host)
        if itself:
            return Answer(host=host, addresses=(itself,), ttl_s=_FOREVER_S, server="literal")
        name = _plain(host)
        if self._file is None:
            self._file = _read_hosts(self._hosts_file)
        known = self._own.get(name) or self._file.get(name)
        if known:
            return Answer(host=host, addresses=_sorted(known), ttl_s=_FOREVER_S, server="hosts")
        if self._cares is None:
            self._cares = self._open()
        server = ",".join(self._servers)
        four, six = await asyncio.gather(self._ask(name, "A"), self._ask(name, "AAAA"))
        found = four[0] + six[0]
        if found:
            ttl_s = min(four[1], six[1])
            return Answer(
                host=host, addresses=_sorted(found), server=server,
                ttl_s=min(max(ttl_s, _LEAST_S), _MOST_S),
            )  # fmt: skip
        error = four[2] or six[2] or "no address"
        return Answer(host=host, addresses=(), ttl_s=_FAILED_S, server=server, error=error)

    def _open(self) -> aiodns.DNSResolver:
        options: dict[str, Any] = {"timeout": self._timeout_s, "tries": self._tries}
        if self._servers:
            options["servers"] = self._servers
        return aiodns.DNSResolver(loop=self._loop, **options)

    async def _ask(self, name: str, kind: str) -> tuple[list[str], float, str]:
        """(addresses, lifetime, error) of one type of record."""
        assert self._cares is not None
        try:
            result = await self._cares.query_dns(name, kind)
        except aiodns.error.DNSError as error:
            number = error.args[0]
            word = "" if number == _NO_DATA else _WORDS.get(number, str(error.args[-1]))
            return [], _MOST_S, word
        except (UnicodeError, ValueError) as error:  # what c-ares cannot even be asked
            return [], _MOST_S, f"bad name: {error}"
        addresses, ttls = _follow(name, kind, result.answer)
        return addresses, min(ttls, default=_MOST_S), ""


def _follow(name: str, kind: str, records: Iterable[object]) -> tuple[list[str], list[float]]:
    """The addresses at the end of the CNAME chain that begins with `name`, and all lifetimes."""
    aliases: dict[str, tuple[str, float]] = {}
    addresses: dict[str, list[tuple[str, float]]] = {}
    wanted = {"A": 1, "AAAA": 28}[kind]
    for record in records:
        owner, ttl = _plain(record.name), float(record.ttl)  # type: ignore[attr-defined]
        data = record.data  # type: ignore[attr-defined]
        if record.type == 5:  # type: ignore[attr-defined]
            aliases[owner] = (_plain(data.cname), ttl)
        elif record.type == wanted:  # type: ignore[attr-defined]
            addresses.setdefault(owner, []).append((data.addr, ttl))
    ttls: list[float] = []
    for _ in range(_LONGEST_CHAIN):
        if name in addresses or name not in aliases:
            break
        name, ttl = aliases[name]
        ttls.append(ttl)
    found = addresses.get(name, [])
    return [address for address, _ in found], ttls + [ttl for _, ttl in found]


def _read_hosts(path: str) -> dict[str, list[str]]:
    if not path or not Path(path).is_file():
        return {}
    return parse_hosts(Path(path).read_text(encoding="utf-8", errors="replace"))


def _plain(name: str) -> str:
    return name.lower().rstrip(".")


def _sorted(addresses: Iterable[str]) -> tuple[str, ...]:
    """IPv4 before IPv6, lowest first: every agent pins the same one."""
    parsed = {ipaddress.ip_address(address) for address in addresses}
    return tuple(str(address) for address in sorted(parsed, key=lambda a: (a.version, int(a))))


def _checked(name: str, addresses: Sequence[str]) -> list[str]:
    for address in addresses:
        if not literal(address):
            raise OperatorError(f"dns.hosts: {name} is given {address!r}, which is no IP address")
    return [literal(address) for address in addresses]


def _server(server: str) -> str:
    """`ip` or `ip:port` (IPv6 with a port in brackets), as c-ares takes it."""
    host, colon, port = server.rpartition(":")
    if not literal(server) and not (colon and literal(host) and port.isdigit()):
        raise OperatorError(f"dns.servers: {server!r} is neither an IP address nor address:port")
    return server
