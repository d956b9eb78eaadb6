"""What wget archived is imported, and a crawl goes on from it: known copies are only confirmed."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from journeys.crawling import FAST, geomi, must_be_sound, outcomes, settings, start


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The URL of a small site: a front page that links to two others."""
    folder = tmp_path / "www"
    folder.mkdir()
    (folder / "index.html").write_text('<a href="b.html">b</a> <a href="c.html">c</a>')
    (folder / "b.html").write_text("b" * 300)
    (folder / "c.html").write_text("c" * 300)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def archived(folder: Path, *urls: str, options: tuple[str, ...] = ()) -> Path:
    command = shutil.which("wget")
    if command is None:
        pytest.skip("wget is not installed")
    subprocess.run([command, "-q", "-O", str(folder / "out"), f"--warc-file={folder / 'w'}",
                    *options, *urls], check=True, cwd=folder)  # fmt: skip
    return folder / "w.warc.gz"


def test_a_crawl_confirms_imported_copies_and_finds_what_they_link_to(
    site: str, tmp_path: Path
) -> None:
    path = archived(tmp_path, site, site + "b.html")
    collection = tmp_path / "news"
    geomi("init", collection)
    imported = geomi("archive", "import", collection, path, "--json").rows
    assert [one["captures"] for one in imported] == [2]
    assert outcomes(collection) == {site: "OK", site + "b.html": "OK"}
    must_be_sound(collection)
    geomi("crawl", collection, site, "--allow-network", "127.0.0.0/8", *settings(*FAST))
    assert outcomes(collection) == {
        site: "same", site + "b.html": "same", site + "c.html": "OK",
    }  # fmt: skip
    must_be_sound(collection)
    checked = geomi("archive", "check", collection, "--json").facts
    assert checked["counts"]["revisits.record id"] == 2
    assert checked["counts"]["revisits.elsewhere"] == 2
    told = geomi("story", collection, site).out
    assert "by somebody else" in told and "as a revisit of" in told
    assert geomi("verify", collection, "--politeness").code == 0


def test_while_a_crawl_runs_nothing_is_imported(site: str, tmp_path: Path) -> None:
    path = archived(tmp_path, site)
    collection = tmp_path / "news"
    geomi("init", collection)
    crawl = start("crawl", collection, site, "--allow-network", "127.0.0.0/8",
                  *settings("manners.rest_s=60"))  # fmt: skip
    lock = collection / "locks" / "coordinator"
    while not lock.exists() or not lock.read_text():
        assert crawl.poll() is None
    refused = geomi("archive", "import", collection, path, code=2)
    assert "another geomi works on it" in refused.err
    crawl.kill()
    crawl.communicate()
    assert geomi("archive", "import", collection, path).code == 0
