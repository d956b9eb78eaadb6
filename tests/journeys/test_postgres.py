"""Crawls whose store is a real PostgreSQL server: complete, killed, cut off, and wrongly named."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomi.store import open_store
from geomi.world import Params, Running, reachable, serve
from geomi.world.features import PROMPT
from journeys.crawling import (
    ENVIRONMENT,
    FAST,
    agents_of,
    end,
    geomi,
    kill,
    must_be_sound,
    outcomes,
    settings,
    start,
    to_world,
)
from postgres import PASSWORD, Postgres, server

_SLOWLY = (
    "manners.rest_s=0.04", "manners.rest_factor=0", "manners.address_rest_s=0",
    "retry.gap_s=0.05", "fetch.connect_s=2", "agent.batch_s=0.1", "agent.batch_visits=10",
    "crawl.seen=exact",
)  # fmt: skip


@pytest.fixture(scope="module")
def slow() -> Iterator[Running]:
    with serve(Params(seed=70, sites=10, pages=24, shares=PROMPT)) as running:
        yield running


@pytest.fixture
def own() -> Iterator[Postgres]:
    """A server that a test may kill."""
    with server() as running:
        yield running


def words(running: Running, collection: Path, address: str, *more: str) -> list[object]:
    given = [] if collection.exists() else ["--set", f"store={address}"]
    return ["crawl", collection, *running.seeds(), *to_world(running), *settings(*_SLOWLY), *given,
            "--agents", "2", "--json", *more]  # fmt: skip


def must_be_whole(running: Running, collection: Path, address: str) -> None:
    wanted = {url: one.outcome for url, one in reachable(running.world, running.seeds()).items()}
    assert outcomes(collection) == wanted
    store = open_store(address, readonly=True)
    twice = store.all(
        "SELECT v.page, v.run, count(*) FROM visits v WHERE v.outcome = 'OK' AND v.page > 0"
        " GROUP BY v.page, v.run HAVING count(*) > 1"
    )
    places = store.all(
        'SELECT file, "offset", count(*) FROM visits WHERE file > 0'
        ' GROUP BY file, "offset" HAVING count(*) > 1'
    )
    store.close()
    assert (twice, places) == ([], [])
    must_be_sound(collection)
    assert geomi("verify", collection, "--politeness", "--json", code=None).code == 0


def wait_for_visits(collection: Path, number: int = 20) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if (collection / "geomi.toml").exists():
            status = geomi("status", collection, "--json", code=None)
            if status.code == 0 and status.facts["visits"] > number:
                return
        time.sleep(0.05)
    raise AssertionError("no agent has visited anything")


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 9))]
)
def test_a_crawl_of_two_agents_finds_what_is_reachable(
    tmp_path: Path, postgres: Postgres, seed: int
) -> None:
    collection = tmp_path / "c"
    with serve(Params(seed=seed, sites=20, pages=20, crawl_delay_s=0.05)) as running:
        geomi("crawl", collection, *running.seeds(), *to_world(running),
              *settings(*FAST, "crawl.seen=exact", f"store={postgres.schema()}"),
              "--agents", "2", "--json")  # fmt: skip
        wanted = {u: one.outcome for u, one in reachable(running.world, running.seeds()).items()}
    assert outcomes(collection) == wanted
    must_be_sound(collection)
    assert not (collection / "geomi.db").exists()


def test_a_crawl_killed_before_it_made_its_store_goes_on(
    tmp_path: Path, plain: Running, postgres: Postgres
) -> None:
    collection = tmp_path / "c"
    collection.mkdir()
    (collection / "geomi.toml").write_text(f'store = "{postgres.schema()}"\n')
    assert "no seed" in geomi("crawl", collection, code=2).err
    geomi("crawl", collection, plain.seeds(1)[0], *to_world(plain), *settings(*FAST),
          "--max-depth", "0")  # fmt: skip
    assert outcomes(collection)[plain.seeds(1)[0]] == "OK"


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 20))]
)
def test_agents_and_supervisors_killed_at_random_moments_cost_nothing_but_time(
    tmp_path: Path, slow: Running, postgres: Postgres, number: int
) -> None:
    chance = random.Random(number)
    collection, address = tmp_path / "c", postgres.schema()
    for whom in chance.sample(["agent", "supervisor", "all"], 3):
        process = start(*words(slow, collection, address))
        time.sleep(chance.uniform(0.6, 2.0))
        agents = agents_of(process.pid)
        if whom == "agent" and agents:
            kill(chance.choice(agents))
            time.sleep(chance.uniform(0.1, 1.0))
            agents = agents_of(process.pid)
        kill(process.pid)
        if whom != "supervisor":
            for agent in agents:
                kill(agent)
        process.communicate(timeout=60)
    geomi(*words(slow, collection, address))
    must_be_whole(slow, collection, address)


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 20))]
)
def test_a_server_killed_and_started_again_costs_nothing_but_time(
    tmp_path: Path, slow: Running, own: Postgres, number: int
) -> None:
    chance = random.Random(number)
    collection, address = tmp_path / "c", own.schema()
    process = start(*words(slow, collection, address))
    wait_for_visits(collection)
    for _ in range(2):
        time.sleep(chance.uniform(0.0, 0.7))
        own.kill()
        time.sleep(chance.uniform(0.0, 1.5))
        own.start()
        time.sleep(chance.uniform(0.3, 2.0))
    done = end(process, timeout_s=120)
    if done.code == 1 and done.facts["ended"] == "disk":  # killed as the crawl came to its end
        done = geomi("crawl", collection, "--json", timeout_s=120)
    assert done.code == 0, done
    must_be_whole(slow, collection, address)


def test_a_second_coordinator_is_refused_waits_or_takes_over(
    tmp_path: Path, slow: Running, postgres: Postgres
) -> None:
    collection, address = tmp_path / "c", postgres.schema()
    first = start(*words(slow, collection, address))
    wait_for_visits(collection)
    second = geomi("crawl", collection, code=2)
    assert f"process {first.pid} on" in second.err and second.err.count("\n") == 1
    waiting = start(*words(slow, collection, address, "--wait"))
    first.send_signal(signal.SIGINT)
    assert end(first).code == 1
    wait_for_agents(waiting)
    third = start(*words(slow, collection, address, "--take-over"))
    done = end(waiting)
    assert done.code == 1
    assert f"process {third.pid} on" in done.err and "taken" in done.err
    assert end(third).code == 0
    must_be_whole(slow, collection, address)


def wait_for_agents(process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while not agents_of(process.pid):
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.3)


def test_init_makes_the_schema_and_names_it(tmp_path: Path, postgres: Postgres) -> None:
    collection = tmp_path / "My News 2"
    geomi("init", collection, "--store", postgres.address)
    assert (
        f'store = "{postgres.address}?schema=my_news_2"' in (collection / "geomi.toml").read_text()
    )
    assert postgres.sql("SELECT count(*) FROM my_news_2.visits", database="geomi") == "0"
    other = geomi("init", tmp_path / "my news 2", "--store", postgres.address, code=2)
    assert "there is a collection already" in other.err
    assert not (tmp_path / "my news 2").exists()


WRONG = {
    "nobody listens": ("postgresql://geomi@127.0.0.1:9/geomi", "Connection refused"),
    "unknown database": ("postgresql://geomi@127.0.0.1:{port}/none", '"none" does not exist'),
    "unknown user": ("postgresql://none@127.0.0.1:{port}/geomi", "none"),
    "wrong password": ("postgresql://locked:env:PW@127.0.0.1:{port}/geomi", "password"),
    "no such variable": ("postgresql://locked:env:NONE@127.0.0.1:{port}/geomi", "no NONE"),
    "no such file": ("postgresql://locked:file:none@127.0.0.1:{port}/geomi", "No such file"),
    "a password in sight": ("postgresql://locked:pw-1@127.0.0.1:{port}/geomi", "env:NAME"),
    "a wrong schema": ("postgresql://geomi@127.0.0.1:{port}/geomi?schema=A-B", "schema"),
    "a wrong option": ("postgresql://geomi@127.0.0.1:{port}/geomi?colour=red", "colour"),
    "no right to make it": ("postgresql://locked:env:RIGHT@127.0.0.1:{port}/geomi", "denied"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("command", ["init", "crawl"])
def test_an_address_that_cannot_be_used_is_one_sentence_and_nothing_is_made(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, what: str, command: str
) -> None:
    address, wanted = WRONG[what]
    address = address.format(port=postgres.port)
    monkeypatch.setitem(ENVIRONMENT, "PW", "pw-1")
    monkeypatch.setitem(ENVIRONMENT, "RIGHT", PASSWORD)
    if command == "init":
        words: list[object] = ["init", tmp_path / "c", "--store", address]
    else:
        words = ["crawl", tmp_path / "c", "http://a.example/", "--set", f"store={address}"]
    done = geomi(*words, code=2)
    assert wanted in done.err and done.err.count("\n") == 1, done.err
    assert "pw-1" not in done.err and PASSWORD not in done.err
    assert not (tmp_path / "c").exists()


def test_a_schema_newer_than_the_program_is_not_touched(tmp_path: Path, postgres: Postgres) -> None:
    collection, address = tmp_path / "c", postgres.schema()
    geomi("init", collection, "--store", address)
    store = open_store(address)
    store.run("UPDATE meta SET value = '999' WHERE name = 'schema'")
    for command in (["crawl", collection, "http://a.example/"], ["status", collection]):
        done = geomi(*command, code=2)
        assert "its schema is version 999" in done.err and done.err.count("\n") == 1
    assert store.all("SELECT 1 FROM runs") == store.all("SELECT 1 FROM seeds") == []
    store.close()


def test_a_collection_keeps_its_store(tmp_path: Path, postgres: Postgres) -> None:
    collection = tmp_path / "c"
    geomi("init", collection, "--store", postgres.schema())
    done = geomi("crawl", collection, "http://a.example/", "--set", f"store={postgres.schema()}",
                 code=2)  # fmt: skip
    assert "geomi store move" in done.err
