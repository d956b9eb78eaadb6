"""What an agent takes into memory of the sites it is given."""

from __future__ import annotations

from pathlib import Path

from geomi import config
from geomi.archive.names import Ids
from geomi.archive.writer import Writer
from geomi.cluster.agent import Agent
from geomi.cluster.commands import Leased, Load
from geomi.cluster.plan import plan_of
from geomi.cluster.tables import MIGRATIONS
from geomi.extract import Extractor
from geomi.fetch.guard import Guard
from geomi.records import Lease
from geomi.store import SqliteStore
from geomi.store.migrate import migrate

NOWHERE = Path("no-such-directory/geomi.toml")


def windows(sites: int, tmp_path: Path) -> list[int]:
    """How many waiting pages an agent asks for at each of so many sites granted at once."""
    store = SqliteStore(str(tmp_path / "s.db"))
    migrate(store, MIGRATIONS, where="s")
    plan = plan_of(config.load(NOWHERE, []), store, agent="a0", incarnation=1, run=1)
    store.close()
    ids = Ids(b"0123456789")
    writer = Writer(
        directories=("archive",), prefix="g", file_bytes=10**6, ids=ids,
        next_file=lambda: 1, warcinfo=lambda filename, date, record_id: b"",
    )  # fmt: skip
    agent = Agent(
        plan, extractor=Extractor(), guard=Guard(()), ids=ids, writer=writer, first_page_id=1
    )
    leases = [
        Lease(site_id=number, site=f"s{number}.example", epoch=1, until=60.0)
        for number in range(1, sites + 1)
    ]
    agent.leased(Leased(leases=leases, asked=0.0), now=0.0)
    return [one.limit for one in agent.take() if isinstance(one, Load)]


def test_a_few_sites_keep_a_whole_window_of_waiting_pages_each(tmp_path: Path) -> None:
    assert windows(3, tmp_path) == [1000] * 3


def test_many_sites_share_the_memory_for_waiting_pages(tmp_path: Path) -> None:
    found = windows(500, tmp_path)
    assert found == [100] * 500
