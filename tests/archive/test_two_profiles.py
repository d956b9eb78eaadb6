"""Revisits in real pywb: each profile replays as the original's payload."""

from __future__ import annotations

from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path

import pytest

from archive.replayed import replayed
from geomi import url as urls
from geomi.archive import cdxj, record
from geomi.archive.duplicates import paper_head
from geomi.archive.names import Ids, date14
from geomi.records import Capture
from geomi.states import Outcome

pytestmark = pytest.mark.skipif(find_spec("pywb") is None, reason="pywb is not installed")

URL, TWIN = "http://a.example/page", "http://a.example/page?session=7"
BODY = b"<!doctype html><title>x</title><p>the original" * 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Time: %d\r\n\r\n"
NOT_MODIFIED = b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'


def capture(url: str, head: bytes, body: bytes = BODY) -> Capture:
    return Capture(
        ticket=1, url=url, address="192.0.2.1", started=1.0, ended=2.0, outcome=Outcome.OK,
        code=200, request=b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", head=head, body=body,
    )  # fmt: skip


def revisit(one: Capture, first: record.Members, **more: object) -> record.Members:
    facts: dict[str, object] = {
        "profile": "identical-payload-digest", "refers_to_uri": URL, "refers_to_id":
        first.record_id, "refers_to_date": "2024-01-01T00:00:00.123Z", "payload_digest":
        first.payload_digest, "ids": IDS, "warcinfo_id": IDS.next(),
    }  # fmt: skip
    return record.revisit_members(one, **{**facts, **more})  # type: ignore[arg-type]


IDS = Ids(b"0123456789")


def test_both_profiles_replay_as_200_with_the_body_of_the_original(tmp_path: Path) -> None:
    first = record.capture_members(
        capture(URL, HEAD % 1), date="2024-01-01T00:00:00.123Z", ids=IDS, warcinfo_id=IDS.next()
    )
    dates = [f"2024-0{month}-01T00:00:00.456Z" for month in range(2, 7)]
    wanted = [
        (URL, "2024-01-01T00:00:00.123Z", first),
        (URL, dates[0], revisit(capture(URL, NOT_MODIFIED, b""), first, date=dates[0],
                                profile="server-not-modified")),
        (URL, dates[1], revisit(capture(URL, NOT_MODIFIED, b""), first, date=dates[1],
                                profile="server-not-modified", lean=True)),
        (URL, dates[2], revisit(capture(URL, HEAD % 2), first, date=dates[2])),
        (TWIN, dates[3], revisit(capture(TWIN, HEAD % 3), first, date=dates[3])),
        (TWIN, dates[4], revisit(capture(TWIN, HEAD % 3), first, date=dates[4],
                                 refers_to_id=None, lean=True)),
    ]  # fmt: skip
    lines, data = [], b""
    for url, date, members in wanted:
        is_first = members is first
        lines.append(cdxj.line(
            urls.surt(url), date14(date), url=url, mime="text/html" if is_first else "warc/revisit",
            status="200" if is_first else "", digest=members.payload_digest,
            length=len(members.parts[0]), offset=len(data), filename="x.warc.gz",
        ))  # fmt: skip
        data += b"".join(part for part in members.parts if isinstance(part, bytes))
    (tmp_path / "x.warc.gz").write_bytes(data)
    (tmp_path / "x.cdxj").write_bytes(b"".join(cdxj.sort_lines(lines)))
    got = replayed([tmp_path], [(date14(date), url) for url, date, _ in wanted])
    assert got == [(200, sha1(BODY).hexdigest(), len(BODY))] * len(wanted)


def test_the_form_of_the_paper_replays_as_it_says(tmp_path: Path) -> None:
    """Why it is not the default: replay shows the false 304."""
    assert paper_head(HEAD % 1).startswith(b"HTTP/1.1 304 Not Modified\r\n")
