"""The map is true: it is compared with what the modules really import and touch."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import geomi
from geomi import flow
from geomi.archive import duplicates_tables, rewrite_tables
from geomi.flow import PARTS, Role
from geomi.frontier import alias_schema, equivalence_tables
from geomi.history import meaningless_tables
from geomi.store import Both

ROOT = Path(geomi.__file__).parent

#: Standard modules that reach out of the program.
TOUCHING = frozenset(
    [
        "asyncio",
        "concurrent",
        "fcntl",
        "mmap",
        "multiprocessing",
        "resource",
        "secrets",
        "select",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "urllib.request",
    ]
)
#: Methods of Path that ask the file system.
PATH_CALLS = frozenset(
    [
        "exists",
        "glob",
        "is_dir",
        "is_file",
        "iterdir",
        "mkdir",
        "read_bytes",
        "read_text",
        "rglob",
        "rmdir",
        "unlink",
        "write_bytes",
        "write_text",
    ]
)
#: What may be taken from modules that otherwise touch: names of paths, a seeded source, a calendar.
HARMLESS = frozenset({"os.path", "os.fspath", "os.sep", "random.Random", "time.gmtime"})


@cache
def modules() -> dict[str, ast.Module]:
    """Modules by their name below geomi; a package's __init__ has the name of the package."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name not in ("", "__main__"):
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name taken from it or nothing), wherever in the file it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)


def parts_imported(tree: ast.AST) -> set[str]:
    names = {part.name for part in PARTS}
    found = set()
    for module, name in imported(tree):
        words = [*module.split("."), name]
        if words[0] == "geomi" and words[1] in names:
            found.add(words[1])
    return found


def touches(tree: ast.AST) -> set[str]:
    """What in a module reaches out of the program."""
    found = set()
    for module, name in imported(tree):
        top = module.partition(".")[0]
        if top in TOUCHING or module in TOUCHING:
            found.add(module)
        if name and top in ("os", "time", "random") and f"{top}.{name}" not in HARMLESS:
            found.add(f"{top}.{name}")
        if top in flow.LIBRARIES and top in ("pycurl", "aiodns", "maxminddb", "uvloop"):
            found.add(top)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner in ("os", "time", "random") and f"{owner}.{node.attr}" not in HARMLESS:
                found.add(f"{owner}.{node.attr}")
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "open":
                found.add("open")
            elif isinstance(node.func, ast.Attribute) and node.func.attr in PATH_CALLS:
                found.add(f".{node.func.attr}")
    return found


def test_every_module_belongs_to_one_part_of_the_map() -> None:
    names = [part.name for part in PARTS]
    assert len(names) == len(set(names))
    assert {name.partition(".")[0] for name in modules()} == set(names)


def test_a_file_stays_under_four_hundred_lines() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in ROOT.rglob("*.py")
    }
    assert not {name: lines for name, lines in lengths.items() if lines >= 400}


@pytest.mark.parametrize("module", sorted(modules()))
def test_a_module_imports_only_from_lines_above_its_own(module: str) -> None:
    part = module.partition(".")[0]
    wrong = {
        other for other in parts_imported(modules()[module]) if not flow.may_import(part, other)
    }
    assert not wrong, f"{module} imports {', '.join(sorted(wrong))}"


def test_a_stage_imports_no_other_stage_and_the_world_only_words() -> None:
    assert not flow.may_import("archive", "fetch")
    assert flow.may_import("archive", "store")
    assert flow.may_import("cluster", "world")
    assert not flow.may_import("seeds", "cluster")
    assert not flow.may_import("world", "store")
    assert not flow.may_import("records", "store")
    assert not flow.may_import("config", "frontier")


@pytest.mark.parametrize("part", [part for part in PARTS if part.role is not Role.DOOR])
def test_only_the_shell_touches_the_world(part: flow.Part) -> None:
    touching = {
        name.partition(".")[2] or name
        for name, tree in modules().items()
        if name.partition(".")[0] == part.name and touches(tree)
    }
    assert touching == set(part.shell)


def test_each_library_is_named_where_the_map_says() -> None:
    for library, files in flow.LIBRARIES.items():
        naming = {
            name
            for name, tree in modules().items()
            if any(module.partition(".")[0] == library for module, _ in imported(tree))
        }
        assert naming == set(files), library


def test_libraries_that_the_map_does_not_name_are_for_settings_doors_and_the_cluster() -> None:
    known = {"geomi", "msgspec", "rich", "typer", "__future__", *flow.LIBRARIES}
    for name, tree in modules().items():
        others = {module.partition(".")[0] for module, _ in imported(tree)} - known
        assert others <= sys.stdlib_module_names, name


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_the_map_says_what_the_first_lines_say(part: flow.Part) -> None:
    text = importlib.import_module(f"geomi.{part.name}").__doc__ or ""
    assert text.partition("\n")[0] == part.does
    for name in (*part.takes, *part.gives):
        assert name in text, f"{part.name}: {name} is not in its first lines"
    if part.role in (Role.STORE, Role.STAGE, Role.WORLD, Role.MEETING):
        assert "takes" in text.lower()
        assert "gives" in text.lower()
        assert len(text.strip().splitlines()) <= 5


def test_the_map_names_the_tables_that_each_part_keeps() -> None:
    for part in PARTS:
        schema: tuple[str | Both, ...] = ()
        if f"{part.name}.tables" in modules():
            tables = importlib.import_module(f"geomi.{part.name}.tables")
            later = {
                "cluster": (getattr(tables, "HELM", ""),),
                "frontier": (*alias_schema.ALIASES, *equivalence_tables.RULES),
                "archive": (
                    *duplicates_tables.INDEX,
                    *duplicates_tables.REFERS,
                    *rewrite_tables.SCHEMA,
                ),
                "history": meaningless_tables.SCHEMA,
            }
            schema = (
                *tables.SCHEMA_1,
                *getattr(tables, "SCHEMA_2", ()),
                *getattr(tables, "IMPORTS", ()),
                *later.get(part.name, ()),
            )
        texts = [one if isinstance(one, str) else one.sqlite or one.postgresql for one in schema]
        names = [text.split()[2] for text in texts if text.startswith("CREATE TABLE")]
        assert sorted(names) == sorted(part.tables), part.name


def test_the_river_connects_stages_that_are_on_the_map() -> None:
    names = {part.name for part in flow.stages()}
    for source, target, _ in flow.RIVER:
        assert {source, target} <= names
    assert {name for ends in flow.RIVER for name in ends[:2]} == names
