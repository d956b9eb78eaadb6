"""Real documentation, served by nginx: geomi finds what `wget -r` finds."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.corpus import CORPORA, Corpus
from bench.nginx import serving

from journeys.crawling import geomi, must_be_sound, outcomes, pages

#: What one of the two asks for and the other does not, by corpus, each with its reason.
WGET_ALONE = {
    # <link rev="made" href="pgsql-docs@…">, a mail address without `mailto:`: the link says who
    # made the page. geomi takes no page from a link whose `rev`, not `rel`, says what it is.
    "postgresql-doc-15": {"/postgresql-doc-15/pgsql-docs@lists.postgresql.org"},
}
GEOMI_ALONE: dict[str, set[str]] = {}

_MISSING = [name for name in ("nginx", "wget") if not shutil.which(name, path="/usr/sbin:/usr/bin")]


@pytest.fixture(params=CORPORA[:2], ids=lambda corpus: corpus.name)
def corpus(request: pytest.FixtureRequest) -> Iterator[Corpus]:
    found: Corpus = request.param
    if _MISSING or not found.is_installed():
        pytest.skip(f"needs {', '.join([*_MISSING, found.name])} (Debian packages)")
    yield found


def asked(log: Path, *, first: int = 0) -> set[str]:
    """Paths that nginx was asked for, from its log's line `first` on."""
    lines = log.read_text().splitlines()[first:]
    return {line.split('"')[1].split()[1] for line in lines} - {"/robots.txt"}


def test_the_pages_of_real_documentation_are_those_that_wget_finds(
    tmp_path: Path, corpus: Corpus
) -> None:
    log = tmp_path / "log"
    with serving({corpus.name: corpus.folder}, access_log=log) as port:
        seed = f"http://127.0.0.1:{port}/{corpus.name}/{corpus.seed}"
        subprocess.run(
            ["wget", "-q", "-r", "-l", "inf", "-P", tmp_path / "wget", seed],
            check=False, timeout=300,
        )  # fmt: skip
        by_wget = asked(log)
        lines = len(log.read_text().splitlines())
        geomi("crawl", tmp_path / "c", seed, "--own", f"127.0.0.1:{port}", timeout_s=300)
        by_geomi = asked(log, first=lines)
    assert len(by_wget) > 500
    assert by_wget - by_geomi == WGET_ALONE.get(corpus.name, set())
    assert by_geomi - by_wget == GEOMI_ALONE.get(corpus.name, set())
    start = f"http://127.0.0.1:{port}"
    assert {url.removeprefix(start) for url in outcomes(tmp_path / "c")} == by_geomi
    assert {row["why"] for row in pages(tmp_path / "c")} <= {"", "prefix"}  # no valve closed
    must_be_sound(tmp_path / "c")
