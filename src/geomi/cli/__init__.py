"""The command line: a door. Parses words, calls the rest, prints; decides nothing.

Exit codes: 0 done, 1 done but something fell short, 2 the command or a setting is wrong.
"""

from geomi.cli.main import main

__all__ = ["main"]
