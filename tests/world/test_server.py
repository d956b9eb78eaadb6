from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from geomi.world import Params, World, reachable, serve
from geomi.world.model import FLAKY, Answer
from geomi.world.server import bind
from geomi.world.wire import LogRow, wire

#: Enough of everything to meet every fault in a small world.
SHARES = {
    **dict.fromkeys(("hErr", "hTim", "hSht", "hNpr", "dErr", "dTim", "flaky"), 0.03),
    "habit.chunked": 0.4, "habit.two": 0.3,
}  # fmt: skip


@pytest.fixture(scope="module")
def running():
    with serve(Params(seed=7, sites=12, pages=40, shares=SHARES)) as running:
        yield running


@pytest.fixture(scope="module")
def expected(running):
    return reachable(running.world, running.seeds(), robots=False)


def connect(running, url):
    address = running.world.resolve(urlsplit(url).hostname)[0][0]
    return socket.create_connection((address, running.port), timeout=10)


def request(url, *, method="GET", more=""):
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{more}\r\n".encode()


def everything(sock):
    data = b""
    while part := sock.recv(65_536):
        data += part
    return data


def pure(running, url, **headers):
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return running.world.answer(parts.netloc, target, headers=headers)


def some(expected, outcome):
    return next(url for url, e in expected.items() if e.outcome == outcome)


def test_the_server_says_what_the_world_answers(running, expected):
    connections: dict[str, http.client.HTTPConnection] = {}
    chunked = 0
    for url, e in expected.items():
        if e.outcome not in ("OK", "code"):
            continue
        answer = pure(running, url)
        parts = urlsplit(url)
        if parts.netloc not in connections:
            address = running.world.resolve(parts.hostname)[0][-1]
            connections[parts.netloc] = http.client.HTTPConnection(address, running.port)
        client = connections[parts.netloc]
        for wanted in (FLAKY, answer) if answer.flaky else (answer,):
            client.request("GET", url[len("http://") + len(parts.netloc) :],
                           headers={"Host": parts.netloc})  # fmt: skip
            got = client.getresponse()
            assert (got.status, got.read()) == (wanted.status, wanted.body), url
            assert set(wanted.headers) <= set(got.getheaders())
            chunked += got.getheader("Transfer-Encoding") == "chunked"
    assert chunked
    for client in connections.values():
        client.close()


@pytest.mark.parametrize(
    ("outcome", "seen"),
    [("hErr", b""), ("hSht", b"HTTP/1.1 200 OK\r\nServ"), ("hNpr", b"SSH-2.0-OpenSSH_9.2\r\n")],
)
def test_a_fault_in_the_head_is_on_the_wire(running, expected, outcome, seen):
    url = some(expected, outcome)
    with connect(running, url) as sock:
        sock.sendall(request(url))
        assert everything(sock) == seen


def test_no_answer_means_a_connection_that_stays_open(running, expected):
    url = some(expected, "hTim")
    with connect(running, url) as sock:
        sock.sendall(request(url))
        # The server answers a second connection, so it has had its turn, and this one is empty.
        with connect(running, url) as other:
            other.sendall(request(running.seeds(1)[0], more="Connection: close\r\n"))
            assert everything(other)
        sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            sock.recv(1)


