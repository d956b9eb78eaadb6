"""The web as the simulator asks it: the small world without sockets, or what a test makes up."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from geomi.fetch import access as special
from geomi.fetch.request import Fetch, bracketed, opening
from geomi.records import Capture
from geomi.states import Outcome
from geomi.world import World
from geomi.world.model import FLAKY, Answer

_IDLE_S = 20.0
_CONNECT_S = 10.0


class Web(Protocol):
    """The simulated web: geomi.world, or what a test makes up."""

    def resolve(self, name: str) -> tuple[Sequence[str], float]: ...
    def ask(self, fetch: Fetch, *, at: float) -> Reply: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a simulated server does with a request."""

    outcome: Outcome
    code: int = 0
    head: bytes = b""
    body: bytes = b""
    seconds: float = 0.05
    truncated: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of the simulated servers' own log."""

    start: float
    end: float
    address: str
    host: str
    url: str
    agent: str


def seen(fetch: Fetch, agent: str, *, start: float, end: float) -> Seen:
    host = fetch.host if fetch.port in (80, 443) else f"{fetch.host}:{fetch.port}"
    return Seen(start, end, fetch.address, host, fetch.url, agent)


def captured(fetch: Fetch, reply: Reply, *, started: float, ended: float) -> Capture:
    """What a client would make of the answer."""
    return Capture(
        ticket=fetch.ticket, url=fetch.url, address=fetch.address, started=started, ended=ended,
        outcome=reply.outcome, code=reply.code, request=opening(fetch) + b"\r\n",
        head=reply.head, body=reply.body, truncated=reply.truncated, detail=reply.detail,
    )  # fmt: skip


class WorldWeb:
    """Answers of a World with seeded delays; faults become what libcurl would make of them."""

    def __init__(
        self,
        world: World,
        *,
        seed: int = 0,
        delay_s: Callable[[random.Random], float] = lambda rng: rng.uniform(0.01, 0.2),
    ) -> None:
        self._world = world
        self._rng = random.Random(seed)
        self._delay_s = delay_s
        self._flaky: dict[str, int] = {}  # requests so far for URLs that fail at first

    def resolve(self, name: str) -> tuple[Sequence[str], float]:
        addresses, ttl = self._world.resolve(bracketed(name))
        return sorted(addresses), ttl

    def ask(self, fetch: Fetch, *, at: float) -> Reply:
        seconds = self._delay_s(self._rng)
        own = special.lines(fetch.access) if fetch.access is not None else ()
        lines = (line.partition(": ") for line in (*own, *fetch.headers))
        headers = {name.lower(): value for name, _, value in lines}
        host = bracketed(fetch.host)
        site = self._world.sites.by_host(host)
        if site is not None and site.kind.fault == Outcome.C_ERR:
            return Reply(outcome=Outcome.C_ERR, seconds=seconds)
        answer = self._world.answer(host, fetch.target, scheme=fetch.scheme, at=at, headers=headers)
        if answer.flaky and self._flaky.setdefault(fetch.url, 0) < answer.flaky:
            self._flaky[fetch.url] += 1
            answer = FLAKY
        return _reply(answer, seconds + answer.delay_s)


def _reply(answer: Answer, seconds: float) -> Reply:
    body = answer.body if answer.status != 304 else b""
    lines = [f"HTTP/1.1 {answer.status} X"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines.append(f"Content-Length: {len(body)}\r\n\r\n")
    head = "\r\n".join(lines).encode("latin-1")
    match answer.fault:
        case "":
            outcome = Outcome.OK if answer.status == 200 else Outcome.CODE
            return Reply(outcome=outcome, code=answer.status, head=head, body=body, seconds=seconds)
        case Outcome.D_ERR | Outcome.D_TIM as fault:
            waits = _IDLE_S if fault == Outcome.D_TIM else 0.0
            return Reply(
                outcome=Outcome(fault), code=answer.status, head=head,
                body=body[: len(body) // 2], seconds=seconds + waits,
                truncated="time" if waits else "disconnect",
            )  # fmt: skip
        case Outcome.H_TIM:
            return Reply(outcome=Outcome.H_TIM, seconds=_IDLE_S)
        case Outcome.C_TIM:
            return Reply(outcome=Outcome.C_TIM, seconds=_CONNECT_S)
        case fault:
            return Reply(outcome=Outcome(fault), seconds=seconds)
