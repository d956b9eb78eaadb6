"""Names to addresses, against a DNS server of our own on loopback."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from geomi.errors import OperatorError
from geomi.fetch.dns import Resolver, dns_text, literal, parse_hosts
from geomi.fetch.guard import Guard
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
    ("self.test", A): [record("self.test", CNAME, 60, "self.test")],
    ("long-chain.test", A): [
        record("long-chain.test", CNAME, 60, "c0.test"),
        *(record(f"c{n}.test", CNAME, 60, f"c{n + 1}.test") for n in range(20)),
        record("c20.test", A, 60, "10.0.0.1"),
    ],
    ("many.test", A): [record("many.test", A, 60, f"10.7.{n % 4}.{n}") for n in range(40, 0, -1)],
    ("many.test", AAAA): [record("many.test", AAAA, 60, f"fd00::{n:x}") for n in range(20, 0, -1)],
    ("zero.test", A): [record("zero.test", A, 0, "10.0.0.1")],
    ("zero-alias.test", A): [
        record("zero-alias.test", CNAME, 0, "z.test"),
        record("z.test", A, 900, "10.0.0.1"),
    ],
    ("twice.test", A): [record("twice.test", A, 60, "10.0.0.1")] * 3,
    ("half.test", A): [record("half.test", A, 90, "10.0.0.1")],
    ("half.test", AAAA): 2,
    ("liar.test", A): [
        record("liar.test", A, 60, lie)
        for lie in ("127.0.0.1", "0.0.0.0", "169.254.169.254", "10.0.0.1", "93.184.215.14")
    ],
    ("liar.test", AAAA): [
        record("liar.test", AAAA, 60, lie) for lie in ("::1", "::ffff:127.0.0.1", "fe80::1")
    ],
    ("stranger.test", A): [record("other.test", A, 60, "10.0.0.1")],
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


@pytest.mark.parametrize("name", ["loop.test", "self.test", "long-chain.test", "stranger.test"])
def test_a_chain_that_loops_or_leads_nowhere_ends(name: str) -> None:
    (answer,) = ask(name)
    assert answer.addresses == ()
    assert answer.error


def test_very_many_addresses_of_both_families_are_all_there_in_order() -> None:
    (answer,) = ask("many.test")
    assert len(answer.addresses) == 60
    parsed = [ipaddress.ip_address(address) for address in answer.addresses]
    assert parsed == sorted(parsed, key=lambda address: (address.version, int(address)))


def test_a_lifetime_of_nothing_is_raised_to_the_floor() -> None:
    for answer in ask("zero.test", "zero-alias.test"):
        assert (answer.addresses, answer.ttl_s) == (("10.0.0.1",), 30)


def test_an_address_that_is_said_twice_is_one() -> None:
    assert ask("twice.test")[0].addresses == ("10.0.0.1",)


def test_one_family_is_enough_where_the_other_fails() -> None:
    (answer,) = ask("half.test")
    assert (answer.addresses, answer.ttl_s, answer.error) == (("10.0.0.1",), 90, "")


def test_lies_are_passed_on_and_the_guard_refuses_them() -> None:
    (answer,) = ask("liar.test")
    lies = {"127.0.0.1", "0.0.0.0", "169.254.169.254", "10.0.0.1", "::1", "fe80::1"}
    assert lies < set(answer.addresses)
    assert len(answer.addresses) == 8
    guard = Guard()
    assert [a for a in answer.addresses if not guard.refusal(a)] == ["93.184.215.14"]


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
