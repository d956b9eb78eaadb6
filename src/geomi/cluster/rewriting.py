"""`geomi archive rewrite`: an archive without its duplicates, a file in one transaction.

A job is planned into the store, then carried out. Of each file: the new one beside it, synced;
proved by reading both; renamed; then one transaction in which it takes the old one's place. So a
file is the old one or the new one, whole, whenever it ends; begun again it goes on, and until the
old files are purged it can be taken back.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from geomi.archive import rewrite_tables
from geomi.archive.generation import Form, proved, written
from geomi.archive.rewrite_tables import Edit, Job, Kept
from geomi.cluster.doubles import FLOOR_BYTES, Doubles, all_captures
from geomi.cluster.ledger import OPEN, index_path
from geomi.cluster.switching import (
    Shell,
    Target,
    backward,
    drop_unfinished_parts,
    forward,
)
from geomi.errors import OperatorError, RemoteError, ResourceError
from geomi.store import Store

WHO = "archive rewrite"
#: done bytes, all bytes, the file
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a rewrite is to do; a job that was begun keeps its own."""

    level: int = 1
    dense: int = 0  # level at which every record is deflated anew; 0: they are copied
    paper: bool = False
    floor: int = FLOOR_BYTES

    @property
    def form(self) -> Form:
        return Form(level=self.level, dense=self.dense, paper=self.paper)


@dataclass(slots=True, kw_only=True)
class Done:
    """What was planned and done. `left`: (file, why) of what could not be rewritten."""

    planned: dict[str, int] = field(default_factory=dict)
    files: int = 0
    before_bytes: int = 0
    after_bytes: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    left: list[tuple[str, str]] = field(default_factory=list)


