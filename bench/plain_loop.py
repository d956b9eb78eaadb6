"""The plain loop: the least work that crawling to WARC with a state can be. The yardstick.

Fixed, so that it cannot drift: one process; libcurl multi; lexbor with one selector for links;
ada-url for distinct links; SHA-1 of payload and block; request, response and metadata records,
each a gzip member of ISA-L level 1; one SQLite transaction for 250 pages. No robots.txt, no
politeness, no retries, no seen-filter beyond a set, no sync: what geomi costs more is for these.

    plain_loop.py URL FOLDER [CONNECTIONS]     prints one JSON object
"""

from __future__ import annotations

import base64
import hashlib
import json
import resource
import sqlite3
import sys
import time
import uuid
from collections import deque
from pathlib import Path
from typing import Any, BinaryIO

import ada_url
import pycurl
from isal import isal_zlib
from selectolax.lexbor import LexborHTMLParser

LINKS = "a[href],area[href],frame[src],iframe[src]"
BATCH = 250
GZIP = 31  # wbits: a gzip member


class Loop:
    """One crawl of one site."""

    def __init__(self, seed: str, folder: Path) -> None:
        self._prefix = seed[: seed.index("/", 8) + 1]
        self._seed = seed
        self._folder = folder
        # URLs to ask for. Filled by _settle, emptied by run.
        self._queue: deque[str] = deque([seed])
        self._seen = {seed}
        self._rows: list[tuple[str, int, bytes, int, int, float]] = []
        self._links: list[tuple[str]] = []
        self.pages = 0
        self.html = 0
        self.bytes = 0

    def run(self, connections: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        store = sqlite3.connect(self._folder / "plain.db", isolation_level=None)
        store.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "CREATE TABLE pages(id INTEGER PRIMARY KEY, url TEXT UNIQUE, code INT, digest BLOB,"
            " place INT, length INT, at REAL) STRICT;"
        )
        with (self._folder / "plain.warc.gz").open("wb") as warc:
            self._crawl(connections, warc, store)
            self._commit(store)
        store.close()

    def _crawl(self, connections: int, warc: BinaryIO, store: sqlite3.Connection) -> None:
        multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        free = [_handle() for _ in range(connections)]
        under_way = 0
        while self._queue or under_way:
            while self._queue and free:
                handle = free.pop()
                handle.url = self._queue.popleft()
                handle.head, handle.body = [], []
                handle.setopt(pycurl.URL, handle.url)
                handle.setopt(pycurl.HEADERFUNCTION, handle.head.append)
                handle.setopt(pycurl.WRITEFUNCTION, handle.body.append)
                multi.add_handle(handle)
                under_way += 1
            multi.perform()
            _, done, failed = multi.info_read()
            for handle in done:
                self._settle(handle, warc)
            for handle, _, text in failed:
                print(f"{handle.url}: {text}", file=sys.stderr)
            for handle in [*done, *(entry[0] for entry in failed)]:
                multi.remove_handle(handle)
                free.append(handle)
                under_way -= 1
            if len(self._rows) >= BATCH:
                self._commit(store)
            if not done and not failed:
                multi.select(1.0)

    def _settle(self, handle: Any, warc: BinaryIO) -> None:
        url, head, body = handle.url, b"".join(handle.head), b"".join(handle.body)
        code = handle.getinfo(pycurl.RESPONSE_CODE)
        address = handle.getinfo(pycurl.PRIMARY_IP)
        self.pages += 1
        self.bytes += len(head) + len(body)
        links: dict[str, None] = {}
        if code == 200 and b"content-type: text/html" in head.lower():
            self.html += 1
            for node in LexborHTMLParser(body).css(LINKS):
                # The library may hand the attribute out as None when it has no value.
                href = node.attributes.get("href") or node.attributes.get("src")
                if href:
                    links[href] = None
        found: dict[str, None] = {}
        for href in links:
            try:
                found[ada_url.join_url(url, href).partition("#")[0]] = None
            except ValueError:
                continue
        for link in found:
            if link.startswith(self._prefix) and link not in self._seen:
                self._seen.add(link)
                self._queue.append(link)
                self._links.append((link,))
        payload = hashlib.sha1(body).digest()
        offset = warc.tell()
        self._write(warc, url, address, head, body, payload, found)
        self._rows.append((url, code, payload, offset, warc.tell() - offset, time.time()))

    def _write(
        self,
        warc: BinaryIO,
        url: str,
        address: str,
        head: bytes,
        body: bytes,
        payload: bytes,
        links: dict[str, None],
    ) -> None:
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        response = f"<urn:uuid:{uuid.uuid4()}>"
        target = url[len(self._prefix) - 1 :]
        host = self._prefix[7:-1]
        request = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: plain\r\n\r\n".encode()
        block = head + body
        extra = f"WARC-IP-Address: {address}\r\nWARC-Payload-Digest: {_digest(payload)}\r\n"
        to = f"WARC-Concurrent-To: {response}\r\n"
        outlinks = "".join(f"outlink: {link} a\r\n" for link in links).encode()
        http = "application/http; msgtype="
        warc.write(
            _member("response", response, url, date, extra, http + "response", block)
            + _member("request", _new_id(), url, date, to, http + "request", request)
            + _member("metadata", _new_id(), url, date, to, "application/warc-fields", outlinks)
        )

    def _commit(self, store: sqlite3.Connection) -> None:
        store.execute("BEGIN IMMEDIATE")
        store.executemany("INSERT OR IGNORE INTO pages(url) VALUES (?)", self._links)
        store.executemany(
            "INSERT INTO pages(url, code, digest, place, length, at) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT(url) DO UPDATE SET code = excluded.code, digest = excluded.digest,"
            " place = excluded.place, length = excluded.length, at = excluded.at",
            self._rows,
        )
        store.execute("COMMIT")
        self._links.clear()
        self._rows.clear()


class _Handle(pycurl.Curl):
    url: str
    head: list[bytes]
    body: list[bytes]


def _handle() -> Any:
    handle = _Handle()
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.TCP_NODELAY, 1)
    handle.setopt(pycurl.USERAGENT, "plain")
    handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    return handle


def _new_id() -> str:
    return f"<urn:uuid:{uuid.uuid4()}>"


def _digest(raw: bytes) -> str:
    return "sha1:" + base64.b32encode(raw).decode()


def _member(
    kind: str, record: str, url: str, date: str, extra: str, mime: str, block: bytes
) -> bytes:
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {record}\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Date: {date}\r\n{extra}"
        f"WARC-Block-Digest: {_digest(hashlib.sha1(block).digest())}\r\n"
        f"Content-Type: {mime}\r\nContent-Length: {len(block)}\r\n\r\n"
    ).encode()
    squeeze = isal_zlib.compressobj(1, isal_zlib.DEFLATED, GZIP)
    data: bytes = squeeze.compress(head + block + b"\r\n\r\n") + squeeze.flush()
    return data


def main() -> None:
    seed, folder = sys.argv[1:3]
    connections = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    started = time.monotonic()
    loop = Loop(seed, Path(folder))
    loop.run(connections)
    wall_s = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "pages": loop.pages,
                "html": loop.html,
                "bytes": loop.bytes,
                "wall_s": wall_s,
                "cpu_s": used.ru_utime + used.ru_stime,
            }
        )
    )


if __name__ == "__main__":
    main()
