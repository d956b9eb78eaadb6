"""Names to addresses, against a DNS server of our own on loopback."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from geomi.errors import OperatorError
from geomi.fetch.dns import Resolver, dns_text, literal, parse_hosts
from geomi.records import Answer

A, CNAME, AAAA = 1, 5, 28


def wire_name(name: str) -> bytes:
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def record(name: str, kind: int, ttl: int, data: str) -> bytes:
    if kind == CNAME:
        raw = wire_name(data)
    else:
        raw = socket.inet_pton(socket.AF_INET if kind == A else socket.AF_INET6, data)
    return wire_name(name) + struct.pack(">HHIH", kind, 1, ttl, len(raw)) + raw


#: (name, type) -> answer records; an int is a response code, None silence.
ZONE: dict[tuple[str, int], list[bytes] | int | None] = {
    ("a.test", A): [record("a.test", A, 300, "10.0.0.9"), record("a.test", A, 300, "10.0.0.10")],
    ("a.test", AAAA): [record("a.test", AAAA, 200, "fd00::2")],
    ("short.test", A): [record("short.test", A, 1, "10.0.0.1")],
    ("long.test", A): [record("long.test", A, 10**7, "10.0.0.1")],
    ("six.test", AAAA): [record("six.test", AAAA, 500, "fd00::1")],
    ("alias.test", A): [
        record("alias.test", CNAME, 60, "b.test"),
        record("b.test", CNAME, 50, "c.test"),
        record("c.test", A, 900, "10.1.1.1"),
        record("stranger.test", A, 900, "10.6.6.6"),
    ],
    ("loop.test", A): [
        record("loop.test", CNAME, 60, "pool.test"),
        record("pool.test", CNAME, 60, "loop.test"),
    ],
    ("none.test", A): 3,
    ("none.test", AAAA): 3,
    ("broken.test", A): 2,
    ("broken.test", AAAA): 2,
    ("mute.test", A): None,
    ("mute.test", AAAA): None,
}


def reply_to(query: bytes) -> bytes | None:
    at, parts = 12, []
    while query[at]:
        parts.append(query[at + 1 : at + 1 + query[at]].decode())
        at += query[at] + 1
    kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
    found = ZONE.get((".".join(parts).lower(), kind), [])
    if found is None:
        return None
    code, records = (found, []) if isinstance(found, int) else (0, found)
    header = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0)
    return header + query[12 : at + 5] + b"".join(records)


@contextmanager
def name_server() -> Iterator[str]:
    """Answers from ZONE until the block ends. Gives `ip:port`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                query, peer = sock.recvfrom(4096)
                if query == b"end":
                    return
                answer = reply_to(query)
                if answer is not None:
                    sock.sendto(answer, peer)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        address = sock.getsockname()
        try:
            yield f"{address[0]}:{address[1]}"
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"end", address)
            thread.join()


def ask(*names: str, **options: object) -> list[Answer]:
    """What a resolver on our server says of each name."""

    async def run(server: str) -> list[Answer]:
        loop = asyncio.get_running_loop()
        settings: dict[str, object] = {"servers": [server], "hosts_file": "", "timeout_s": 0.2}
        async with Resolver(loop, **(settings | {"tries": 1} | options)) as resolver:  # type: ignore[arg-type]
            return [await resolver.resolve(name) for name in names]

    with name_server() as server:
        return asyncio.run(run(server))


def test_addresses_come_ipv4_first_and_lowest_first_with_the_shortest_lifetime() -> None:
    (answer,) = ask("a.test")
    assert answer.addresses == ("10.0.0.9", "10.0.0.10", "fd00::2")
    assert answer.ttl_s == 200
    assert answer.error == ""
    assert answer.server.startswith("127.0.0.1:")


def test_a_name_is_asked_for_without_regard_to_case_and_final_dot() -> None:
    upper, dotted = ask("A.Test", "a.test.")
    assert upper.addresses == dotted.addresses == ("10.0.0.9", "10.0.0.10", "fd00::2")


