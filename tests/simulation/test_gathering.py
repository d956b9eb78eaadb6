"""A page of very many links is taken in piece by piece: nothing is missing, whatever happens."""

from __future__ import annotations

import gzip
import random

import pytest
from made import Made, html, simulate
from rehearsal import crawl

from geomi.cluster.batch import Batch
from geomi.cluster.gathering import PIECE
from geomi.cluster.ledger import Ledger, Written
from geomi.cluster.simulate import Simulation
from geomi.cluster.simweb import Reply
from geomi.cluster.verify import BytesDisk, verify
from geomi.fetch.request import Fetch
from geomi.states import Outcome

SEED = "http://a.example/"
MANY = 2 * PIECE + 345
BODY = "<title>many</title>" + "".join(f"<a href=/p/{n}>" for n in range(MANY))


class Crowded(Made):
    """One page of many links that robots.txt forbids to follow, and a neighbour."""

    def __init__(self) -> None:
        super().__init__(lambda fetch: html(BODY if fetch.host == "a.example" else "x"))

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        self.asked.append((at, fetch))
        if fetch.target != "/robots.txt":
            return self.answer(fetch)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
        rules = b"User-agent: *\nDisallow: /p/\n"
        return Reply(outcome=Outcome.OK, code=200, head=head, body=rules)


def must_be_whole(sim: Simulation) -> None:
    found = dict(sim.store.all("SELECT url, outcome FROM pages"))
    assert found.pop(SEED) == "OK"
    assert len(found) == MANY
    assert set(found.values()) == {"deny"}
    report = verify(
        sim.store, disk=BytesDisk(sim.files.data), where=lambda directory: f"/sim/{directory}"
    )
    assert [one.what for one in report.problems] == []


@pytest.mark.parametrize("exact", ["exact", "bloom"])
def test_no_batch_holds_more_than_a_piece_and_none_is_missing(
    monkeypatch: pytest.MonkeyPatch, exact: str
) -> None:
    sizes: list[int] = []
    write = Ledger.write

    def counted(self: Ledger, batch: Batch) -> Written:
        sizes.append(len(batch.new))
        return write(self, batch)

    monkeypatch.setattr(Ledger, "write", counted)
    sim = simulate(Crowded(), SEED, sets=[f"crawl.seen={exact}"])
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    must_be_whole(sim)
    assert sorted(sizes)[-3:] == [345, PIECE, PIECE]


def test_its_metadata_record_names_every_link() -> None:
    sim = simulate(Crowded(), SEED)
    crawl(sim, crash_ticks=[], kind="kill")
    whole = b"".join(
        gzip.decompress(bytes(data)) for path, data in sim.files.data.items() if path.endswith("gz")
    )
    lines = [line for line in whole.split(b"\r\n") if line.startswith(b"outlink: ")]
    assert lines == [b"outlink: %b a" % f"{SEED}p/{n}".encode() for n in range(MANY)]


@pytest.mark.parametrize("kind", ["power", "kill", "agent"])
@pytest.mark.parametrize("seed", range(3))
def test_a_crash_between_two_pieces_costs_nothing_but_time(kind: str, seed: int) -> None:
    rng = random.Random(f"gather {kind} {seed}")
    sim = simulate(Crowded(), SEED, sets=["crawl.seen=exact"])
    ticks = [rng.randint(5, 40) for _ in range(4)]
    assert crawl(sim, crash_ticks=ticks, kind=kind) == []
    assert sim.crashes == 4
    must_be_whole(sim)


def test_a_canonical_page_of_many_links_gives_way() -> None:
    web = Crowded()
    body = f"<link rel=canonical href=/other>{BODY}"
    web.answer = lambda fetch: html(body if fetch.target == "/" else "x")
    sim = simulate(web, SEED, sets=["extract.obey_canonical=true"])
    crawl(sim, crash_ticks=[], kind="kill")
    assert {url for (url,) in sim.store.all("SELECT url FROM pages")} == {SEED, f"{SEED}other"}
