"""All commands in one place, and the border where errors become exit codes."""

from __future__ import annotations

import os
import sys
from itertools import pairwise

import typer

from geomi import __version__
from geomi.cli import cluster, crawl, demo, explain, flow, look, seeds
from geomi.errors import GeomiError, OperatorError, ResourceError

app = typer.Typer(
    name="geomi",
    help="geomi collects web sites completely and politely, and archives them without waste.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"geomi {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    del version


crawl.register(app)
look.register(app)
demo.register(app)
flow.register(app)
app.add_typer(cluster.app, name="cluster", help="A Ray cluster to crawl with.")
app.add_typer(seeds.app, name="seeds", help="Where parties start.")
app.add_typer(explain.app, name="explain", help="Why geomi does what it does with a URL.")


def main() -> None:
    """The `geomi` command."""
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """One command; its exit code. Errors are one sentence on stderr."""
    try:
        code = app(words, standalone_mode=False)
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
