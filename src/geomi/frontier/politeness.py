"""When a server may be asked again. Decides only.

Politeness belongs to the server: a host rests after each visit, an address and a declared group of
hosts have a gap between the starts of requests, whoever makes them.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC
from math import inf

from geomi.frontier.slots import ALWAYS, CLOCK_ERROR_S, Slot, common, opens_at

_EMPTY = 8  # places without owner that are worth that all others take theirs anew
_UNSURE_S = 1.0  # between looks at a clock that is too far from the store's
#: A request that is not written keeps others from the key so long: one connection that hangs must
#: not hold up a thousand neighbours. What would be written too soon all the same is held back then.
_UNSENT_S = 1.0
#: Addresses nobody asked for this long are forgotten; far longer than any gap.
_FORGET_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """The rules for one host."""

    rest_s: float = 2.0
    rest_factor: float = 10.0
    rest_factor_max_s: float = 300.0
    address_rest_s: float = 0.25
    connections: int = 1
    is_own: bool = False  # the operator's own server: no rest of host or address
    rate_bytes_per_s: int = 0  # over all connections; 0: no limit


class Host:
    """One host as its server sees it. Written by the agent's starts and ends."""

    __slots__ = (
        "__weakref__", "crawl_delay_s", "ended_at", "flying", "manners", "paid_until", "rest_s",
        "rest_until",
    )  # fmt: skip

    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self.flying = 0  # requests under way
        self.ended_at = 0.0  # the last of them that ended
        self.rest_until = 0.0  # nothing starts before
        self.rest_s = 0.0  # length of that rest
        self.crawl_delay_s = 0.0  # from robots.txt
        self.paid_until = 0.0  # when what came so far would have come at the allowed rate

    def started(self) -> None:
        self.flying += 1

    def ended(self, now: float, took_s: float, *, size_bytes: int = 0) -> None:
        """A visit is over: the host rests from now on."""
        self.flying -= 1
        self.ended_at = now
        manners = self.manners
        if manners.rate_bytes_per_s:
            since = max(self.paid_until, now - took_s)
            self.paid_until = since + size_bytes / manners.rate_bytes_per_s
            self.rest_until = max(self.rest_until, self.paid_until)
        if manners.is_own:
            return
        rest = min(manners.rest_factor * took_s, manners.rest_factor_max_s)
        self.rest(now, max(rest, manners.rest_s, self.crawl_delay_s))

    def rest(self, now: float, seconds: float) -> None:
        """Nothing starts for at least so long (Retry-After, a failing robots.txt, a new lease)."""
        self.rest_s = seconds
        if now + seconds > self.rest_until:
            self.rest_until = now + seconds

    def delays(self, seconds: float) -> None:
        """Its robots.txt asks for so long a rest; the one that is under way is prolonged."""
        self.crawl_delay_s = max(self.crawl_delay_s, seconds)
        if self.ended_at:
            self.rest_until = max(self.rest_until, self.ended_at + self.crawl_delay_s)

    def full_rest_s(self) -> float:
        """What a new holder waits who does not know when the last visit was."""
        if self.manners.is_own:
            return 0.0
        return max(self.manners.rest_s, self.crawl_delay_s, self.rest_s)


