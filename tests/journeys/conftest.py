"""Small webs that several journeys share; nobody changes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from geomi.world import Params, Running, serve
from geomi.world.features import PLAIN, PROMPT


@pytest.fixture(scope="session")
def web() -> Iterator[Running]:
    """Everything that costs a visitor no time: redirects, errors, robots.txt, duplicates."""
    with serve(Params(seed=7, sites=16, pages=25, shares=PROMPT)) as running:
        yield running


@pytest.fixture(scope="session")
def plain() -> Iterator[Running]:
    """Ordinary pages that all answer."""
    with serve(Params(seed=8, sites=12, pages=40, shares=PLAIN)) as running:
        yield running
