from __future__ import annotations

from geomi.states import HAD, MOVES, TRANSIENT, Outcome, diagram, may_move

PAPER = {
    "NULL", "Conn", "noIP", "cErr", "cTim", "hErr", "hTim", "hSht", "hNpr", "dErr", "dTim", "code",
    "OK",
}  # fmt: skip
OURS = {"same", "deny", "skip", "cut", "void", "gone", "bad", "erased"}


def test_the_states_are_the_thirteen_of_paper_000_and_eight_of_our_own() -> None:
    assert {str(state) for state in Outcome} == PAPER | OURS
    assert len(PAPER) == 13


def test_every_state_has_a_row_in_the_table_of_moves() -> None:
    assert set(MOVES) == set(Outcome)


def test_every_state_but_the_first_can_be_reached_from_it() -> None:
    reached, edge = {Outcome.NULL}, {Outcome.NULL}
    while edge:
        edge = {after for before in edge for after in MOVES[before]} - reached
        reached |= edge
    assert reached == set(Outcome)


def test_nothing_becomes_unasked_or_unparsable_again() -> None:
    assert all(Outcome.NULL not in afters for afters in MOVES.values())
    assert all(
        Outcome.BAD not in afters for state, afters in MOVES.items() if state is not Outcome.NULL
    )
    assert MOVES[Outcome.BAD] == {Outcome.ERASED}
    assert not MOVES[Outcome.ERASED]


def test_a_page_that_was_never_asked_can_neither_be_unchanged_nor_gone() -> None:
    assert not may_move(Outcome.NULL, Outcome.SAME)
    assert not may_move(Outcome.NULL, Outcome.GONE)
    assert may_move(Outcome.OK, Outcome.SAME)
    assert may_move(Outcome.OK, Outcome.GONE)


def test_a_refused_page_may_be_visited_once_the_scope_or_robots_allow_it() -> None:
    for state in (Outcome.DENY, Outcome.SKIP):
        assert may_move(state, Outcome.OK)
        assert may_move(Outcome.OK, state)


def test_failures_of_the_network_are_tried_again_and_answers_are_not() -> None:
    assert set(map(str, TRANSIENT)) == {
        "noIP", "cErr", "cTim", "hErr", "hTim", "hSht", "hNpr", "dErr", "dTim",
    }  # fmt: skip
    assert not TRANSIENT & HAD


def test_the_diagram_has_one_arrow_for_each_move_and_nothing_else() -> None:
    first, *arrows = diagram().splitlines()
    assert first == "stateDiagram-v2"
    assert len(arrows) == len(set(arrows)) == sum(len(afters) for afters in MOVES.values())
    for arrow in arrows:
        before, after = arrow.strip().split(" --> ")
        assert may_move(Outcome(before), Outcome(after))
