"""Who a site is told we are: cookies of one context, proxies by address; odd certificates."""

from __future__ import annotations

import pytest

from geomi.cluster.guise import Guise, proxy_of, through, tls_counter
from geomi.cluster.settle import address_of
from geomi.fetch.access import Access
from geomi.fetch.cookies import parse_file
from geomi.records import Capture
from geomi.states import Outcome

URL = "http://www.example.org/a"


def capture(
    head: bytes = b"", *, outcome: Outcome = Outcome.OK, detail: str = "",
    is_unverified: bool = False,
) -> Capture:  # fmt: skip
    return Capture(
        ticket=1, url=URL, address="192.0.2.1", started=0.0, ended=1.0, outcome=outcome, head=head,
        detail=detail, is_unverified=is_unverified,
    )  # fmt: skip


def test_what_an_answer_set_comes_back_with_the_next_request() -> None:
    guise = Guise(None, cookies=True, own_cookies=(), now=0.0)
    assert guise.lines(URL, 1.0) == ()
    assert not guise.answered(capture(b"HTTP/1.1 200 OK\r\n\r\n"), 1.0)
    assert guise.answered(capture(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Max-Age=5\r\n\r\n"), 1.0)
    assert guise.lines(URL, 2.0) == ("Cookie: a=1",)
    assert guise.lines("http://other.org/", 2.0) == ()
    assert guise.lines(URL, 6.0) == ()


def test_without_cookies_nothing_is_kept_but_those_of_the_operator() -> None:
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\n\r\n"
    off = Guise(None, cookies=False, own_cookies=(), now=0.0)
    assert not off.answered(capture(head), 1.0)
    assert off.lines(URL, 1.0) == ()
    given = tuple(parse_file("www.example.org\tFALSE\t/\tFALSE\t0\tmine\t1\n"))
    own = Guise(None, cookies=False, own_cookies=given, now=0.0)
    own.answered(capture(head), 1.0)
    assert own.lines(URL, 1.0) == ("Cookie: mine=1",)


def test_a_proxy_is_looked_up_unless_it_is_an_address() -> None:
    named = Access(proxy="http://u:p@proxy.example:3128")
    assert proxy_of(None) == proxy_of(Access()) == ""
    assert proxy_of(Access(proxy="http://[::1]:3128")) == ""
    assert proxy_of(named) == "proxy.example"
    # Also a second time, when the lifetime of its address is over.
    guise = Guise(named, cookies=True, own_cookies=(), now=0.0)
    guise.by("192.0.2.9")
    assert guise.proxy == "proxy.example"
    assert guise.access is not None and guise.access.proxy_address == "192.0.2.9"
    assert through(None, "192.0.2.9") is None


@pytest.mark.parametrize(
    ("detail", "counter"),
    [
        ("certificate: expired (SSL says)", "tls.expired"),
        ("certificate: wrong name (SSL says)", "tls.wrong_name"),
        ("certificate: self-signed (SSL says)", "tls.self_signed"),
        ("certificate: something new", "tls.bad_certificate"),
        ("TLS: no shared cipher", ""),
        ("refused", ""),
    ],
)
def test_a_bad_certificate_has_a_counter_by_what_is_wrong(detail: str, counter: str) -> None:
    assert tls_counter(capture(outcome=Outcome.C_ERR, detail=detail)) == counter
    assert tls_counter(capture(outcome=Outcome.OK, detail=detail)) == ""
    assert tls_counter(capture(outcome=Outcome.OK, is_unverified=True)) == "tls.unverified"


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("192.0.2.1", "192.0.2.1"), ("192.0.2.1:53", "192.0.2.1"), ("::1", "::1"),
        ("[2001:db8::1]:53", "2001:db8::1"), ("192.0.2.1,192.0.2.2:53", ""),
    ],
)  # fmt: skip
def test_a_dns_record_names_the_server_that_answered_if_it_is_known(
    server: str, address: str
) -> None:
    assert address_of(server) == address
