"""Plots of the scaling study: SVG by hand, from the newest results in bench/results/.

plots.py [FOLDER]       writes figure-14.svg and figure-15.svg (docs/design/scaling)
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 44, 56
#: Told apart without colour too: each series has a mark of its own.
COLOURS = ("#0b5cad", "#c2410c", "#15803d", "#7e22ce")
INK, PALE = "#24292f", "#d0d7de"
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One line with its marks."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A logarithmic axis with the ticks that are written."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]

    def place(self, value: float) -> float:
        """From 0 to 1."""
        return math.log(value / self.low) / math.log(self.high / self.low)


def plot(title: str, x: Axis, y: Axis, series: Iterable[Series]) -> str:
    """The picture."""

    def at(point: Point) -> Point:
        return (
            LEFT + x.place(point[0]) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - y.place(point[1]) * (HEIGHT - TOP - BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13"'
        f' fill="{INK}" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">{title}</text>',
    ]
    for value, text in x.ticks:
        px = at((value, y.low))[0]
        parts.append(
            f'<line x1="{px:.1f}" y1="{TOP}" x2="{px:.1f}" y2="{HEIGHT - BOTTOM}"'
            f' stroke="{PALE}"/><text x="{px:.1f}" y="{HEIGHT - BOTTOM + 20}"'
            f' text-anchor="middle">{text}</text>'
        )
    for value, text in y.ticks:
        py = at((x.low, value))[1]
        parts.append(
            f'<line x1="{LEFT}" y1="{py:.1f}" x2="{WIDTH - RIGHT}" y2="{py:.1f}"'
            f' stroke="{PALE}"/><text x="{LEFT - 8}" y="{py + 4:.1f}"'
            f' text-anchor="end">{text}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts += [
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">'
        f"{x.label}</text>",
        f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">'
        f"{y.label}</text>",
    ]
    for number, one in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        places = [at(point) for point in one.points]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [_mark(number, px, py, colour) for px, py in places]
        ly = TOP + 16 + 20 * number
        parts.append(
            f'<line x1="{LEFT + 12}" y1="{ly}" x2="{LEFT + 40}" y2="{ly}" stroke="{colour}"'
            f' stroke-width="2"/>'
            + _mark(number, LEFT + 26, ly, colour)
            + f'<text x="{LEFT + 48}" y="{ly + 4}" paint-order="stroke" stroke="#ffffff"'
            f' stroke-width="4">{one.name}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _mark(number: int, x: float, y: float, colour: str) -> str:
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>',
        f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>',
        f'<path d="M{x:.1f} {y - 5.5:.1f}l5 9h-10z" fill="{colour}"/>',
        f'<path d="M{x:.1f} {y - 6:.1f}l5.5 6l-5.5 6l-5.5 -6z" fill="{colour}"/>',
    )
    return shapes[number % len(shapes)]


def newest(suite: str) -> dict[str, Any]:
    paths = sorted((HERE / "results").glob(f"scale-{suite}-*.json"))
    if not paths:
        raise SystemExit(f"no results of suite {suite}: make bench-scale SUITE={suite}")
    found: dict[str, Any] = json.loads(paths[-1].read_text())
    return found


_TIMES = ((60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (36_000.0, "10 h"),
          (360_000.0, "100 h"))  # fmt: skip
_PAGES = ((1e4, "10⁴"), (1e5, "10⁵"), (1e6, "10⁶"), (1e7, "10⁷"))
_AGENTS = tuple((float(n), str(n)) for n in (1, 2, 4, 8))
#: Table 8 of the paper: its nine machines.
_PAPER = ((1e5, 2_750.0), (1e6, 28_710.0), (1e7, 356_185.0))


def figure_14(rows: list[dict[str, Any]]) -> str:
    whole = sorted(
        (float(row["pages"]), row["virtual_s"])
        for row in rows
        if row["agents"] == 8 and row["is_whole"]
    )
    ninety = sorted(
        (float(row["pages"]), row["ninety_percent_s"])
        for row in rows
        if row["agents"] == 8 and row["is_whole"]
    )
    return plot(
        "Time of a crawl over its pages, 8 agents",
        Axis(label="pages of the small world", low=7e3, high=1.4e7, ticks=_PAGES),
        Axis(label="time", low=100.0, high=500_000.0, ticks=_TIMES[1:]),
        [
            Series("the paper's nine machines (table 8)", _PAPER),
            Series("geomi, 8 agents of 40 contexts, the last page", whole),
            Series("the same, nine pages of ten", ninety),
        ],
    )


def figure_15(rows: list[dict[str, Any]]) -> str:
    def whole(size: int) -> list[Point]:
        return sorted(
            (float(row["agents"]), row["virtual_s"])
            for row in rows
            if row["pages"] == size and row["is_whole"]
        )

    million = sorted(
        (float(row["agents"]), 1e6 / row["requests_per_s"])
        for row in rows
        if row["pages"] == 1_000_000 and not row["is_whole"]
    )
    return plot(
        "Time of a crawl over its agents",
        Axis(label="agents of 40 contexts", low=0.9, high=9.0, ticks=_AGENTS),
        Axis(label="time", low=100.0, high=500_000.0, ticks=_TIMES[1:]),
        [
            Series("10⁶ pages, at the steady rate of a window", million),
            Series("10⁵ pages, whole", whole(100_000)),
            Series("10⁴ pages, whole", whole(10_000)),
        ],
    )


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "docs/design/scaling"
    folder.mkdir(parents=True, exist_ok=True)
    virtual = newest("figures")["figures"]
    (folder / "figure-14.svg").write_text(figure_14(virtual))
    (folder / "figure-15.svg").write_text(figure_15(virtual))


if __name__ == "__main__":
    main()
