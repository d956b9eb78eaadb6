"""A name whose address changes: each address is checked before a socket goes there."""

from __future__ import annotations

from collections.abc import Sequence

from made import Made, anchors, counters, crawl, html, simulate

PUBLIC, PRIVATE = "192.88.98.1", "127.0.0.1"


class Changing(Made):
    """A chain of pages on a name whose lifetime is short, and whose addresses are these in turn."""

    def __init__(self, *said: Sequence[str]) -> None:
        super().__init__(lambda fetch: html(anchors(f"{fetch.target}x")))
        self.said = list(said)
        self.resolved: list[str] = []

    def resolve(self, name: str) -> tuple[Sequence[str], float]:
        self.resolved.append(name)
        said = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        return list(said), 30.0


def visit(web: Changing) -> tuple[list[str], dict[str, tuple[str, str]], dict[str, int]]:
    """The addresses that sockets went to, what became of pages, and the counters."""
    sim = simulate(web, "http://a.example/")
    sim.networks = ()
    found = crawl(sim)
    return [fetch.address for _, fetch in web.asked], found, counters(sim)


def test_a_name_that_turns_to_a_private_address_is_not_asked_there() -> None:
    asked, found, count = visit(Changing([PUBLIC], [PRIVATE]))
    assert set(asked) == {PUBLIC}
    assert len(asked) > 20  # until the name's lifetime was over
    assert {outcome for outcome, _ in found.values()} == {"OK", "skip"}
    assert [why for outcome, why in found.values() if outcome == "skip"] == ["guard:loopback"]
    assert (count["guard.refused"], count["refused.guard"]) == (1, 1)


def test_the_checked_address_stays_the_one_that_is_asked() -> None:
    asked, found, _ = visit(Changing([PUBLIC], [PRIVATE, PUBLIC], ["10.0.0.1", PUBLIC]))
    assert set(asked) == {PUBLIC}
    assert {came for came in found.values() if came[0] != "OK"} == {("skip", "trap:depth")}


def test_a_name_that_is_private_at_once_is_never_asked() -> None:
    web = Changing([PRIVATE])
    asked, found, count = visit(web)
    assert asked == []
    assert found == {"http://a.example/": ("skip", "guard:loopback")}
    assert count["guard.refused"] == 1
