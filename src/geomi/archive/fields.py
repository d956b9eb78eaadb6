"""Blocks of `name: value` lines (application/warc-fields) and of DNS answers (text/dns)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from geomi.archive.names import date14, header_line, header_uri
from geomi.records import Answer, Target


def warc_fields(fields: Iterable[tuple[str, str]]) -> bytes:
    """A block of `name: value` lines; values lose their line ends."""
    return "".join([f"{name}: {header_line(value)}\r\n" for name, value in fields]).encode()


def outlinks(
    links: list[tuple[str, Target]],
    via: str = "",
    *,
    depth: int = 0,
    fetch_time_ms: int | None = None,
    fields: Sequence[tuple[str, str]] = (),
    lines: bytearray | None = None,
) -> bytes | bytearray:
    """The metadata block of a page: where it was found, how deep, and each link with its kind.

    `lines`: of links that `outlink_lines` has written already; they become the block, since a
    second copy of very many would cost too much.
    """
    first = f"via: {header_uri(via)}\r\n" if via else ""
    extra = warc_fields(fields).decode() if fields else ""
    took = "" if fetch_time_ms is None else f"fetchTimeMs: {fetch_time_ms}\r\n"
    start = f"{first}depth: {depth}\r\n{took}{extra}".encode()
    if lines is None:
        return start + outlink_lines(links)
    lines[:0] = start
    lines += outlink_lines(links)
    return lines


def outlink_lines(links: list[tuple[str, Target]]) -> bytes:
    """A line for each link; of very many links it is to be asked for piece by piece."""
    return "".join([f"outlink: {target.url} {kind}\r\n" for kind, target in links]).encode()


def http_header_fields(head: bytes) -> bytes:
    """The lines of an HTTP head as `http-header` fields, byte for byte but for line ends."""
    return b"".join(
        [b"http-header: %b\r\n" % line for line in head.replace(b"\r", b"").split(b"\n") if line]
    )


def dns_text(answer: Answer, date: str) -> bytes:
    """An answer in the form of RFC 4027: the time, then one resource record a line."""
    lines = [date14(date)]
    lines += [
        f"{answer.host}.\t{int(answer.ttl_s)}\tIN\t{'AAAA' if ':' in address else 'A'}\t{address}"
        for address in answer.addresses
    ]
    if answer.error:
        lines.append(f"; {header_line(answer.error)}")
    return ("\n".join(lines) + "\n").encode()


def parse_fields(block: bytes) -> list[tuple[str, str]]:
    """The fields of a warc-fields block, repeated ones kept; other lines are left out."""
    found: list[tuple[str, str]] = []
    for line in block.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"):
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        elif colon:
            found.append((name.strip(), value.strip()))
    return found


def parse_outlinks(block: bytes) -> list[tuple[str, str]]:
    """(kind, URL) of each link that `outlinks` wrote."""
    found = []
    for name, value in parse_fields(block):
        if name == "outlink":
            url, _, kind = value.partition(" ")
            found.append((kind, url))
    return found
