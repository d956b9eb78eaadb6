"""Dates as sitemaps and feeds write them: W3C (ISO 8601) and RFC 822."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_W3C = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,12})?)?"
    r" ?(?:[Zz]|([+-])(\d\d):?(\d\d)?)?)?)?)?",
    re.ASCII,
)
_LONGEST = 64


def timestamp(text: bytes) -> float | None:
    """Seconds since 1970; None if it is no date. Without a zone it is taken for UTC."""
    if not text or len(text) > _LONGEST or not text.isascii():
        return None
    words = text.decode("ascii").strip()
    found = _W3C.fullmatch(words)
    try:
        if found is None:
            date = parsedate_to_datetime(words)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        year, month, day, hour, minute, second = (
            int(found[place] or default)
            for place, default in ((1, 0), (2, 1), (3, 1), (4, 0), (5, 0), (6, 0))
        )
        date = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
        offset = timedelta(hours=int(found[8] or 0), minutes=int(found[9] or 0))
        return (date + offset if found[7] == "-" else date - offset).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
