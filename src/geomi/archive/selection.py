"""Which captures of an archive are meant: of some sites, between two times. Decides only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from geomi.archive.query import Range, parse_time, ranges_of
from geomi.errors import OperatorError

EVERYTHING: Range = (b"", b"\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Made by: selection_of.   Taken by: cluster.pack."""

    ranges: tuple[Range, ...] = (EVERYTHING,)
    since: str = ""  # 14 digits
    until: str = ""

    @property
    def is_everything(self) -> bool:
        return self == Selection()

    def has(self, line: bytes) -> bool:
        """True if an index line within the ranges is of the time that is meant."""
        stamp = line.split(b" ", 2)[1:2]
        if not stamp:
            return False
        text = stamp[0].decode("ascii", "replace")
        return self.since <= text and (not self.until or text <= self.until)


def selection_of(sites: Sequence[str] = (), since: str = "", until: str = "") -> Selection:
    """`example.org` is that host (and `www.`), `*.example.org` the whole domain."""
    ranges: list[Range] = []
    for site in sites:
        if not site or any(letter in site for letter in "/ ?#"):
            raise OperatorError(f"--site {site}: wanted a host, as example.org or *.example.org")
        bare = site.removeprefix("*.")
        ranges += ranges_of(bare, "domain" if bare != site else "host")
    return Selection(
        ranges=tuple(_joined(sorted(ranges))) or (EVERYTHING,),
        since=parse_time("--from", since, pad="0"),
        until=parse_time("--to", until, pad="9"),
    )


def _joined(ranges: Sequence[Range]) -> Iterator[Range]:
    """Sorted ranges without overlaps."""
    last: Range | None = None
    for start, end in ranges:
        if last is not None and start <= last[1]:
            last = (last[0], max(last[1], end))
            continue
        if last is not None:
            yield last
        last = (start, end)
    if last is not None:
        yield last
