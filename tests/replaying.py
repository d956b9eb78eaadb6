"""Replay through pywb: started over given indexes and WARC files, stopped, and compared.

Needs the extra `replay`; tests that use it call `needs_pywb()` first.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from geomi.archive import cdxj
from geomi.archive.reader import members
from geomi.cluster.replay import wayback

#: What pywb adds, or changes since it serves the answer itself.
_OURS = frozenset({"connection", "date", "server", "transfer-encoding", "content-length",
                   "keep-alive", "link", "memento-datetime", "content-location",
                   "preference-applied", "vary", "x-archive-orig-date"})  # fmt: skip


def needs_pywb() -> None:
    if find_spec("pywb") is None:
        pytest.skip("pywb is not installed (extra replay)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What pywb gave for one capture."""

    status: int
    headers: list[tuple[str, str]]  # as archived, names in lower case, sorted
    body: bytes


class Wayback:
    """A running pywb."""

    def __init__(self, address: str) -> None:
        self.address = address
        parts = urlsplit(address)
        assert parts.hostname
        assert parts.port
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        self._path = parts.path

    def get(self, url: str, timestamp14: str) -> Replayed:
        """One capture, byte for byte."""
        path = f"{self._path}/{timestamp14}id_/{quote(url, safe=_PRINTABLE)}"
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        body = answer.read()
        return Replayed(status=answer.status, headers=kept_headers(answer.getheaders()), body=body)

    def close(self) -> None:
        self._connection.close()


_PRINTABLE = "".join(map(chr, range(33, 127)))


def kept_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of the archived answer, comparable."""
    found = []
    for name, value in headers:
        name = name.lower().removeprefix("x-archive-orig-")
        if name not in _OURS:
            found.append((name, value.strip()))
    return sorted(found)


@contextmanager
def replayed(indexes: Iterable[Path], files: Iterable[Path]) -> Iterator[Wayback]:
    """pywb over CDXJ files and WARC files."""
    needs_pywb()
    with wayback(
        list(indexes), {path.name.removesuffix(".open"): [path] for path in files}
    ) as running:
        client = Wayback(running.address)
        try:
            yield client
        finally:
            client.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One capture as the WARC files have it, a revisit with the payload it refers to."""

    url: str
    timestamp14: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    is_revisit: bool


def captures(files: Iterable[Path]) -> list[Kept]:
    """All responses and revisits of some WARC files; each revisit must resolve among them."""
    found = []
    originals: dict[tuple[str, str], tuple[bytes, bytes]] = {}
    for path in files:
        for member in members(path):
            if member.type not in ("response", "revisit"):
                continue
            head = member.http_head() if member.content_length else b""
            body = b"".join(member.chunks())
            found.append((member.type, member.target_uri, member.date, head, body,
                          member.headers.get("WARC-Refers-To-Target-URI"),
                          member.headers.get("WARC-Refers-To-Date")))  # fmt: skip
            if member.type == "response":
                originals[member.target_uri, member.date] = (head, body)
    kept = []
    for kind, url, date, head, body, to_url, to_date in found:
        if kind == "revisit":
            original = originals[to_url, to_date]
            head, body = head or original[0], original[1]
        lines = head.decode("latin-1").split("\r\n")
        fields = [line.partition(":")[::2] for line in lines[1:] if line]
        kept.append(Kept(
            url=url, timestamp14=cdxj.date14(date), status=int(lines[0].split()[1]),
            headers=kept_headers(fields), body=body, is_revisit=kind == "revisit",
        ))  # fmt: skip
    return kept


def differences(client: Wayback, wanted: Iterable[Kept]) -> list[str]:
    """What pywb replays otherwise than the WARC files have it."""
    wrong = []
    for one in wanted:
        seen = client.get(one.url, one.timestamp14)
        for name in ("status", "headers", "body"):
            is_, should = getattr(seen, name), getattr(one, name)
            if is_ != should:
                what = f"{name} is {is_!r:.300}, wanted {should!r:.300}"
                wrong.append(f"{one.timestamp14} {one.url}: {what}")
    return wrong
