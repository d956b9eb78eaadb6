"""Whether two names are one site, and which URLs of a second name are asked for. Decides only.

Since virtual hosting an address says little, so content must agree: the front page, and a sample of
pages below it. A difference counts only if it stays: of two visits with different content the older
one is made again, so that a page that changes by itself is no evidence either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from geomi.records import Reason
from geomi.states import HAD, TRANSIENT, Outcome

#: `why` of a page that is not asked for because another name of its site has it: `alias:URL`.
WHY = "alias:"
#: Reasons for which a URL of a second name is visited all the same.
VISITED = Reason.ALIAS | Reason.DUE | Reason.NOTICE
#: So many tests of one pair say nothing (pages that change, redirects, failures) for each that is
#: wanted, and it is left at that.
_PATIENCE = 4


class State(StrEnum):
    """What is held of a pair of names."""

    TESTING = "testing"  # pages of both are compared
    MERGING = "merging"  # decided; what waits under the second name is going over
    MERGED = "merged"
    PARTING = "parting"  # taken back; what was skipped is wanted again
    REFUSED = "refused"  # by the evidence
    WITHDRAWN = "withdrawn"  # merged once, then a check failed
    UNDONE = "undone"  # merged once, then taken back by hand
    NEVER = "never"  # forbidden by hand


#: In these the second name has no pages of its own.
ONE = (State.MERGING, State.MERGED)


class Verdict(StrEnum):
    """What one page under both names says."""

    OPEN = ""  # not known yet
    AGREE = "agree"
    DIFFER = "differ"
    UNKNOWN = "unknown"  # it changes by itself, redirects, fails, or may not be asked for


class Twin(NamedTuple):
    """A page under one of the names, as the store has it."""

    outcome: str
    code: int
    digest: str
    visited: float
    visits: int

    @property
    def said(self) -> str:
        """What it came to, for comparing and for people: a digest, or a state."""
        if self.outcome in HAD:
            return self.digest
        return f"{self.outcome} {self.code}" if self.code else self.outcome


class Again(NamedTuple):
    """The older of two visits was wanted once more: whose, the number it had, and what it said."""

    of_alias: bool
    visits: int
    was: str


class Face(NamedTuple):
    """A site as it shows itself: what its front page came to, and where."""

    site_id: int
    site: str
    digest: str
    address: str
    is_given: bool  # a seed was given there
    pages: int  # with content; of many no more than a bound


def is_literal(site: str) -> bool:
    """True if the site's name is an address."""
    host = site if site.endswith("]") else site.rpartition(":")[0] or site
    return host.startswith("[") or not set(host) - set("0123456789.")


def port_of(site: str) -> str:
    """The port as the name has it; empty for the default ones."""
    return site[site.rfind(":") + 1 :] if site.rfind(":") > site.rfind("]") else ""


def www_twin(site: str) -> str:
    """The name with `www.` in front, or without it; empty for an address."""
    if is_literal(site):
        return ""
    return site[4:] if site.startswith("www.") else f"www.{site}"


def relation(one: Face, other: Face, *, allowed: Sequence[str]) -> str:
    """Why two names with the same front page may be one site; empty: they may not.

    Only equal ports: else a URL of the one has no twin at the other.
    """
    if one.site_id == other.site_id or port_of(one.site) != port_of(other.site):
        return ""
    if "www" in allowed and www_twin(one.site) == other.site:
        return "www"
    if "address" in allowed and one.address and one.address == other.address:
        return f"address {one.address}"
    return "content" if "content" in allowed else ""


def kept(one: Face, other: Face) -> Face:
    """Whose URLs stay: a name before an address, a given one, one with more pages, the older."""
    return min(one, other, key=lambda f: (is_literal(f.site), not f.is_given, -f.pages, f.site_id))


def compared(kept: Twin, alias: Twin, *, again: Again | None) -> Verdict | Again:
    """What one page under both names says. `Again`: make that visit, then ask with it.

    Of three visits A, B, A the first and the last alike and the one between different: they differ.
    """
    if again is not None and (alias if again.of_alias else kept).visits <= again.visits:
        return Verdict.OPEN
    if _is_failing(kept) or _is_failing(alias):
        return Verdict.OPEN
    has_kept, has_alias = kept.outcome in HAD, alias.outcome in HAD
    if has_kept and has_alias and kept.digest == alias.digest:
        return Verdict.AGREE
    if not (has_kept or has_alias) or kept.outcome in _SILENT or alias.outcome in _SILENT:
        return Verdict.UNKNOWN
    if again is None:
        of_alias = alias.visited < kept.visited
        older = alias if of_alias else kept
        return Again(of_alias, older.visits, older.said)
    now = (alias if again.of_alias else kept).said
    return Verdict.DIFFER if now == again.was else Verdict.UNKNOWN


_SILENT = (Outcome.DENY, Outcome.SKIP, Outcome.BAD)


def _is_failing(twin: Twin) -> bool:
    """It was not asked yet, or may be asked again soon."""
    if twin.outcome == Outcome.NULL or twin.outcome in TRANSIENT:
        return True
    return twin.outcome == Outcome.CODE and (twin.code >= 500 or twin.code == 429)


class Tally(NamedTuple):
    """The verdicts on a sample."""

    agree: int = 0
    differ: int = 0
    unknown: int = 0
    open: int = 0


def judged(tally: Tally, *, sample: int, share: float) -> State:
    """Merging, refused, or testing as long as the sample says too little."""
    heard = tally.agree + tally.differ
    # Refused as soon as the best that may still come is not enough.
    if tally.differ and (max(sample, heard) - tally.differ) < share * max(sample, heard):
        return State.REFUSED
    if heard >= sample:
        return State.MERGING if tally.agree >= share * heard else State.REFUSED
    if tally.unknown >= _PATIENCE * sample:
        return State.REFUSED
    return State.TESTING


def sampled(
    kept: Mapping[str, str], alias: Mapping[str, str], *, front: str, tested: Iterable[str],
    number: int, hashed: Callable[[str], int],
) -> list[str]:  # fmt: skip
    """Targets to compare next: those both have before those one of them has, by their hash.

    `kept` and `alias` are target -> digest of pages with content. One content is taken once, and
    not that of the front page: a server with one answer to every question proves nothing.
    """
    done = set(tested)
    used = {front}
    for target in done:
        used.update(digests[target] for digests in (kept, alias) if target in digests)
    found: list[str] = []
    both = kept.keys() & alias.keys()
    for some in (both, (kept.keys() | alias.keys()) - both):
        for target in sorted(some - done, key=hashed):
            digests = {mine[target] for mine in (kept, alias) if target in mine}
            if len(found) >= number:
                return found
            if not digests & used:
                found.append(target)
                used |= digests
    return found


def part_begins(turn: int) -> int:
    """The hash from which on pages are compared: elsewhere at each turn (golden section)."""
    return turn * 0x9E37_79B9_7F4A_7C15 % (1 << 64) - (1 << 63)
