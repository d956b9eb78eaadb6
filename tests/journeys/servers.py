"""Small servers that a test writes itself, and that keep every request with its header lines."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fetch.proxies import Proxy, proxying

#: Certificates for a.example: good, expired, …; ca signed them; client is one to show.
TLS = Path(__file__).resolve().parents[1] / "fetch" / "tls"

Headers = dict[str, str]
#: (host, target, header lines with lower-case names) -> (status, header lines, body)
Answers = Callable[[str, str, Headers], tuple[int, Headers, bytes]]


@dataclass(frozen=True, slots=True)
class Asked:
    host: str
    target: str
    headers: Headers


@dataclass(slots=True)
class Served:
    port: int
    asked: list[Asked] = field(default_factory=list)

    def targets(self, host: str = "") -> list[str]:
        return [one.target for one in self.asked if host in one.host]


@contextmanager
def served(
    answers: Answers, *, address: str = "127.0.0.1", certificate: str = "", client_ca: str = ""
) -> Iterator[Served]:
    """`certificate`, `client_ca`: names of files in TLS; the first makes it https."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            host = headers.get("host", "")
            found.asked.append(Asked(host, self.path, headers))
            status, lines, body = answers(host, self.path, headers)
            self.send_response(status)
            for name, value in {"Content-Type": "text/html", **lines}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a visitor that refuses the certificate hangs up

    server = Server((address, 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / f"{certificate}.pem")
        if client_ca:
            context.load_verify_locations(TLS / f"{client_ca}.pem")
            context.verify_mode = ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    found = Served(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def proxied(kind: str) -> Iterator[Proxy]:
    """A proxy on a loop of its own. `kind`: http or socks5h."""
    ready = threading.Event()
    held: list[Proxy] = []
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def live() -> None:
        async with proxying(kind) as proxy:
            held.append(proxy)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(live(),))
    thread.start()
    ready.wait(10)
    try:
        yield held[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def links(*targets: str) -> bytes:
    """A page with these anchors."""
    return "".join(f'<a href="{target}">x</a>\n' for target in targets).encode()
