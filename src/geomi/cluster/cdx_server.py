"""A small server: look-ups in a collection's index, and its WARC files by name and range. Shell.

Reads only. Each answer is bounded: in lines, in lines looked at, in time.
"""

from __future__ import annotations

import ipaddress
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from geomi.archive.query import OUTPUTS, Answer, Query, Range, answer, parse_query
from geomi.cluster.index import Archived, Index
from geomi.errors import GeomiError, OperatorError, ResourceError

TYPES = dict(zip(OUTPUTS, ("text/x-cdxj", "application/x-ndjson", "text/plain"), strict=True))
#: Where an answer that was cut goes on: the value of `resumeKey`.
RESUME = "X-Geomi-Resume-Key"

_ANSWER_S = 20.0
_IDLE_S = 30.0  # a connection on which nothing comes
_MOST_CONNECTIONS = 64
_PIECE_BYTES = 1 << 16
_RANGE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})")


def look_up(index: Index, text: str) -> tuple[Query, Answer]:
    """One query, answered; OperatorError if it is none."""
    query = parse_query(text)
    index.refresh()
    end = time.monotonic() + _ANSWER_S

    def lines(ranges: tuple[Range, ...]) -> Iterator[bytes]:
        for number, line in enumerate(index.lines(ranges)):
            if number % 1000 == 999 and time.monotonic() > end:
                raise ResourceError(f"no answer within {_ANSWER_S:.0f} s; ask for less at a time")
            yield line

    return query, answer(query, lines)


class CdxServer(ThreadingHTTPServer):
    """Listens as soon as it is made; `port` 0 takes a free one."""

    daemon_threads = True

    def __init__(self, index: Index, *, bind: str, port: int) -> None:
        self.index = index
        self.lock = threading.Lock()  # the index belongs to one thread at a time
        self._room = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        try:
            address = ipaddress.ip_address(bind)
        except ValueError:
            raise OperatorError(f"--bind {bind}: wanted an address, as 127.0.0.1") from None
        self.address_family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        self.is_loopback = address.is_loopback
        try:
            super().__init__((bind, port), _Handler)
        except OSError as error:
            raise OperatorError(
                f"{bind}:{port}: cannot listen: {error.strerror or error}"
            ) from error

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def process_request(self, request: object, client_address: object) -> None:
        if not self._room.acquire(timeout=_IDLE_S):
            self.shutdown_request(request)  # type: ignore[arg-type]  # typeshed: socket or pair
            return
        try:
            super().process_request(request, client_address)  # type: ignore[arg-type]  # as above
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]  # as above
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away; what is ours became an answer already."""

    def run(self, ready: Callable[[str], None]) -> None:
        """Serves until SIGINT or SIGTERM."""
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            ready(self.url)
            self.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)
            self.server_close()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "geomi"
    timeout = _IDLE_S
    server: CdxServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if self.server.is_loopback and not _is_near(self.headers.get("Host", "")):
            self._say(HTTPStatus.FORBIDDEN, "Host: wanted an address or localhost")
        elif parts.path in ("/cdx", "/cdx/"):
            self._answer(parts.query)
        elif parts.path.startswith("/archive/"):
            self._file(unquote(parts.path.removeprefix("/archive/")))
        else:
            self._say(HTTPStatus.NOT_FOUND, "here are /cdx?url=… and /archive/NAME")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.close_connection = True  # its body is not read
        self._say(HTTPStatus.METHOD_NOT_ALLOWED, "this server is read only: GET and HEAD")

    do_PUT = do_DELETE = do_PATCH = do_POST

    def _answer(self, text: str) -> None:
        try:
            with self.server.lock:
                query, found = look_up(self.server.index, text)
        except OperatorError as error:
            self._say(HTTPStatus.BAD_REQUEST, str(error))
            return
        except GeomiError as error:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return
        body = b"".join(found.lines)
        headers = {"Content-Type": TYPES[query.output] + "; charset=utf-8"}
        if found.resume:
            headers[RESUME] = _header(found.resume)
            if query.shows_resume:
                body += b"\n" + found.resume.encode() + b"\n"
        self._send(HTTPStatus.OK, headers, len(body), (body,))

    def _file(self, name: str) -> None:
        with self.server.lock:
            try:
                self.server.index.refresh()
                file = self.server.index.file_of(name)
            except GeomiError as error:
                self._say(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
                return
        if file is None:
            self._say(HTTPStatus.NOT_FOUND, "no such file in this collection")
            return
        span = _span(self.headers.get("Range", ""), file.committed)
        if span is None:
            self._say(
                HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"the file has {file.committed} bytes",
                {"Content-Range": f"bytes */{file.committed}"},
            )  # fmt: skip
            return
        start, end = span
        headers = {"Content-Type": "application/warc", "Accept-Ranges": "bytes"}
        status = HTTPStatus.OK
        if "Range" in self.headers:
            status = HTTPStatus.PARTIAL_CONTENT
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.committed}"
        try:
            handle = _opened(file)
        except ResourceError as error:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return
        try:
            self._send(status, headers, end - start, _pieces(handle, start, end))
        finally:
            os.close(handle)

    def _say(self, status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> None:
        body = (text + "\n").encode()
        headers = {"Content-Type": "text/plain; charset=utf-8", **(headers or {})}
        self._send(status, headers, len(body), (body,))

    def _send(
        self, status: HTTPStatus, headers: dict[str, str], size: int, pieces: Iterable[bytes]
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "X-Content-Type-Options": "nosniff"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        if self.command == "HEAD":
            return
        for piece in pieces:
            self.wfile.write(piece)
            size -= len(piece)
        if size:
            self.close_connection = True  # the file ended early: the client must notice

    def log_message(self, *_: object) -> None:
        """Says nothing: look-ups are no events."""


def _is_near(host: str) -> bool:
    """True if no name of the wide web brought the request here (DNS rebinding)."""
    name = urlsplit(f"//{host}").hostname or ""
    if name in ("", "localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _header(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _span(text: str, size: int) -> tuple[int, int] | None:
    """(first byte, byte behind the last); None: there is no such part."""
    found = _RANGE.fullmatch(text.replace(" ", ""))
    if found is None or not (found[1] or found[2]):
        return (0, size) if not text else None
    if not found[1]:
        start, end = max(0, size - int(found[2])), size
    else:
        start, end = int(found[1]), min(size, int(found[2]) + 1 if found[2] else size)
    return (start, end) if start < end else None


def _opened(file: Archived) -> int:
    for path in file.paths:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
    raise ResourceError(f"{file.name}: cannot be opened")


def _pieces(handle: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (piece := os.pread(handle, min(_PIECE_BYTES, end - start), start)):
        yield piece
        start += len(piece)
