"""A PostgreSQL address as the operator writes it: `postgresql://user@host/database?schema=name`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from geomi.errors import OperatorError

SCHEME = "postgresql://"
SCHEMA = "geomi"  # where none is named
#: What PostgreSQL takes for a name without quotes: nobody has to guess at capitals later.
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Made by: parse.   Taken by: store.postgres."""

    plain: str  # for libpq: without password and schema
    password: str  # as written: itself, `env:NAME`, `file:PATH`, or nothing
    schema: str
    names_schema: bool

    @property
    def shown(self) -> str:
        """For people: without password and options."""
        return _with_schema(self.plain.partition("?")[0], self.schema)


def parse(text: str) -> Address:
    """OperatorError, without the password in it, if this is no address."""
    head, _, query = text.removeprefix(SCHEME).partition("?")
    user, at, rest = head.rpartition("@")
    user, _, password = user.partition(":")
    words = [word for word in query.split("&") if word]
    named = [word.partition("=")[2] for word in words if word.startswith("schema=")]
    words = [word for word in words if not word.startswith("schema=")]
    plain = f"{SCHEME}{user}{at}{rest}" + (f"?{'&'.join(words)}" if words else "")
    if not text.startswith(SCHEME):
        raise OperatorError(f"store: {text.partition('@')[2] or text}: wanted {SCHEME}…")
    if any(word.startswith("password=") for word in words):
        raise OperatorError(
            "store: a password stands before the @, as user:env:NAME@host, or in PGPASSFILE"
        )
    schema = unquote(named[-1]) if named else SCHEMA
    if not _NAME.fullmatch(schema) or schema.startswith("pg_"):
        raise OperatorError(
            f"store: schema is {schema!r}; wanted small letters, digits and _, at most 63, as news"
        )
    is_said = password.startswith(("env:", "file:"))
    return Address(
        plain=plain, password=password if is_said else unquote(password), schema=schema,
        names_schema=bool(named),
    )  # fmt: skip


def named(text: str, collection: str) -> str:
    """The address with a schema: the one it names, else one named like the collection."""
    if parse(text).names_schema:
        return text
    name = re.sub(r"[^a-z0-9_]+", "_", collection.lower()).strip("_") or SCHEMA
    name = name if not name[0].isdigit() and not name.startswith("pg_") else f"c_{name}"
    return _with_schema(text, name[:63])


def _with_schema(text: str, schema: str) -> str:
    return f"{text}{'&' if '?' in text else '?'}schema={quote(schema)}"


def is_address(text: str) -> bool:
    return text.startswith(SCHEME)
