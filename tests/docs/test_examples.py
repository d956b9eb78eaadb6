"""The commands of README and tutorial are run, against the web that the tutorial tells to start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from geomi.world import Params, Running, serve

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "from geomi.cli.main import main; main()"
#: Manners that cost a test no time.
HASTY = "manners.rest_s=0 --set manners.rest_factor=0 --set manners.address_rest_s=0.01"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    kind: str
    words: list[str]
    text: str


def blocks(name: str) -> list[Block]:
    found = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    return [Block(kind, words.split(), text) for kind, words, text in found]


@pytest.fixture(scope="module")
def web() -> Iterator[Running]:
    with serve(Params(seed=7, sites=12, pages=12)) as running:
        yield running


@dataclass(frozen=True)
class Terminal:
    """A shell in an empty directory, in which `geomi` is the program under test."""

    folder: Path
    web: Running

    def here(self, text: str) -> str:
        """What the docs say, with the ports and the manners of this test."""
        return (
            text.replace(":8100", f":{self.web.port}")
            .replace(":5300", f":{self.web.dns_port}")
            .replace("manners.rest_s=0.2", HASTY)
        )

    def run(self, line: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", f'geomi() {{ "$PYTHON" -c "$PROGRAM" "$@"; }}\n{self.here(line)}'],
            cwd=self.folder,
            env={
                **os.environ, "PYTHON": sys.executable, "PROGRAM": PROGRAM, "COLUMNS": "200",
                "PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C.UTF-8",
            },
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode != 2, f"{line}\n{done.stderr}"
        return done.returncode, done.stdout


@pytest.fixture
def terminal(tmp_path: Path, web: Running) -> Terminal:
    return Terminal(tmp_path, web)


def shape(text: str) -> list[str]:
    """The lines without what differs from run to run: numbers, units, digests, order, widths."""
    text = re.sub(r"sha1:\w+", "DIGEST", text)
    text = re.sub(r"-?\d[\d.,:e-]*", "N", text)
    text = re.sub(r"\bN (B|KiB|MiB|s|min)\b", "N", text)
    lines = [" ".join(line.split()) for line in text.strip().splitlines()]
    # Which server was the busiest is a matter of chance.
    lines = [re.sub(r"^(smallest gap|greatest rate)(.*) at .*", r"\1\2", line) for line in lines]
    return sorted(set(lines))


def test_the_tutorial_does_what_it_says(terminal: Terminal) -> None:
    said = ""
    ran = 0
    for block in blocks("docs/tutorial.md"):
        if block.words[:1] == ["file"]:
            (terminal.folder / block.words[1]).write_text(terminal.here(block.text))
        elif block.kind == "text":
            assert shape(said) == shape(block.text)
        elif (block.kind == "sh" and not block.words) or block.words[:1] == ["exit"]:
            wanted = int(block.words[1]) if block.words else 0
            said = ""
            for line in block.text.splitlines():
                code, out = terminal.run(line)
                assert code == wanted, f"{line}\n{out}"
                said += out
                ran += 1
    assert ran >= 14


def test_the_world_of_the_tutorial_is_the_one_that_its_command_starts() -> None:
    (block,) = [one for one in blocks("docs/tutorial.md") if one.words == ["world"]]
    from geomi.world.__main__ import _arguments, _params

    words = block.text.split()
    assert words[:3] == ["python", "-m", "geomi.world"]
    arguments = _arguments(words[3:])
    assert arguments.dns_port == 5300
    wanted = Params(seed=7, sites=12, pages=12, port=8100)
    assert _params(arguments) == wanted


def test_the_first_crawl_of_the_readme_works(terminal: Terminal) -> None:
    terminal.run(
        f"geomi init news --set {HASTY} --set 'guard.allow_networks=[\"127.64.0.0/10\"]'"
        f" --set 'dns.servers=[\"127.0.0.1:{terminal.web.dns_port}\"]'"
    )
    lines = [
        line.replace("https://www.example.org/", terminal.web.seeds(1)[0])
        for block in blocks("README.md")
        for line in block.text.splitlines()
        if line.startswith("geomi ")
    ]
    assert len(lines) >= 7
    for line in lines:
        code, out = terminal.run(line)
        assert code == (1 if "missing" in line else 0), f"{line}\n{out}"
        assert out or "--outcome" in line


def test_a_wrong_setting_says_what_the_page_of_exit_codes_says(terminal: Terminal) -> None:
    command, answer = blocks("docs/reference/exit-codes.md")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command.text.split()[1:]], cwd=terminal.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (2, "", answer.text)
    assert os.listdir(terminal.folder) == []
