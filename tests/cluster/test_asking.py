"""Answers on their way to the machine: what is asked of the index, and what goes on at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from geomi.archive.duplicates import Original
from geomi.archive.names import sha1_b32
from geomi.cluster.asking import Answers, Asking
from geomi.cluster.context import Plan
from geomi.cluster.digests import Asked
from geomi.cluster.plan import site_rules
from geomi.config import load
from geomi.errors import ResourceError
from geomi.records import Capture
from geomi.states import Outcome

SETTINGS = load(Path("no-such-directory/geomi.toml"), [])
PLAN = Plan(agent="a0", incarnation=1, run=1, rules=lambda site: site_rules(SETTINGS, site))
OLD, NEW, OWN = (letter * 1000 for letter in (b"o", b"n", b"w"))


def capture(ticket: int, body: bytes, *, code: int = 200) -> Capture:
    return Capture(
        ticket=ticket, url="http://a.example/", address="192.0.2.1", started=1.0, ended=2.0,
        outcome=Outcome.OK if code == 200 else Outcome.CODE, code=code,
        head=b"HTTP/1.1 %d X\r\n\r\n" % code, body=body,
    )  # fmt: skip


class Here:
    """A store that is only closed."""

    def close(self) -> None:
        pass


@dataclass
class Fake:
    """An index that has OLD, and remembers what it was asked."""

    asked: list[int] = field(default_factory=list)
    fails: bool = False
    bits: None = None
    here: Here = field(default_factory=Here)

    def find(self, asked: Sequence[Asked]) -> dict[int, Original]:
        self.asked += [one.code for one in asked]
        if self.fails:
            raise ResourceError("the index is away")
        return {
            one.key: Original(uri="http://a.example/old", date="d")
            for one in asked
            if one.digest == sha1_b32(OLD)
        }

    def close(self) -> None:
        pass


@dataclass
class Agent:
    gone: set[int] = field(default_factory=set)

    def awaits(self, ticket: int) -> bool:
        return ticket not in self.gone

    def own_digest(self, ticket: int) -> str:
        return sha1_b32(OWN)


def run(
    index: Fake, *captures: Capture, agent: Agent | None = None, voids: Sequence[str] = (),
    on: Callable[[], Fake] | None = None,
) -> tuple[list[int], Answers]:  # fmt: skip
    """Tickets in the order in which they went on, and what was found."""
    came: list[int] = []
    answers = Answers()
    failures: list[BaseException] = []

    async def live() -> None:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def then(one: Capture) -> None:
            came.append(one.ticket)
            if len(came) == len(captures):
                done.set()

        asking = Asking(
            loop, PLAN, agent=agent or Agent(), answers=answers,
            index=(on or (lambda: index)),  # type: ignore[arg-type]
            voids=lambda store: voids, then=then, failed=failures.append,
        )  # fmt: skip
        while asking._is_asking:
            await asyncio.sleep(0)
        for one in captures:
            asking.came(one)
        await asyncio.wait_for(done.wait(), 10)
        asking.close()

    asyncio.run(live())
    assert failures == []
    return came, answers


def test_what_the_index_knows_comes_with_the_answer() -> None:
    index = Fake()
    old, new = capture(1, OLD), capture(2, NEW)
    _, answers = run(index, old, new)
    met = answers.met(old)
    assert met.digest == sha1_b32(OLD)
    assert met.original is not None
    assert met.original.uri == "http://a.example/old"
    assert answers.met(new).original is None
    assert sorted(index.asked) == [200, 200]


def test_an_unchanged_page_a_tiny_one_and_a_304_are_not_asked_about() -> None:
    index = Fake()
    some = [capture(1, OWN), capture(2, b"tiny"), capture(3, OLD, code=304), capture(4, b"")]
    came, answers = run(index, *some)
    assert came == [1, 2, 3, 4]
    assert index.asked == []
    assert answers.met(some[0]).digest == sha1_b32(OWN)


def test_an_index_that_fails_makes_everything_new_and_stops_nothing() -> None:
    index = Fake(fails=True)
    old = capture(1, OLD)
    came, answers = run(index, old)
    assert came == [1]
    assert answers.met(old).original is None
    assert answers.met(old).digest == "", "it is taken once"


def test_what_nobody_awaits_goes_on_unasked() -> None:
    index = Fake()
    came, answers = run(index, capture(1, OLD), agent=Agent(gone={1}))
    assert came == [1]
    assert index.asked == []
    assert answers.met(capture(1, OLD)).digest == ""


def test_a_payload_on_the_list_of_meaningless_ones_is_marked() -> None:
    one = capture(1, OLD)
    _, answers = run(Fake(), one, voids=[sha1_b32(OLD)])
    assert answers.met(one).is_void


def test_an_index_that_cannot_be_opened_at_first_is_tried_again() -> None:
    tries: list[int] = []
    index = Fake()

    def opened() -> Fake:
        tries.append(1)
        if len(tries) == 1:
            raise ResourceError("the disk is away")
        return index

    old = capture(1, OLD)
    _, answers = run(index, old, on=opened)
    assert answers.met(old).original is not None
    assert len(tries) == 2
