"""The live line of a crawl: pages, rate, sites, outcomes, bytes, time left."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from geomi.cli.output import human_bytes
from geomi.cluster import tables
from geomi.cluster.standing import Standing
from geomi.config import Settings
from geomi.store import Store

_REDRAW_S = 0.25
_PLAIN_S = 1.0  # without a terminal: the rate is taken from looks so far apart
_LOOK_SHARE = 100  # or so many times as far as a look takes
_QUIET_LINE_S = 10.0  # without a terminal: one plain line so often


class Progress:
    """One screen of progress on a terminal; plain lines elsewhere; nothing with --json."""

    def __init__(self, store: Store, settings: Settings, *, is_quiet: bool) -> None:
        self._store = store
        self._settings = settings
        self._is_quiet = is_quiet
        self._is_live = not is_quiet and sys.stderr.isatty()
        self._began = time.monotonic()
        self._look_at = 0.0
        self._last_line = self._began
        # (time, visits) of the last half minute, for the rate
        self._past: deque[tuple[float, int]] = deque()
        self._live: Any = None

    def __enter__(self) -> Self:
        if self._is_live:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def warn(self, text: str) -> None:
        """A line that stays."""
        if self._live is not None:
            self._live.console.print(f"geomi: {text}", markup=False)
        else:
            self._print(f"geomi: {text}")

    def _print(self, text: str) -> None:
        """A crawl does not end because nobody reads what it says."""
        try:
            print(text, file=sys.stderr, flush=True)
        except OSError:
            self._is_quiet = True

    def told(self, look: Callable[[], Standing]) -> None:
        """A round is over. `look` is called so seldom that it is no burden, however many sites."""
        now = time.monotonic()
        if self._is_quiet or now < self._look_at:
            return
        at = look()
        took = time.monotonic() - now
        self._look_at = now + max(_REDRAW_S if self._live else _PLAIN_S, _LOOK_SHARE * took)
        self._past.append((now, at.visits))
        while now - self._past[0][0] > 30.0:
            self._past.popleft()
        if self._live is not None:
            self._live.update(self._screen(at), refresh=True)
        elif now - self._last_line >= _QUIET_LINE_S:
            self._last_line = now
            self._print(self.line(at))

    def rate(self) -> float:
        """Visits a second over the last half minute."""
        (first, before), (last, after) = self._past[0], self._past[-1]
        return (after - before) / (last - first) if last > first else 0.0

    def line(self, at: Standing) -> str:
        left = self.time_left(at)
        return (
            f"{at.visits} visits, {self.rate():.1f}/s, {at.pending} pages wait,"
            f" {at.held} sites held, {human_bytes(at.size_bytes)}{left}"
        )

    def time_left(self, at: Standing) -> str:
        rate = self.rate()
        if rate <= 0 or not at.pending:
            return ""
        seconds = int(at.pending / rate)
        return f", about {seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d} left"

    def _screen(self, at: Standing) -> Any:
        from rich.table import Table

        facts: dict[str, int] = {}
        paused = []
        for name, _, _, _, text in tables.running_agents(self._store):
            for key, value in json.loads(text).items():
                facts[key] = facts.get(key, 0) + int(value)
                if key == "paused" and value:
                    paused.append(name)
        grid = Table.grid(padding=(0, 2))
        spent = int(time.monotonic() - self._began)
        grid.add_row("visits", f"{at.visits:,}", f"{self.rate():.1f}/s{self.time_left(at)}")
        grid.add_row("pages", f"{at.known:,} known", f"{at.pending:,} wait")
        grid.add_row(
            "sites",
            f"{facts.get('active', 0):,} active, {facts.get('resting', 0):,} resting",
            f"{at.due:,} wait for an agent, {at.waiting_later:,} wait for later",
        )
        grid.add_row("bytes", human_bytes(at.size_bytes), f"{facts.get('flying', 0)} requests now")
        outcomes = "  ".join(f"{name} {number:,}" for name, number in at.outcomes.items())
        grid.add_row("outcomes", outcomes)
        grid.add_row("time", f"{spent // 3600}:{spent // 60 % 60:02d}:{spent % 60:02d}",
                     f"paused: {', '.join(paused)}" if paused else "Ctrl-C stops and keeps"
                     )  # fmt: skip
        return grid
