"""One easy handle of libcurl, used again and again, with the reply it is filling."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from geomi.fetch.access import Access, proxy_address
from geomi.fetch.limits import Limits
from geomi.fetch.raw import Raw
from geomi.fetch.reply import Reply, status_of
from geomi.fetch.request import Fetch, host_line
from geomi.fetch.sockets import Peek, Sockets
from geomi.fetch.verdict import (
    CERTIFICATE,
    NOT_HTTP,
    Verdict,
    certificate_words,
    judge,
    judge_raw,
)
from geomi.records import Capture
from geomi.states import Outcome

#: What handles are told apart by: scheme, host, port, address, access.
Key = tuple[str, str, int, str, Access | None]

#: Of libcurl's ABI: what the callbacks here return.
_OK, _ABORT, _SOCKET_BAD = 0, 1, -1
_HTTP_1_1, _HTTP_AND_HTTPS = 2, 3  # CURL_HTTP_VERSION_1_1, CURLPROTO_HTTP | CURLPROTO_HTTPS

_FINE = Verdict(outcome=Outcome.OK)
_UNVERIFIED = "tls not verified"
#: libcurl keeps to a rate over this time, and reads so much at once.
_PERIOD_S, _READ_BYTES = 3.0, 16 * 1024
#: The client ends what does not connect in time; libcurl would count while nobody reads sockets.
_SPARE_MS = 300_000
NOT_AGAIN = "closed without an answer; not asked a second time"
SENT_AGAIN = "sent again: the resting connection was reset"


class Slot:
    """What libcurl calls back about one transfer."""

    __slots__ = (
        "access", "again", "asked", "curl", "custom", "fetch", "held_back_s", "host_line",
        "is_fresh", "is_held_back", "is_odd", "key", "may_send", "overdue", "peek", "peeks", "peer",
        "port", "progress", "raw", "refused", "reply", "request", "seen", "since", "sockets",
        "started",
    )  # fmt: skip

    def __init__(
        self, curl: Any, reply: Reply, sockets: Sockets, may_send: Callable[[int], bool]
    ) -> None:  # fmt: skip
        self.curl = curl
        self.may_send = may_send
        self.sockets = sockets
        self.reply = reply
        self.key: Key | None = None  # what URL and CONNECT_TO are set to
        self.access: Access | None = None  # what the handle is set to
        self.peer = ""  # the only address that sockets may go to
        self.peeks = False  # answers can be read by others than libcurl: no TLS, no proxy
        self.held_back_s = 0.0  # so long libcurl may read nothing, to keep to a rate
        self.custom = False  # HTTPHEADER differs from the client's own lines
        self.fetch: Fetch | None = None  # None: free
        self.raw: Raw | None = None
        self.host_line = b""
        self.request = b""
        self.asked = False  # the request was sent, so we were connected
        self.again = False  # it was sent a second time
        self.port = 0  # ours, of the connection it was sent on
        self.peek: Peek | None = None  # at that, if something came on it before
        self.refused = ""
        self.overdue = False  # total_s is over
        self.is_odd = False  # libcurl dropped bytes that are to be had by asking again
        self.is_held_back = False  # it was connected too late to be sent
        self.is_fresh = False  # no resting connection is taken
        self.started = 0.0  # UTC
        self.since = 0.0  # loop time
        self.seen = 0.0  # loop time at which the sweep last saw something new
        self.progress = -1

    def aim(self, key: Key) -> None:
        """Remembers where it is set to go."""
        scheme, host, port, address, access = key
        self.key = key
        self.host_line = host_line(scheme, host, port)
        self.access = access
        proxied = access is not None and access.proxy
        self.peer = proxy_address(access) if access is not None and proxied else address
        rate = access.rate_bytes_per_s if access is not None else 0
        self.held_back_s = _PERIOD_S + 2 * _READ_BYTES / rate if rate else 0.0
        self.peeks = scheme == "http" and not proxied

    def arrived(self) -> int:
        """What the sweep compares: it grows with all that comes."""
        return self.raw.size if self.raw is not None else len(self.reply.lines) + self.reply.got

    def constants(self, limits: Limits, ca_file: str) -> list[tuple[str, object]]:
        """libcurl's options, by name, that stay the same from page to page."""
        found: list[tuple[str, object]] = [
            ("HEADERFUNCTION", self.reply.line),
            ("WRITEFUNCTION", self.reply.add),
            ("OPENSOCKETFUNCTION", self.open_socket),
            ("SOCKOPTFUNCTION", self.on_socket),
            ("PREREQFUNCTION", self.before_request),
            ("HTTP_VERSION", _HTTP_1_1),
            ("HTTP09_ALLOWED", 1),  # so that what is not HTTP is seen, and kept
            ("HTTP_CONTENT_DECODING", 0),
            ("PROTOCOLS", _HTTP_AND_HTTPS),
            ("FOLLOWLOCATION", 0),
            ("NETRC", 0),
            ("NOSIGNAL", 1),
            ("TCP_NODELAY", 1),
            ("CONNECTTIMEOUT_MS", int(limits.connect_s * 1000) + _SPARE_MS),
        ]
        return [*found, ("CAINFO", ca_file)] if ca_file else found

    def capture(
        self, fetch: Fetch, error: int, said: str, *, certificate: int, now: float
    ) -> Capture:
        """What it came to. `error`, `said`: libcurl's; `certificate`: OpenSSL's verdict on one."""
        reply, request = self.reply, self.request
        body, spool = reply.end()
        if error or not reply.whole or self.raw is not None:
            body = self._salvaged(body)
        head = reply.head
        code = status_of(head)
        if not error and code == 200 and reply.whole and not reply.truncated:
            verdict, detail = _FINE, reply.detail
        else:
            if not self.asked:
                request = b""  # never connected, so never sent
                if error in CERTIFICATE:
                    said = certificate_words(certificate, said)
            verdict = self._verdict(code, error, self.refused or said)
            detail = verdict.detail
        access = self.access
        is_unverified = access is not None and not access.verify and fetch.scheme == "https"
        if is_unverified:
            detail = f"{detail}; {_UNVERIFIED}" if detail else _UNVERIFIED
        return Capture(
            ticket=fetch.ticket, url=fetch.url, address=fetch.address, started=self.started,
            ended=now, outcome=verdict.outcome, code=code, request=request, head=head, body=body,
            spool=spool, truncated=verdict.truncated, detail=detail, is_unverified=is_unverified,
        )  # fmt: skip

    def _salvaged(self, body: bytes) -> bytes:
        """The body, once what libcurl did not hand over is in the reply."""
        reply, raw = self.reply, self.raw
        if raw is not None:
            reply.take_raw(raw.taken())
            if raw.is_cut:
                reply.truncated = "length"
            return reply.end()[0]
        if not self.asked:
            reply.begin()  # a proxy's words are no answer
            return b""
        if not reply.whole and not reply.got and not reply.head_cut:
            peek, known = self._peek(), b"".join(reply.lines)
            first = peek.bytes() if peek is not None else b""
            if len(first) > len(known) and first.startswith(known):
                reply.take_raw(first)
                return reply.end()[0]
        return body

    def _verdict(self, code: int, error: int, said: str) -> Verdict:
        if self.raw is not None:
            return judge_raw(self.reply, error=error, said=said)
        self.is_odd = error in NOT_HTTP and not self.reply.all_came
        return judge(
            self.reply, code, error=error, said=said, asked=self.asked, overdue=self.overdue
        )

    def open_socket(self, _purpose: int, peer: Any) -> Any:
        """libcurl asks for a socket: only one to the checked address is given."""
        address = peer.addr[0]
        if isinstance(address, bytes):
            address = address.decode("ascii", "replace")
        if address != self.peer and not _is_same(address, self.peer):
            self.refused = f"socket to {address} refused: {self.peer} was checked"
            return _SOCKET_BAD
        return self.sockets.open(peer.family, peer.socktype, peer.protocol)

    def on_socket(self, fd: int, _purpose: int) -> int:
        """libcurl has its duplicate."""
        self.sockets.opened(fd, peeks=self.peeks)
        return _OK

    def _peek(self) -> Peek | None:
        """At the connection the request was sent on; that may be closed and its number reused."""
        return self.peek or self.sockets.by_port.get(self.port)

    def before_request(self, _peer: str, _own: str, _peer_port: int, port: int) -> int:
        """libcurl is connected and about to send.

        Where a resting connection brings no answer it takes another, up to five times, and sends
        again. That is right once, where the server closed before it read the request; else it
        would be asked twice. What a proxy said so far is no answer.
        """
        if self.asked:
            peek = self._peek()
            if self.again or (peek is not None and peek.is_orderly):
                self.refused = NOT_AGAIN
                return _ABORT
            self.again = True
            self.reply.detail = SENT_AGAIN
        # Raw ones are asked about as the client sends them.
        if self.raw is None and self.fetch is not None and not self.may_send(self.fetch.ticket):
            if self.asked:
                self.refused = NOT_AGAIN
            else:
                self.is_held_back = True
            return _ABORT
        self.asked = True
        self.port = port
        peek = self.peek = self.sockets.by_port.get(port)
        if peek is not None:
            peek.begin()
        if self.reply.lines:
            self.reply.lines.clear()
        return _OK


def _is_same(one: str, other: str) -> bool:
    """True if both spell one address."""
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return False
