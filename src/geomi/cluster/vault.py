"""What settings keep elsewhere: secrets, cookies, certificates; read once, when a crawl starts.

Nothing of it stands in the settings, so that neither geomi.toml nor the store need to hold it.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geomi import settings as tables
from geomi.config import Settings
from geomi.errors import OperatorError
from geomi.fetch.cookies import Cookie, parse_file
from geomi.keys import is_reference

_LONGEST = 1 << 20  # bytes of a secret, or of a file of cookies


@dataclass(frozen=True, slots=True, kw_only=True)
class Vault:
    """Made by: read_vault.   Taken by: cluster.plan."""

    folder: str  # of the collection: paths are relative to it
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # by reference
    cookies: Mapping[str, tuple[Cookie, ...]] = field(default_factory=dict, repr=False)  # by file

    def reveal(self, text: str) -> str:
        """A secret, however it is written; KeyError if it was not read."""
        return self.secrets[text] if is_reference(text) else text

    def path(self, text: str) -> str:
        return os.path.join(self.folder, text) if text else ""


def read_vault(settings: Settings, folder: str) -> Vault:
    """OperatorError if a file cannot be read, a variable is not set, or a key fits no lock."""
    secrets: dict[str, str] = {}
    cookies: dict[str, tuple[Cookie, ...]] = {}
    vault = Vault(folder=folder, secrets=secrets, cookies=cookies)
    for access, prefix in _views(settings):
        given = [("auth", access.auth), ("client_password", access.client_password)]
        given.append(("proxy", access.proxy))
        given += [("headers", line.partition(":")[2].strip()) for line in access.headers]
        for name, text in given:
            if is_reference(text) and text not in secrets:
                secrets[text] = _secret(text, folder, f"{prefix}access.{name}")
        name = access.cookie_file
        if name and name not in cookies:
            cookies[name] = _cookies(vault.path(name), f"{prefix}access.cookie_file")
        if access.client_cert:
            _must_fit(access, vault, prefix)
    return vault


def _views(settings: Settings) -> Iterator[tuple[tables.Access, str]]:
    """What holds for all sites, and for those of each table [site]."""
    yield settings.access, ""
    for pattern in settings.site:
        host = pattern.replace("*.", "any.", 1)
        yield settings.for_site(host).access, f'site."{pattern}".'


def _secret(text: str, folder: str, where: str) -> str:
    kind, _, name = text.partition(":")
    if kind == "env":
        value = os.environ.get(name, "")
        if not value:
            raise OperatorError(f"{where}: the environment has no {name}, or it is empty")
        return value
    value = _read(os.path.join(folder, name), where).strip()
    if not value or "\n" in value:
        raise OperatorError(f"{where}: {name}: wanted one line with the secret")
    return value


def _cookies(path: str, where: str) -> tuple[Cookie, ...]:
    try:
        return tuple(parse_file(_read(path, where)))
    except ValueError as error:
        raise OperatorError(f"{where}: {path}: {error}") from error


def _read(path: str, where: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(_LONGEST).decode()
    except OSError as error:
        raise OperatorError(f"{where}: {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise OperatorError(f"{where}: {path}: it is not UTF-8") from error


def _must_fit(access: tables.Access, vault: Vault, prefix: str) -> None:
    """Certificate and key can be read and belong together: libcurl would say so site by site."""
    where = f"{prefix}access.client_cert"
    for name in filter(None, (access.client_cert, access.client_key)):
        _read(vault.path(name), where)
    # Without a password OpenSSL would ask for one at the terminal, so an empty one is given.
    password = vault.reveal(access.client_password)
    key = vault.path(access.client_key) or None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(
            vault.path(access.client_cert), key, lambda: password
        )
    except (ssl.SSLError, OSError, ValueError) as error:
        said = getattr(error, "reason", None) or str(error)
        hint = "" if password else "; a key with a password needs client_password"
        raise OperatorError(
            f"{where}: {access.client_cert}: no certificate with its key in PEM ({said}){hint}"
        ) from error
