"""The safety valves against traps are never hit by real documentation."""

from __future__ import annotations

from collections import deque
from urllib.parse import unquote, urlsplit

import pytest
from bench.corpus import CORPORA, Corpus

from geomi.extract import Extractor
from geomi.frontier.traps import Templates, Valves

HTML = {"content-type": "text/html"}


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.name)
def test_no_valve_closes_on_real_documentation(corpus: Corpus) -> None:
    if not corpus.is_installed():
        pytest.skip(f"needs {corpus.name} (a Debian package)")
    base = f"http://docs.test/{corpus.name}/"
    valves = Valves()
    templates = Templates(valves, pages=0)
    extractor = Extractor()
    depths = {base + corpus.seed: 0}
    waiting = deque(depths)
    refused = {}
    while waiting:
        url = waiting.popleft()
        why = valves.refusal(url, depths[url]) or templates.refusal(url)
        if why:
            refused[url] = why
        path = corpus.folder / unquote(urlsplit(url[len(base) :]).path)
        if path.suffix != ".html" or not path.is_file():
            continue
        for _, target in extractor.page(url, HTML, path.read_bytes()).links:
            if target.url.startswith(base) and target.url not in depths:
                depths[target.url] = depths[url] + 1
                waiting.append(target.url)
    assert len(depths) > 500
    assert refused == {}
