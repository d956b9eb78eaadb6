"""Sites that are reached in a special way: password, certificates, proxy, rate, no verification."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from proxies import proxying
from wire import ABC, CERTIFICATE, CLOSE, KEEP, OK, Robot, Wire, run, serving

from geomi.errors import OperatorError
from geomi.fetch.access import Access, check, lines, options, proxy_address, withheld
from geomi.fetch.limits import Limits
from geomi.states import Outcome

TLS = Path(__file__).with_name("tls")
CA = str(TLS / "ca.pem")
GOOD, EXPIRED, EARLY, CLIENT = (
    str(TLS / f"{name}.pem") for name in ("good", "expired", "early", "client")
)


# -- certificates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("certificate", "host", "said"),
    [
        (EXPIRED, "a.example", "certificate: expired"),
        (EARLY, "a.example", "certificate: not yet valid"),
        (CERTIFICATE, "a.example", "certificate: self-signed"),
        (GOOD, "b.example", "certificate: wrong name"),
        (GOOD, "127.0.0.1", "certificate: wrong name"),
    ],
)
def test_a_bad_certificate_is_cerr_and_says_what_is_wrong(
    tmp_path: Path, certificate: str, host: str, said: str
) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], tls=certificate) as wire:
            with Robot(tmp_path, ca_file=CA) as robot:
                capture = await robot.get(wire.fetch(host=host))
                assert (capture.outcome, capture.request) == (Outcome.C_ERR, b"")
                assert capture.detail.startswith(said)
                assert wire.requests == []
                # The other way to it, which the operator has to choose by name.
                access = Access(verify=False)
                for _ in range(2):
                    capture = await robot.get(wire.fetch(host=host, access=access))
                    assert (capture.outcome, capture.body) == (Outcome.OK, b"abc")
                    assert capture.detail == "tls not verified"
                # What was taken unverified is of no use to a fetch that verifies.
                capture = await robot.get(wire.fetch(host=host))
                assert capture.outcome == Outcome.C_ERR
                assert len(wire.requests) == 2

    run(main())


def test_an_unknown_authority_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], tls=GOOD) as wire:
            with Robot(tmp_path, ca_file=CERTIFICATE) as robot:
                capture = await robot.get(wire.fetch())
                assert capture.detail.startswith("certificate: unknown authority")

    run(main())


def test_failures_of_unverified_sites_say_so_as_well(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([CLOSE], tls=EXPIRED) as wire:
            with Robot(tmp_path, ca_file=CA) as robot:
                capture = await robot.get(wire.fetch(access=Access(verify=False)))
                assert capture.outcome == Outcome.H_ERR
                assert capture.detail.endswith("; tls not verified")

    run(main())


def test_plain_http_has_nothing_to_verify(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch(access=Access(verify=False)))
                assert (capture.outcome, capture.detail) == (Outcome.OK, "")

    run(main())


def test_a_certificate_of_ours_opens_what_asks_for_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], tls=GOOD, client_ca=CA) as wire:
            with Robot(tmp_path, ca_file=CA, connections=1) as robot:
                for access in (None, Access(client_cert=CLIENT), None):
                    capture = await robot.get(wire.fetch(access=access))
                    good = access is not None
                    assert (capture.outcome == Outcome.OK) == good
                assert len(wire.requests) == 1

    run(main())


def test_a_certificate_of_ours_that_is_not_there_is_cerr(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], tls=GOOD) as wire:
            with Robot(tmp_path, ca_file=CA) as robot:
                access = Access(client_cert=str(tmp_path / "none.pem"))
                capture = await robot.get(wire.fetch(access=access))
                assert capture.outcome == Outcome.C_ERR
                assert capture.detail.startswith("TLS: ")

    run(main())


def test_a_handshake_that_never_comes_is_ctim(tmp_path: Path) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            async with serving([ABC]) as wire:
                fetch = wire.fetch(scheme="https", port=mute.getsockname()[1])
            with Robot(tmp_path, Limits(connect_s=0.2)) as robot:
                capture = await robot.get(fetch)
                assert (capture.outcome, capture.request) == (Outcome.C_TIM, b"")

    run(main())


# -- passwords -------------------------------------------------------------------------------------


def test_a_password_goes_to_its_host_and_not_into_the_archive(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path, connections=1) as robot:
                access = Access(auth="user:pässword")
                first = await robot.get(wire.fetch(access=access, headers=("If-None-Match: x",)))
                await robot.get(wire.fetch())
                await robot.get(wire.fetch(host="b.example"))
                line = lines(access)[0].encode()
                assert line == b"Authorization: Basic dXNlcjpww6Rzc3dvcmQ="
                assert [line in request for request in wire.requests] == [True, False, False]
                assert [b"uthorization" in request for request in wire.requests] == [1, 0, 0]
                told = wire.requests[0].replace(line, b"Authorization: Basic withheld")
                assert first.request == told

    run(main())


# -- proxies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["http", "socks5h"])
@pytest.mark.parametrize("tls", [False, True])
def test_a_proxy_is_told_the_checked_address_and_nothing_else(
    tmp_path: Path, kind: str, tls: bool
) -> None:
    async def main() -> None:
        async with (
            proxying(kind) as proxy,
            serving([ABC, KEEP], tls=GOOD if tls else False) as wire,
        ):
            with Robot(tmp_path, ca_file=CA) as robot:
                access = Access(
                    proxy=f"{kind}://proxy.example:{proxy.port}", proxy_address="127.0.0.1",
                    auth="user:password",
                )  # fmt: skip
                for _ in range(2):
                    capture = await robot.get(wire.fetch(access=access))
                    assert (capture.outcome, capture.head) == (Outcome.OK, ABC[:-3])
                    assert (capture.body, capture.address) == (b"abc", "127.0.0.1")
                assert len(proxy.asked) == 1
                target = f"127.0.0.1:{wire.port}"
                if kind == "http":
                    assert proxy.asked[0].startswith(f"CONNECT {target} HTTP/1.1\r\n")
                    assert "uthorization" not in proxy.asked[0]
                else:
                    assert proxy.asked[0] == target
                assert len(wire.requests) == 2
                # Without the proxy no connection through it is used.
                assert (await robot.get(wire.fetch())).outcome == Outcome.OK
                assert wire.connections == 2

    run(main())


def test_a_proxy_that_refuses_is_cerr_and_its_words_are_no_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with proxying("http", refuse=True) as proxy, serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                access = Access(proxy=f"http://127.0.0.1:{proxy.port}")
                capture = await robot.get(wire.fetch(access=access))
                assert (capture.outcome, capture.code) == (Outcome.C_ERR, 0)
                assert (capture.request, capture.head, capture.body) == (b"", b"", b"")
                assert "403" in capture.detail
                assert wire.connections == 0

    run(main())


def test_a_proxy_that_is_not_there_is_cerr(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path) as robot:
                capture = await robot.get(wire.fetch(access=Access(proxy="http://127.0.0.1:9")))
                assert capture.outcome == Outcome.C_ERR
                assert wire.connections == 0

    run(main())


def test_through_a_proxy_an_odd_answer_is_read_when_it_is_asked_for_again(tmp_path: Path) -> None:
    async def main() -> None:
        odd = [OK + b"bad\r\n\r\nabc", CLOSE]
        async with proxying("http") as proxy, serving(odd) as wire:
            with Robot(tmp_path) as robot:
                access = Access(proxy=f"http://127.0.0.1:{proxy.port}", auth="a:b")
                first = await robot.get(wire.fetch(access=access))
                assert (first.outcome, first.head, first.body) == (Outcome.H_NPR, OK, b"")
                again = await robot.get(wire.fetch(access=access))
                assert (again.outcome, again.head) == (Outcome.H_NPR, OK + b"bad\r\n\r\n")
                assert again.body == b"abc"
                assert b"Basic YTpi" in wire.requests[1]
                assert b"YTpi" not in again.request

    run(main())


# -- rate ------------------------------------------------------------------------------------------


def test_a_rate_holds_a_large_body_back_and_no_other_fetch(tmp_path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        body = b"x" * 300_000
        large = [OK + b"Content-Length: 300000\r\n\r\n", body, KEEP]
        async with serving(large) as wire, serving([ABC, KEEP]) as other:
            with Robot(tmp_path, Limits(idle_s=0.1)) as robot:
                began = loop.time()
                robot.client.start(wire.fetch(ticket=0, access=Access(rate_bytes_per_s=400_000)))
                for ticket in range(1, 9):
                    robot.client.start(other.fetch(ticket=ticket))
                captures = await robot.until(9)
                assert captures[-1].ticket == 0
                assert captures[-1].body == body
                assert loop.time() - began > 0.3  # a floor: no machine is too slow for it

    run(main())


# -- the record ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "access",
    [
        Access(auth="nocolon"),
        Access(auth="a:b\r\nX: y"),
        Access(user_agent="거미"),
        Access(user_agent="a\nb"),
        Access(headers=("no colon",)),
        Access(headers=("Two words: x",)),
        Access(headers=("X:",)),
        Access(headers=("X: a\r\nY: b",)),
        Access(headers=("X: a", "x: b")),
        Access(headers=("Authorization: Bearer x",), auth="a:b"),
        *(Access(headers=(f"{name}: x",)) for name in ("Host", "cookie", "User-Agent", "Upgrade")),
        Access(client_key="key.pem"),
        Access(rate_bytes_per_s=-1),
        Access(proxy="proxy.example:3128"),
        Access(proxy="ftp://proxy.example:3128"),
        Access(proxy="http://proxy.example"),
        Access(proxy="http://proxy.example:99999"),
        Access(proxy="http://proxy.example:3128", proxy_address="proxy"),
    ],
)
def test_an_access_that_cannot_be_used_is_the_operators_error(access: Access) -> None:
    with pytest.raises(OperatorError):
        check(access)


def test_an_access_that_can_be_used_passes() -> None:
    check(Access())
    check(Access(auth="a:", client_cert="a", proxy="http://u:p@[::1]:3128/"))
    assert proxy_address(Access(proxy="http://u:p@[::1]:3128/")) == "::1"
    assert proxy_address(Access(proxy="http://proxy.example:3128")) == ""
    named = dict(options(Access(proxy="http://u:p@proxy.example:3128", proxy_address="fd00::1")))
    assert named["PROXY"] == "http://u:p@[fd00::1]:3128"


def test_a_proxy_that_nobody_resolved_is_cerr_and_nothing_is_looked_up(tmp_path: Path) -> None:
    async def main() -> None:
        wire = Wire(port=80)
        with Robot(tmp_path) as robot:
            access = Access(proxy="http://localhost:9")
            capture = await robot.get(wire.fetch(access=access))
            assert (capture.outcome, capture.address) == (Outcome.C_ERR, "")

    run(main())


# -- header lines ----------------------------------------------------------------------------------


def test_further_lines_are_sent_and_their_secrets_withheld_from_the_archive(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP]) as wire:
            with Robot(tmp_path, connections=1) as robot:
                access = Access(
                    user_agent="other/1", headers=("X-Key: sesame", "X-Open: yes"),
                    withheld=("cookie", "x-key"),
                )  # fmt: skip
                capture = await robot.get(wire.fetch(access=access, headers=("Cookie: a=b",)))
                await robot.get(wire.fetch(headers=("Cookie: c=d",)))
                first, second = wire.requests
                for line in (b"User-Agent: other/1", b"X-Key: sesame", b"Cookie: a=b"):
                    assert b"%b\r\n" % line in first
                assert b"X-Key" not in second and b"other/1" not in second
                told = first.replace(b"sesame", b"withheld").replace(b"a=b", b"withheld")
                assert capture.request == told

    run(main())


def test_a_capture_without_verification_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving([ABC, KEEP], tls=EXPIRED) as wire:
            with Robot(tmp_path, ca_file=CA) as robot:
                for verify in (False, True):
                    capture = await robot.get(wire.fetch(access=Access(verify=verify)))
                    assert capture.is_unverified == (not verify)

    run(main())


def test_nothing_secret_shows_in_an_error_or_a_record() -> None:
    access = Access(
        auth="me:hunter2", headers=("X-Key: hunter2",), client_password="hunter2",
        proxy="http://me:hunter2@proxy.example:1",
    )  # fmt: skip
    assert "hunter2" not in repr(access)
    for wrong in (
        Access(auth="hunter2"),
        Access(proxy="http://me:hunter2@proxy.example"),
        Access(headers=("X-Key: hunter2\r\n",)),
        Access(headers=("hunter2",)),
    ):
        with pytest.raises(OperatorError) as error:
            check(wrong)
        assert "hunter2" not in str(error.value)
    assert withheld([b"X-Key: hunter2"], access) == [b"X-Key: hunter2"]  # unless it is named
