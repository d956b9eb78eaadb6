"""The live line of work on archives: bytes done, speed, the file under way."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from geomi.cli.output import human_bytes, human_seconds, plain

_REDRAW_S = 0.25
_QUIET_LINE_S = 10.0  # without a terminal: one plain line so often


class Bar:
    """One line on a terminal, plain lines elsewhere, nothing if quiet."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._is_live = not is_quiet and sys.stderr.isatty()
        self._began = time.monotonic()
        self._look_at = self._began + (_REDRAW_S if self._is_live else _QUIET_LINE_S)
        self._live: Any = None

    def __enter__(self) -> Self:
        if self._is_live:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._live is not None:
            self._live.stop()

    def told(self, done: int, total: int, name: str) -> None:
        now = time.monotonic()
        if self._is_quiet or now < self._look_at:
            return
        text = self.line(done, total, name, now - self._began)
        if self._live is not None:
            from rich.text import Text

            self._look_at = now + _REDRAW_S
            self._live.update(Text(text), refresh=True)
            return
        self._look_at = now + _QUIET_LINE_S
        try:
            print(text, file=sys.stderr, flush=True)
        except OSError:  # nobody reads it: the work goes on
            self._is_quiet = True

    def line(self, done: int, total: int, name: str, spent_s: float) -> str:
        rate = done / spent_s if spent_s > 0 else 0.0
        left = f", {human_seconds((total - done) / rate)} left" if rate and total > done else ""
        return (
            f"{human_bytes(done)} of {human_bytes(total)}, {human_bytes(rate)}/s{left}:"
            f" {plain(name)}"
        )
