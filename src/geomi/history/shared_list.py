"""The list of digests as a file that archivists share: JSON lines, or a digest a line.

Decides only. A line is an object with `digest` and, as far as known, `reason`, `site`, `example`,
`count`, `by`; or a digest with a reason behind it. Blank lines and lines with # first are left out.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from geomi.history.meaningless import State
from geomi.history.meaningless_tables import Entry

#: What no honest line exceeds.
MOST_LINE_BYTES = 16_384
_REASON = 200
_TEXT = 2083
_BASE32 = re.compile(r"(?:sha1:)?([A-Z2-7]{32})", re.IGNORECASE)
_HEX = re.compile(r"(?:sha1:)?([0-9a-f]{40})", re.IGNORECASE)
WANTED = "a digest: sha1: with 32 letters and digits of Base32, or 40 of hexadecimal"


class Bad(NamedTuple):
    """A line that cannot be read."""

    line: int
    what: str


def digest_of(text: str) -> str:
    """A payload digest as visits have it, by either spelling; empty if it is none."""
    text = text.strip()
    if found := _BASE32.fullmatch(text):
        return f"sha1:{found[1].upper()}"
    if found := _HEX.fullmatch(text):
        return f"sha1:{base64.b32encode(binascii.unhexlify(found[1])).decode()}"
    return ""


def written(entry: Entry) -> str:
    """One line of a shared list, without its end."""
    return json.dumps(
        {
            "digest": entry.digest, "reason": entry.reason, "site": entry.site,
            "example": entry.example, "count": entry.pages, "by": entry.by,
            "at": round(entry.at),
        },
        ensure_ascii=False,
    )  # fmt: skip


def read(lines: Iterable[bytes], *, of: str, now: float) -> Iterator[Entry | Bad]:
    """The entries of a shared list as confirmed ones, and what could not be read.

    `of`: what they come from, kept beside who confirmed them there.
    """
    for number, raw in enumerate(lines, start=1):
        if len(raw) > MOST_LINE_BYTES:
            yield Bad(number, f"has {len(raw)} bytes, wanted at most {MOST_LINE_BYTES}")
            continue
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            yield Bad(number, f"is no UTF-8 at byte {error.start}")
            continue
        if line and not line.startswith("#"):
            yield _entry(line, number, of=of, now=now)


def _entry(line: str, number: int, *, of: str, now: float) -> Entry | Bad:
    said: Any = {}
    if line.startswith("{"):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError) as error:
            return Bad(number, f"is no JSON: {str(error)[:100]}")
    else:
        digest, _, reason = line.partition(" ")
        said = {"digest": digest, "reason": reason.strip()}
    given = said.get("digest", "")
    digest = digest_of(given) if isinstance(given, str) else ""
    if not digest:
        return Bad(number, f"says {str(given)[:60]!r}, wanted {WANTED}")
    by = f"import {of}" + (f" of {said['by']}" if isinstance(said.get("by"), str) else "")
    count = said.get("count", 0)
    if not isinstance(count, int | float) or not math.isfinite(count) or not 0 <= count < 1 << 53:
        return Bad(number, f"says count {str(count)[:60]}, wanted a number of pages")
    return Entry(
        digest, str(State.CONFIRMED), _clean(said.get("reason"), _REASON) or "imported",
        _clean(said.get("site"), _TEXT), _clean(said.get("example"), _TEXT), int(count),
        by[:_REASON], now,
    )  # fmt: skip


def _clean(value: object, most: int) -> str:
    text = value if isinstance(value, str) else ""
    return " ".join(text.replace("\0", "").split())[:most]
