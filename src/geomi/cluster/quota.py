"""An agent's share of the visits a crawl may make."""

from __future__ import annotations

from geomi.cluster.commands import Command, Draw

_SHARE = 200  # visits drawn at once
_AGAIN_S = 1.0  # until the next look where none are left


class Quota:
    """Drawn from the store a few hundred at a time; without a limit there is always some left."""

    def __init__(self, *, is_limited: bool, out: list[Command]) -> None:
        self.left = 0 if is_limited else 1 << 60
        self._is_drawing = False
        self._draw_at = 0.0
        self._out = out

    @property
    def next_draw(self) -> float | None:
        return self._draw_at if self.left <= 0 and not self._is_drawing else None

    def draw(self, now: float) -> None:
        """Asks for more once all is used."""
        if self.left <= 0 and not self._is_drawing and now >= self._draw_at:
            self._is_drawing = True
            self._out.append(Draw(_SHARE))

    def drawn(self, number: int, *, now: float) -> None:
        self._is_drawing = False
        self.left += number
        if number == 0:
            self._draw_at = now + _AGAIN_S
