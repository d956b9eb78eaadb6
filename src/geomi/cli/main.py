"""All commands in one place, and the border where errors become exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise

import typer

from geomi import __version__
from geomi.errors import GeomiError, OperatorError, ResourceError

#: Which module registers which commands. One command loads its own module alone: all of them take
#: longer to import than `status` takes to answer.
_MODULES = {
    "crawl": ("init", "crawl"),
    "look": ("status", "pages", "story", "verify"),
    "demo": ("demo",),
    "flow": ("flow",),
    "cluster": ("cluster",),
    "seeds": ("seeds",),
    "explain": ("explain",),
    "store": ("store",),
    "archive": ("archive",),
}


def command_line(words: Sequence[str] = ()) -> typer.Typer:
    """The commands, or those of the module that has the one in `words`."""
    app = typer.Typer(
        name="geomi",
        help="geomi collects web sites completely and politely, and archives them without waste.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    mine = [name for name, commands in _MODULES.items() if words and words[0] in commands]
    for name in mine or _MODULES:
        import_module(f"geomi.cli.{name}").register(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"geomi {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    del version


def main() -> None:
    """The `geomi` command."""
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """One command; its exit code. Errors are one sentence on stderr."""
    try:
        code = command_line(words)(words, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        return 1
    except OperatorError as error:
        print(f"geomi: {error}", file=sys.stderr)
        return 2
    except ResourceError as error:
        print(f"geomi: {error}", file=sys.stderr)
        return 1
    except GeomiError as error:
        print(f"geomi: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    except BrokenPipeError:  # `geomi pages … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is None or not hasattr(error, "exit_code"):
            raise
        print(f"geomi: {usage()}{_seen(error, words)}", file=sys.stderr)
        return 2


def _seen(error: Exception, words: list[str]) -> str:
    """What was given to the option that the error is about, where its text does not say it."""
    options = getattr(getattr(error, "param", None), "opts", ())
    for option, value in pairwise(words):
        if option in options and value not in str(error):
            return f" (given: {value})"
    return ""
