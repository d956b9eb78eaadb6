"""nginx as an ordinary process on a free port of loopback, serving one folder a corpus."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_CONFIG = """
daemon off;
worker_processes 1;
pid "{run}/pid";
error_log "{run}/error.log" crit;
events {{ worker_connections 4096; }}
http {{
    types {{
        text/html html htm;
        text/css css;
        text/plain txt;
        text/javascript js;
        image/png png;
        image/gif gif;
        image/jpeg jpg jpeg;
        image/svg+xml svg;
        image/x-icon ico;
        application/zip zip;
    }}
    default_type application/octet-stream;
    charset utf-8;
    access_log {access_log};
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_requests 1000000;
    keepalive_timeout 300;
    open_file_cache max=20000 inactive=300s;
    open_file_cache_valid 300s;
    client_body_temp_path "{run}/body";
    proxy_temp_path "{run}/proxy";
    fastcgi_temp_path "{run}/fastcgi";
    uwsgi_temp_path "{run}/uwsgi";
    scgi_temp_path "{run}/scgi";
    server {{
{listen}
        server_name _;
{validators}
        root "{run}/root";
        location = /-status {{ stub_status; }}
    }}
}}
"""


@contextmanager
def serving(
    folders: Mapping[str, Path],
    *,
    access_log: Path | None = None,
    addresses: int = 1,
    validators: bool = True,
) -> Iterator[int]:
    """Serve each folder under its name while the context lasts, on 127.0.0.1 and so many addresses
    from there on; gives the port. Without validators it says no ETag and no Last-Modified.

    requests_served(port) counts what was asked."""
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if binary is None:
        raise FileNotFoundError("nginx is not installed (Debian package nginx-light)")
    with tempfile.TemporaryDirectory(prefix="geomi-nginx-") as text:
        run = Path(text)
        run.chmod(0o755)  # root's nginx reads as another user
        (run / "root").mkdir(mode=0o755)
        for name, folder in folders.items():
            (run / "root" / name).symlink_to(folder.resolve())
        port = _free_port()
        log = f'"{access_log}"' if access_log else "off"
        listen = "\n".join(f"        listen 127.0.0.{n + 1}:{port};" for n in range(addresses))
        none = "" if validators else '        etag off; add_header Last-Modified "";'
        (run / "nginx.conf").write_text(
            _CONFIG.format(run=run, listen=listen, access_log=log, validators=none)
        )
        process = subprocess.Popen(
            [binary, "-p", text, "-e", f"{text}/error.log", "-c", f"{text}/nginx.conf"],
            stderr=subprocess.PIPE,
        )
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.communicate(timeout=10)


def requests_served(port: int) -> int:
    """Requests answered since the start, those for this number left out."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/-status") as answer:
        counters = answer.read().split(b"requests")[1].split()
    _asked[port] = _asked.get(port, 0) + 1
    return int(counters[2]) - _asked[port]


# Port -> how often requests_served asked.
_asked: dict[int, int] = {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if process.poll() is not None:
            said = process.stderr.read().decode() if process.stderr else ""
            raise OSError(f"nginx ended at once: {said.strip()}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise TimeoutError(f"nginx does not answer on 127.0.0.1:{port}")
