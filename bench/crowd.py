"""Real crawls watched from outside: pages/s in a steady window, and whose CPU that took.

Pages come from one server on loopback that is many hosts, each with an address of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from answering import Answering, address_of

HERE = Path(__file__).resolve().parent
# Its modules postgres and rays start what they are called. (pywb installs a package `tests`.)
sys.path.append(str(HERE.parent / "tests"))

GEOMI = [sys.executable, "-c", "import sys; from geomi.cli import main; sys.exit(main())"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(HERE.parent / "src")}
PAGES = 5_000  # of each host: more than any window asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """What is measured: agents, what carries them, where the state is."""

    agents: int
    engine: str = "local"  # local, ray
    store: str = "sqlite"  # sqlite, postgresql


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How hosts are treated, how many there are, and how many an agent has in hand."""

    rest_s: float  # 0: hosts under `own`
    contexts: int
    hosts: int
    warm_s: float
    window_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What was seen of a crew while nothing began and nothing ended. CPU is of one core."""

    crew: Crew
    rest_s: float
    contexts: int
    seconds: float
    pages: int
    pages_per_s: float
    agents_cpu_ms_per_page: float
    store_cpu_ms_per_page: float  # of the PostgreSQL server
    coordinator_percent: float  # of a core: the process `geomi crawl` without its agents
    coordinator_percent_per_1000: float  # for each 1,000 pages/s
    agent_mib: float
    coordinator_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where stores and engines are that crews need. Empty: not started."""

    postgres: str = ""  # address
    postgres_pid: int = 0
    ray: str = ""


def cpu_s(pid: int) -> float:
    """CPU of one process until now, to the nanosecond; of threads that ended, none."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[0])
        except OSError:  # it ended this moment
            continue
    return total / 1e9


def below(pid: int) -> list[int]:
    """All processes that descend from one."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            words = path.read_text().split()
        except OSError:
            continue
        for word in words:
            found += [int(word), *below(int(word))]
    return found


def greatest_mib(pid: int) -> float:
    """The most memory that a process ever held."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


@contextmanager
def postgres() -> Iterator[Places]:
    """A PostgreSQL server that syncs as one does that may lose nothing."""
    from postgres import server

    with server(
        fsync="on", synchronous_commit="on", full_page_writes="on", shared_buffers="256MB",
        max_wal_size="2GB", max_connections="100",
    ) as running:  # fmt: skip
        pid = int((running.data / "postmaster.pid").read_text().split()[0])
        yield Places(postgres=running.schema().replace("test_", "scale_"), postgres_pid=pid)


@contextmanager
def ray() -> Iterator[Places]:
    """A Ray cluster of two nodes on this machine."""
    from rays import cluster

    with cluster() as running:
        yield Places(ray=running.address)


def watch(
    crew: Crew, manner: Manner, server: Answering, places: Places, *, number: int = 0
) -> Window:
    """One crawl of the crowd, from its start to the end of its window."""
    with (
        tempfile.TemporaryDirectory(prefix="geomi-scale-") as text,
        tempfile.TemporaryFile() as said,
    ):
        words = _words(crew, manner, server, places, Path(text), number)
        process = subprocess.Popen(words, stdout=said, stderr=said, env=ENVIRONMENT)
        try:
            time.sleep(manner.warm_s)
            if process.poll() is None:
                return _watch(crew, manner, server, places, process)
            said.seek(0)
            raise RuntimeError(said.read().decode("utf-8", "replace"))
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(120)


def _words(
    crew: Crew, manner: Manner, server: Answering, places: Places, folder: Path, number: int
) -> list[str]:
    names = [f"h{n}.bench.test" for n in range(manner.hosts)]
    (folder / "hosts").write_text(
        "".join(f"{address_of(n)} {name}\n" for n, name in enumerate(names))
    )
    (folder / "seeds").write_text(
        "".join(f"http://{name}:{server.port}/new/0.html\n" for name in names)
    )
    sets = [
        f"dns.hosts={folder / 'hosts'}", f"agent.contexts={manner.contexts}",
        'guard.allow_networks=["127.64.0.0/10"]',
    ]  # fmt: skip
    if manner.rest_s:
        sets += [f"manners.rest_s={manner.rest_s:g}", "manners.rest_factor=0"]
    else:
        sets += ['manners.own=["*.bench.test"]', "manners.own_connections=1"]
    if crew.store == "postgresql":
        sets.append(f"store={places.postgres}_{number}")
    words = [*GEOMI, "crawl", str(folder / "c"), "--seeds", str(folder / "seeds"), "--json"]
    words += ["--agents", str(crew.agents), "--engine", crew.engine]
    words += ["--address", places.ray] if crew.engine == "ray" else []
    return words + [word for one in sets for word in ("--set", one)]


def _watch(
    crew: Crew, manner: Manner, server: Answering, places: Places,
    process: subprocess.Popen[bytes],
) -> Window:  # fmt: skip
    if crew.engine == "ray":  # actors hold them, below the nodes that this process started
        agents = [pid for pid in below(os.getpid()) if _is_agent(pid)]
    else:
        agents = below(process.pid)
    if len(agents) != crew.agents:
        raise RuntimeError(f"{len(agents)} agents run, wanted {crew.agents}")

    def look() -> tuple[float, ...]:
        of_store = below(places.postgres_pid) if crew.store == "postgresql" else []
        return (
            time.monotonic(), float(server.answered.value), cpu_s(process.pid),
            sum(map(cpu_s, agents)), sum(map(cpu_s, of_store)),
        )  # fmt: skip

    before = look()
    time.sleep(manner.window_s)
    seconds, pages, coordinator, of_agents, of_store = (
        after - first for after, first in zip(look(), before, strict=True)
    )
    return Window(
        crew=crew, rest_s=manner.rest_s, contexts=manner.contexts, seconds=seconds,
        pages=round(pages), pages_per_s=pages / seconds,
        agents_cpu_ms_per_page=1000 * of_agents / pages,
        store_cpu_ms_per_page=1000 * of_store / pages,
        coordinator_percent=100 * coordinator / seconds,
        coordinator_percent_per_1000=100 * coordinator / pages * 1000,
        agent_mib=max(map(greatest_mib, agents)),
        coordinator_mib=greatest_mib(process.pid),
    )  # fmt: skip


def _is_agent(pid: int) -> bool:
    try:
        return b"geomi.cluster" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
