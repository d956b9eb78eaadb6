"""The charset of Korean pages of the small world: with a label, without, and with a wrong one."""

from __future__ import annotations

from collections import Counter

import pytest

from geomi.extract import Extractor
from geomi.world import Params, World
from geomi.world.charsets import CHARSETS, CharsetKind
from geomi.world.features import PLAIN

KOREAN = [kind for kind in CHARSETS if kind.korean]
UNLABELLED = [kind for kind in KOREAN if not kind.header and not kind.meta]
LABELLED = [kind for kind in KOREAN if kind not in UNLABELLED]


def measured(kind: CharsetKind, *, sites: int, pages: int) -> tuple[int, int]:
    """(pages told right, pages) of one way to say, or not to say, a charset."""
    shares = {**PLAIN, **{f"charset.{one.name}": 0.0 for one in CHARSETS}}
    shares |= {f"charset.{kind.name}": 1.0, "corner.search": 0.2, "corner.zoo": 0.1}
    world = World(Params(seed=11, sites=sites, pages=pages, korean=1.0, shares=shares))
    extractor = Extractor()
    count: Counter[bool] = Counter()
    for site in world.sites:
        for url in world.urls(site):
            answer = world.answer(site.host, url[len(site.base) :])
            fields = {name.lower(): value for name, value in answer.headers}
            if answer.status == 200 and "html" in fields.get("content-type", ""):
                found = extractor.page(url, fields, answer.body).charset
                count[found == site.charset.encoding] += 1
    return count[True], count.total()


@pytest.mark.parametrize("kind", LABELLED, ids=lambda kind: kind.name)
def test_every_labelled_page_is_told_right(kind: CharsetKind) -> None:
    right, pages = measured(kind, sites=12, pages=12)
    assert pages > 100
    assert right == pages


@pytest.mark.parametrize("kind", UNLABELLED, ids=lambda kind: kind.name)
def test_nearly_every_page_without_label_is_told_right(kind: CharsetKind) -> None:
    right, pages = measured(kind, sites=40, pages=25)
    assert pages > 800
    assert right >= 0.995 * pages, f"{right} of {pages}"
