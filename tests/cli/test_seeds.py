from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geomi import url as urls
from geomi.cli.seeds import app
from geomi.cluster.collection import Collection
from geomi.cluster.coordinator import Coordinator
from geomi.errors import OperatorError
from geomi.seeds.lists import Seed, parse_list
from geomi.seeds.tables import PUT_OUTSIDE, add_seed

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str | Path) -> tuple[int, str, str]:
        code = app([str(word) for word in words], standalone_mode=False)
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def news(tmp_path: Path) -> Path:
    path = tmp_path / "news"
    Collection(path).create()
    return path


@pytest.fixture
def full(news: Path) -> Path:
    """Two seeds given, one found, one candidate."""
    place = Collection(news)
    settings = place.settings()
    store = place.open_store(settings)
    Coordinator(store, settings).add_seeds(
        [
            Seed(url="http://a.org/", labels={"kind": "press", "name": "가 나"}),
            Seed(url="http://b.org/x", labels={"kind": "press"}, source="list.txt"),
        ],
        now=1.0,
    )
    with store.transaction():
        add_seed(
            store, "http://c.org/", url_hash=urls.url_hash("http://c.org/"), site="c.org",
            labels={}, source="found", now=2.0,
        )  # fmt: skip
        candidate = ("http://d.org/1", "d.org", "d.org", "a", "http://a.org/", 1, 1, 2.0)
        store.run(PUT_OUTSIDE, (1, *candidate))
    store.close()
    return news


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_urls_and_files_are_added_with_labels(run: Run, news: Path, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes('b.org/x 분류="가 나"\n'.encode("cp949"))
    code, out, err = run("add", news, "a.org", "--file", path, "--label", "by=me and you")
    assert (code, out, err) == (0, f"{news}: 2 seeds added, 0 were there\n", "")
    assert [
        (row["url"], row["site"], row["source"], row["labels"])
        for row in objects(run("list", news, "--json")[1])
    ] == [
        ("http://a.org/", "a.org", "given", {"by": "me and you"}),
        ("http://b.org/x", "b.org", "list.txt", {"by": "me and you", "분류": "가 나"}),
    ]


def test_a_seed_that_was_there_is_told(run: Run, full: Path) -> None:
    code, out, _ = run("add", full, "http://A.org:80/#x", "http://e.org", "--json")
    assert code == 0
    assert objects(out) == [{"added": 1, "given": 2, "problems": 0}]


def test_what_is_added_waits_for_the_crawl(run: Run, news: Path) -> None:
    run("add", news, "a.org")
    store = Collection(news).read_store()
    try:
        assert store.all("SELECT site, url, kind FROM inbox") == [("a.org", "http://a.org/", "s")]
    finally:
        store.close()


def test_lines_that_cannot_be_read_are_told_and_the_rest_is_added(
    run: Run, news: Path, tmp_path: Path
) -> None:
    path = tmp_path / "list.txt"
    path.write_text("a.org\nftp://b.org/\x1b[31m\nc.org junk\n")
    code, out, err = run("add", news, "--file", path)
    assert code == 1
    assert "2 seeds added" in out
    assert err.splitlines() == [
        f"geomi: {path} line 2: ftp is neither http nor https: ftp://b.org/\\x1b[31m",
        f"geomi: {path} line 3: no label of the form key=value: junk",
    ]


def test_a_list_may_come_by_standard_input(
    run: Run, news: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a.org\nb.org\n")))
    assert "2 seeds added" in run("add", news, "--file", "-")[1]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([], "no seed: give a URL, or --file FILE"),
        (["a.org", "ftp://b.org/"], "ftp is neither"),
        (["a.org", "--file", "/no/such/file"], "cannot be read: No such file"),
        (["a.org", "--file", "/dev/null"], "no seed in it"),
        (["a.org", "--label", "x"], "wanted key=value"),
    ],
)
def test_a_wrong_command_changes_nothing(run: Run, news: Path, words: list[str], what: str) -> None:
    before = sorted(news.iterdir())
    with pytest.raises(OperatorError, match=what):
        run("add", news, *words)
    assert sorted(news.iterdir()) == before


