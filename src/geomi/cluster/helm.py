"""Who has the helm: the one coordinator of a collection, and how another comes to it.

With SQLite it is a lock on a file, free at the death of its holder. With PostgreSQL it is a lease
in the store, which a thread renews; each transaction of the coordinator asks whether it holds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from geomi.archive.files import Lock
from geomi.errors import GeomiError, OperatorError, ResourceError
from geomi.store import Store

LEASE_S = 30.0
_RENEW_S = 5.0
_LOOK_S = 0.5  # between looks of one who waits


class TakenOver(GeomiError):
    """Another coordinator has the collection now: end without writing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process, so that nobody takes another for it."""

    host: str
    pid: int
    born: str  # boot, namespace of process ids, and when it started in that boot

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def is_dead(self) -> bool:
        """True if that can be seen from here. Elsewhere it may live."""
        here = this_process()
        boot, _, rest = self.born.partition(" ")
        space, _, started = rest.partition(" ")
        if self.host != here.host or not started:
            return False
        here_boot, here_space, _ = here.born.split(" ")
        if boot != here_boot:
            return True
        return space == here_space and _started(self.pid) != started


def this_process() -> Process:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    space = os.readlink("/proc/self/ns/pid")
    pid = os.getpid()
    return Process(host=os.uname().nodename, pid=pid, born=f"{boot} {space} {_started(pid)}")


def _started(pid: int) -> str:
    """When a process started, in ticks of this boot; empty if there is none.

    One that was killed is still listed until its parent asks how it ended, and that may never be.
    """
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] in ("Z", "X") else words[19]


class FileHelm:
    """The lock of a collection whose store is a file."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def attempt(self, *, by_force: bool) -> str:
        """Empty if it is ours now; else who has it."""
        try:
            is_ours = self._lock.take()
        except OSError as error:
            raise OperatorError(
                f"{self._lock.path}: cannot be written: {error.strerror or error}"
            ) from error
        if is_ours:
            self._lock.note(str(this_process()))
            return ""
        who = self._lock.read_note() or "another process"
        if by_force:
            raise OperatorError(
                f"{who} has the collection, and a store in SQLite is not taken over: end it first"
            )
        return who

    def check(self) -> None:
        """Nobody else can have come to it."""

    def fence(self, store: Store) -> None:
        """The same."""

    def release(self) -> None:
        self._lock.release()


class StoreHelm:
    """The lease of a collection whose store is PostgreSQL. `connect` opens the store."""

    def __init__(self, connect: Callable[[], Store]) -> None:
        self._store = connect()
        self._epoch = 0
        self._lost = ""
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def attempt(self, *, by_force: bool) -> str:
        """Empty if it is ours now; else who has it. Waits for a transaction of who had it."""
        store, me = self._store, this_process()
        with store.transaction():
            store.run(
                "INSERT INTO coordinator (one, epoch, host, pid, born, until)"
                " VALUES (1, 0, '', 0, '', 0) ON CONFLICT DO NOTHING"
            )
            row = store.one(
                "SELECT epoch, host, pid, born, until FROM coordinator WHERE one = 1 FOR UPDATE"
            )
            assert row is not None
            epoch, host, pid, born, until = row
            now = store.now()
            other = Process(host=host, pid=pid, born=born)
            if until > now and not by_force and not other.is_dead:
                return str(other)
            self._epoch = epoch + 1
            store.run(
                "UPDATE coordinator SET epoch = ?, host = ?, pid = ?, born = ?, until = ?"
                " WHERE one = 1",
                (self._epoch, me.host, me.pid, me.born, now + LEASE_S),
            )
        self._thread = threading.Thread(target=self._keep, name="helm", daemon=True)
        self._thread.start()
        return ""

    def _keep(self) -> None:
        while not self._ends.wait(_RENEW_S):
            try:
                if not self._store.run(
                    "UPDATE coordinator SET until = ? WHERE one = 1 AND epoch = ?",
                    (self._store.now() + LEASE_S, self._epoch),
                ):
                    self._lost = self._other()
                    return
            except ResourceError:  # the store is away, for all: once it is back we look
                continue

    def _other(self) -> str:
        row = self._store.one("SELECT host, pid FROM coordinator WHERE one = 1")
        return f"process {row[1]} on {row[0]}" if row else "another process"

    def check(self) -> None:
        """TakenOver as soon as it is known."""
        if self._lost:
            raise TakenOver(f"{self._lost} has taken the collection over; this crawl ends")

    def fence(self, store: Store) -> None:
        """Inside a transaction of `store`: it is ours until that has ended."""
        self.check()
        if store.one(
            "SELECT 1 FROM coordinator WHERE one = 1 AND epoch = ? FOR KEY SHARE", (self._epoch,)
        ) is None:  # fmt: skip
            row = store.one("SELECT host, pid FROM coordinator WHERE one = 1")
            self._lost = f"process {row[1]} on {row[0]}" if row else "another process"
            self.check()

    def release(self) -> None:
        self._ends.set()
        if self._thread is not None:
            self._thread.join()
            try:
                self._store.run(
                    "UPDATE coordinator SET until = 0 WHERE one = 1 AND epoch = ?", (self._epoch,)
                )
            except ResourceError:
                pass  # it expires, or is taken at once by who sees that we are gone
        self._store.close()


Helm = FileHelm | StoreHelm


def take(
    helm: Helm, where: str, *, wait: bool, take_over: bool, tell: Callable[[str], None]
) -> Helm:
    """The helm, taken. OperatorError names who has it, unless we are to wait for it."""
    told = ""
    try:
        while who := helm.attempt(by_force=take_over):
            if not wait:
                hint = "" if isinstance(helm, FileHelm) else ", or --take-over"
                raise OperatorError(
                    f"{where}: another geomi works on it ({who}); --wait waits for its end{hint}"
                )
            if who != told:
                tell(f"waits for {who}")
                told = who
            time.sleep(_LOOK_S)
    except BaseException:
        helm.release()
        raise
    return helm
