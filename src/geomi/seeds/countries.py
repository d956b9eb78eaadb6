"""Countries of addresses, from a file in MaxMind's format. The only file that names maxminddb."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any, Self

import maxminddb

from geomi.errors import OperatorError


class Countries:
    """Two-letter countries by address. The file is opened in `with`, or by the first question.

    Reads what country and city databases of MaxMind, DB-IP and IPinfo hold.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._reader: Any = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """OperatorError if the file cannot be read or is no such database. Again: nothing."""
        if self._reader is not None:
            return
        try:
            self._reader = maxminddb.open_database(self._path)
        except OSError as error:
            raise OperatorError(
                f"seeds.country_database: {self._path}: {error.strerror or error}"
            ) from error
        except (maxminddb.InvalidDatabaseError, ValueError) as error:
            raise self._broken(error) from error

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def country(self, address: str) -> str:
        """ISO 3166 code in capitals; empty if the database does not know, or it is no address."""
        self.open()
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return ""
        if isinstance(parsed, ipaddress.IPv6Address):
            parsed = parsed.ipv4_mapped or ipaddress.IPv6Address(int(parsed))  # without scope
        try:
            record = self._reader.get(parsed)
        except ValueError as error:
            if isinstance(error, maxminddb.InvalidDatabaseError):
                raise self._broken(error) from error
            return ""  # an IPv6 address, and the database is of IPv4
        except maxminddb.InvalidDatabaseError as error:
            raise self._broken(error) from error
        return _code(record)

    def _broken(self, error: Exception) -> OperatorError:
        return OperatorError(
            f"seeds.country_database: {self._path}: no database in MaxMind's format: {error}"
        )


def _code(record: Any) -> str:
    """Where the server stands, else where its network is registered."""
    if not isinstance(record, dict):
        return ""
    for name in ("country", "registered_country", "country_code"):
        found = record.get(name)
        if isinstance(found, dict):
            found = found.get("iso_code")
        if isinstance(found, str) and len(found) == 2:
            return found.upper()
    return ""
