"""Work for engines: functions of a module, as workers import them."""

from __future__ import annotations

import os
from pathlib import Path


def square(number: int) -> int:
    return number * number


def refuse(number: int) -> int:
    raise ValueError(f"{number} is refused")


def die_once(mark: str) -> str:
    """The first worker that gets this item dies in the middle of it."""
    path = Path(mark)
    if not path.exists():
        path.touch()
        os._exit(9)
    return path.name


def die(mark: str) -> str:
    os._exit(9)
