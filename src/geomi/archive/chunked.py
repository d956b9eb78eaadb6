"""The payload of an HTTP message that was stored as it came, in chunks. Decides only."""

from __future__ import annotations

from collections.abc import Callable

_LINE_MAX_BYTES = 4096  # of a size with its extensions


class Dechunked:
    """Gives the payload on, piece by piece. What is not chunked ends it, without an error: many
    tools keep the header and store the payload without its chunks."""

    def __init__(self, give: Callable[[memoryview], object]) -> None:
        self._give = give
        self._line = b""  # of a size, as far as it came
        self._left = 0  # bytes of the chunk, then its line end
        self._is_over = False

    def update(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view and not self._is_over:
            if self._left > 2:
                piece = view[: self._left - 2]
                self._give(piece)
            elif self._left:
                piece = view[: self._left]
            else:
                view = self._size(view)
                continue
            self._left -= len(piece)
            view = view[len(piece) :]

    def _size(self, view: memoryview) -> memoryview:
        """Takes a line with a size, or what there is of it; the rest."""
        seen = bytes(view[:_LINE_MAX_BYTES])
        line, end, _ = seen.partition(b"\n")
        self._line += line + end
        if end:
            text = self._line.partition(b";")[0].strip()
            self._line = b""
            try:
                size = int(text, 16) if text.isalnum() else 0
            except ValueError:
                size = 0
            self._left = size + 2
            self._is_over = size == 0
        elif len(self._line) > _LINE_MAX_BYTES:
            self._is_over = True
        return view[len(line) + len(end) :]
