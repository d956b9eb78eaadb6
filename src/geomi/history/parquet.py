"""Visits in Parquet: written once, read by column. The only file that names duckdb.

Nothing is downloaded: extensions that the wheel does not hold are not asked for.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from geomi.errors import ResourceError

if TYPE_CHECKING:
    import duckdb

#: Columns of a file: those of the table `visits`, each with its page's URL, and when its batch was
#: committed; so that a file says all without the store.
COLUMNS = {
    "visit": "BIGINT", "page": "BIGINT", "site_id": "BIGINT", "url": "VARCHAR",
    "purpose": "VARCHAR", "run": "BIGINT", "reason": "BIGINT", "epoch": "BIGINT",
    "host": "VARCHAR", "address": "VARCHAR", "started": "DOUBLE", "ended": "DOUBLE",
    "outcome": "VARCHAR", "code": "BIGINT", "mime": "VARCHAR", "digest": "VARCHAR",
    "size": "BIGINT", "changed": "BIGINT", "file": "BIGINT", "offset": "BIGINT",
    "length": "BIGINT", "stored_date": "VARCHAR", "revisit": "BIGINT", "batch": "BIGINT",
    "detail": "VARCHAR", "committed": "DOUBLE",
}  # fmt: skip
#: What a visit says whose record was deleted, in its `detail`.
DELETED = "deleted"
#: Rows are in order of page and visit, and a reader of one page skips all groups but its own.
_GROUP_ROWS = 8192
_FORMAT = f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_GROUP_ROWS})"
_MEMORY = "256MB"  # beyond it sorting goes to the scratch directory
_FETCH = 1000


@contextmanager
def written(rows: Iterable[Sequence[Any]], scratch: str | None = None) -> Iterator[str]:
    """Path of a new file of these rows, in the order of COLUMNS; it lasts as long as the context.

    15 us a row. The rows go through JSON: row by row into duckdb took 800 us each.
    """
    with tempfile.TemporaryDirectory(prefix="geomi-history-", dir=scratch) as folder:
        lines, path = os.path.join(folder, "rows.json"), os.path.join(folder, "visits.parquet")
        with open(lines, "wb") as out:
            for row in rows:
                out.write(msgspec.json.encode(dict(zip(COLUMNS, row, strict=True))) + b"\n")
        spec = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
        _run(
            f"COPY (SELECT * FROM read_json({_text(lines)}, format = 'newline_delimited',"
            f" columns = {{{spec}}}) ORDER BY page, visit)"
            f" TO {_text(path, is_glob=False)} {_FORMAT}",
            folder,
        )
        yield path


@contextmanager
def merged(paths: Sequence[str], scratch: str | None = None) -> Iterator[str]:
    """Path of a new file with the rows of others; it lasts as long as the context."""
    with tempfile.TemporaryDirectory(prefix="geomi-history-", dir=scratch) as folder:
        path = os.path.join(folder, "visits.parquet")
        _run(
            f"COPY (SELECT * FROM {files(paths)} ORDER BY page, visit)"
            f" TO {_text(path, is_glob=False)} {_FORMAT}",
            folder,
        )
        yield path


#: What of a visit changes with its record's place. A record that is gone leaves the rest empty.
PLACE = {"visit": "BIGINT", "offset": "BIGINT", "length": "BIGINT", "revisit": "BIGINT",
         "gone": "BOOLEAN"}  # fmt: skip


@contextmanager
def placed(path: str, rows: Iterable[Sequence[Any]], scratch: str | None = None) -> Iterator[str]:
    """Path of a new file: that of `path`, with other places of some visits (rows: PLACE)."""
    with tempfile.TemporaryDirectory(prefix="geomi-history-", dir=scratch) as folder:
        lines, new = os.path.join(folder, "rows.json"), os.path.join(folder, "visits.parquet")
        with open(lines, "wb") as out:
            for row in rows:
                out.write(msgspec.json.encode(dict(zip(PLACE, row, strict=True))) + b"\n")
        spec = ", ".join(f"'{name}': '{kind}'" for name, kind in PLACE.items())
        gone = ", ".join(
            f"CASE WHEN m.gone THEN {nothing} ELSE v.{name} END AS {name}"
            for name, nothing in (
                ("file", "0"), ("digest", "''"), ("mime", "''"), ("stored_date", "''"),
                ("detail", f"'{DELETED}'"),
            )
        )  # fmt: skip
        _run(
            f"COPY (SELECT v.* REPLACE ({gone}, "
            ' coalesce(m."offset", v."offset") AS "offset", coalesce(m.length, v.length) AS length,'
            f" coalesce(m.revisit, v.revisit) AS revisit) FROM {files([path])} AS v LEFT JOIN"
            f" read_json({_text(lines)}, format = 'newline_delimited', columns = {{{spec}}}) AS m"
            f" ON m.visit = v.visit ORDER BY v.page, v.visit)"
            f" TO {_text(new, is_glob=False)} {_FORMAT}",
            folder,
        )
        yield new


def files(paths: Sequence[str]) -> str:
    """Some files as a table in a sentence."""
    return f"read_parquet([{', '.join(map(_text, paths))}])"


def ask(sql: str, params: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows of a query, some at a time."""
    with _translated(), tempfile.TemporaryDirectory(prefix="geomi-history-") as folder:
        connection = _connect(folder)
        try:
            result = connection.execute(sql, list(params))
            while rows := result.fetchmany(_FETCH):
                yield from rows
        finally:
            connection.close()


def _run(sql: str, folder: str) -> None:
    with _translated():
        connection = _connect(folder)
        try:
            connection.execute(sql)
        finally:
            connection.close()


def _connect(folder: str) -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(
        config={
            "threads": 1, "memory_limit": _MEMORY, "temp_directory": folder,
            "autoinstall_known_extensions": False, "autoload_known_extensions": False,
        }
    )  # fmt: skip
    connection.execute("SET enable_progress_bar = false")  # it would go to standard output
    return connection


@contextmanager
def _translated() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        first = str(error).strip().splitlines()[0]
        raise ResourceError(f"history in Parquet: {first}") from error
    except OSError as error:
        raise ResourceError(f"history in Parquet: {error.strerror or error}") from error


def _text(path: str, *, is_glob: bool = True) -> str:
    """A path as a literal; where duckdb would expand it, what it would expand is escaped."""
    if is_glob:
        path = "".join(f"[{letter}]" if letter in "[*?" else letter for letter in path)
    return "'" + path.replace("'", "''") + "'"
