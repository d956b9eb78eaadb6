"""Who a site is told we are: the access of its settings, and the cookies it set. Decides only."""

from __future__ import annotations

from dataclasses import replace

from geomi.fetch import access as special
from geomi.fetch.access import Access
from geomi.fetch.cookies import Cookie, Jar, set_by
from geomi.fetch.verdict import certificate_fault
from geomi.records import Capture


class Guise:
    """Of one seed context, and forgotten with it. Nothing of it goes to another host."""

    __slots__ = ("_jar", "_keeps", "access")

    def __init__(
        self, access: Access | None, *, cookies: bool, own_cookies: tuple[Cookie, ...], now: float
    ) -> None:
        self.access = access
        self._jar = Jar()
        self._jar.put(own_cookies, now)
        self._keeps = cookies  # what answers set; those of the operator are sent in any case

    def lines(self, url: str, now: float) -> tuple[str, ...]:
        """Header lines for one request, beside those of `access`."""
        if not self._jar:
            return ()
        cookies = self._jar.header(url, now)
        return (f"Cookie: {cookies}",) if cookies else ()

    def answered(self, capture: Capture, now: float) -> bool:
        """Keeps what the answer set. True if that was something."""
        if not (self._keeps and capture.head):
            return False
        lines = set_by(capture.head)
        if lines:
            self._jar.take(lines, capture.url, now)
        return bool(lines)

    @property
    def proxy(self) -> str:
        """The name of its proxy, which is to be looked up; empty: there is none, or its address."""
        return proxy_of(self.access)

    def by(self, address: str) -> None:
        """Where the proxy is; empty: its name has no address."""
        self.access = through(self.access, address)


def proxy_of(access: Access | None) -> str:
    """The name of a proxy that is to be looked up; empty if there is none, or an address."""
    if access is None or not access.proxy:
        return ""
    bare = replace(access, proxy_address="")
    return "" if special.is_reachable(bare) else special.proxy_host(bare)


def through(access: Access | None, address: str) -> Access | None:
    """The access, with the address of its proxy."""
    return access if access is None else replace(access, proxy_address=address)


def tls_counter(capture: Capture) -> str:
    """The counter of what was odd about a server's certificate; empty: nothing was."""
    if capture.is_unverified:
        return "tls.unverified"
    fault = certificate_fault(capture.outcome, capture.detail)
    return f"tls.{fault.replace(' ', '_').replace('-', '_')}" if fault else ""
