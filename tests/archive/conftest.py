"""Fixtures of the archive's tests; what they are made of is in samples.py."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from archive.samples import BODY, Sample, every_record


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    pairs = every_record(tmp_path / "body.spool")
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(member for _, member in pairs))
    return Sample(path=path, members=[m for _, m in pairs], types=[t for t, _ in pairs])


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def wget() -> Iterator[tuple[str, str]]:
    """(the command, the URL of a page on loopback)."""
    command = shutil.which("wget")
    if command is None:
        pytest.skip("wget is not installed")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield command, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()
