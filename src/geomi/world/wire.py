"""The bytes of an answer, with its fault if it has one, and the line that is logged of it."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple

from geomi.states import Outcome
from geomi.world.model import Answer

_CHUNK_BYTES = 4_000
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class LogRow(NamedTuple):
    """One request as the server saw it. Times are those of the server's clock."""

    started_s: float  # the request was whole
    ended_s: float  # the last byte was given to the kernel, or the connection ended
    address: str
    host: str
    method: str
    target: str
    status: int  # 0 when no status line was sent
    size_bytes: int  # of the body; of all that was sent where the host is evil
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.target}"

    @classmethod
    def parse(cls, line: str) -> LogRow:
        """The reverse of what is written to the log file."""
        a, b, *words = line.rstrip("\n").split("\t")
        address, host, method, target, status, size, scheme = words
        return cls(
            float(a), float(b), address, host, method, target, int(status), int(size), scheme
        )


class Wire(NamedTuple):
    """What goes out for an answer, and what happens to the connection then."""

    data: bytes
    status: int
    size_bytes: int
    then: str = ""  # close, stall; empty: keep


def wire(answer: Answer, *, head_only: bool = False) -> Wire:
    """The bytes of an answer, with its fault if it has one."""
    body = b"" if head_only else answer.body
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Other')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    if answer.status == 304:
        body = b""
    elif answer.chunked and not answer.fault:
        lines.append("Transfer-Encoding: chunked")
        body = b"" if head_only else _chunks(body)
    else:
        lines.append(f"Content-Length: {len(answer.body)}")
    lines.append("Server: geomi-world\r\n\r\n")
    head = "\r\n".join(lines).encode("latin-1")
    if answer.fault:
        return _FAULTS[answer.fault](head, body)
    return Wire(head + body, answer.status, 0 if head_only else len(answer.body))


def _chunks(body: bytes) -> bytes:
    parts = [body[k : k + _CHUNK_BYTES] for k in range(0, len(body), _CHUNK_BYTES)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _half(head: bytes, body: bytes, then: str) -> Wire:
    half = body[: len(body) // 2]
    return Wire(head + half, 200, len(half), then)


_FAULTS: dict[str, Callable[[bytes, bytes], Wire]] = {
    Outcome.C_ERR: lambda _head, _body: Wire(b"", 0, 0, "close"),  # nobody should get here
    Outcome.H_ERR: lambda _head, _body: Wire(b"", 0, 0, "close"),
    Outcome.H_TIM: lambda _head, _body: Wire(b"", 0, 0, "stall"),
    Outcome.H_SHT: lambda _head, _body: Wire(b"HTTP/1.1 200 OK\r\nServ", 0, 0, "close"),
    Outcome.H_NPR: lambda _head, _body: Wire(b"SSH-2.0-OpenSSH_9.2\r\n", 0, 0, "close"),
    Outcome.D_ERR: lambda head, body: _half(head, body, "close"),
    Outcome.D_TIM: lambda head, body: _half(head, body, "stall"),
}
