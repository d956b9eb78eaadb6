"""Claims in the store: an address or group is one agent's, or several agents' in parts of the time.

Each function is one transaction. The rows of a key whose time is not over are disjoint slots
(`frontier.slots`). A slot only shrinks after its holder has begun to keep to what is left of it,
and only grows before; so what two agents keep to never overlaps, however late an answer comes.
"""

from __future__ import annotations

from collections.abc import Sequence

from geomi.cluster.commands import Claim, Claimed, Share
from geomi.cluster.context import Plan
from geomi.frontier.slots import ALWAYS, Slot, common, free, length_s, widened, without
from geomi.store import SQLITE, Store

#: A row of each key is there, and ours alone until the end of the transaction.
_LOCK = (
    "INSERT INTO addresses (address, slot, holder, epoch, until) VALUES (?, 0, '', 0, 0)"
    " ON CONFLICT (address, slot) DO UPDATE SET epoch = addresses.epoch"
)
_PUT = (
    "INSERT INTO addresses (address, slot, slots, part_s, holder, epoch, until)"
    " VALUES (?, ?, ?, ?, ?, 0, ?) ON CONFLICT (address, slot) DO UPDATE SET"
    " slots = excluded.slots, part_s = excluded.part_s, holder = excluded.holder,"
    " until = excluded.until, wished = 0"
)


class _Row:
    """Who has which parts of the time at a key; `holder` empty: nobody, it rests."""

    __slots__ = ("holder", "part_s", "slot", "until")

    def __init__(self, slot: int, of: int, part_s: float, holder: str, until: float) -> None:
        self.slot = Slot(slot, of)
        self.part_s = part_s
        self.holder = holder
        self.until = until


def _lock(store: Store, keys: Sequence[str]) -> None:
    if store.dialect != SQLITE:  # who comes second waits for the row, and then sees the first
        store.many(_LOCK, [(key,) for key in keys])


def _rows(store: Store, key: str) -> list[_Row]:
    return [
        _Row(*row)
        for row in store.all(
            "SELECT slot, slots, part_s, holder, until FROM addresses WHERE address = ?"
            " ORDER BY slot",
            (key,),
        )
    ]


def claim(store: Store, plan: Plan, wanted: Claim, *, now: float) -> Claimed:
    """Makes all keys ours, or none where others have all the time of one (or the `host`)."""
    keys = sorted(wanted.keys)  # one order for all who claim several
    rests: list[tuple[str, float]] = []
    host_rests_until = 0.0
    with store.transaction():
        if not wanted.host:
            store.run(
                "UPDATE sites SET address = ? WHERE site_id = ? AND address <> ?",
                (wanted.address, wanted.site_id, wanted.address),
            )
        _lock(store, keys)
        rows = {key: _rows(store, key) for key in keys}
        slots = {key: row.slot for key in keys for row in rows[key] if row.holder == plan.holder}
        both = common(slots.values()) or ALWAYS
        for key in keys:
            if key in slots:
                continue
            others = [row for row in rows[key] if row.holder and row.until > now]
            found = free((row.slot for row in others), limit=_limit(plan, wanted, others),
                         within=both)  # fmt: skip
            if found is None:
                if wanted.may_share:
                    _wish(store, plan, key, others)
                return Claimed(other=others[wanted.site_id % len(others)].holder)
            slots[key] = found
            both = common((both, found)) or both
        if wanted.host:
            row = store.one("SELECT holder, rest_until FROM sites WHERE site = ?", (wanted.host,))
            if row is not None and row[0] not in ("", plan.holder):
                return Claimed(other=str(row[0]))
            if row is not None and not row[0]:
                host_rests_until = float(row[1])
        for key in keys:
            rests += [(key, until) for until in _take(store, plan, key, slots[key], rows[key], now)]
    return Claimed(
        rests=tuple(rests), host_rests_until=host_rests_until,
        slots=tuple((key, slots[key]) for key in keys),
    )  # fmt: skip


def _limit(plan: Plan, wanted: Claim, others: list[_Row]) -> int:
    """Into how many slots the time may be cut for who comes."""
    if not others:
        return 1
    # Agents of another run may mean parts of another length: their slots and ours would meet.
    if not wanted.may_share or any(row.part_s != length_s(plan.gap_s) for row in others):
        return 0
    return plan.slots


