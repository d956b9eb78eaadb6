"""What an agent asks its shell to do. Each is answered by the event named beside it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from geomi.cluster.batch import Batch
from geomi.fetch.request import Fetch
from geomi.frontier.equivalences import Numbered
from geomi.frontier.queue import Key
from geomi.frontier.slots import Slot
from geomi.frontier.tables import Known
from geomi.records import Lease, Wanted


class Ask(Struct, frozen=True):
    """Leases on up to `number` sites -> leased()."""

    number: int


class Renew(Struct, frozen=True):
    """All leases of this agent -> renewed()."""


class Resolve(Struct, frozen=True):
    """The addresses of a name -> resolved()."""

    host: str


class Claim(Struct, frozen=True):
    """Addresses and groups for this agent alone -> claimed()."""

    site_id: int
    keys: tuple[str, ...]
    host: str = ""  # a site elsewhere that is to be asked at that address for this one
    address: str = ""  # of the site itself
    may_share: bool = True  # False: the clock of this agent is too wrong to keep to parts of time


class Claimed(Struct, frozen=True, kw_only=True):
    """What became of a Claim."""

    other: str = ""  # who holds one of the keys, or the host; empty: they are ours
    rests: tuple[tuple[str, float], ...] = ()  # keys that rest from their last holder, until when
    host_rests_until: float = 0.0
    slots: tuple[tuple[str, Slot], ...] = ()  # what is ours of the time at each key


class Share(Struct, frozen=True):
    """Of our slot at an address or group another agent may have what we do not keep -> shared()."""

    key: str
    keep: Slot
    rests_until: float


class Load(Struct, frozen=True):
    """Waiting pages of a site beyond `after` -> loaded(). The first time, its facts too."""

    site_id: int
    epoch: int
    after: Key
    limit: int
    is_first: bool


class Rebuild(Struct, frozen=True):
    """Hashes of a site's known URLs beyond `after` -> rebuilt()."""

    site_id: int
    epoch: int
    after: int


class Drain(Struct, frozen=True):
    """Letters for sites held here, which of these others should have or the coordinator wants back,
    and where others have sites at an address of ours -> letters()."""

    sites: tuple[str, ...]


class Abort(Struct, frozen=True):
    """A fetch whose answer is no longer wanted. No event."""

    ticket: int


class Write(Struct, frozen=True):
    """Append, sync, commit -> written()."""

    batch: Batch


class Release(Struct, frozen=True, kw_only=True):
    """A site goes back. No event. Comes after the Write of all its rows."""

    site_id: int
    epoch: int
    rest_until: float
    rest_s: float
    failures: int
    is_closed: bool = False  # it rests until its hours begin
    go_to: str = ""  # the holder of its address
    unclaim: tuple[tuple[str, float], ...] = ()


class TakeIds(Struct, frozen=True):
    """A range of page ids -> ids()."""

    number: int


class Draw(Struct, frozen=True):
    """A share of the visits that the crawl may still make -> drawn()."""

    number: int


class Level(Struct, frozen=True):
    """The least rank of what waits in the whole collection -> level(). Only with a depth limit."""


Command = (
    Ask | Renew | Resolve | Claim | Share | Load | Rebuild | Drain | Abort | Write | Release
    | TakeIds | Draw | Level | Fetch
)  # fmt: skip


class SiteFacts(Struct, frozen=True, kw_only=True):
    """What the store knows of a site when an agent takes it."""

    pages: int = 0
    rest_until: float = 0.0
    rest_s: float = 0.0
    is_clean: bool = True  # the last holder said goodbye
    failures: int = 0
    seed_urls: tuple[str, ...] = ()  # URLs of pages of kind s: seeds, and where they redirect to
    first_seed: int = 0
    equivalents: tuple[Numbered, ...] = ()
    kept: str = ""  # the name whose URLs are kept in the place of its own; empty: its own are
    fronts: tuple[tuple[str, int], ...] = ()  # (URL, seed) of its first seeds, given or found
    party_pages: tuple[tuple[int, int], ...] = ()
    hints: tuple[int, int] = (0, 0)  # of some pages of kind h: tried, failed
    robots: tuple[tuple[Any, ...], ...] = ()  # (authority, fetched, expires, code, failing, body)


class Loaded(Struct, frozen=True, kw_only=True):
    """The answer to Load."""

    site_id: int
    epoch: int
    rows: list[Known]
    limit: int
    facts: SiteFacts | None = None


class Leased(Struct, frozen=True, kw_only=True):
    """The answer to Ask: what was granted, and for how long from the moment of asking."""

    leases: list[Lease]
    asked: float


class Letter(Struct, frozen=True, kw_only=True):
    """What somebody else put into the inbox for a site held here."""

    letter: int
    wanted: Wanted
