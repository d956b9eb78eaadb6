"""What was crawled replays: every capture through pywb, from the collection and from a package."""

from __future__ import annotations

import gzip
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from bench.corpus import Corpus
from bench.nginx import serving

from geomi.world import Params, serve
from journeys.crawling import FAST, geomi, settings, to_world
from journeys.test_docs_sets import corpus  # noqa: F401  a fixture
from replaying import captures, differences, needs_pywb, replayed


def replays(indexes: list[Path], files: list[Path]) -> Counter[str]:
    """All captures of the WARC files, compared; what they were."""
    wanted = captures(files)
    with replayed(indexes, files) as client:
        wrong = differences(client, wanted)
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:20]])
    kinds = Counter(str(one.status) for one in wanted)
    kinds["revisit"] = sum(one.is_revisit for one in wanted)
    return kinds


def of_collection(collection: Path) -> tuple[list[Path], list[Path]]:
    return (sorted(collection.glob("archive/**/*.cdxj")),
            sorted(collection.glob("archive/**/*.warc.gz")))  # fmt: skip


def test_every_capture_of_the_small_world_replays(tmp_path: Path) -> None:
    needs_pywb()
    collection, package = tmp_path / "c", tmp_path / "c.wacz"
    with serve(Params(seed=81, sites=8, pages=10, crawl_delay_s=0.05)) as running:
        words = [*to_world(running), *settings(*FAST), "--json"]
        geomi("crawl", collection, *running.seeds(), *words, timeout_s=120)
        geomi("crawl", collection, "--again", *words, timeout_s=120)
    kinds = replays(*of_collection(collection))
    assert kinds["revisit"] > 50
    assert {"200", "302", "404"} <= set(kinds)

    geomi("archive", "pack", collection, package)
    with zipfile.ZipFile(package) as whole:
        whole.extractall(tmp_path / "u")
    warcs = sorted((tmp_path / "u" / "archive").iterdir())
    assert [path.read_bytes() for path in warcs] == [
        path.read_bytes() for path in sorted(collection.glob("archive/**/*.warc.gz"))
    ]


@pytest.mark.long
def test_every_capture_of_real_documentation_replays(tmp_path: Path, corpus: Corpus) -> None:  # noqa: F811
    needs_pywb()
    collection, package = tmp_path / "c", tmp_path / "c.wacz"
    with serving({corpus.name: corpus.folder}, access_log=tmp_path / "log") as port:
        seed = f"http://127.0.0.1:{port}/{corpus.name}/{corpus.seed}"
        own = ("--own", f"127.0.0.1:{port}")
        geomi("crawl", collection, seed, *own, timeout_s=300)
        geomi("crawl", collection, "--again", *own, timeout_s=300)
    kinds = replays(*of_collection(collection))
    assert kinds["revisit"] > 500

    files = sorted(collection.glob("archive/**/*.warc.gz"))
    since = min(one.timestamp14 for one in captures(files) if one.is_revisit)
    geomi("archive", "pack", collection, package, "--from", since, "--self-contained",
          timeout_s=300)  # fmt: skip
    with zipfile.ZipFile(package) as whole:
        whole.extractall(tmp_path / "u")
        (tmp_path / "u.cdxj").write_bytes(gzip.decompress(whole.read("indexes/index.cdx.gz")))
    alone = sorted((tmp_path / "u" / "archive").iterdir())
    assert not any(one.is_revisit for one in captures(alone))
    replays([tmp_path / "u.cdxj"], alone)
