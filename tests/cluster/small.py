"""A small collection made by the real parts: coordinator, settler, ledger, files; no network."""

from __future__ import annotations

from pathlib import Path

from geomi.archive.files import RealFiles
from geomi.archive.names import Ids
from geomi.archive.record import warcinfo
from geomi.archive.writer import Writer
from geomi.cluster import leases, tables
from geomi.cluster.collection import Collection
from geomi.cluster.commands import Release
from geomi.cluster.context import Context
from geomi.cluster.coordinator import Coordinator
from geomi.cluster.filling import Filling
from geomi.cluster.ledger import Ledger
from geomi.cluster.plan import plan_of
from geomi.cluster.settle import Settler
from geomi.cluster.wishes import Wishes
from geomi.extract import Extractor
from geomi.frontier.counters import take_ids
from geomi.frontier.queue import FIRST
from geomi.frontier.seen import SeenFilter
from geomi.frontier.tables import Known
from geomi.records import Capture
from geomi.seeds.lists import Seed
from geomi.states import Outcome

T = 1_700_000_000.0
HOST = "a.example"
SEED = f"http://{HOST}/"
ROBOTS = b"User-agent: *\nDisallow: /secret\n"


class Small:
    """One agent with one site. Each visit is a batch of its own; ten seconds lie between two."""

    def __init__(self, path: Path, *, sets: tuple[str, ...] = (), address: str = "") -> None:
        self.now = T
        self.place = Collection(path)
        self.place.create({"manners.rest_s": 5.0, "store": address})
        self.settings = self.place.settings(sets)
        self.store = self.place.open_store(self.settings)
        self.run = 0
        self._begin(again=False)

    def __del__(self) -> None:
        self.store.close()

    def _begin(self, *, again: bool) -> None:
        self.coordinator = Coordinator(self.store, self.settings)
        self.run = self.coordinator.begin(again=again, options={}, now=self.now)
        self.coordinator.add_seeds([Seed(url=SEED)], now=self.now)
        self.coordinator.step(run=self.run, now=self.now)
        number = tables.begin_agent(self.store, "a0", "elsewhere", 1, self.now)
        self.plan = plan_of(self.settings, self.store, agent="a0", incarnation=number, run=self.run)
        ids = Ids(number.to_bytes(10, "big"))
        self.writer = Writer(
            directories=("archive",), prefix=f"small-{number}", file_bytes=1_000_000_000, ids=ids,
            next_file=self._next_file,
            warcinfo=lambda name, date, record_id: warcinfo(
                name, date, record_id=record_id, fields={"software": "geomi"}
            ),
        )  # fmt: skip
        self.ledger = Ledger(
            store=self.store, files=RealFiles(), where=self.place.archive_path, level=1,
            now=lambda: self.now,
        )  # fmt: skip
        lease = leases.grant(self.store, self.plan, 1, now=self.now)[0]
        self.context = Context(lease, self.plan.rules(HOST), window=100, token=1, until=T + 1e9)
        self.context.seen = SeenFilter()
        self.context.is_loaded = True  # the filter is not whole: the store decides what is new
        with self.store.transaction():
            first = take_ids(self.store, "page", 10_000)
        pages = iter(range(first, first + 10_000))
        self.filling = Filling(self.plan, writer=self.writer, out=[])
        wishes = Wishes(
            self.plan, filling=self.filling, sites={HOST: self.context},
            next_page=lambda: next(pages),
        )  # fmt: skip
        self.settler = Settler(
            self.plan, filling=self.filling, wishes=wishes, extractor=Extractor(),
            writer=self.writer, ids=ids,
        )  # fmt: skip

    def _next_file(self) -> int:
        with self.store.transaction():
            return take_ids(self.store, "file", 1)

    def known(self, url: str) -> Known:
        rows = leases.load(
            self.store, site_id=self.context.site_id, epoch=self.context.epoch, after=FIRST,
            limit=1000, is_first=False, has_page_limit=False,
        ).rows  # fmt: skip
        return next(row for row in rows if row.url == url)

    def visit(
        self, url: str, *, code: int = 200, body: bytes = b"<p>hello", head: str = "",
        outcome: Outcome | None = None, address: str = "192.0.2.1",
    ) -> None:  # fmt: skip
        """One page, answered as said, and committed."""
        capture = self._capture(url, code=code, body=body, head=head, outcome=outcome,
                                address=address)  # fmt: skip
        self.settler.page(self.context, self.known(url), capture, now=self.now)
        self.write()

    def robots(self, body: bytes = ROBOTS) -> None:
        url = f"{SEED}robots.txt"
        capture = self._capture(url, code=200, body=body, head="", outcome=None,
                                address="192.0.2.1")  # fmt: skip
        self.settler.robots(self.context, capture, site=HOST, now=self.now)
        self.filling.touch(self.context).robots.append(
            (f"http://{HOST}", self.context.site_id, self.now, self.now + 86_400, 200, 0.0, body)
        )
        self.write()

    def deny(self, url: str, why: str) -> None:
        self.settler.refuse(self.context, self.known(url), Outcome.DENY, why, now=self.now)
        self.write()

    def _capture(
        self, url: str, *, code: int, body: bytes, head: str, outcome: Outcome | None, address: str
    ) -> Capture:
        self.now += 10.0
        outcome = outcome or (Outcome.OK if code == 200 else Outcome.CODE)
        has_head = outcome in (Outcome.OK, Outcome.CODE)
        lines = f"HTTP/1.1 {code} X\r\nContent-Type: text/html\r\n{head}\r\n"
        return Capture(
            ticket=1, url=url, address=address, started=self.now - 0.25, ended=self.now,
            outcome=outcome, code=code if has_head else 0, request=b"GET / HTTP/1.1\r\n\r\n",
            head=lines.encode() if has_head else b"", body=body if has_head else b"",
        )  # fmt: skip

    def write(self) -> None:
        self.ledger.write(self.filling.take())

    def end(self) -> None:
        """The agent closes its files and says goodbye; the run is over."""
        batch = self.filling.take()
        batch.files = self.writer.close_all()
        if batch.files:
            self.ledger.write(batch)
        leases.release(
            self.store, self.plan,
            Release(site_id=self.context.site_id, epoch=self.context.epoch, rest_until=0.0,
                    rest_s=0.0, failures=0),
            now=self.now,
        )  # fmt: skip
        self.ledger.recover("a0", self.plan.incarnation)
        while self.coordinator.step(run=self.run, now=self.now):
            pass
        waits = self.store.one("SELECT 1 FROM pending LIMIT 1") is not None
        self.coordinator.end(self.run, "stopped" if waits else "done", "", now=self.now)

    def again(self) -> None:
        """A new run in which every page is wanted once more."""
        self.now += 1000.0
        self._begin(again=True)


def some(path: Path, *, address: str = "") -> Small:
    """A page of every common kind, in a finished run; /later still waits for its second try."""
    small = Small(path, address=address)
    small.robots()
    links = "".join(f'<a href="/{name}">x</a>' for name in ("b", "secret", "moved", "later"))
    small.visit(SEED, body=f"<title>Seed</title>{links}<a href='http://other.example/x'>".encode())
    small.visit(f"{SEED}b", head='ETag: "1"\r\n')
    small.deny(f"{SEED}secret", "robots:2")
    small.visit(f"{SEED}moved", code=301, head="Location: /b\r\n", body=b"")
    small.visit(f"{SEED}later", outcome=Outcome.H_TIM)
    small.end()
    return small
