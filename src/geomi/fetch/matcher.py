"""Which rule of a robots.txt decides about a path: the longest match, by RFC 9309. Decides only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

# What stays as it is: unreserved characters, and those reserved ones that separate. All others
# are compared percent-encoded, as RFC 9309 says, so that `/a(b)` and `/a%28b%29` are one path.
_OTHER = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?&=+;]")
_OTHER_IN_RULE = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?&=+;*]")
_SLASHED_QUERY = re.compile(r"\?.*?(?:[/?]|%2F|%3F)")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Rule(NamedTuple):
    """One line: a normal pattern, and how many octets it counts for."""

    pattern: str
    weight: int
    allow: bool
    line: int
    text: str


# Literal rules are found by their lengths (one look-up for each different length), so 100,000 cost
# as much as 100. Rules with `*` are tried heaviest first, each in time linear in the path; of many
# only those whose piece of four octets is in the path at all. 512,000 bytes hold at most 51,000.

#: A rule with `*`, taken apart: head, pieces between, tail that ends the path ("": none), rule.
_Wild = tuple[str, tuple[str, ...], str, Rule]
_GRAM = 4
_FEW = 32  # so many are tried sooner than looked up


def _encoded(found: re.Match[str]) -> str:
    octets = found[0]
    if len(octets) == 1:
        return f"%{ord(octets):02X}"
    char = chr(int(octets[1:], 16))
    return char if char in _UNRESERVED else octets.upper()


def normal(text: str, *, is_rule: bool = False) -> tuple[str, int]:
    """Text of octets in the form that is compared, and its weight.

    The weight counts octets as Google does: `*`, `$` and reserved ASCII as one, escapes as three.
    In a rule `*` and a final `$` stay; anywhere else they are plain characters.
    """
    end = ""
    if is_rule and text.endswith("$"):
        text, end = text[:-1], "$"
    form = (_OTHER_IN_RULE if is_rule else _OTHER).sub(_encoded, text)
    if not is_rule:
        return form, 0
    single = sum(len(octets) == 1 and octets.isascii() for octets in _OTHER_IN_RULE.findall(text))
    return form + end, len(form) - 2 * single + len(end)


def _query_form(form: str) -> str:
    """`/` and `?` mean nothing inside a query; RFC 9309 compares them percent-encoded there."""
    path, mark, query = form.partition("?")
    return path + mark + query.replace("/", "%2F").replace("?", "%3F")


class Matcher:
    """Rules of one agent, ready to be asked."""

    __slots__ = ("_by_query", "_plain")

    def __init__(self, rules: Iterable[Rule]) -> None:
        rules = tuple(rules)
        self._plain = _Index(rules)
        # Few files have rules whose query holds a slash; only they pay for a second look.
        changed = [
            rule._replace(pattern=_query_form(rule.pattern))
            for rule in rules
            if _SLASHED_QUERY.search(rule.pattern)
        ]
        self._by_query = _Index(changed) if changed else None

    def best(self, target: str) -> Rule | None:
        """The rule that decides about `target`; None if none matches."""
        if not target.startswith("/"):
            target = "/" + target
        if _OTHER.search(target):
            if not target.isascii():
                target = target.encode("utf-8", "replace").decode("latin-1")
            target = _OTHER.sub(_encoded, target)
        best = self._plain.best(target)
        if self._by_query is not None and "?" in target:
            other = self._by_query.best(_query_form(target))
            if other is not None and (best is None or _order(other) < _order(best)):
                best = other
        return best


def _order(rule: Rule) -> tuple[int, bool, int]:
    """Sorts heaviest first; of equal ones Allow first; then the earlier line."""
    return -rule.weight, not rule.allow, rule.line


class _Index:
    __slots__ = ("_exact", "_lengths", "_literal", "_wild")

    def __init__(self, rules: Iterable[Rule]) -> None:
        # Each dictionary keeps the rule that wins among those of one pattern.
        self._literal: dict[str, Rule] = {}
        self._exact: dict[str, Rule] = {}
        wild: dict[str, Rule] = {}
        for rule in rules:
            pattern = rule.pattern
            kind = self._literal
            if "*" in pattern:
                kind = wild
            elif pattern.endswith("$"):
                kind, pattern = self._exact, pattern[:-1]
            known = kind.get(pattern)
            if known is None or _order(rule) < _order(known):
                kind[pattern] = rule
        # Of two literal rules that match one path the longer is the heavier, so the first decides.
        self._lengths = sorted({len(pattern) for pattern in self._literal}, reverse=True)
        # A gram that a path must hold, or "" -> its rules, heaviest first.
        self._wild: dict[str, list[_Wild]] = {}
        for rule in sorted(wild.values(), key=_order):
            parts = _apart(rule)
            piece = max(parts[0], parts[2], *parts[1], key=len)
            gram = piece[:_GRAM] if len(wild) > _FEW and len(piece) >= _GRAM else ""
            self._wild.setdefault(gram, []).append(parts)

    def best(self, target: str) -> Rule | None:
        best = self._exact.get(target)
        literal = self._literal
        size = len(target)
        for length in self._lengths:
            if length <= size:
                found = literal.get(target[:length])
                if found is not None:
                    if best is None or _order(found) < _order(best):
                        best = found
                    break
        wild = self._wild
        if "" in wild:
            best = _better(wild[""], target, best)
        if len(wild) > 1 or (wild and "" not in wild):
            for gram in {target[at : at + _GRAM] for at in range(size - _GRAM + 1)}:
                if gram in wild:
                    best = _better(wild[gram], target, best)
        return best


def _better(wild: list[_Wild], target: str, best: Rule | None) -> Rule | None:
    weight = -1 if best is None else best.weight
    for head, middle, tail, rule in wild:
        if rule.weight < weight:
            break
        if target.startswith(head) and _matches(target, len(head), middle, tail):
            return rule if best is None or _order(rule) < _order(best) else best
    return best


def _matches(target: str, at: int, middle: tuple[str, ...], tail: str) -> bool:
    """The pieces one after another, each as early as it can be: never a step back."""
    for piece in middle:
        found = target.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return not tail or (len(target) - len(tail) >= at and target.endswith(tail))


def _apart(rule: Rule) -> _Wild:
    anchored = rule.pattern.endswith("$")
    head, *pieces = (rule.pattern[:-1] if anchored else rule.pattern).split("*")
    tail = pieces.pop() if anchored else ""
    return head, tuple(piece for piece in pieces if piece), tail, rule
