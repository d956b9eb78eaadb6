"""Which addresses may be connected to. Decides only: it resolves nothing and opens nothing.

Everything that is not plainly public is refused, unless the operator names the network or the
host. An IPv6 address that carries an IPv4 address inside is refused as such, and where its form is
allowed (a NAT64 prefix, say) the address inside is judged as well.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

from geomi.errors import OperatorError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# From the IANA special-purpose registries. The first that holds an address names the refusal.
_REFUSED_4 = (
    ("0.0.0.0/32", "unspecified"),
    ("0.0.0.0/8", "reserved"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "reserved"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
)
_REFUSED_6 = (
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("fc00::/7", "unique-local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
    ("2001:db8::/32", "documentation"),
    ("3fff::/20", "documentation"),
    ("2001::/23", "reserved"),
)
#: All that IANA has given out for unicast; the rest of IPv6 is reserved.
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")

# Network, name, how far the embedded address is from the right end, what it is xored with.
_EMBEDDING = (
    ("::ffff:0:0/96", "mapped", 0, 0),
    ("::ffff:0:0:0/96", "translated", 0, 0),
    ("::/96", "compatible", 0, 0),
    ("64:ff9b::/96", "nat64", 0, 0),
    ("64:ff9b:1::/48", "nat64", 0, 0),
    ("2002::/16", "6to4", 80, 0),
    ("2001::/32", "teredo", 0, 0xFFFFFFFF),
)

_TABLE_4 = tuple((ipaddress.IPv4Network(text), reason) for text, reason in _REFUSED_4)
_TABLE_6 = tuple((ipaddress.IPv6Network(text), reason) for text, reason in _REFUSED_6)
_TABLE_EMBEDDING = tuple(
    (ipaddress.IPv6Network(text), form, shift, mask) for text, form, shift, mask in _EMBEDDING
)


class Guard:
    """Says whether an address may be connected to, and if not, why.

    `allow_networks` are CIDRs or single addresses, of either family. OperatorError if one is not.
    """

    def __init__(self, allow_networks: Iterable[str] = ()) -> None:
        self._allowed: tuple[_Network, ...] = tuple(_network(text) for text in allow_networks)
        # A crawl meets the same addresses over and over: 0.1 us instead of 5.
        self._judged = lru_cache(maxsize=65_536)(self._judge)

    def refusal(self, address: str, *, host_is_named: bool = False) -> str:
        """Empty if `address` may be connected to, otherwise one or two words that say why not.

        `host_is_named`: the operator gave this very host, so any address it has is meant.
        """
        reason = self._judged(address)
        return "" if host_is_named and reason != "no address" else reason

    def _judge(self, text: str) -> str:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return "no address"
        if isinstance(address, ipaddress.IPv6Address):
            if address.scope_id:
                address = ipaddress.IPv6Address(int(address))
            return self._judge_6(address)
        if self._allows(address):
            return ""
        return _first(address, _TABLE_4)

    def _judge_6(self, address: ipaddress.IPv6Address) -> str:
        if address in (_UNSPECIFIED_6, _LOOPBACK_6):  # not addresses of the compatible form
            return "" if self._allows(address) else _first(address, _TABLE_6)
        for network, form, shift, mask in _TABLE_EMBEDDING:
            if address in network:
                # A network inside the form's block names these addresses; one as wide as the
                # block, or wider, says only that the form may be used.
                if self._allows(address, longer_than=network.prefixlen):
                    return ""
                inside = ipaddress.IPv4Address((int(address) >> shift ^ mask) & 0xFFFFFFFF)
                reason = self._judged(str(inside))
                if self._allows(address):
                    return reason
                return f"{form} {reason}".rstrip()
        if self._allows(address):
            return ""
        return _first(address, _TABLE_6) or ("" if address in _GLOBAL_6 else "reserved")

    def _allows(self, address: _Address, *, longer_than: int = -1) -> bool:
        return any(
            network.prefixlen > longer_than and address in network for network in self._allowed
        )


_UNSPECIFIED_6 = ipaddress.IPv6Address("::")
_LOOPBACK_6 = ipaddress.IPv6Address("::1")


def _first(address: _Address, table: Iterable[tuple[_Network, str]]) -> str:
    for network, reason in table:
        if address in network:
            return reason
    return ""


def _network(text: str) -> _Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        pass
    try:
        meant = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise OperatorError(
            f"{text!r} is no network: give an address or a CIDR such as 10.0.0.0/8 or fd00::/8."
        ) from None
    raise OperatorError(f"{text!r} is no network: its last bits are set; {meant} may be meant.")
