"""The batch that fills while the one before it is being written."""

from __future__ import annotations

from geomi.archive.writer import Writer
from geomi.cluster.batch import FILE, OFFSET, Batch
from geomi.cluster.commands import Command, Load, Write
from geomi.cluster.context import Context, Plan

#: Pages found that a batch holds, half a KiB each; pages with many new links fill it so.
_NEW_PAGES = 20_000


class Filling:
    """Says when it is handed over, and which sites have rows that the store does not know yet."""

    def __init__(self, plan: Plan, *, writer: Writer, out: list[Command]) -> None:
        self._plan = plan
        self._writer = writer
        self._out = out
        self._since: float | None = None  # when its first row came
        self._writing: int | None = None  # number of the batch under way
        self._loads: list[Load] = []  # of sites with rows here: the write must come first
        self.number = 0
        self.lost = 0  # leases: rows of their sites may be refused
        self.batch = self._new()

    def _new(self) -> Batch:
        self.number += 1
        plan = self._plan
        return Batch(
            agent=plan.agent, incarnation=plan.incarnation, holder=plan.holder, run=plan.run
        )

    def take(self) -> Batch:
        """The filled batch; a new one begins."""
        batch = self.batch
        batch.files = self._writer.take()
        self.batch = self._new()
        return batch

    def touch(self, ctx: Context) -> Batch:
        """The batch, for a row of this site."""
        batch = self.batch
        batch.epochs[ctx.site_id] = ctx.epoch
        ctx.dirty = self.number
        return batch

    def holds(self, ctx: Context) -> bool:
        """True if rows of this site are in the batch that fills."""
        return ctx.dirty == self.number

    def is_unwritten(self, ctx: Context) -> bool:
        """True if rows of this site are here, or under way to the store."""
        return ctx.dirty in (self.number, self._writing)

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    @property
    def is_behind(self) -> bool:
        """The store is slower than the sites: nothing more is started until it has caught up."""
        return self._writing is not None and (
            len(self.batch.visits) >= 2 * self._plan.batch_visits
            or self.batch.payload_bytes >= 2 * self._plan.batch_bytes
            or len(self.batch.new) >= 2 * _NEW_PAGES
        )

    @property
    def next_write(self) -> float | None:
        if self._since is None or self._writing is not None:
            return None
        return self._since + self._plan.batch_s

    def load(self, ctx: Context, *, is_first: bool = False) -> None:
        """Asks for waiting pages of a site, behind what is unwritten of it."""
        after = ctx.queue.load_begins()
        load = Load(ctx.site_id, ctx.epoch, after, ctx.queue.window, is_first)
        (self._loads if self.holds(ctx) else self._out).append(load)

    def filled(self, now: float) -> None:
        """A row was added: write when the batch is large enough."""
        batch = self.batch
        if batch.is_empty:
            return
        if self._since is None:
            self._since = now
        if (
            len(batch.visits) >= self._plan.batch_visits
            or batch.payload_bytes >= self._plan.batch_bytes
            or len(batch.settled) >= 10 * self._plan.batch_visits
            or len(batch.new) >= _NEW_PAGES
        ):
            self.write()

    def wake(self, now: float, *, is_stopping: bool) -> None:
        """Writes what is old enough, or waited for."""
        if self.batch.is_empty:
            return
        if self._since is None:
            self._since = now
        if now >= self._since + self._plan.batch_s or self._loads or is_stopping:
            self.write()

    def write(self) -> None:
        """Hands the batch over, unless one is under way: then it goes on filling."""
        if self._writing is not None:
            return
        number = self.number
        batch = self.take()
        self._since = None
        if batch.is_empty:
            return
        self._writing = number
        self._out.append(Write(batch))
        self._out.extend(self._loads)
        self._loads.clear()

    def written(self) -> None:
        self._writing = None

    def grew(self, file: int, by: int) -> None:
        """A spooled part turned out so long: what the filling batch has in that file moves."""
        self._writer.grew(file, by)
        for stored in self.batch.stored:
            if stored.visit[FILE] == file:
                stored.visit[OFFSET] += by

    def close_files(self) -> Batch | None:
        """A last batch that closes the open files. None: nothing is open."""
        batch = self.take()
        batch.files = self._writer.close_all()
        return batch if batch.files else None
