"""Every capture replays through pywb as the WARC files have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.small import SEED, Small, some
from geomi.cluster import replay
from geomi.cluster.cdx_server import CdxServer
from geomi.cluster.index import indexed
from geomi.errors import OperatorError, ResourceError
from replaying import Wayback, captures, differences, needs_pywb, replayed


@pytest.fixture(autouse=True)
def _installed() -> None:
    needs_pywb()


def visited_twice(path: Path) -> Small:
    """Answers of every kind; the second time a 304, a page that is gone, another redirect."""
    small = Small(path)
    small.robots()
    links = "".join(f"<a href='{name}'>x</a>" for name in ("b", "moved", "한글?q=1&amp;b=%20x"))
    small.visit(SEED, body=f"<title>x</title>{links}".encode(), head='ETag: "1"\r\n')
    small.visit(f"{SEED}b", body=b"b" * 5000)
    small.visit(f"{SEED}moved", code=301, head="Location: /b\r\n", body=b"")
    odd = next(url for (url,) in small.store.all("SELECT url FROM pages WHERE url LIKE '%q=1%'"))
    small.visit(odd, body="<p>한글".encode(), head="X-Odd: a  b\r\nX-Odd: c\r\n")
    small.end()
    small.again()
    small.visit(SEED, code=304, body=b"", head='ETag: "1"\r\n')
    small.visit(f"{SEED}b", code=404, body=b"gone")
    small.visit(f"{SEED}moved", code=302, head="Location: /c\r\n", body=b"see there")
    return small


def test_every_capture_replays_with_status_headers_and_payload(tmp_path: Path) -> None:
    visited_twice(tmp_path / "c").end()
    files = sorted((tmp_path / "c").glob("archive/**/*.warc.gz"))
    wanted = captures(files)
    assert [one.is_revisit for one in wanted].count(True) == 1
    assert {one.status for one in wanted} == {200, 301, 302, 404}
    with replayed(sorted((tmp_path / "c").glob("archive/**/*.cdxj")), files) as client:
        assert differences(client, wanted) == []


def test_files_that_are_open_and_grow_replay_too(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c")
    with indexed(small.place, small.store) as index:
        assert any(file.is_open for file in index.files())
        files = {file.name: file.paths for file in index.files()}
        with replay.wayback(index.sources(most=1), files, name="my c!") as running:
            assert running.address.endswith("/my-c")
            client = Wayback(running.address)
            small.end()  # the file gets its name meanwhile
            wanted = captures(sorted((tmp_path / "c").glob("archive/**/*.warc.gz")))
            assert differences(client, wanted) == []
            client.close()


def test_a_remote_pywb_reads_index_and_records_from_the_cdx_server(tmp_path: Path) -> None:
    import threading

    small = visited_twice(tmp_path / "c")
    small.end()
    wanted = captures(sorted((tmp_path / "c").glob("archive/**/*.warc.gz")))
    with indexed(small.place, small.store) as index:
        server = CdxServer(index, bind="127.0.0.1", port=0)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with replay.wayback(
                [f"cdx+{server.url}/cdx"], {}, archive=f"{server.url}/archive/"
            ) as running:
                client = Wayback(running.address)
                assert differences(client, wanted) == []
                client.close()
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def test_a_port_that_is_taken_is_said_with_what_pywb_says(tmp_path: Path) -> None:
    import socket

    some(tmp_path / "c")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(ResourceError, match=f"pywb did not start on 127.0.0.1:{port}: .*in use"),
            replay.wayback([], {}, port=port),
        ):
            pass


def test_without_pywb_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "find_spec", lambda _: None)
    with (
        pytest.raises(OperatorError, match=r"pywb is not installed; pip install 'geomi\[replay\]'"),
        replay.wayback([], {}),
    ):
        pass
