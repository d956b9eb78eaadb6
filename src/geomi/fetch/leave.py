"""Leave to send, asked for the moment before a request is written."""

from __future__ import annotations

from collections.abc import Callable


class Leave:
    """Between the start of a request and its writing lie a connection, and a loop that is busy.

    `may_send` is asked once there is a connection, `sent` is told as soon as the request was
    written. What is refused is not sent, its connection is closed, and `held_back` gets the ticket
    in the place of a Capture.
    """

    def __init__(
        self,
        *,
        may_send: Callable[[int], bool] = lambda ticket: True,
        sent: Callable[[int], None] = lambda ticket: None,
        held_back: Callable[[int], None] = lambda ticket: None,
    ) -> None:
        self.held_back = held_back
        self._may_send = may_send
        self._sent = sent
        self._writing: list[int] = []  # tickets; filled by take, emptied by tell

    def take(self, ticket: int) -> bool:
        """True: it is written at once."""
        if may := self._may_send(ticket):
            self._writing.append(ticket)
        return may

    def tell(self) -> None:
        """What was to be written at once is written by now."""
        if self._writing:
            for ticket in self._writing:
                self._sent(ticket)
            self._writing.clear()
