"""A web that a test makes up, crawled in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from geomi import config
from geomi.cluster.simulate import Simulation
from geomi.cluster.simweb import Reply
from geomi.fetch.request import Fetch
from geomi.seeds.lists import Seed
from geomi.states import Outcome

QUICK = ("manners.rest_s=1", "manners.rest_factor=0", "manners.address_rest_s=0", "retry.gap_s=5")
DAY_S = 86_400.0


def html(text: str, *lines: str) -> Reply:
    head = "".join(f"{line}\r\n" for line in ("HTTP/1.1 200 OK", "Content-Type: text/html", *lines))
    return Reply(outcome=Outcome.OK, code=200, head=f"{head}\r\n".encode(), body=text.encode())


NOT_THERE = Reply(outcome=Outcome.CODE, code=404, head=b"HTTP/1.1 404 X\r\n\r\n")
EXPIRED = Reply(outcome=Outcome.C_ERR, detail="certificate: expired (said OpenSSL)")


class Made:
    """A web of one function. `asked`: what came, with the time."""

    def __init__(
        self, answer: Callable[[Fetch], Reply], addresses: dict[str, Sequence[str]] | None = None
    ) -> None:
        self.answer = answer
        self.addresses = addresses or {}
        self.asked: list[tuple[float, Fetch]] = []

    def resolve(self, name: str) -> tuple[Sequence[str], float]:
        return self.addresses.get(name, ["192.0.2.1"]), 3600.0

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        self.asked.append((at, fetch))
        return NOT_THERE if fetch.target == "/robots.txt" else self.answer(fetch)


def simulate(web: Any, *seeds: str, sets: Sequence[str] = (), start: float = 1.7e9) -> Simulation:
    settings = config.load(Path("no-such-directory/geomi.toml"), [*QUICK, *sets])
    return Simulation(
        web, settings, seeds=[Seed(url=url, source="test") for url in seeds], start=start
    )


def crawl(sim: Simulation, *, days: float = 2.0) -> dict[str, tuple[str, str]]:
    """URL -> (outcome, why) at the end of a crawl."""
    sim.begin()
    assert sim.advance(until=sim.now + days * DAY_S)
    sim.finish()
    return {u: (o, w) for u, o, w in sim.store.all("SELECT url, outcome, why FROM pages")}


def counters(sim: Simulation) -> dict[str, int]:
    return sim.coordinator.standing(now=sim.now).counters


def anchors(*targets: str) -> str:
    return "".join(f'<a href="{target}">x</a>' for target in targets)
