"""Real documentation, crawled twice without filters: through pywb every capture is the same before
the archive is rewritten and after."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.corpus import Corpus
from bench.nginx import serving

from geomi.archive.cdxj import CdxLine, parse_line
from geomi.store import open_store
from journeys.crawling import ENVIRONMENT, geomi
from journeys.test_docs_sets import corpus  # noqa: F401  a fixture

_PYWB = """
from gevent.monkey import patch_all
patch_all()
from pywb.apps.frontendapp import FrontEndApp
from pywb.utils.geventserver import GeventServer, RequestURIWSGIHandler
server = GeventServer(FrontEndApp("config.yaml"), port=0, hostname="127.0.0.1",
                      handler_class=RequestURIWSGIHandler)
print(server.port, flush=True)
server.join()
"""
#: pywb's own, which change from one answer to the next, or name its port.
_OWN = {"date", "link", "memento-datetime", "content-location"}


def files_of(collection: Path) -> tuple[list[Path], list[CdxLine]]:
    """The WARC files that count, and the lines of their indexes."""
    store = open_store(str(collection / "geomi.db"))
    names = [row[0] for row in store.all("SELECT name FROM files ORDER BY file")]
    store.close()
    files = [collection / "archive" / name for name in names]
    lines = [
        parse_line(raw)
        for path in files
        for raw in Path(str(path)[: -len(".warc.gz")] + ".cdxj").read_bytes().splitlines()
    ]
    return files, lines


@contextmanager
def pywb(folder: Path, files: list[Path]) -> Iterator[int]:
    """A pywb that replays these files; its port."""
    folder.mkdir()
    raw = sorted(
        line
        for path in files
        for line in Path(str(path)[: -len(".warc.gz")] + ".cdxj").read_bytes().splitlines(True)
    )
    (folder / "index.cdxj").write_bytes(b"".join(raw))
    (folder / "paths.txt").write_text("".join(f"{path.name}\t{path}\n" for path in files))
    (folder / "config.yaml").write_text(
        "collections:\n  c:\n    index: index.cdxj\n    archive_paths: paths.txt\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", _PYWB], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def shown(port: int, lines: list[CdxLine]) -> dict[tuple[str, str], tuple[int, object, bytes]]:
    """(status, headers, payload) of every capture, as pywb gives it out byte for byte."""
    found: dict[tuple[str, str], tuple[int, object, bytes]] = {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for line in lines:
        connection.request("GET", f"/c/{line.timestamp14}id_/{line.url}")
        answer = connection.getresponse()
        body = answer.read()
        headers = sorted(
            (name.lower(), value) for name, value in answer.getheaders()
            if name.lower() not in _OWN
        )  # fmt: skip
        found[line.url, line.timestamp14] = (answer.status, headers, body)
    connection.close()
    return found


def crawled(collection: Path, corpus: Corpus, log: Path) -> None:  # noqa: F811
    """Two whole captures of each page: the second is asked without conditions."""
    from geomi.keys import KEYS

    off = ("--set", "archive.duplicates=false") if "archive.duplicates" in KEYS else ()
    with serving({corpus.name: corpus.folder}, access_log=log) as port:
        seed = f"http://127.0.0.1:{port}/{corpus.name}/{corpus.seed}"
        own = ("--own", f"127.0.0.1:{port}", *off)
        geomi("crawl", collection, seed, *own, timeout_s=300)
        store = open_store(str(collection / "geomi.db"))
        with store.transaction():
            store.run("UPDATE pages SET etag = '', last_modified = ''")
        store.close()
        geomi("crawl", collection, "--again", *own, timeout_s=300)


@pytest.mark.long
def test_through_pywb_every_capture_is_the_same_before_and_after(
    tmp_path: Path,
    corpus: Corpus,  # noqa: F811
) -> None:
    if find_spec("pywb") is None:
        pytest.skip("pywb is not installed")
    collection = tmp_path / "c"
    crawled(collection, corpus, tmp_path / "log")
    files, lines = files_of(collection)
    assert len(lines) > 1_000
    with pywb(tmp_path / "before", files) as port:
        before = shown(port, lines)
    assert {status for status, *_ in before.values()} <= {200, 301, 302, 404}
    geomi("archive", "rewrite", collection, timeout_s=300)
    files, lines = files_of(collection)
    assert sum(line.mime == "warc/revisit" for line in lines) > len(lines) // 3
    with pywb(tmp_path / "after", files) as port:
        after = shown(port, lines)
    differing = [key for key in before if before[key] != after.get(key)]
    assert differing == []
    assert set(after) == set(before)
