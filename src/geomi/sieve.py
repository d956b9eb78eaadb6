"""The settings of [archive] about pages that mean nothing."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

_Count = Annotated[int, Meta(ge=1)]


class Sieve(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scan looks for, and what it may do by itself."""

    scan: Annotated[
        bool, "At the end of a crawl look for pages that mean nothing; 1-2 ms a new page"
    ] = False
    probe: Annotated[
        bool, "Where a scan finds one text under several URLs, ask for a name that is not there"
    ] = True
    alike: Annotated[
        int, Meta(ge=2, le=50), "So many unlike URLs with one text make it a candidate"
    ] = 5
    near: Annotated[
        int, Meta(ge=0, le=3), "Bits of 64 in which two texts may differ and still be near"
    ] = 3
    confirm_at: Annotated[
        _Count | None,
        "A scan confirms candidates by itself that a rule or probe knows under so many unlike URLs;"
        " without it a person does",
    ] = None