@pytest.mark.parametrize("outcome", ["dErr", "dTim"])
def test_a_fault_in_the_body_cuts_it(running, expected, outcome):
    url = some(expected, outcome)
    answer = pure(running, url)
    with connect(running, url) as sock:
        sock.sendall(request(url))
        data = b""
        while len(data.partition(b"\r\n\r\n")[2]) < len(answer.body) // 2:
            data += sock.recv(65_536)
        head, _, body = data.partition(b"\r\n\r\n")
        assert body == answer.body[: len(answer.body) // 2]
        assert f"Content-Length: {len(answer.body)}".encode() in head
        if outcome == "dErr":
            assert sock.recv(1) == b""
        else:
            sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                sock.recv(1)


def test_nobody_listens_at_cErr():
    world = World(Params(seed=7, sites=40, shares={"cErr": 0.3}))
    site = next(site for site in world.sites if site.kind.name == "cErr")
    [sock] = bind(world.addresses()[:1], 0)
    with sock, pytest.raises(ConnectionRefusedError):
        socket.create_connection((site.addresses[0], sock.getsockname()[1]), timeout=10)


def test_requests_in_one_piece_and_byte_by_byte_get_equal_answers(running):
    url = running.seeds(1)[0]
    asked = request(url) + request(url, method="HEAD") + request(url + "robots.txt")
    asked += request(url + "img/logo.png", more="Connection: close\r\n")
    results = []
    for size in (len(asked), 1, 7):
        with connect(running, url) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for k in range(0, len(asked), size):
                sock.sendall(asked[k : k + size])
            results.append(everything(sock))
    assert results[0] == results[1] == results[2]
    whole = wire(pure(running, url))
    assert results[0].startswith(whole.data + wire(pure(running, url), head_only=True).data)


def test_conditions_are_answered_on_the_wire(running, expected):
    for url, e in expected.items():
        tag = dict(pure(running, url).headers).get("ETag") if e.outcome == "OK" else None
        if tag and not pure(running, url).flaky:
            break
    with connect(running, url) as sock:
        sock.sendall(request(url, more=f"If-None-Match: {tag}\r\nConnection: close\r\n"))
        assert everything(sock).startswith(b"HTTP/1.1 304 ")


def test_other_methods_are_refused(running):
    url = running.seeds(1)[0]
    with connect(running, url) as sock:
        sock.sendall(request(url, method="DELETE", more="Connection: close\r\n"))
        assert everything(sock).startswith(b"HTTP/1.1 405 ")


def test_the_log_has_every_request_with_its_server(running):
    before, url = len(running.log()), running.seeds(2)[1]
    opened = running.counters().connections
    with connect(running, url) as sock:
        peer = sock.getpeername()[0]
        sock.sendall(request(url + "x?y=1") + request(url, more="Connection: close\r\n"))
        everything(sock)
    first, second = running.log()[before:]
    assert (first.host, first.method, first.target, first.status) == (
        urlsplit(url).netloc, "GET", "/x?y=1", 404,
    )  # fmt: skip
    assert first.address == second.address == peer
    assert second.size_bytes == len(pure(running, url).body)
    assert first.started_s <= first.ended_s <= second.started_s <= second.ended_s
    assert running.counters().connections[peer] == opened.get(peer, 0) + 1
    assert LogRow.parse("\t".join(map(str, first)) + "\n") == first


def test_the_hosts_file_names_every_site_with_an_address(running):
    lines = running.hosts_file.read_text().splitlines()
    pairs = {(line.split()[0], name) for line in lines for name in line.split()[1:]}
    assert pairs == {
        (address, host)
        for site in running.world.sites
        for host in site.hosts
        for address in site.addresses
    }


def test_a_server_ends_when_its_parent_lets_go():
    command = [sys.executable, "-m", "geomi.world", "--seed", "1", "--sites", "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert b'"port"' in child.stdout.readline()
        child.stdin.close()
        assert child.wait(timeout=20) == 0


def test_a_server_without_a_pipe_runs_until_it_is_told_to_stop():
    command = [sys.executable, "-m", "geomi.world", "--seed", "1", "--sites", "2"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
        assert b'"port"' in child.stdout.readline()
        assert child.poll() is None
        child.terminate()
        assert child.wait(timeout=20) == 0


def test_bad_parameters_are_one_sentence_and_code_2():
    command = [sys.executable, "-m", "geomi.world", "--share", "redirekt=1"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "the small world: unknown share redirekt; did you mean redirect?\n"


def test_chunks_are_these_bytes():
    answer = Answer(status=200, headers=(), body=b"x" * 4_001, chunked=True)
    data = wire(answer).data
    assert data.startswith(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
    assert data.endswith(b"\r\n\r\nfa0\r\n" + b"x" * 4_000 + b"\r\n1\r\nx\r\n0\r\n\r\n")
