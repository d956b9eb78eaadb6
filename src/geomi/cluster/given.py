"""What settings name outside the collection: files, directories, databases; checked beforehand."""

from __future__ import annotations

import os
import ssl
from contextlib import closing
from pathlib import Path

from geomi.cluster.collection import Collection
from geomi.cluster.on_ray import must_answer
from geomi.cluster.plan import site_rules, with_access
from geomi.cluster.tables import MIGRATIONS
from geomi.cluster.vault import read_vault
from geomi.config import Settings
from geomi.errors import OperatorError
from geomi.fetch.access import Access, check
from geomi.fetch.dns import parse_hosts
from geomi.seeds.countries import Countries
from geomi.store import open_store
from geomi.store.address import parse
from geomi.store.migrate import check_version, version_of


def must_be_there(place: Collection, settings: Settings) -> None:
    """OperatorError if a crawl with these settings could not begin. Leaves nothing behind then.

    For a new collection this comes before it is made, so that a mistake makes nothing.
    """
    hosts_of(settings)
    must_be_usable(settings, str(place.path))
    if settings.fetch.ca_file:
        _must_hold_certificates(settings.fetch.ca_file)
    if settings.seeds.country_database:
        with Countries(settings.seeds.country_database):
            pass
    if settings.cluster.engine == "ray":
        must_answer(settings.cluster.address)
    if "://" in (address := place.store_address(settings)):
        _must_be_ours(place, address)
    for directory in settings.archive.directories:
        # Those inside a collection are made with it.
        if place.exists or os.path.isabs(directory):
            _must_be_writable(place.archive_path(directory))


def _must_be_ours(place: Collection, address: str) -> None:
    """The database answers; a new collection finds no other one there, and an old one itself."""
    with closing(open_store(address, folder=str(place.path))) as store:
        if not place.exists and not store.is_empty():
            raise OperatorError(
                f"{parse(address).shown}: there is a collection already; name another schema, as"
                " ?schema=news"
            )
        check_version(version_of(store), len(MIGRATIONS), str(place.path))


def must_be_usable(settings: Settings, folder: str) -> None:
    """OperatorError if [access] names a secret or file that is not there, or cannot be sent."""
    check(Access(user_agent=settings.user_agent))
    vault = read_vault(settings, folder)
    for pattern in ("", *settings.site):
        site = pattern.replace("*.", "any.", 1)
        try:
            with_access(site_rules(settings, site), settings, site, vault)
        except OperatorError as error:
            prefix = f'site."{pattern}".' if pattern else ""
            raise OperatorError(f"{prefix}{error}") from error


def hosts_of(settings: Settings) -> dict[str, list[str]]:
    """`dns.hosts` as names and addresses; a string is the path of a hosts file."""
    hosts = settings.dns.hosts
    if isinstance(hosts, str):
        try:
            with open(hosts, encoding="utf-8", errors="replace") as file:
                return parse_hosts(file.read())
        except OSError as error:
            raise OperatorError(f"dns.hosts: {hosts}: {error.strerror or error}") from error
    return {
        name: [addresses] if isinstance(addresses, str) else list(addresses)
        for name, addresses in hosts.items()
    }


def _must_hold_certificates(path: str) -> None:
    if not Path(path).is_file():
        raise OperatorError(f"fetch.ca_file: {path}: no such file")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except OSError as error:  # ssl.SSLError is one
        said = "no certificates in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise OperatorError(f"fetch.ca_file: {path}: {said}") from error


def _must_be_writable(path: str) -> None:
    """Makes the directory and a file in it; what it made goes again if that fails."""
    made: list[Path] = []
    probe = Path(path, f".probe-{os.getpid()}")
    try:
        for folder in reversed((Path(path), *Path(path).parents)):
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        probe.touch()
        probe.unlink()
    except OSError as error:
        for folder in reversed(made):
            folder.rmdir()
        raise OperatorError(f"archive.directories: {path}: {error.strerror or error}") from error