def test_lifetimes_have_a_floor_and_a_cap() -> None:
    short, long = ask("short.test", "long.test")
    assert (short.ttl_s, long.ttl_s) == (30, 86_400)


def test_a_name_with_ipv6_alone_is_resolved() -> None:
    assert ask("six.test")[0].addresses == ("fd00::1",)


def test_a_chain_of_aliases_is_followed_and_strangers_in_the_answer_are_not_believed() -> None:
    (answer,) = ask("alias.test")
    assert answer.addresses == ("10.1.1.1",)
    assert answer.ttl_s == 50


def test_a_chain_that_loops_ends() -> None:
    (answer,) = ask("loop.test")
    assert answer.addresses == ()
    assert answer.error


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("none.test", "NXDOMAIN"),
        ("broken.test", "SERVFAIL"),
        ("mute.test", "timeout"),
        ("empty.test", "no address"),
    ],
)
def test_a_failure_is_an_answer_that_names_it(name: str, error: str) -> None:
    (answer,) = ask(name)
    assert answer.addresses == ()
    assert answer.error == error
    assert answer.ttl_s == 60


@pytest.mark.parametrize("name", ["", "a..test", "x" * 300, "x" * 64 + ".test", "\0", "é.test"])
def test_a_name_that_is_none_never_raises(name: str) -> None:
    (answer,) = ask(name)
    assert answer.addresses == ()
    assert answer.error


def test_a_server_that_is_not_there_is_a_failure_of_the_name() -> None:
    (answer,) = ask("a.test", servers=["127.0.0.1:9"])
    assert answer.addresses == ()
    assert answer.error in ("server unreachable", "timeout")


@pytest.mark.parametrize(
    ("host", "address"),
    [("10.1.2.3", "10.1.2.3"), ("[fd00::1]", "fd00::1"), ("FD00:0::1", "fd00::1")],
)
def test_an_address_answers_itself(host: str, address: str) -> None:
    (answer,) = ask(host)
    assert answer.addresses == (address,)
    assert answer.server == "literal"
    assert literal("a.test") == ""


def test_own_names_come_before_the_hosts_file_and_that_before_the_server(tmp_path: object) -> None:
    path = f"{tmp_path}/hosts"
    with open(path, "w") as file:
        file.write("10.9.9.1 own.test a.test\n")
    own, file_, server = ask(
        "own.test", "a.test", "c6.test", hosts={"Own.test": ["10.8.8.8"]}, hosts_file=path
    )
    assert own.addresses == ("10.8.8.8",)
    assert (file_.addresses, file_.server) == (("10.9.9.1",), "hosts")
    assert server.error == "no address"


def test_a_hosts_file_is_read_with_comments_aliases_and_bad_lines() -> None:
    text = "# head\n127.0.0.1 localhost Loop # tail\n::1\tlocalhost\nnonsense x\n\n10.0.0.1\n"
    assert parse_hosts(text) == {"localhost": ["127.0.0.1", "::1"], "loop": ["127.0.0.1"]}
    assert parse_hosts("127.0.0.1 a\n127.0.0.1 a\n") == {"a": ["127.0.0.1"]}


def test_an_answer_is_written_as_heritrix_writes_it() -> None:
    answer = Answer(host="a.test", addresses=("1.2.3.4", "fd00::1"), ttl_s=300.0)
    assert dns_text(answer, 1795036560.0) == (
        b"20261118211600\na.test.\t300\tIN\tA\t1.2.3.4\na.test.\t300\tIN\tAAAA\tfd00::1\n"
    )


@pytest.mark.parametrize(
    "options", [{"servers": ["dns.test"]}, {"servers": ["1.2.3"]}, {"hosts": {"a": ["b"]}}]
)
def test_a_setting_that_is_no_address_is_the_operators_error(options: dict[str, object]) -> None:
    with pytest.raises(OperatorError):
        ask("a.test", **options)
