"""Writes the generated parts of the docs: `python tests/docs/pages.py`, or `make docs`.

A page says `<!-- made: NAME -->` where the text NAME belongs, and `<!-- end -->` behind it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from geomi import errors, flow, records, states
from geomi.cli import flow as cli_flow
from geomi.cli.main import command_line

DOCS = Path(__file__).resolve().parents[2] / "docs"
MADE = re.compile(r"<!-- made: (.+?) -->\n.*?<!-- end -->", re.DOTALL)


# -- commands --------------------------------------------------------------------------------------


def commands() -> dict[str, Any]:
    """Every command that does something, by its whole name."""
    alone = typer.Typer(add_completion=False)
    alone.command("flow")(cli_flow.flow)
    found = {"geomi flow": get_command(alone)}
    found.update(_leaves(get_command(command_line()), "geomi"))
    return found


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word, one in below.items():
        yield from _leaves(one, f"{name} {word}")


def usage(name: str, command: Any) -> str:
    """Its words, what it does, and a table of options."""
    words = [name]
    options = []
    for param in command.params:
        if param.param_type_name == "argument":
            words.append(param.metavar or param.name.upper())
        else:
            options.append(param)
    text = " ".join((command.help or "").replace("\n\n", "\0").split()).replace("\0", "\n\n")
    lines = [f"`{' '.join(words)}`", "", text]
    if options:
        lines += ["", "| option | |", "|---|---|"]
    for param in options:
        spelt = ", ".join(f"`{one}`" for one in [*param.opts, *(param.secondary_opts or ())])
        value = "" if param.is_flag else f" {(param.metavar or 'VALUE').strip()}"
        lines.append(f"| {spelt}{value} | {_cell(param.help or '')} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").rstrip(".")


# -- records and errors ----------------------------------------------------------------------------


def record_names() -> list[str]:
    tree = ast.parse(Path(records.__file__).read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def record(name: str) -> str:
    """A record's docstring, and its fields with the comments beside them."""
    source = Path(records.__file__).read_text(encoding="utf-8")
    lines = source.splitlines()
    (node,) = [
        one for one in ast.parse(source).body if isinstance(one, ast.ClassDef) and one.name == name
    ]
    out = [_paragraphs(ast.get_docstring(node) or ""), "", "| field | type | |", "|---|---|---|"]
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            comment = lines[one.end_lineno - 1][one.end_col_offset :].partition("#")[2].strip()
            kind = ast.unparse(one.annotation).replace("|", "\\|")
            out.append(f"| `{one.target.id}` | `{kind}` | {_cell(comment)} |")
        elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            if one.targets[0].id == "__slots__":
                out += [f"| `{word}` | | |" for word in ast.literal_eval(one.value)]
            else:
                value = ast.unparse(one.value)
                out.append(f"| `{one.targets[0].id}` | `{value}` | |")
    return "\n".join(out)


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(one.split()) for one in text.split("\n\n"))


def error_tree() -> str:
    return "```text\n" + (errors.__doc__ or "").split("\n\n")[1] + "\n```"


def moves() -> str:
    """The diagram of states in the order of the states, whatever the order of its sets."""
    first, *arrows = states.diagram().splitlines()
    order = {str(state): place for place, state in enumerate(states.Outcome)}
    arrows.sort(key=lambda arrow: [order[word] for word in arrow.strip().split(" --> ")])
    return "\n".join([first, *arrows])


# -- the store -------------------------------------------------------------------------------------


def tables() -> dict[str, str]:
    """Each table's columns with the comments of the schema, as the last migration has them."""
    from geomi.cluster.tables import MIGRATIONS

    found = {}
    for sentence in (one for step in MIGRATIONS for one in step):
        text = sentence if isinstance(sentence, str) else sentence.sqlite or sentence.postgresql
        _take_in(text, found)
    return found


_ADDED = re.compile(r"ALTER TABLE (\w+) -- (.*)\n\s*ADD COLUMN (.*)")


def _take_in(sentence: str, found: dict[str, str]) -> None:
    """A table, or a column added to one."""
    if sentence.startswith("CREATE TABLE"):
        found[sentence.split()[2]] = _columns(sentence)
    elif added := _ADDED.match(sentence):
        table, comment, column = added.groups()
        row = _columns(f"({column} -- {comment}\n)").splitlines()[-1]
        head, blank, key = found[table].partition("\n\n")
        found[table] = f"{head}\n{row}{blank}{key}"


def _columns(sentence: str) -> str:
    out = ["| column | type | |", "|---|---|---|"]
    inside = sentence.partition("(")[2].rpartition(")")[0]
    # A table on one line has a column a comma; the others have a line a column.
    lines = inside.splitlines() if "\n" in inside else inside.split(", ")
    key = ""
    for line in lines:
        code, _, comment = line.partition("--")
        words = code.strip().rstrip(",").split(maxsplit=1)
        if not words:
            if comment and len(out) > 2:  # a comment that goes on
                out[-1] = out[-1].removesuffix(" |") + f" {comment.strip()} |"
            continue
        if words[0] == "PRIMARY":
            key = code.strip()
            continue
        kind = words[1].replace(" NOT NULL", "").replace("|", "\\|") if len(words) > 1 else ""
        out.append(f"| `{words[0].strip(chr(34))}` | {kind} | {_cell(comment.strip())} |")
    if key:
        out += ["", f"`{key}`"]
    return "\n".join(out)


# -- pages -----------------------------------------------------------------------------------------


def blocks() -> dict[str, str]:
    """Every generated text, by name."""
    found = {"picture of the flow": f"```mermaid\n{flow.picture()}\n```"}
    found["moves of states"] = f"```mermaid\n{moves()}\n```"
    found["errors"] = error_tree()
    found.update((f"command {name}", usage(name, one)) for name, one in commands().items())
    found.update((f"record {name}", record(name)) for name in record_names())
    found.update((f"table {name}", text) for name, text in tables().items())
    return found


def renewed(text: str, made: dict[str, str]) -> str:
    """The page with its generated parts as they should be. KeyError names one nobody makes."""
    return MADE.sub(
        lambda found: f"<!-- made: {found[1]} -->\n{made[found[1]]}\n<!-- end -->", text
    )


def main() -> int:
    """Renews all pages."""
    made = blocks()
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        now = renewed(text, made)
        if now != text:
            path.write_text(now, encoding="utf-8")
            print(path.relative_to(DOCS.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
