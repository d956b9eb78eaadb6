"""The records that belong to captures: what goes from a file with them. Decides only."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from geomi.archive.reader import Member


@dataclass(slots=True, kw_only=True)
class Companions:
    """First sees every record of a file, then says of each whether it goes.

    `offsets`: of the captures that go; `uris`: whatever else is filed under them goes too.
    """

    offsets: Set[int]
    uris: Set[str] = frozenset()
    digest: str = ""
    _ids: set[str] = field(default_factory=set)  # of the captures that go
    _named: set[str] = field(default_factory=set)  # which those name as concurrent

    def see(self, member: Member) -> None:
        if member.offset in self.offsets:
            self._ids.add(member.record_id)
            self._named |= _ids(member.headers.get_all("WARC-Concurrent-To"))

    def goes(self, member: Member) -> bool:
        if member.offset in self.offsets or member.record_id in self._named:
            return True
        headers = member.headers
        kind = member.type
        if kind == "warcinfo":
            return False
        if self.digest and headers.get("WARC-Payload-Digest") == self.digest:
            return True
        if _ids(headers.get_all("WARC-Concurrent-To")) & self._ids:
            return True
        if kind in ("conversion", "metadata") and (
            _ids(headers.get_all("WARC-Refers-To")) & self._ids
        ):
            return True
        return kind not in ("response", "revisit") and member.target_uri in self.uris


def _ids(values: Iterable[str]) -> set[str]:
    return {value.strip("<>") for value in values}
