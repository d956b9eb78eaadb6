"""Which engine carries the agents: the setting, and the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from geomi.cluster.engine import Engine
from geomi.cluster.local import LocalEngine
from geomi.config import Settings
from geomi.errors import OperatorError


@contextmanager
def engine_of(settings: Settings, *, agents: int | None = None) -> Iterator[Engine]:
    """The engine of `cluster.engine`, closed at the end. Taken before store and locks are.

    `agents`: so many are to be placed; default: `crawl.agents`.
    """
    engine: Engine
    if settings.cluster.engine == "ray":
        from geomi.cluster.on_ray import RayEngine

        engine = on_ray = RayEngine(settings.cluster.address)
        if agents != 0 and "://" not in settings.store and len(machines := on_ray.machines) > 1:
            engine.close()
            raise OperatorError(
                f"the store is SQLite, which agents on {len(machines)} machines cannot share;"
                ' set store = "postgresql://…"'
            )
    else:
        engine = local = LocalEngine()
        local.ready(settings.crawl.agents if agents is None else agents)
    try:
        yield engine
    finally:
        engine.close()
