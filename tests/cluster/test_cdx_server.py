"""The CDX server: what it answers, what it refuses, and that it lets nothing else out."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.small import SEED, Small, some
from geomi.archive import cdxj
from geomi.archive.reader import members
from geomi.cluster.cdx_server import RESUME, CdxServer
from geomi.cluster.index import indexed
from geomi.errors import OperatorError


@dataclass
class Got:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Serving:
    server: CdxServer
    small: Small
    warc: Path

    def get(self, path: str, method: str = "GET", **headers: str) -> Got:
        host, port = self.server.server_address[:2]
        connection = http.client.HTTPConnection(str(host), int(port), timeout=30)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return Got(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    small = some(tmp_path / "c")
    (warc,) = (tmp_path / "c").glob("archive/**/*.warc.gz")
    with indexed(small.place, small.store) as index:
        server = CdxServer(index, bind="127.0.0.1", port=0)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Serving(server, small, warc)
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_query_is_answered_with_lines_of_the_index(serving: Serving) -> None:
    got = serving.get(f"/cdx?url={SEED}*&matchType=prefix".replace("*", ""))
    assert got.status == 200
    assert got.headers["Content-Type"] == "text/x-cdxj; charset=utf-8"
    lines = got.body.splitlines(keepends=True)
    assert lines == serving.warc.with_name(
        serving.warc.name.replace(".warc.gz", ".cdxj")
    ).read_bytes().splitlines(keepends=True)


def test_json_is_an_object_a_line(serving: Serving) -> None:
    got = serving.get(f"/cdx?url={SEED}&output=json")
    (fact,) = map(json.loads, got.body.splitlines())
    assert (fact["url"], fact["status"]) == (SEED, "200")


def test_nothing_found_is_an_empty_answer(serving: Serving) -> None:
    got = serving.get("/cdx?url=http://nowhere.example/")
    assert (got.status, got.body) == (200, b"")


def test_an_answer_that_is_cut_says_where_it_goes_on(serving: Serving) -> None:
    got = serving.get(f"/cdx?url={SEED}*&limit=1&showResumeKey=1")
    assert got.headers[RESUME] == got.body.splitlines()[0].decode()
    assert got.body.splitlines()[1:] == [b"", got.body.splitlines()[0]]


def test_a_bad_query_is_400_with_a_sentence(serving: Serving) -> None:
    got = serving.get("/cdx?url=a.org&limit=many")
    assert got.status == 400
    assert got.body == b"limit: 'many', wanted a number\n"


def test_a_record_is_served_by_its_range(serving: Serving, tmp_path: Path) -> None:
    whole = serving.warc.read_bytes()
    for line in serving.get(f"/cdx?url={SEED}*").body.splitlines():
        found = cdxj.parse_line(line)
        end = found.offset + found.length
        got = serving.get(f"/archive/{found.filename}", Range=f"bytes={found.offset}-{end - 1}")
        assert got.status == 206
        assert got.body == whole[found.offset : end]
        assert got.headers["Content-Range"] == f"bytes {found.offset}-{end - 1}/{len(whole)}"
        (tmp_path / "one").write_bytes(got.body)
        assert [member.target_uri for member in members(tmp_path / "one")] == [found.url]


def test_whole_files_tails_and_heads_are_served_too(serving: Serving) -> None:
    whole, name = serving.warc.read_bytes(), serving.warc.name
    assert serving.get(f"/archive/{name}").body == whole
    assert serving.get(f"/archive/{name}", Range="bytes=-5").body == whole[-5:]
    assert serving.get(f"/archive/{name}", Range="bytes=7-").body == whole[7:]
    head = serving.get(f"/archive/{name}", "HEAD")
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", str(len(whole)))


@pytest.mark.parametrize(
    "text", ["bytes=999999999-", "bytes=5-2", "bytes=-0", "bytes=-", "lines=1-2"]
)
def test_a_range_that_is_not_there_is_416(serving: Serving, text: str) -> None:
    got = serving.get(f"/archive/{serving.warc.name}", Range=text)
    assert got.status == 416
    assert got.headers["Content-Range"] == f"bytes */{serving.warc.stat().st_size}"


def test_what_is_not_committed_of_an_open_file_is_not_served(serving: Serving) -> None:
    serving.small.again()
    serving.small.visit(SEED, body=b"more")
    (growing,) = serving.warc.parent.glob("*.open")
    size = growing.stat().st_size
    with growing.open("ab") as file:
        file.write(b"torn")
    serving.server.index.refresh(at_once=True)
    assert len(serving.get(f"/archive/{growing.name.removesuffix('.open')}").body) == size


@pytest.mark.parametrize(
    "path",
    ["/archive/../geomi.toml", "/archive/..%2f..%2fgeomi.toml", "/archive/%2e%2e/geomi.db",
     "/archive//etc/passwd", "/archive/geomi.db", "/archive/", "/archive/a%00b"],
)  # fmt: skip
def test_names_that_the_store_does_not_know_are_404(serving: Serving, path: str) -> None:
    assert serving.get(path).status == 404


def test_the_server_is_read_only_and_says_what_it_has(serving: Serving) -> None:
    assert serving.get("/cdx?url=a.org", "POST").status == 405
    assert serving.get("/", "DELETE").status == 405
    got = serving.get("/")
    assert (got.status, got.body) == (404, b"here are /cdx?url=\xe2\x80\xa6 and /archive/NAME\n")


def test_a_page_of_the_wide_web_cannot_reach_it_by_a_name_of_its_own(serving: Serving) -> None:
    assert serving.get(f"/cdx?url={SEED}", Host="evil.example").status == 403
    assert serving.get(f"/cdx?url={SEED}", Host="localhost:80").status == 200


def test_an_address_that_is_none_or_is_taken_is_the_operators_error(serving: Serving) -> None:
    with pytest.raises(OperatorError, match="--bind here: wanted an address"):
        CdxServer(serving.server.index, bind="here", port=0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OperatorError, match="cannot listen"):
            CdxServer(serving.server.index, bind="127.0.0.1", port=taken.getsockname()[1])
