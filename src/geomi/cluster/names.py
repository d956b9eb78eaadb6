"""Names and their addresses, remembered as long as they live."""

from __future__ import annotations

from collections.abc import Callable

from geomi.cluster.commands import Command, Resolve
from geomi.records import Answer

_NAMES = 50_000  # names whose address is remembered; beyond it they are asked again

#: What happens with an answer, and when it came.
Then = Callable[[Answer, float], None]


class Names:
    """One question at a time for each name, whoever waits for it."""

    def __init__(self, *, out: list[Command]) -> None:
        self._known: dict[str, tuple[Answer, float]] = {}  # with the end of its life
        self._asking: dict[str, list[Then]] = {}
        self._out = out

    def ask(self, host: str, then: Then, now: float) -> None:
        """`then` comes at once if the answer is known."""
        known = self._known.get(host)
        if known is not None and known[1] > now:
            then(known[0], now)
            return
        waiting = self._asking.get(host)
        if waiting is not None:
            waiting.append(then)
            return
        self._asking[host] = [then]
        self._out.append(Resolve(host))

    def came(self, answer: Answer, *, now: float) -> None:
        if len(self._known) >= _NAMES:
            self._known.clear()
        self._known[answer.host] = (answer, now + max(answer.ttl_s, 1.0))
        for then in self._asking.pop(answer.host, ()):
            then(answer, now)
