"""The command line as a whole: which module has which command, and what one command loads."""

from __future__ import annotations

import subprocess
import sys

from typer.main import get_command

from geomi.cli.main import _MODULES, command_line


def test_every_module_registers_the_commands_it_is_listed_with() -> None:
    everything = set(get_command(command_line()).commands)  # type: ignore[attr-defined]
    assert everything == {name for names in _MODULES.values() for name in names}
    for names in _MODULES.values():
        for name in names:
            app = get_command(command_line([name]))
            assert set(app.commands) == set(names)  # type: ignore[attr-defined]


def test_an_unknown_word_is_judged_by_all_commands() -> None:
    app = get_command(command_line(["statsu"]))
    assert "status" in app.commands  # type: ignore[attr-defined]
    assert "crawl" in app.commands  # type: ignore[attr-defined]


def test_status_loads_nothing_of_the_robot() -> None:
    """It answers within 0.2 s, Python's start included; imports decide that."""
    program = (
        "import sys\n"
        "from geomi.cli.main import command_line\n"
        "command_line(['status'])\n"
        "import geomi.cluster.collection, geomi.cluster.standing, geomi.cluster.tables\n"
        "print(*sys.modules)\n"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"pycurl", "uvloop", "selectolax", "rbloom", "aiodns", "asyncio", "duckdb", "rich"}
    assert not heavy & set(loaded)
    assert not {name for name in loaded if name.startswith(("geomi.fetch", "geomi.extract"))}
