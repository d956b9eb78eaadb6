"""What an agent asks its shell to do. Each is answered by the event named beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from geomi.cluster.batch import Batch
from geomi.fetch.request import Fetch
from geomi.frontier.queue import Key
from geomi.frontier.tables import Known
from geomi.records import Lease, Wanted


@dataclass(frozen=True, slots=True)
class Ask:
    """Leases on up to `number` sites -> leased()."""

    number: int


@dataclass(frozen=True, slots=True)
class Renew:
    """All leases of this agent -> renewed()."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """The addresses of a name -> resolved()."""

    host: str


@dataclass(frozen=True, slots=True)
class Claim:
    """Addresses and groups for this agent alone -> claimed()."""

    site_id: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """Waiting pages of a site beyond `after` -> loaded(). The first time, its facts too."""

    site_id: int
    epoch: int
    after: Key
    limit: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Hashes of a site's known URLs beyond `after` -> rebuilt()."""

    site_id: int
    epoch: int
    after: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Letters in the inbox for sites held here -> letters()."""

    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Abort:
    """A fetch whose answer is no longer wanted. No event."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Write:
    """Append, sync, commit -> written()."""

    batch: Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A site goes back. No event. Comes after the Write of all its rows."""

    site_id: int
    epoch: int
    rest_until: float
    rest_s: float
    failures: int
    is_closed: bool = False  # it rests until its hours begin
    go_to: str = ""  # the holder of its address
    unclaim: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TakeIds:
    """A range of page ids -> ids()."""

    number: int


@dataclass(frozen=True, slots=True)
class Draw:
    """A share of the visits that the crawl may still make -> drawn()."""

    number: int


@dataclass(frozen=True, slots=True)
class Level:
    """The least rank of what waits in the whole collection -> level(). Only with a depth limit."""


Command = (
    Ask | Renew | Resolve | Claim | Load | Rebuild | Drain | Abort | Write | Release | TakeIds
    | Draw | Level | Fetch
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """What the store knows of a site when an agent takes it."""

    pages: int = 0
    rest_until: float = 0.0
    rest_s: float = 0.0
    is_clean: bool = True  # the last holder said goodbye
    failures: int = 0
    seed_urls: tuple[str, ...] = ()  # URLs of pages of kind s: seeds, and where they redirect to
    first_seed: int = 0
    party_pages: tuple[tuple[int, int], ...] = ()
    robots: tuple[tuple[Any, ...], ...] = ()  # (authority, fetched, expires, code, failing, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The answer to Load."""

    site_id: int
    epoch: int
    rows: list[Known]
    limit: int
    facts: SiteFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """The answer to Ask: what was granted, and for how long from the moment of asking."""

    leases: list[Lease]
    asked: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What somebody else put into the inbox for a site held here."""

    letter: int
    wanted: Wanted
