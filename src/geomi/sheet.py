"""The settings on paper: a commented geomi.toml, and the table of the reference."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from geomi.keys import KEYS, Key
from geomi.settings import OWN, PRESETS, TABLES


def default_toml(
    given: Mapping[str, Any] | None = None, sites: Mapping[str, Mapping[str, Any]] | None = None
) -> str:
    """geomi.toml with every setting explained; in comments, but for those given by full name.

    `sites` are tables by host pattern.
    """
    given = given or {}
    lines = [
        "# Settings of this collection. A line without # decides; the others show defaults.",
        '# Seconds may be written "10m", bytes "8 MiB". docs/reference/settings.md says more.',
        "",
        *_entry(KEYS["store"], given),
    ]
    for table, struct in TABLES.items():
        first = (struct.__doc__ or "").partition("\n")[0]
        lines += ["", f"[{table}]  # {first}"]
        for key in _of(table):
            lines += _entry(key, given)
    lines += [
        "",
        "# What may differ per site stands in a table of its own:",
        '# [site."www.example.org"]',
        "# rest_s = 10",
        "",
    ]
    for host, values in (sites or {}).items():
        lines.append(f"[site.{json.dumps(host)}]")
        lines += [f"{full} = {to_toml(value)}" for full, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def with_store(text: str, address: str) -> str:
    """geomi.toml with another `store`, and every other line as it was."""
    line = f"store = {to_toml(address)}" if address else '# store = ""'
    lines = text.split("\n")
    ends = next((n for n, one in enumerate(lines) if one.lstrip().startswith("[")), len(lines))
    said = [n for n, one in enumerate(lines[:ends]) if _STORE.match(one)]
    if not said:
        return "\n".join([line, *lines])
    said.sort(key=lambda n: lines[n].lstrip().startswith("#"))  # a line that decides comes first
    lines[said[0]] = line
    return "\n".join(lines)


_STORE = re.compile(r"\s*#?\s*store\s*=")


def reference() -> str:
    """docs/reference/settings.md."""
    lines = [
        "# Settings",
        "",
        "Made from `geomi/settings.py` by `make docs`; a test keeps it true.",
        "",
        "Settings stand in `geomi.toml` in the collection; `--set table.key=value` overrides one "
        "for a command. A key given without its table is accepted where only one table has it. "
        'Seconds may be written `"500ms"`, `"90s"`, `"10m"`, `"2h"`, `"7d"`; bytes `"64 KiB"`, '
        '`"8 MiB"`, `"1 GB"`. Unknown keys and wrong values are errors: one sentence, exit code 2.',
        "",
        'A key marked *site* may also stand in a table `[site."host"]`, with or without its own '
        "table's name; `host` is a pattern as in `manners.own`, and the most exact one wins.",
        "",
        "## Top of the file",
        "",
        *_table([KEYS["store"]]),
    ]
    for table, struct in TABLES.items():
        lines += ["", f"## [{table}]", "", " ".join((struct.__doc__ or "").split()), ""]
        lines += _table(_of(table))
    return "\n".join([*lines, *_presets(), ""])


def to_toml(value: Any) -> str:
    """A plain value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{json.dumps(name)} = {to_toml(one)}" for name, one in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(to_toml, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _of(table: str) -> list[Key]:
    return [key for full, key in KEYS.items() if full.rpartition(".")[0] == table]


def _entry(key: Key, given: Mapping[str, Any]) -> list[str]:
    name = key.full.rpartition(".")[2]
    if given.get(key.full) is not None:
        line = f"{name} = {to_toml(given[key.full])}"
    else:
        line = f"# {name} =" + ("" if key.default is None else f" {to_toml(key.default)}")
    return [f"# {key.meaning}.", line]


def _table(keys: list[Key]) -> list[str]:
    lines = ["| key | default | wanted | |", "|---|---|---|---|"]
    for key in keys:
        default = "none" if key.default is None else f"`{to_toml(key.default)}`"
        site = " *site*" if key.per_site else ""
        name = key.full.rpartition(".")[2]
        lines.append(f"| `{name}`{site} | {default} | {key.wanted} | {key.meaning} |")
    return lines


def _presets() -> list[str]:
    lines = [
        "",
        "## Presets",
        "",
        "A preset changes defaults; what is set in the file or on the command line stays.",
        "",
        "| key | "
        + " | ".join(name for name in PRESETS if name != "own")
        + " | host under `own` |",
        "|---|---|---|---|",
    ]
    own = {f"manners.{name}": value for name, value in OWN.items()}
    own["manners.connections"] = KEYS["manners.own_connections"].default
    for full in dict.fromkeys([*PRESETS["paper"], *own]):
        default = KEYS[full].default
        row = [PRESETS[name].get(full, default) for name in ("polite", "paper")]
        row.append(own.get(full, default))
        lines.append(f"| `{full}` | " + " | ".join(map(to_toml, row)) + " |")
    lines += [
        "",
        "`own` is `polite` for every other server, and an error where `manners.own` names no host. "
        "What a host under `manners.own` gets is overridden only by its own `[site]` table.",
    ]
    return lines
