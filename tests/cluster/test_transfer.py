"""A collection's state taken from SQLite to PostgreSQL and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.small import SEED, Small, some
from geomi.cli.main import run
from geomi.cluster.collection import Collection
from geomi.cluster.tables import begin_run
from geomi.cluster.transfer import move
from geomi.cluster.verify import verify
from geomi.store import Store, open_store
from geomi.store.copy import tables_of
from postgres import Postgres

Out = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path) -> Collection:
    """A finished crawl, with a setting of its own and a comment in geomi.toml."""
    small = some(tmp_path / "c")
    with small.store.transaction():
        small.store.run("UPDATE pages SET title = ? WHERE url = ?", ("a\0b \\ 거미\t\n", SEED))
    small.store.close()
    return small.place


def rows(store: Store) -> dict[str, list[Any]]:
    found = {}
    for name, columns in tables_of(store).items():
        listed = ", ".join(f'"{column}"' for column in sorted(columns))
        found[name] = sorted(store.all(f"SELECT {listed} FROM {name}"), key=repr)
    return found


def all_rows(place: Collection) -> dict[str, list[Any]]:
    store = place.read_store()
    try:
        report = verify(store, where=place.archive_path, directories=["archive"])
        assert report.problems == ()
        return rows(store)
    finally:
        store.close()


def without_nul(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    text = repr(found).replace("\\x00", "\ufffd")
    moved: dict[str, list[Any]] = eval(text)
    return moved


def test_there_and_back_nothing_is_lost(place: Collection, postgres: Postgres, capsys: Out) -> None:
    before, toml = all_rows(place), (place.path / "geomi.toml").read_text()
    assert run(["store", "move", str(place.path), postgres.schema(), "--json"]) == 0
    there = json.loads(capsys.readouterr().out)
    assert there["rows"]["pages"] == len(before["pages"]) == 5
    assert "127.0.0.1" in there["to"]
    assert Path(there["kept"]).is_file() and not (place.path / "geomi.db").exists()
    assert all_rows(place) == without_nul(before)
    assert 'store = "postgresql://' in (place.path / "geomi.toml").read_text()
    assert run(["store", "move", str(place.path), "sqlite", "--json"]) == 0
    back = json.loads(capsys.readouterr().out)
    assert back["kept"].startswith("schema test_")
    assert back["rows"] == there["rows"]
    assert all_rows(place) == without_nul(before)
    assert (place.path / "geomi.toml").read_text() == toml.replace("\nstore =", "\n# store =")


def test_a_moved_collection_gives_new_numbers_and_goes_on(
    place: Collection, postgres: Postgres, capsys: Out
) -> None:
    address = postgres.schema()
    assert run(["store", "move", str(place.path), address]) == 0
    assert "the old state is kept as" in capsys.readouterr().out
    store = open_store(address)
    last = store.all("SELECT max(run) FROM runs")[0][0]
    with store.transaction():
        assert begin_run(store, "more", "{}", 1.0) == last + 1
        row = store.one(
            "INSERT INTO log (batch, change, visit) VALUES (1, 'added', 1) RETURNING entry"
        )
        assert row is not None and row[0] == store.all("SELECT count(*) FROM log")[0][0]
    store.close()


def nothing_changed(place: Collection, before: bytes) -> None:
    assert (place.path / "geomi.toml").read_bytes() == before
    assert sorted(path.name for path in place.path.glob("geomi*")) == ["geomi.db", "geomi.toml"]


def test_it_is_refused_where_something_is_there_already(
    place: Collection, postgres: Postgres, capsys: Out, tmp_path: Path
) -> None:
    address = postgres.schema()
    other = Small(tmp_path / "other", address=address)
    before = (place.path / "geomi.toml").read_bytes()
    assert run(["store", "move", str(place.path), address]) == 2
    assert "there is a collection already" in capsys.readouterr().err
    assert run(["store", "move", str(place.path), "sqlite"]) == 2
    assert "its store is there already" in capsys.readouterr().err
    assert run(["store", "move", str(place.path), "mysql"]) == 2
    assert "wanted sqlite, or postgresql://" in capsys.readouterr().err
    assert run(["store", "move", str(place.path), "postgresql://127.0.0.1:9/x"]) == 2
    assert "refused" in capsys.readouterr().err
    assert run(["store", "move", str(tmp_path / "none"), "sqlite"]) == 2
    assert "no collection here" in capsys.readouterr().err
    nothing_changed(place, before)
    (tmp_path / "other" / "geomi.db").touch()
    assert run(["store", "move", str(tmp_path / "other"), "sqlite"]) == 2
    assert "there is a store already" in capsys.readouterr().err
    assert len(other.store.all("SELECT * FROM seeds")) == 1


def test_it_is_refused_while_a_crawl_runs_or_its_agents_hold_sites(
    tmp_path: Path, shared: str, postgres: Postgres, capsys: Out
) -> None:
    small = Small(tmp_path / "c", address=shared)
    to = "sqlite" if shared else postgres.schema()
    with small.store.transaction():
        small.store.run("UPDATE sites SET lease_until = ?", (small.store.now() + 50,))
    assert run(["store", "move", str(small.place.path), to]) == 2
    assert "agents still hold 1 sites" in capsys.readouterr().err
    helm = small.place.coordinate(small.settings)
    assert run(["store", "move", str(small.place.path), to]) == 2
    assert "another geomi works on it (process" in capsys.readouterr().err
    helm.release()


def test_what_goes_wrong_midway_leaves_all_as_it_was(
    place: Collection, postgres: Postgres, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    from geomi.store import copy

    before = (place.path / "geomi.toml").read_bytes()
    address = postgres.schema()
    monkeypatch.setattr(copy, "_number_on", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(["store", "move", str(place.path), address])
    nothing_changed(place, before)
    monkeypatch.undo()
    assert run(["store", "move", str(place.path), address]) == 0
    before = (place.path / "geomi.toml").read_bytes()

    def count(store: Store, table: str) -> int:
        return -1 if table == "visits" else store.all(f"SELECT count(*) FROM {table}")[0][0]

    monkeypatch.setattr(copy, "_count", count)
    assert run(["store", "move", str(place.path), "sqlite"]) == 1
    assert "visits: " in capsys.readouterr().err
    assert (place.path / "geomi.toml").read_bytes() == before
    assert not list(place.path.glob("geomi.db.new*")) and not (place.path / "geomi.db").exists()


def test_a_geomi_toml_keeps_its_other_lines() -> None:
    from geomi.sheet import with_store

    text = '# a\n# store = "x"\n store="y"\n[crawl]\nstore = 1\n'
    assert with_store(text, "z") == '# a\n# store = "x"\nstore = "z"\n[crawl]\nstore = 1\n'
    assert with_store("[crawl]\n", "z") == 'store = "z"\n[crawl]\n'
    assert with_store('store = "z"\n', "") == '# store = ""\n'


@pytest.mark.parametrize(
    "words",
    [["seeds", "add", "{}", "http://late.example/"],
     ["seeds", "aliases", "{}", "--undo", "www.a.example"]],
)  # fmt: skip
def test_who_writes_while_the_store_is_moved_is_refused_and_nothing_is_lost(
    place: Collection, postgres: Postgres, capsys: Out, words: list[str]
) -> None:
    """Else it would wait for the old store, and write into what nobody reads any more."""
    before, said = all_rows(place), []
    words = [word.format(place.path) for word in words]

    def meanwhile(table: str, done: int, every: int) -> None:
        if not said:
            said.append((run(words), capsys.readouterr().err))

    move(place, postgres.schema(), tell=meanwhile)
    assert said == [
        (2, f"geomi: {place.path}: its store is being moved; try again when that has ended\n")
    ]
    assert all_rows(place) == without_nul(before)
    run(words)  # now it may: it finds the new one
    assert "being moved" not in capsys.readouterr().err


def test_a_store_is_not_moved_while_another_command_writes(
    place: Collection, postgres: Postgres, capsys: Out
) -> None:
    before = all_rows(place)
    with place.writing(), place.writing():  # they do not hinder each other
        assert run(["store", "move", str(place.path), postgres.schema()]) == 2
    assert capsys.readouterr().err == (
        f"geomi: {place.path}: another command writes to it; try again when that has ended\n"
    )
    assert all_rows(place) == before
    assert 'store = "postgresql' not in (place.path / "geomi.toml").read_text()
