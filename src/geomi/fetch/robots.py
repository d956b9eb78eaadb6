"""robots.txt: which paths an agent may ask for, by RFC 9309. Decides only.

Where the RFC leaves room it follows Google's parser: a missing colon (`Disallow /x`) and some
known misspellings of `Disallow` and `User-agent` count, an agent's name ends where its letters do,
an allowed `/dir/index.html` allows `/dir/`, all line ends and (even torn) byte order marks pass.
Where Google's differs from the RFC (`%62` in a rule is `b` in a path) the RFC wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal, NamedTuple

#: RFC 9309 asks for at least 500 KiB.
LIMIT_BYTES = 512_000
#: Longer lines are cut there, as Google does: eight times the longest URL of browsers.
_LINE_BYTES = 8 * 2083 - 1

_KEYS = {
    "user-agent": "agent", "useragent": "agent", "user agent": "agent",
    "disallow": "disallow", "dissallow": "disallow", "dissalow": "disallow",
    "disalow": "disallow", "diasllow": "disallow", "disallaw": "disallow",
    "allow": "allow",
    "sitemap": "sitemap", "site-map": "sitemap",
    "crawl-delay": "delay", "crawldelay": "delay",
    "content-usage": "signal", "content-signal": "signal",
}  # fmt: skip
_SPACE = " \t\v\f\0"
_TOKEN = re.compile(r"[a-z_-]*")
_DELAY = re.compile(r"\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}")
_EVERYONE = re.compile(r"\*(?![a-z0-9_*-])")
_BOMS = (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef")

# What stays as it is: unreserved characters, and those reserved ones that separate. All others
# are compared percent-encoded, as RFC 9309 says, so that `/a(b)` and `/a%28b%29` are one path.
_OTHER = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?&=+;]")
_OTHER_IN_RULE = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?&=+;*]")
_SLASHED_QUERY = re.compile(r"\?.*?(?:[/?]|%2F|%3F)")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Verdict(NamedTuple):
    """May it be asked for, and the line that decided; line 0: no rule spoke."""

    allowed: bool
    line: int
    text: str


class _Rule(NamedTuple):
    """One line: a normal pattern, and how many octets it counts for."""

    pattern: str
    weight: int
    allow: bool
    line: int
    text: str


class _Group:
    """Rules that share one run of User-agent lines. Filled by parse(), then left alone."""

    __slots__ = ("delay_s", "rules", "signals")

    def __init__(self) -> None:
        self.rules: list[_Rule] = []
        self.delay_s: float | None = None
        self.signals: list[str] = []


class Rules:
    """What one agent is told: the merged groups that name it, or else those for `*`."""

    __slots__ = ("_blanket", "_matcher", "content_signals", "crawl_delay_s")

    def __init__(self, groups: Iterable[_Group] = (), *, blanket: bool = True) -> None:
        groups = tuple(groups)
        rules = [rule for group in groups for rule in group.rules]
        self._matcher = _Matcher(rules) if rules else None
        # The answer where no rule speaks.
        self._blanket = blanket
        delays = [group.delay_s for group in groups if group.delay_s is not None]
        #: The largest of the groups' delays, as written; a limit is the caller's business.
        self.crawl_delay_s: float | None = max(delays) if delays else None
        #: Content-Usage and Content-Signal lines as they stand.
        self.content_signals: tuple[str, ...] = tuple(
            signal for group in groups for signal in group.signals
        )

    def allows(self, target: str) -> bool:
        """True if `target` (path and query) may be asked for. No rules: no work."""
        matcher = self._matcher
        if matcher is None:
            return self._blanket or target == "/robots.txt"
        best = matcher.best(target)
        return best is None or best.allow or target == "/robots.txt"

    def verdict(self, target: str) -> Verdict:
        """The same answer with the line that gave it."""
        if target == "/robots.txt":
            return Verdict(True, 0, "")
        best = self._matcher.best(target) if self._matcher else None
        if best is None:
            return Verdict(self._blanket, 0, "")
        return Verdict(best.allow, best.line, best.text)


class Robots:
    """One robots.txt. ALLOW_ALL and DENY_ALL stand in for one that is not to be read."""

    ALLOW_ALL: ClassVar[Robots]
    DENY_ALL: ClassVar[Robots]

    def __init__(self, *, blanket: bool = True) -> None:
        self.sitemaps: tuple[str, ...] = ()
        self._blanket = blanket
        # Agent's name, lower case, or "*" -> its groups in order. A group is shared by its agents.
        self._groups: dict[str, list[_Group]] = {}
        # Filled by for_agent(); not larger than _groups, plus one for those without a group.
        self._compiled: dict[str, Rules] = {}

    @classmethod
    def parse(cls, body: bytes, *, limit_bytes: int = LIMIT_BYTES) -> Robots:
        """Read a robots.txt. Never fails: what is no rule is skipped, what is beyond is cut.

        Of a file longer than `limit_bytes` the last, torn line is ignored.
        """
        robots = cls()
        sitemaps: list[str] = []
        group = _Group()
        agents: set[str] = set()  # of the run being read
        run_open = False  # the last thing of weight was a User-agent line
        for number, line in enumerate(_lines(body, limit_bytes), 1):
            kind, value = _key_and_value(line)
            if kind == "agent":
                if not run_open:
                    group, agents, run_open = _Group(), set(), True
                for agent in _agents(value):
                    if agent not in agents:
                        agents.add(agent)
                        robots._groups.setdefault(agent, []).append(group)
            elif kind == "allow" or kind == "disallow":
                run_open = False
                if agents:
                    group.rules += _rules(value, kind == "allow", number, line)
            elif kind == "sitemap":
                sitemaps += [_text(value)] if value else []
            elif kind == "delay":
                found = _DELAY.match(value)
                if found:
                    group.delay_s = max(float(found[0]), group.delay_s or 0.0)
            elif kind == "signal":
                group.signals.append(_text(line))
        robots.sitemaps = tuple(sitemaps)
        return robots

    def for_agent(self, agent: str) -> Rules:
        """The rules for a product token (`geomi`) or a user agent that begins with it (`geomi/1`).

        A name of two words is no token and gets the rules for `*`.
        """
        name = agent.partition("/")[0].strip().lower()
        if name not in self._groups:
            name = "*"
        rules = self._compiled.get(name)
        if rules is None:
            rules = Rules(self._groups.get(name, ()), blanket=self._blanket)
            self._compiled[name] = rules
        return rules

    def allowed(self, agent: str, target: str) -> Verdict:
        """May `agent` ask for `target`, and by which line."""
        return self.for_agent(agent).verdict(target)


Robots.ALLOW_ALL = Robots()
Robots.DENY_ALL = Robots(blanket=False)


def from_status(code: int) -> Literal["allow", "deny", "parse"]:
    """What an answer to /robots.txt means (RFC 9309, 2.3.1); one that is not final means deny.

    A 3xx is what stays after the last redirect that is followed: not available, like 4xx.
    """
    if 200 <= code < 300:
        return "parse"
    if 300 <= code < 500 and code != 429:
        return "allow"
    return "deny"


def _lines(body: bytes, limit_bytes: int) -> Iterable[str]:
    """Lines as text of octets (latin-1), so that any byte survives."""
    torn = len(body) > limit_bytes and body[limit_bytes] not in b"\r\n"
    body = body[:limit_bytes]
    if torn:
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):  # saved as "Unicode" by a Windows editor
        body = body.decode("utf-16", "replace").encode()
    for bom in _BOMS:
        if body.startswith(bom):
            body = body[len(bom) :]
            break
    for line in body.splitlines():
        yield line[:_LINE_BYTES].decode("latin-1")


def _text(octets: str) -> str:
    return octets.strip(_SPACE).encode("latin-1").decode("utf-8", "replace")


def _key_and_value(line: str) -> tuple[str, str]:
    """What the line is about ("" if it says nothing to us) and its value."""
    line = line.partition("#")[0].strip(_SPACE)
    key, colon, value = line.partition(":")
    if not colon:
        # A forgotten colon is only certain where there are two words in all.
        words = line.split()
        if len(words) != 2:
            return "", ""
        key, value = words
    return _KEYS.get(key.strip(_SPACE).lower(), ""), value.strip(_SPACE)


def _agents(value: str) -> set[str]:
    """Names a User-agent line stands for: what its letters say, and the whole word if longer."""
    word = (value.split() or [""])[0].lower()
    if _EVERYONE.match(word):
        return {"*"}
    token = _TOKEN.match(word)
    return {token[0] if token else "", word.partition("/")[0]} - {"", "*"}


def _rules(value: str, allow: bool, number: int, line: str) -> list[_Rule]:
    if not value.startswith(("/", "*")):  # empty, or nothing that a path could begin with
        return []
    text = _text(line)
    pattern, weight = _normal(value, is_rule=True)
    rules = [_Rule(pattern, weight, allow, number, text)]
    head, slash, name = pattern.rpartition("/")
    if allow and slash and name.rstrip("$") in ("index.html", "index.htm"):
        rules.append(_Rule(f"{head}/$", len(head) + 2, True, number, text))
    return rules


# --- the search for the longest match ---------------------------------------------------------
# Literal rules are found by their lengths (one look-up for each different length), so 100,000 cost
# as much as 100. Rules with `*` are tried heaviest first, each in time linear in the path; of many
# only those whose piece of four octets is in the path at all. 512,000 bytes hold at most 51,000.

#: A rule with `*`, taken apart: head, pieces between, tail that ends the path ("": none), rule.
_Wild = tuple[str, tuple[str, ...], str, _Rule]
_GRAM = 4
_FEW = 32  # so many are tried sooner than looked up


def _encoded(found: re.Match[str]) -> str:
    octets = found[0]
    if len(octets) == 1:
        return f"%{ord(octets):02X}"
    char = chr(int(octets[1:], 16))
    return char if char in _UNRESERVED else octets.upper()


def _normal(text: str, *, is_rule: bool = False) -> tuple[str, int]:
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


class _Matcher:
    """Rules of one agent, ready to be asked."""

    __slots__ = ("_by_query", "_plain")

    def __init__(self, rules: Iterable[_Rule]) -> None:
        rules = tuple(rules)
        self._plain = _Index(rules)
        # Few files have rules whose query holds a slash; only they pay for a second look.
        changed = [
            rule._replace(pattern=_query_form(rule.pattern))
            for rule in rules
            if _SLASHED_QUERY.search(rule.pattern)
        ]
        self._by_query = _Index(changed) if changed else None

    def best(self, target: str) -> _Rule | None:
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


def _order(rule: _Rule) -> tuple[int, bool, int]:
    """Sorts heaviest first; of equal ones Allow first; then the earlier line."""
    return -rule.weight, not rule.allow, rule.line


class _Index:
    __slots__ = ("_exact", "_lengths", "_literal", "_wild")

    def __init__(self, rules: Iterable[_Rule]) -> None:
        # Each dictionary keeps the rule that wins among those of one pattern.
        self._literal: dict[str, _Rule] = {}
        self._exact: dict[str, _Rule] = {}
        wild: dict[str, _Rule] = {}
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

    def best(self, target: str) -> _Rule | None:
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


def _better(wild: list[_Wild], target: str, best: _Rule | None) -> _Rule | None:
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


def _apart(rule: _Rule) -> _Wild:
    anchored = rule.pattern.endswith("$")
    head, *pieces = (rule.pattern[:-1] if anchored else rule.pattern).split("*")
    tail = pieces.pop() if anchored else ""
    return head, tuple(piece for piece in pieces if piece), tail, rule