def _wish(store: Store, plan: Plan, key: str, others: list[_Row]) -> None:
    """Who has the largest slot hears that somebody else has sites there too."""
    widest = min(others, key=lambda row: row.slot.of)
    if widest.slot.of * 2 <= plan.slots:
        store.run(
            "UPDATE addresses SET wished = 1 WHERE address = ? AND slot = ? AND wished = 0",
            (key, widest.slot.slot),
        )


def _take(
    store: Store, plan: Plan, key: str, slot: Slot, rows: list[_Row], now: float
) -> list[float]:
    """The slot is ours from now on. Returns until when parts of it rest from their last holder."""
    rests = []
    for row in rows:
        if row.holder == plan.holder or (row.holder and row.until > now):
            continue
        until = row.until + (plan.mourning_s if row.holder else 0.0)
        is_resting = until > now and row.slot.meets(slot)
        if until > now and not is_resting:
            continue
        store.run("DELETE FROM addresses WHERE address = ? AND slot = ?", (key, row.slot.slot))
        if is_resting:
            rests.append(until)
            for left in without(row.slot, slot):
                store.run(_PUT, (key, left.slot, left.of, row.part_s, "", until))
    store.run(
        _PUT, (key, slot.slot, slot.of, length_s(plan.gap_s), plan.holder, now + plan.lease_s)
    )
    return rests


def share(store: Store, plan: Plan, wanted: Share, *, now: float) -> Slot:
    """Keeps one half of a slot, and leaves the other. Returns what is ours at that key now."""
    with store.transaction():
        _lock(store, [wanted.key])
        rows = _rows(store, wanted.key)
        mine = next((row.slot for row in rows if row.holder == plan.holder), None)
        if mine is None or wanted.keep not in mine.halves():
            return mine or ALWAYS
        (other,) = without(mine, wanted.keep)
        part_s = length_s(plan.gap_s)
        store.run(
            "DELETE FROM addresses WHERE address = ? AND (holder = ? OR until <= ?)",
            (wanted.key, plan.holder, now - plan.mourning_s),
        )
        store.run(_PUT, (wanted.key, wanted.keep.slot, wanted.keep.of, part_s, plan.holder,
                         now + plan.lease_s))  # fmt: skip
        if wanted.rests_until > now:
            store.run(_PUT, (wanted.key, other.slot, other.of, part_s, "", wanted.rests_until))
    return wanted.keep


def widen(store: Store, plan: Plan, *, now: float) -> list[tuple[str, Slot]]:
    """Takes back what nobody has any more of what our slots were divided from: (key, slot) now."""
    divided = store.all(
        "SELECT address FROM addresses WHERE holder = ? AND slots > 1 ORDER BY address",
        (plan.holder,),
    )
    found = []
    for (key,) in divided:
        with store.transaction():
            _lock(store, [key])
            rows = _rows(store, key)
            mine = next((row.slot for row in rows if row.holder == plan.holder), None)
            if mine is None:
                continue
            others = [
                r.slot
                for r in rows
                if r.holder != plan.holder and r.until + (plan.mourning_s if r.holder else 0) > now
            ]
            wide = widened(mine, others)
            if wide != mine:
                store.run(
                    "DELETE FROM addresses WHERE address = ? AND (holder = ? OR until <= ?)",
                    (key, plan.holder, now - plan.mourning_s),
                )
                store.run(_PUT, (key, wide.slot, wide.of, length_s(plan.gap_s), plan.holder,
                                 now + plan.lease_s))  # fmt: skip
            found.append((key, wide))
    return found


def wished(store: Store, plan: Plan) -> list[str]:
    """Keys of ours that somebody else has sites at."""
    return [
        key
        for (key,) in store.all(
            "SELECT address FROM addresses WHERE wished = 1 AND holder = ?", (plan.holder,)
        )
    ]


def wish(store: Store, keys: Sequence[str], *, holder: str) -> None:
    """The holder of these hears that others could have sites there."""
    store.many(
        "UPDATE addresses SET wished = 1 WHERE address = ? AND holder = ? AND wished = 0",
        [(key, holder) for key in keys],
    )


def takers(store: Store) -> dict[str, dict[str, int]]:
    """Addresses and groups that several agents serve or may serve; who does, and the slot's `of`.

    Where one alone has what is left of shared time, that is one too.
    """
    found: dict[str, dict[str, int]] = {}
    for key, holder, of in store.all(
        "SELECT address, holder, slots FROM addresses WHERE slots > 1 AND holder <> ''"
    ):
        found.setdefault(key, {})[holder] = of
    return found
