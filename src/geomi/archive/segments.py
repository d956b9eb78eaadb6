"""Records in pieces (WARC 1.1, section 7): the rest of a block whose first part stands elsewhere.

geomi writes whole records; this is for archives that others cut at a size, and for tests of them.
"""

from __future__ import annotations

from geomi.archive.names import header_uri
from geomi.archive.record import plain_member


def continuation(
    uri: str, block: bytes, *, origin_id: str, number: int, date: str, record_id: str,
    warcinfo_id: str = "", total_length: int | None = None, level: int = 1,
) -> bytes:  # fmt: skip
    """Segment `number` (from 2 on) of the record `origin_id`; the last one says the total length
    of all blocks."""
    headers = [
        ("WARC-Target-URI", header_uri(uri)),
        ("WARC-Warcinfo-ID", f"<{warcinfo_id}>" if warcinfo_id else ""),
        ("WARC-Segment-Origin-ID", f"<{origin_id}>"),
        ("WARC-Segment-Number", str(number)),
        ("WARC-Segment-Total-Length", "" if total_length is None else str(total_length)),
    ]
    return plain_member(
        "continuation", block, date=date, record_id=record_id, content_type="", headers=headers,
        level=level,
    )  # fmt: skip