class Rewriting:
    """Its owner has the collection's helm. `folder_of`: where a file lies, None if elsewhere."""

    def __init__(
        self, shell: Shell, *, folder_of: Callable[[Kept], str | None], tell: Tell = lambda *_: None
    ) -> None:
        self._shell = shell
        self._store: Store = shell.store
        self._folder_of = folder_of
        self._tell = tell

    # -- plan --------------------------------------------------------------------------------------

    def plan(
        self, wish: Wish, *, meaningless: frozenset[str], sink: Callable[[list[Edit]], None]
    ) -> dict[str, int]:
        """Every edit to the sink, and the counts for the report. Changes nothing."""
        with self.captures() as captures:
            doubles = Doubles(
                captures, path_of=self.path_of(), meaningless=meaningless, sink=sink,
                floor=wish.floor,
            )  # fmt: skip
            doubles.plan()
        counts = doubles.counts
        here = {kept.file for kept in self.here()}
        some: list[Edit] = []
        for edit in rewrite_tables.orphans(self._store):
            if edit.file in here:
                counts["orphans"] += 1
                counts["orphan_bytes"] += edit.length
                some.append(edit)
        sink(some)
        return dict(counts)

    def captures(self) -> Any:
        readable = self._shell.files.readable
        return all_captures(
            self._store, where=lambda name: readable(self._shell.where(name)),
            scratch=self._shell.scratch,
        )  # fmt: skip

    def here(self) -> list[Kept]:
        """Closed files that can be read from here, one gzip member a record."""
        return [
            kept
            for kept in rewrite_tables.closed_files(self._store)
            if kept.name.endswith(".warc.gz") and self._folder_of(kept) is not None
        ]

    def path_of(self) -> Callable[[int], str | None]:
        """Where a file's current generation can be read."""
        paths = {kept.file: self._path(kept, kept.name) for kept in self.here()}
        # In a simulation a readable file is a copy: made when it is asked for, and once.
        ready: dict[int, str] = {}

        def path_of(file: int) -> str | None:
            if file not in paths:
                return None
            if file not in ready:
                ready[file] = self._shell.files.readable(paths[file])
            return ready[file]

        return path_of

    def _path(self, kept: Kept, name: str) -> str:
        folder = self._folder_of(kept)
        if folder is None:
            raise ResourceError(f"{kept.name}: is not on this node")
        return os.path.join(folder, name)

    # -- the job -----------------------------------------------------------------------------------

    def run(self, wish: Wish, *, meaningless: frozenset[str] = frozenset()) -> Done:
        """The whole job, or what is left of one that was begun."""
        job = self._mine()
        if job is None:
            with self._store.transaction():
                job = rewrite_tables.begin(
                    self._store, "rewrite", self._options(wish, meaningless), self._shell.now()
                )
        done = Done()
        if job.state == "planning":
            with self._store.transaction():
                self._store.run("DELETE FROM edits")
            wish = self._wish(job)
            planned = self.plan(
                wish, meaningless=frozenset(job.options["meaningless"]), sink=self.put
            )  # fmt: skip
            job = self.planned(job, planned)
        done.planned = job.facts
        self.carry_out(job, done)
        with self._store.transaction():
            rewrite_tables.set_job(
                self._store, job.rewrite, "done", {**job.facts, **done.actions}, self._shell.now()
            )
        return done

    def put(self, edits: list[Edit]) -> None:
        with self._store.transaction():
            rewrite_tables.put_edits(self._store, edits)

    def planned(self, job: Job, facts: dict[str, Any]) -> Job:
        with self._store.transaction():
            rewrite_tables.set_job(self._store, job.rewrite, "writing", facts, self._shell.now())
        return job._replace(state="writing", facts=facts)

    def _mine(self) -> Job | None:
        job = rewrite_tables.under_way(self._store)
        if job is not None and job.kind != "rewrite":
            raise OperatorError(
                f"a {job.kind} was begun and is not over; `geomi archive {job.kind} --resume` first"
            )
        return job

    @staticmethod
    def _options(wish: Wish, meaningless: frozenset[str]) -> dict[str, Any]:
        return {
            "level": wish.level, "dense": wish.dense, "paper": wish.paper, "floor": wish.floor,
            "meaningless": sorted(meaningless),
        }  # fmt: skip

    @staticmethod
    def _wish(job: Job) -> Wish:
        given = {name: value for name, value in job.options.items() if name != "meaningless"}
        return Wish(**{name: given[name] for name in ("level", "dense", "paper", "floor")
                       if name in given})  # fmt: skip

    # -- carried out -------------------------------------------------------------------------------

    def carry_out(self, job: Job, done: Done, *, who: str = WHO) -> None:
        """Every file with edits becomes its next generation; those that did already are passed."""
        drop_unfinished_parts(self._shell)
        form = self._wish(job).form
        before = {row[0] for row in rewrite_tables.switched_by(self._store, job.rewrite)}
        wanted = self._wanted(form)
        all_bytes = sum(kept.committed for kept in wanted)
        done_bytes = 0
        for kept in wanted:
            if kept.file not in before:
                self._tell(done_bytes, all_bytes, kept.name)
                try:
                    self._one(job, kept, form, done, who)
                except RemoteError as error:
                    done.left.append((kept.name, str(error)))
                    self._clear(kept)
            done_bytes += kept.committed
        self._tell(all_bytes, all_bytes, "")

    def _wanted(self, form: Form) -> list[Kept]:
        here = {kept.file: kept for kept in self.here()}
        if form.dense:
            return list(here.values())
        return [here[file] for file in rewrite_tables.edited_files(self._store) if file in here]

    def _one(self, job: Job, kept: Kept, form: Form, done: Done, who: str) -> None:
        files, store = self._shell.files, self._store
        old = files.readable(self._path(kept, kept.name))
        name = rewrite_tables.next_name(kept.name, kept.generation + 1)
        new = self._path(kept, name)
        self._clear(kept)
        files.create(new + OPEN)
        tally: Counter[str] = Counter()
        length = files.append(new + OPEN, written(
            old, kept.committed, rewrite_tables.edits_of(store, kept.file), form=form,
            source=self._source, tally=tally,
        ))  # fmt: skip
        files.sync(new + OPEN)
        if not form.dense and not tally["removed_bytes"]:
            files.remove(new + OPEN)  # what was planned turned out to be none
            done.actions += tally
            return
        shifts = proved(
            old, files.readable(new + OPEN), kept.committed,
            rewrite_tables.edits_of(store, kept.file), form=form, source=self._source,
        )  # fmt: skip
        files.rename(new + OPEN, new)
        target = Target(name, length, self._folder_of(kept) or "")
        forward(self._shell, kept, target, shifts, rewrite=job.rewrite, who=who)
        done.files += 1
        done.before_bytes += kept.committed
        done.after_bytes += length
        done.actions += tally

    def _source(self, edit: Edit) -> tuple[str, int]:
        kept = rewrite_tables.kept(self._store, edit.source)
        name = rewrite_tables.name_of(self._store, edit.source, edit.source_generation)
        if kept is None or not name:
            raise ResourceError(f"file {edit.source}: the one with a payload is not in the store")
        return self._shell.files.readable(self._path(kept, name)), edit.source_offset

    def _clear(self, kept: Kept) -> None:
        """What a kill left of the next generation of a file that is not switched yet."""
        path = self._path(kept, rewrite_tables.next_name(kept.name, kept.generation + 1))
        for one in (path + OPEN, path, index_path(path), index_path(path) + ".new"):
            if self._shell.files.size(one) is not None:
                self._shell.files.remove(one)

    # -- back, and for good ------------------------------------------------------------------------

    def abort(self) -> int:
        """Every file is what it was before the job that was begun; how many were switched back."""
        job = self._mine()
        if job is None:
            raise OperatorError("no rewrite was begun, so there is nothing to take back")
        drop_unfinished_parts(self._shell)
        form = self._wish(job).form
        back = 0
        for file, generation, name, committed in rewrite_tables.switched_by(
            self._store, job.rewrite
        ):
            kept = rewrite_tables.kept(self._store, file)
            assert kept is not None
            readable = self._shell.files.readable
            shifts = proved(
                readable(self._path(kept, name)), readable(self._path(kept, kept.name)), committed,
                rewrite_tables.edits_of(self._store, file), form=form, source=self._source,
            )  # fmt: skip
            shifts.end = committed
            folder = self._folder_of(kept) or ""
            backward(self._shell, kept, Target(name, committed, folder), shifts, who=WHO)
            back += 1
            self._clear(kept._replace(name=name, generation=generation))
        for kept in self.here():
            self._clear(kept)
        with self._store.transaction():
            rewrite_tables.set_job(self._store, job.rewrite, "aborted", {}, self._shell.now())
        return back

    def purge(self) -> tuple[int, int]:
        """Removes what earlier generations left on disk: (files, bytes)."""
        if (job := rewrite_tables.under_way(self._store)) is not None:
            raise OperatorError(
                f"a {job.kind} was begun and is not over: the old files are needed until it is"
            )
        number = size = 0
        for kept, name, generation, committed in self._replaced():
            path = self._path(kept, name)
            self._shell.files.remove(path)
            self._shell.files.remove(index_path(path))
            with self._store.transaction():
                rewrite_tables.purged(self._store, kept.file, generation)
            number, size = number + 1, size + committed
        return number, size

    def _replaced(self) -> Iterator[tuple[Kept, str, int, int]]:
        for file, generation, name, committed, *_ in rewrite_tables.replaced(self._store):
            kept = rewrite_tables.kept(self._store, file)
            if kept is not None and self._folder_of(kept) is not None:
                yield kept, name, generation, committed