class Gaps:
    """The gaps of addresses and groups: starts of requests to one key lie at least `gap` apart.

    A waiting host reserves the next free place in line, so a thousand hosts on one address cost
    one step each, not one look each at every gap. Bounded by the keys asked for in 15 minutes.

    Of a key that several agents serve, starts lie in this agent's parts of the time.
    """

    def __init__(self, *, margin_s: float = 0.0, part_s: float = 0.0) -> None:
        # What the way to the server may eat of a gap; real shells keep 10 ms, the simulator none.
        self._margin_s = margin_s
        self._next: dict[str, float] = {}  # the first place in line nobody reserved
        self._last: dict[str, float] = {}  # the last start, or when that was really sent
        self._sent: dict[str, float] = {}  # when one was last written; inf: at this moment
        self._unsent: dict[str, float] = {}  # the last start, while it is not written
        self._held: dict[str, float] = {}  # keys that rest longer, until when
        self._empty: dict[str, int] = {}  # places in line whose owners are gone
        # Keys that this agent has not alone. Filled and emptied with its claims.
        self._slots: dict[str, Slot] = {}
        self._part_s = part_s  # the same for all agents
        self._error_s, self._drift, self._heard_at = 0.0, 0.0, 0.0
        self._sweep_at = _FORGET_S

    def reserve(self, keys: tuple[str, ...], gap_s: float, *, now: float) -> float:
        """The time at which the caller may start; that place is the caller's."""
        if gap_s <= 0.0 or not keys:
            return now
        at = now
        for key in keys:
            at = max(at, self._next.get(key, 0.0))
        if self._slots:
            at = self._open(keys, at)
        for key in keys:
            self._next[key] = at + gap_s + self._margin_s
        if now > self._sweep_at:
            self._sweep(now)
        return at

    def earliest(self, keys: tuple[str, ...], gap_s: float, *, now: float) -> float:
        """When a reserved place may really start: one who started late pushes the next.

        Not after `now`: it may start. Far after it: its part of the time is over.
        """
        at = 0.0
        if gap_s <= 0.0:
            return at
        for key in keys:
            last = self._last.get(key)
            if last is not None:
                at = max(at, last + gap_s + self._margin_s)
            if now - self._unsent.get(key, -_UNSENT_S) < _UNSENT_S:
                at = max(at, now + gap_s + self._margin_s)  # it is written later than now
        if self._slots:
            at = self._open(keys, max(at, now))
            if at <= now and not self.is_sure(now) and any(key in self._slots for key in keys):
                at = now + _UNSURE_S
        return at

    def left(self, key: str) -> bool:
        """Somebody with a place in line is gone. True: so many are that others should move up."""
        self._empty[key] = self._empty.get(key, 0) + 1
        return self._empty[key] >= _EMPTY

    def line_up(self, key: str) -> None:
        """All places in line are given anew: whoever has one must reserve again."""
        self._empty.pop(key, None)
        self._next.pop(key, None)
        if key in self._held:
            self._next[key] = self._held[key]

    # -- slots -------------------------------------------------------------------------------------

    def slot(self, key: str) -> Slot:
        return self._slots.get(key, ALWAYS)

    def take_slot(self, key: str, slot: Slot) -> bool:
        """From now on. True if it is another than before: places in line are not what they were."""
        if slot == self.slot(key):
            return False
        if slot == ALWAYS:
            del self._slots[key]
        else:
            self._slots[key] = slot
        return True

    def heard(self, error_s: float, drift: float, *, now: float) -> None:
        """How far this agent's clock may be from the store's, and what a second adds to that."""
        self._error_s, self._drift, self._heard_at = error_s, drift, now

    def is_sure(self, now: float) -> bool:
        """False while the clock may be too wrong to keep to one's own parts of the time."""
        return self._error_s + self._drift * max(0.0, now - self._heard_at) <= CLOCK_ERROR_S

    def _open(self, keys: tuple[str, ...], at: float) -> float:
        """The first time from `at` on that is ours at all of these keys."""
        slots = [slot for key in keys if (slot := self._slots.get(key)) is not None]
        if not slots:
            return at
        both = common(slots)
        if both is None:
            return at + _UNSURE_S  # until one of them is widened
        return opens_at(both, self._part_s, at=at)

    def started(self, keys: tuple[str, ...], gap_s: float, *, now: float) -> None:
        if gap_s <= 0.0:
            return
        for key in keys:
            self._last[key] = now
            if self._next.get(key, 0.0) < now + gap_s + self._margin_s:
                self._next[key] = now + gap_s + self._margin_s

    def begun(self, keys: tuple[str, ...], *, now: float) -> None:
        """What was started is on its way to the wire: `sent` or `ended` follows."""
        for key in keys:
            self._unsent[key] = now

    def may_send(
        self, keys: tuple[str, ...], gap_s: float, *, now: float, own: float | None = None
    ) -> bool:
        """Whether a request may be written this moment: starts are plans, this is what is seen.

        `own`: when this request itself was written last, if it was (inf: at this moment).
        """
        if gap_s <= 0.0:
            return True
        for key in keys:
            sent = self._sent.get(key, -gap_s)
            if (now < sent + gap_s and sent != own) or now < self._held.get(key, 0.0):
                return False
        shared = self._slots and any(key in self._slots for key in keys)
        return not shared or (self.is_sure(now) and self._open(keys, now) <= now)

    def sending(self, keys: tuple[str, ...], gap_s: float) -> None:
        """It is being written; nobody else sends there before it is known when that was."""
        if gap_s > 0.0:
            for key in keys:
                self._sent[key] = inf

    def sent(self, keys: tuple[str, ...], gap_s: float, *, now: float) -> None:
        """A request was written by now: the next one keeps its distance from here."""
        if gap_s > 0.0:
            for key in keys:
                self._sent[key] = now
        self.ended(keys, gap_s, now=now)

    def ended(self, keys: tuple[str, ...], gap_s: float, *, now: float = 0.0) -> None:
        """One that began is not on its way any more. `now`: the server heard of it then."""
        for key in keys if gap_s > 0.0 else ():
            self._unsent.pop(key, None)
            self._last[key] = max(self._last.get(key, 0.0), now)

    def hold(self, key: str, until: float) -> None:
        """Nobody starts at this key before `until` (Retry-After said by two of its hosts)."""
        self._next[key] = max(self._next.get(key, 0.0), until)
        self._held[key] = max(self._held.get(key, 0.0), until)

    def rests_until(self, key: str, gap_s: float) -> float:
        """When another agent may start at this key, if nobody here does any more."""
        until = self._held.get(key, 0.0)
        last = self._last.get(key)
        return until if last is None else max(until, last + gap_s + self._margin_s)

    def _sweep(self, now: float) -> None:
        self._sweep_at = now + _FORGET_S
        for key, last in list(self._last.items()):
            if last < now - _FORGET_S:
                del self._last[key]
        self._empty = {key: number for key, number in self._empty.items() if key in self._last}
        for times in (self._next, self._held, self._sent, self._unsent):
            for key, at in list(times.items()):
                if at < now - _FORGET_S:
                    del times[key]


def server_of(address: str) -> str:
    """The name under which an address rests: an IPv4 address inside an IPv6 one is that server's.

    A name can lead to a server by mapped and NAT64 addresses beside its own; its gap is one.
    """
    if ":" not in address:
        return address
    parsed = ipaddress.IPv6Address(address.partition("%")[0])
    if parsed in _MAPPED or parsed in _NAT64:
        return str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF))
    return str(parsed)


_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def retry_after_s(value: str, *, now: float) -> float | None:
    """Seconds that a Retry-After header asks for; None if it says nothing sensible."""
    value = value.strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:  # no zone, or -0000: HTTP's dates are UTC
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - now)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
