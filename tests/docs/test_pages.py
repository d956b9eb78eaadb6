"""The reference is whole and true; what the docs mention exists."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from docs.pages import DOCS, MADE, blocks, commands, main, record_names, renewed, tables
from geomi import states
from geomi.keys import KEYS
from geomi.sheet import reference

ROOT = DOCS.parent
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
MADE_NOW = blocks()


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def made_in(name: str) -> Counter[str]:
    return Counter(MADE.findall(text_of(name)))


def id_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=id_of)
def test_what_is_made_from_the_program_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert renewed(text, MADE_NOW) == text, "run `make docs`"


def test_the_page_of_settings_is_up_to_date_and_names_every_setting() -> None:
    text = text_of("docs/reference/settings.md")
    assert text == reference(), "run `make docs`"
    for full in KEYS:
        assert f"`{full.rpartition('.')[2]}`" in text, full


def test_every_command_with_every_option_is_in_the_reference_once() -> None:
    made = made_in("docs/reference/commands.md")
    assert made == Counter(f"command {name}" for name in commands())
    text = text_of("docs/reference/commands.md")
    for name, command in commands().items():
        assert f"\n## {name}\n" in text
        for param in command.params:
            if param.param_type_name == "option":
                assert f"`{param.opts[0]}`" in MADE_NOW[f"command {name}"]


def test_every_option_says_what_it_does() -> None:
    for name, command in commands().items():
        assert command.help, name
        for param in command.params:
            assert param.help, f"{name}: {param.name}"


def test_every_record_with_every_field_is_in_the_reference_once() -> None:
    made = made_in("docs/reference/records.md")
    assert made == Counter([*(f"record {name}" for name in record_names()), "errors"])
    from geomi import records

    for name in record_names():
        for field in getattr(getattr(records, name), "__dataclass_fields__", {}):
            assert f"| `{field}` |" in MADE_NOW[f"record {name}"]


def test_every_table_with_every_column_is_in_the_reference_once() -> None:
    import sqlite3

    from geomi.cluster.tables import MIGRATIONS

    assert made_in("docs/reference/store.md") == Counter(f"table {name}" for name in tables())
    store = sqlite3.connect(":memory:")
    for sentence in (one for step in MIGRATIONS for one in step):
        if isinstance(sentence, str):
            store.execute(sentence)
        else:  # columns of a table that PostgreSQL alone has are of the same language
            table = sentence.postgresql.startswith("CREATE TABLE")
            store.execute(sentence.sqlite or (sentence.postgresql if table else "SELECT 1"))
    names = [row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert sorted(names) == sorted(tables())
    for name in names:
        columns = [row[1] for row in store.execute(f"PRAGMA table_info({name})")]
        said = re.findall(r"^\| `(\w+)` \|", MADE_NOW[f"table {name}"], flags=re.MULTILINE)
        assert said == columns, name
    store.close()


def test_every_state_has_a_line_that_says_what_when_whether_and_where() -> None:
    text = text_of("docs/reference/states.md")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    assert [row[0] for row in rows] == [f"`{state}`" for state in states.Outcome]
    for name, what, _, again, _ in rows:
        outcome = states.Outcome(name.strip("`"))
        assert what
        assert again.startswith("yes") == (outcome in states.TRANSIENT), name
    assert made_in("docs/reference/states.md") == {"moves of states": 1}
    assert set(states.diagram().splitlines()) <= set(text.splitlines())


def test_the_picture_of_the_flow_is_in_the_spine() -> None:
    assert made_in("docs/design/spine.md") == {"picture of the flow": 1}


def test_nothing_is_made_that_no_page_shows() -> None:
    shown: Counter[str] = Counter()
    for path in PAGES:
        shown += Counter(MADE.findall(path.read_text(encoding="utf-8")))
    assert set(shown) == set(MADE_NOW)


def test_making_the_docs_again_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert capsys.readouterr().out == ""


def test_a_name_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(KeyError, match="command geomi nothing"):
        renewed("<!-- made: command geomi nothing -->\n<!-- end -->", MADE_NOW)


# -- what is mentioned exists ----------------------------------------------------------------------


def headings(path: Path) -> set[str]:
    found = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}


@pytest.mark.parametrize("path", PAGES, ids=id_of)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), target
        assert not anchor or anchor in headings(there), target


def mentioned(text: str) -> list[str]:
    """Command lines of geomi, in blocks and in running text."""
    blocks_ = re.findall(r"^```sh[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks_ for line in block.splitlines()]
    rest = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines += [" ".join(one.split()) for one in re.findall(r"`(geomi [^`]+)`", rest)]
    return [line.rpartition("| ")[2] for line in lines if "geomi " in line]


@pytest.mark.parametrize("path", PAGES, ids=id_of)
def test_commands_and_options_that_are_mentioned_exist(path: Path) -> None:
    known = commands()
    groups = {" ".join(name.split()[:2]) for name in known}
    for line in mentioned(path.read_text(encoding="utf-8")):
        words = shlex.split(line, comments=True)
        if words[:1] != ["geomi"] or "|" in line or len(words) < 2 or words[1][:1] in "-C":
            continue
        spelt = [" ".join(words[:number]) for number in (4, 3, 2)]
        # A group within a group lists where no command is named.
        spelt.insert(1, f"{spelt[1]} list")
        name = next((one for one in spelt if one in known), spelt[-1])
        if name in {"geomi demo", "geomi COMMAND"}:
            continue
        assert name in known or name in groups, line
        if name not in known:
            assert len(words) == 2, f"{line}: which of {name}?"
            continue
        options = {
            one
            for param in known[name].params
            for one in [*param.opts, *(param.secondary_opts or ())]
        }
        for word in words[2:]:
            if word.startswith("--"):
                assert word.partition("=")[0] in {*options, "--help"}, line


@pytest.mark.parametrize("path", PAGES, ids=id_of)
def test_targets_of_make_that_are_mentioned_exist(path: Path) -> None:
    makefile = text_of("Makefile")
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_settings_that_are_mentioned_with_their_table_exist() -> None:
    tables_ = {full.rpartition(".")[0] for full in KEYS} - {""}
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for full in re.findall(r"`([a-z]+(?:\.[a-z_]+)+)`", text):
            if full.rpartition(".")[0] in tables_ and not full.endswith(
                (".py", ".md", ".txt", ".uod")
            ):
                assert full in KEYS or full in tables_, f"{id_of(path)}: {full}"