@pytest.mark.parametrize("command", ["add", "list", "export", "labels"])
def test_a_collection_must_be_there(run: Run, tmp_path: Path, command: str) -> None:
    with pytest.raises(OperatorError, match="no collection here"):
        run(command, tmp_path / "none", *(["a.org"] if command == "add" else []))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], ["http://a.org/", "http://b.org/x", "http://c.org/"]),
        (["--given"], ["http://a.org/", "http://b.org/x"]),
        (["--found"], ["http://c.org/"]),
        (["--label", "kind=press", "--label", "name=가 나"], ["http://a.org/"]),
        (["--label", "kind=other"], []),
    ],
)
def test_list_and_export_choose_alike(
    run: Run, full: Path, options: list[str], wanted: list[str]
) -> None:
    assert [row["url"] for row in objects(run("list", full, *options, "--json")[1])] == wanted
    seeds, problems = parse_list(run("export", full, *options)[1])
    assert problems == []
    assert [seed.url for seed in seeds] == wanted


def test_a_listed_seed_has_all_that_is_known_of_it(run: Run, full: Path) -> None:
    assert objects(run("list", full, "--found", "--json")[1]) == [
        {
            "seed": 3, "url": "http://c.org/", "site": "c.org", "labels": {}, "source": "found",
            "outcome": "NULL", "pages": 0, "digest": "", "seconds": 0,
        }
    ]  # fmt: skip


def test_the_table_is_aligned_although_korean_letters_are_wide(run: Run, full: Path) -> None:
    lines = run("list", full)[1].splitlines()
    assert lines[0].split() == ["seed", "url", "from", "outcome", "pages", "time", "labels"]
    assert lines[1] == (
        '   1  http://a.org/   given     NULL         0        kind=press name="가 나"'
    )
    assert lines[3] == "   3  http://c.org/   found     NULL         0"


def test_an_export_is_the_input_of_another_crawl(run: Run, full: Path, tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    code, out, err = run("export", full, "--output", path)
    assert (code, out, err) == (0, "", f"{path}: 3 seeds\n")
    other = tmp_path / "other"
    Collection(other).create()
    assert run("add", other, "--file", path)[0] == 0
    assert run("export", other)[1] == run("export", full)[1] == path.read_text("utf-8")


def test_an_export_replaces_an_older_one_and_leaves_nothing_beside_it(
    run: Run, full: Path, tmp_path: Path
) -> None:
    path = tmp_path / "out" / "seeds.txt"
    path.parent.mkdir()
    path.write_text("older")
    run("export", full, "-o", path)
    assert path.read_text("utf-8").startswith("http://a.org/ ")
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(OperatorError, match=r"seeds\.txt: cannot be written: No such file"):
        run("export", full, "-o", tmp_path / "none" / "seeds.txt")
    with pytest.raises(OperatorError, match="cannot be written: Is a directory"):
        run("export", full, "-o", path.parent)
    assert sorted(tmp_path.iterdir()) == [full, path.parent]


def test_labels_are_counted(run: Run, full: Path) -> None:
    assert objects(run("labels", full, "--json")[1]) == [
        {"key": "kind", "value": "press", "seeds": 2, "pages": 0},
        {"key": "name", "value": "가 나", "seeds": 1, "pages": 0},
    ]
    assert run("labels", full)[1].splitlines()[1].split() == ["kind", "press", "2", "0"]


def test_candidates_are_sites_that_no_rule_admitted(run: Run, full: Path) -> None:
    assert objects(run("list", full, "--candidates", "--json")[1]) == [
        {"site": "d.org", "urls": 1, "url": "http://d.org/1", "via": "http://a.org/"}
    ]
    assert "d.org" in run("list", full, "--candidates")[1]
    with pytest.raises(OperatorError, match="--candidates goes with"):
        run("list", full, "--candidates", "--found")
