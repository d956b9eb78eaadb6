"""`geomi archive`: what was collected, looked at, proved, thinned out and handed on."""

from __future__ import annotations

from importlib import import_module

import typer

app = typer.Typer(no_args_is_help=True)

#: Modules that add commands to the group, in the order of `geomi archive --help`.
_MODULES: tuple[str, ...] = (
    "archive_check", "archive_import", "archive_meaningless", "archive_pack", "archive_cdx",
    "archive_replay", "archive_report", "archive_index", "archive_rules", "archive_rewrite",
    "archive_restore", "archive_delete",
)  # fmt: skip


def register(into: typer.Typer) -> None:
    for name in _MODULES:
        import_module(f"geomi.cli.{name}").register(app)
    into.add_typer(app, name="archive", help="The archive: check, thin out, pack, replay.")
