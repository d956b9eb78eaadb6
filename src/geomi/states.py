"""The network states of a page, and which may follow which: one table for code, counters and docs.

The first thirteen are those of paper 000 (figure 3); the rest are geomi's own.
"""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What the last visit to a page came to. The value is the word users see and the store has."""

    NULL = "NULL"  # not asked yet
    CONN = "Conn"  # connected, answer under way; never stored
    NO_IP = "noIP"  # the name has no address
    C_ERR = "cErr"  # connecting failed
    C_TIM = "cTim"  # connecting took too long
    H_ERR = "hErr"  # the connection broke before the header was whole
    H_TIM = "hTim"  # no header in time
    H_SHT = "hSht"  # the header ended too early to be one
    H_NPR = "hNpr"  # the answer is not HTTP
    D_ERR = "dErr"  # the connection broke in the body
    D_TIM = "dTim"  # the body stalled
    CODE = "code"  # an answer other than 200, redirects too
    OK = "OK"  # 200 with a whole body
    SAME = "same"  # 304, or the server's validators agree: the stored copy is still right
    DENY = "deny"  # robots.txt, or the owner's wish
    SKIP = "skip"  # outside the scope or over a limit; the page's `why` names which
    CUT = "cut"  # 200, kept, but truncated at a limit
    VOID = "void"  # a confirmed meaningless content, not stored again
    GONE = "gone"  # 404 or 410 after it was there
    BAD = "bad"  # a URL that cannot be parsed
    ERASED = "erased"  # deleted from the archive by hand; never asked again


_ASKED = frozenset(
    {
        Outcome.NO_IP, Outcome.C_ERR, Outcome.C_TIM, Outcome.H_ERR, Outcome.H_TIM, Outcome.H_SHT,
        Outcome.H_NPR, Outcome.D_ERR, Outcome.D_TIM, Outcome.CODE, Outcome.OK, Outcome.CUT,
        Outcome.VOID,
    }
)  # fmt: skip
_HAD = frozenset({Outcome.OK, Outcome.CUT, Outcome.SAME, Outcome.VOID})
_REFUSED = frozenset({Outcome.DENY, Outcome.SKIP})

#: What a page in the first state may become at its next settlement. `check_move` enforces it.
MOVES: dict[Outcome, frozenset[Outcome]] = {
    Outcome.NULL: _ASKED | _REFUSED | {Outcome.BAD, Outcome.CONN, Outcome.ERASED},
    Outcome.CONN: _ASKED | {Outcome.SAME, Outcome.GONE},
    Outcome.BAD: frozenset({Outcome.ERASED}),
    Outcome.ERASED: frozenset(),
    **{state: _ASKED | _REFUSED | {Outcome.SAME, Outcome.GONE, Outcome.CONN, Outcome.ERASED}
       for state in _ASKED | _REFUSED | _HAD | {Outcome.GONE}},
}  # fmt: skip

#: Failures worth another try in the same run (5xx answers too, see frontier.retry).
TRANSIENT = frozenset(
    {
        Outcome.NO_IP, Outcome.C_ERR, Outcome.C_TIM, Outcome.H_ERR, Outcome.H_TIM, Outcome.H_SHT,
        Outcome.H_NPR, Outcome.D_ERR, Outcome.D_TIM,
    }
)  # fmt: skip

#: States in which the collection holds a copy of the page's content.
HAD = _HAD


def may_move(before: Outcome, after: Outcome) -> bool:
    """True if a page in `before` may be settled as `after`."""
    return after in MOVES[before]


def diagram() -> str:
    """The table of moves as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2"]
    lines += [
        f"    {before} --> {after}" for before, afters in MOVES.items() for after in sorted(afters)
    ]
    return "\n".join(lines)
