"""What every engine does with agents and with heavy work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path

import pytest

from contract import work
from contract.unreliable import Unreliable
from geomi.cluster.engine import Engine
from geomi.cluster.local import LocalEngine
from geomi.cluster.on_ray import RayEngine
from geomi.errors import InternalError
from rays import cluster


@pytest.fixture(scope="module", params=["local", "unreliable", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param != "ray":
        local = LocalEngine(workers=2)
        with closing(Unreliable(local) if request.param == "unreliable" else local) as made:
            yield made
        return
    with cluster() as running, closing(RayEngine(running.address)) as made:
        yield made


def test_each_item_is_worked_on_and_comes_back_with_its_result(engine: Engine) -> None:
    assert dict(engine.run_tasks(work.square, range(20))) == {n: n * n for n in range(20)}


def test_items_may_be_endless(engine: Engine) -> None:
    some = dict(islice(engine.run_tasks(work.square, count()), 5))
    assert len(some) == 5 and all(value == item * item for item, value in some.items())


def test_nothing_to_do_is_done_at_once(engine: Engine) -> None:
    assert list(engine.run_tasks(work.square, ())) == []


def test_an_error_of_the_work_comes_to_the_caller(engine: Engine) -> None:
    with pytest.raises(ValueError, match="3 is refused"):
        list(engine.run_tasks(work.refuse, [3]))


def test_the_item_of_a_worker_that_dies_is_done_again(engine: Engine, tmp_path: Path) -> None:
    marks = [str(tmp_path / name) for name in "abc"]
    got = [(item, result) for item, result in engine.run_tasks(work.die_once, marks)]
    assert sorted(got) == [(mark, Path(mark).name) for mark in marks]


def test_work_that_kills_every_worker_is_an_error_and_no_endless_loop(
    engine: Engine, tmp_path: Path
) -> None:
    with pytest.raises(InternalError, match="die"):
        list(engine.run_tasks(work.die, [str(tmp_path / "x")]))
