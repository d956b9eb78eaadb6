"""TLS of a world: an authority of its own, and a certificate for each name that is asked for."""

from __future__ import annotations

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

    def authority(self) -> str:
        """PEM of the one certificate that a visitor has to trust."""
        return certificate(
            _AUTHORITY, self._root, issuer=_AUTHORITY, signer=self._root, authority=True
        )

    def server(self, host: str) -> str:
        """PEM of the key and the certificate that a server shows to who asks for `host`."""
        site = self._world.sites.by_host(host)
        kind = site.tls if site is not None else ""
        named = site is not None and kind and host == site.host and kind != "name"
        name = host if named else _WRONG
        own = kind == "self"
        return self._key.pem() + certificate(
            name,
            self._key,
            issuer=name if own else _AUTHORITY,
            signer=self._key if own else self._root,
            names=[name],
            years=(2000, 2001) if kind == "expired" else (2020, 2120),
        )
