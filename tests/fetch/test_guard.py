"""Which addresses a crawl may connect to."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.errors import OperatorError
from geomi.fetch.guard import Guard

REFUSED = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "reserved",
    "10.0.0.1": "private",
    "10.255.255.255": "private",
    "100.64.0.1": "carrier-grade",
    "100.127.255.255": "carrier-grade",
    "127.0.0.1": "loopback",
    "127.64.3.9": "loopback",
    "169.254.169.254": "link-local",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.8": "reserved",
    "192.0.2.1": "documentation",
    "192.88.99.1": "reserved",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarking",
    "198.19.255.255": "benchmarking",
    "198.51.100.7": "documentation",
    "203.0.113.7": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "fc00::1": "unique-local",
    "fdff:ffff::1": "unique-local",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "febf::1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "2001:2::1": "reserved",
    "100::1": "reserved",
    "4000::1": "reserved",
    "5f00::1": "reserved",
}
EMBEDDED = {
    "::ffff:127.0.0.1": "mapped loopback",
    "::ffff:a00:1": "mapped private",
    "::ffff:8.8.8.8": "mapped",
    "::ffff:0:127.0.0.1": "translated loopback",
    "::127.0.0.1": "compatible loopback",
    "::8.8.8.8": "compatible",
    "64:ff9b::127.0.0.1": "nat64 loopback",
    "64:ff9b::8.8.8.8": "nat64",
    "64:ff9b:1::10.0.0.1": "nat64 private",
    "2002:7f00:1::": "6to4 loopback",
    "2002:808:808::": "6to4",
    # Teredo carries the client's address inverted.
    "2001:0:808:808:0:0:f5ff:fffe": "teredo private",
    "2001:0:808:808:0:0:f7f7:f7f7": "teredo",
}
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2001:4860:4860::8888",
    "2001:dc3::35",
    "2003::1",
]


@pytest.mark.parametrize(("address", "reason"), (REFUSED | EMBEDDED).items())
def test_an_address_that_is_not_public_is_refused_by_name(address: str, reason: str) -> None:
    assert Guard().refusal(address) == reason


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_let_through(address: str) -> None:
    assert Guard().refusal(address) == ""


@pytest.mark.parametrize("text", ["", "example.org", "0177.0.0.1", "2130706433", "1.2.3", "[::1]"])
def test_what_is_no_address_is_refused_even_for_a_named_host(text: str) -> None:
    assert Guard().refusal(text) == "no address"
    assert Guard(["0.0.0.0/0", "::/0"]).refusal(text, host_is_named=True) == "no address"


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "::1", "fe80::1", "::ffff:127.0.0.1"])
def test_a_host_the_operator_named_may_have_any_address(address: str) -> None:
    guard = Guard()
    assert guard.refusal(address, host_is_named=True) == ""
    assert guard.refusal(address) != ""


def test_an_allowed_network_opens_itself_and_nothing_beside() -> None:
    guard = Guard(["127.64.0.0/10", "fd00::/8", "192.168.1.7"])
    assert guard.refusal("127.64.0.1") == ""
    assert guard.refusal("127.127.255.255") == ""
    assert guard.refusal("127.0.0.1") == "loopback"
    assert guard.refusal("fd12::1") == ""
    assert guard.refusal("fc12::1") == "unique-local"
    assert guard.refusal("192.168.1.7") == ""
    assert guard.refusal("192.168.1.8") == "private"
    assert Guard(["::1"]).refusal("::1") == ""


def test_an_allowed_ipv4_network_does_not_open_its_disguises() -> None:
    assert Guard(["127.0.0.0/8"]).refusal("::ffff:127.0.0.1") == "mapped"


def test_an_allowed_form_still_has_its_inner_address_judged() -> None:
    guard = Guard(["64:ff9b::/96"])
    assert guard.refusal("64:ff9b::8.8.8.8") == ""
    assert guard.refusal("64:ff9b::127.0.0.1") == "loopback"
    assert Guard(["64:ff9b::/96", "10.0.0.0/8"]).refusal("64:ff9b::10.0.0.1") == ""
    assert Guard(["::/0"]).refusal("::ffff:127.0.0.1") == "loopback"


def test_an_embedded_address_named_itself_is_let_through() -> None:
    assert Guard(["::ffff:127.0.0.1"]).refusal("::ffff:127.0.0.1") == ""


@pytest.mark.parametrize("text", ["", "here", "10.0.0.0/33", "10.0.0.0/8/8", "::g", "300.0.0.1"])
def test_a_bad_network_is_one_sentence_for_the_operator(text: str) -> None:
    with pytest.raises(OperatorError, match=r"no network: .*\.$"):
        Guard([text])


def test_a_network_with_bits_beyond_its_mask_is_refused_with_what_may_be_meant() -> None:
    with pytest.raises(OperatorError, match=r"10\.0\.0\.0/8 may be meant"):
        Guard(["10.0.0.1/8"])


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_that_python_calls_private_is_let_through(
    address: ipaddress.IPv4Address,
) -> None:
    if not address.is_global:
        assert Guard().refusal(str(address)) != ""


@given(st.ip_addresses(v=6))
def test_no_ipv6_address_that_python_calls_private_is_let_through(
    address: ipaddress.IPv6Address,
) -> None:
    if not address.is_global:
        assert Guard().refusal(str(address)) != ""


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_passes_inside_an_ipv6_address(address: ipaddress.IPv4Address) -> None:
    guard = Guard()
    for disguise in (f"::ffff:{address}", f"64:ff9b::{address}", f"::ffff:0:{address}"):
        assert guard.refusal(disguise) != ""
