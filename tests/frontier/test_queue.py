from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomi.frontier.queue import Queue
from geomi.frontier.tables import Known


def known(page: int, rank: int = 0, *, not_before: float = 0.0, kind: str = "a") -> Known:
    return Known(
        page, f"http://a/{page}", rank, rank, 1, kind, "", 0, "NULL", 0, 0, "", "", "", "", "", "",
        2, not_before, 0,
    )  # fmt: skip


def load_all(queue: Queue, store: dict[int, Known], *, limit: int, now: float = 0.0) -> None:
    after = queue.load_begins()
    rows = [one for one in store.values() if (one.rank, one.page) > after]
    rows.sort(key=lambda one: (one.rank, one.page))
    queue.loaded(rows[:limit], limit=limit, now=now)


def test_pages_come_breadth_first_by_depth_and_then_in_order_of_discovery() -> None:
    queue = Queue(window=10)
    queue.load_begins()
    queue.loaded([], limit=10, now=0)
    for page, rank in ((5, 2), (2, 1), (9, 0), (1, 2)):
        queue.put(known(page, rank), now=0)
    assert [queue.next(0).page for _ in range(4)] == [9, 2, 1, 5]  # type: ignore[union-attr]
    assert queue.next(0) is None


def test_a_page_that_is_not_due_waits_until_its_time() -> None:
    queue = Queue(window=10)
    queue.load_begins()
    queue.loaded([known(1, not_before=50.0)], limit=10, now=0)
    assert queue.next(49.9) is None
    assert queue.next_due() == 50.0
    assert queue.next(50.0) is not None


def test_memory_is_bounded_by_the_window_however_many_pages_wait() -> None:
    queue = Queue(window=100)
    queue.load_begins()
    queue.loaded([], limit=100, now=0)
    for page in range(10_000):
        queue.put(known(page, page % 7), now=0)
    assert len(queue) <= 200
    assert not queue.is_empty


def pages_in_order(queue: Queue, store: dict[int, Known], *, limit: int) -> list[int]:
    order = []
    while not queue.is_empty:
        if queue.wants_load(0):
            load_all(queue, store, limit=limit)
        while (one := queue.next(0)) is not None:
            order.append(one.page)
            del store[one.page]
            queue.forget([one.page])
    return order


@pytest.mark.parametrize("window", [4, 10, 1000])
def test_doubted_hints_come_when_nothing_else_is_left(window: int) -> None:
    rows = {n: known(n, n // 5, kind="h" if n % 3 else "a") for n in range(1, 61)}
    queue = Queue(window=window)
    queue.doubts_hints = True
    order = pages_in_order(queue, dict(rows), limit=window)
    assert sorted(order) == list(rows)
    others = [page for page in order if rows[page].kind == "a"]
    assert others == sorted(others)
    if window == 1000:
        assert order[: len(others)] == others
    # Of many only as many as a window are put behind, so that memory stays bounded.
    assert all(rows[page].kind == "h" for page in order[-min(window, 40) :])


def test_hints_that_nobody_doubts_come_in_their_place() -> None:
    queue = Queue(window=10)
    queue.load_begins()
    queue.loaded([], limit=10, now=0)
    for page, kind in enumerate("hah", start=1):
        queue.put(known(page, kind=kind), now=0)
    assert [queue.next(0).page for _ in range(3)] == [1, 2, 3]  # type: ignore[union-attr]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6))
def test_a_random_walk_visits_every_page_exactly_once(seed: int) -> None:
    """Puts, loads, retries, shorter ways to what waits, commits in any order."""
    rng = random.Random(seed)
    store: dict[int, Known] = {}
    queue = Queue(window=rng.choice((1, 2, 5, 20)))
    limit = rng.choice((1, 3, 10))
    doubt = rng.choice((0.0, 0.5, 1.0))
    visited: list[int] = []
    settled: list[int] = []
    flying: list[Known] = []
    made = 0
    now = 0.0
    for _ in range(400):
        now += rng.random()
        queue.doubts_hints = rng.random() < doubt
        move = rng.random()
        if move < 0.35 and made < 120:
            made += 1
            new = known(
                made, rng.randint(0, 6), not_before=rng.choice((0.0, 0.0, now + 3)),
                kind=rng.choice("ah"),
            )  # fmt: skip
            store[made] = new
            queue.put(new, now=now)
        elif move < 0.42 and store:
            page = rng.choice(list(store))
            near = store[page]._replace(rank=rng.randint(-1, store[page].rank))
            if queue.nearer(near, now=now):
                store[page] = near
            else:
                assert queue.is_busy(page)
        elif move < 0.75:
            one = queue.next(now)
            if one is not None:
                flying.append(one)
        elif flying:
            one = flying.pop(rng.randrange(len(flying)))
            if rng.random() < 0.2:
                later = one._replace(not_before=now + rng.random() * 5, tries=one.tries + 1)
                store[one.page] = later
                queue.give_back(later, now=now)
            else:
                visited.append(one.page)
                settled.append(one.page)
        if settled and rng.random() < 0.3:
            for page in settled:
                del store[page]
            queue.forget(settled)
            settled.clear()
        if queue.wants_load(now):
            load_all(queue, store, limit=limit, now=now)
        queue.check()
    for _ in range(3000):
        now += 1
        for page in settled:
            del store[page]
        queue.forget(settled)
        settled.clear()
        for one in flying:
            visited.append(one.page)
            settled.append(one.page)
        flying.clear()
        while (one := queue.next(now)) is not None:
            visited.append(one.page)
            settled.append(one.page)
        if queue.wants_load(now):
            load_all(queue, store, limit=limit, now=now)
        if queue.is_empty and not settled:
            break
    assert sorted(visited) == list(range(1, made + 1))
    assert queue.is_empty


def test_a_queue_that_is_made_smaller_lets_go_and_reads_the_rest_again() -> None:
    store = {page: known(page) for page in range(400)}
    queue = Queue(window=1000)
    load_all(queue, store, limit=queue.window)
    queue.resize(20)
    assert len(queue) <= 40
    seen = []
    while len(seen) < 400:
        if queue.wants_load(0):
            load_all(queue, store, limit=queue.window)
        one = queue.next(0)
        assert one is not None
        seen.append(one.page)
        assert len(queue) <= 40
    assert seen == list(range(400))


def test_a_queue_made_smaller_while_it_loads_loses_nothing() -> None:
    store = {page: known(page) for page in range(100)}
    queue = Queue(window=50)
    after = queue.load_begins()
    queue.resize(10)
    rows = sorted(((one.rank, one.page), one) for one in store.values())
    queue.loaded([one for key, one in rows if key > after][:50], limit=50, now=0)
    seen = []
    while len(seen) < 100:
        if queue.wants_load(0):
            load_all(queue, store, limit=queue.window)
        one = queue.next(0)
        assert one is not None
        seen.append(one.page)
    assert seen == list(range(100))
