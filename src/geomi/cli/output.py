"""What commands print: facts as JSON lines, tables for people, numbers with units.

Text that came from the network goes through `plain`, so that no page can drive the terminal.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

# C0, DEL, C1, line and direction controls, lone surrogates.
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def plain(text: str) -> str:
    """The text with everything a terminal would act on shown as `\\x1b`."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def print_line(text: str = "") -> None:
    """One line to standard output, safe for a terminal."""
    _write(plain(text))


def print_json_line(obj: object) -> None:
    """One object a line; keys in the order given."""
    text = json.dumps(obj, ensure_ascii=False, default=str)
    text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    _write(text if _can_print(text) else json.dumps(obj, default=str))


def _write(line: str) -> None:
    if not _can_print(line):
        encoding = sys.stdout.encoding
        line = line.encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(line + "\n")


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table: fitted to the width on a terminal, whole and aligned in a pipe. Numbers right."""
    cells = [[plain(_text(value)) for value in row] for row in (list(row) for row in rows)]
    rights = [
        bool(cells) and all(_is_number(row[place]) for row in cells)
        for place in range(len(headers))
    ]
    if sys.stdout.isatty():
        _rich_table(headers, cells, rights)
        return
    widths = [max(map(_width, column)) for column in zip(headers, *cells, strict=True)]
    for row in [list(headers), *cells]:
        padded = [
            " " * (width - _width(text)) + text if right else text + " " * (width - _width(text))
            for text, width, right in zip(row, widths, rights, strict=True)
        ]
        _write("  ".join(padded).rstrip())


def _rich_table(headers: Sequence[str], cells: list[list[str]], rights: list[bool]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for name, right in zip(headers, rights, strict=True):
        made.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in cells:
        made.add_row(*map(Text, row))  # Text: nothing in it is markup
    Console().print(made)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _is_number(text: str) -> bool:
    return not text.strip("0123456789,.-")


def _width(text: str) -> int:
    """Columns on a screen: Korean letters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )  # fmt: skip


def human_bytes(size: float) -> str:
    """`412 B`, `3.2 MiB`."""
    for unit in _BINARY:
        if abs(size) < 1024 or unit == _BINARY[-1]:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError  # the last unit takes all


def human_seconds(time_s: float) -> str:
    """`0.42 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if time_s < 10:
        return f"{time_s:.2f} s"
    whole = round(time_s)
    for size, unit, below, smaller in (
        (86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"),
    ):  # fmt: skip
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def human_time(utc_s: float) -> str:
    """`2024-05-01 12:00:00` in UTC; empty for 0, which means never."""
    return datetime.fromtimestamp(utc_s, UTC).strftime("%Y-%m-%d %H:%M:%S") if utc_s else ""
