"""The harvest report: what was collected for each institution, and what each filter saved. Decides
only.

As in table 2 of paper 004: bytes, records found, records without duplicates, bytes kept, and the
rate of success, which is records without duplicates among those found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import groupby
from typing import NamedTuple

from geomi.states import Outcome

#: Outcomes that found a content: what a site said of it, or that it is as it was.
FOUND = (Outcome.OK, Outcome.CUT, Outcome.SAME, Outcome.VOID)


class Finding(NamedTuple):
    """One visit that found a content. As a line: sorted by group and digest."""

    group: int
    digest: str  # of the payload, also where it was not sent again; may be empty
    outcome: str
    is_revisit: bool
    is_stored: bool
    size: int  # bytes received

    def line(self) -> bytes:
        flags = f"{self.outcome} {int(self.is_revisit)}{int(self.is_stored)} {self.size}"
        return f"{self.group:09d}\t{self.digest}\t{flags}\n".encode()

    @classmethod
    def of(cls, line: bytes) -> Finding:
        group, digest, flags = line.decode().rstrip("\n").split("\t")
        outcome, bits, size = flags.split(" ")
        return cls(int(group), digest, outcome, bits[0] == "1", bits[1] == "1", int(size))


@dataclass(slots=True, kw_only=True)
class Harvest:
    """One institution. All but name and seeds add up."""

    name: str
    seeds: int = 0
    bytes: int = 0  # received
    found: int = 0  # records
    distinct: int = 0  # without duplicates: payloads that differ
    stored_bytes: int = 0  # payloads in the archive
    same: int = 0  # not sent again: the server said so
    same_bytes: int = 0  # that would have been sent
    identical: int = 0  # sent again, kept as a revisit
    identical_bytes: int = 0
    void: int = 0  # meaningless, and known to be
    void_bytes: int = 0

    @property
    def success(self) -> float | None:
        return success_rate(self.found, self.distinct)


def success_rate(found: int, distinct: int) -> float | None:
    """Records without duplicates among those found; None where none was found."""
    return distinct / found if found else None


def tally(lines: Iterable[bytes], harvests: list[Harvest]) -> None:
    """Adds sorted lines of Finding to the groups they name. Memory: the findings of one payload."""
    for (group, digest), some in groupby(map(Finding.of, lines), key=lambda one: one[:2]):
        _add(harvests[group], digest, some)


def _add(harvest: Harvest, digest: str, some: Iterator[Finding]) -> None:
    """All findings of one payload. Its size is known from the visits that brought it."""
    size = same = is_new = 0
    for one in some:
        harvest.found += 1
        harvest.bytes += one.size
        if one.outcome == Outcome.SAME:
            same += 1
        else:
            size = max(size, one.size)
        if one.outcome == Outcome.VOID:
            harvest.void += 1
            harvest.void_bytes += 0 if one.is_stored and not one.is_revisit else one.size
            continue
        if one.is_revisit and one.outcome != Outcome.SAME:
            harvest.identical += 1
            harvest.identical_bytes += one.size
        elif one.is_stored and not one.is_revisit:
            harvest.stored_bytes += one.size
        is_new = 1
        if not digest:
            harvest.distinct += 1
    harvest.same += same
    harvest.same_bytes += same * size
    if digest:
        harvest.distinct += is_new


def total(harvests: Iterable[Harvest]) -> Harvest:
    """The sum of all rows: a payload that two institutions have counts for both."""
    found = Harvest(name="total")
    for one in harvests:
        for field in fields(Harvest)[1:]:
            setattr(found, field.name, getattr(found, field.name) + getattr(one, field.name))
    return found
