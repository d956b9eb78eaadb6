"""TLS of a world: an authority of its own, and a certificate for each name that is asked for."""

from __future__ import annotations

import ssl
import tempfile
from functools import lru_cache
from pathlib import Path

from geomi.world.certificates import Key, certificate
from geomi.world.model import World

_AUTHORITY = "geomi small world"
_WRONG = "elsewhere.example"


class Certificates:
    """Server contexts by name. What is wrong with a site's certificate is in features.TLS."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._root = Key(f"authority {world.params.seed}")
        self._key = Key(f"server {world.params.seed}")
        self._context = lru_cache(maxsize=2_000)(self._make)

    def authority(self) -> str:
        """PEM of the one certificate that a visitor has to trust."""
        return certificate(
            _AUTHORITY, self._root, issuer=_AUTHORITY, signer=self._root, authority=True
        )

    def server(self, host: str) -> str:
        """PEM of the certificate that a server shows to who asks for `host`."""
        site = self._world.sites.by_host(host)
        kind = site.tls if site is not None else ""
        named = site is not None and kind and host == site.host and kind != "name"
        names = [host if named else _WRONG]
        if kind == "self":
            return certificate(names[0], self._key, issuer=names[0], signer=self._key, names=names)
        years = (2000, 2001) if kind == "expired" else (2020, 2120)
        return certificate(
            names[0], self._key, issuer=_AUTHORITY, signer=self._root, names=names, years=years
        )

    def context(self) -> ssl.SSLContext:
        """What a listening socket needs: it chooses by the name the client says."""
        context = self._context("")

        def choose(sock: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
            sock.context = self._context(name or "")

        context.sni_callback = choose
        return context

    def _make(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The standard library reads certificates from files alone.
        with tempfile.TemporaryDirectory(prefix="geomi-world-") as folder:
            path = Path(folder, "server.pem")
            path.write_text(self._key.pem() + self.server(host), encoding="ascii")
            context.load_cert_chain(path)
        return context
