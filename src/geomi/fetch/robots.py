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

from geomi.fetch.matcher import Matcher, Rule, normal

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


class Verdict(NamedTuple):
    """May it be asked for, and the line that decided; line 0: no rule spoke."""

    allowed: bool
    line: int
    text: str


class _Group:
    """Rules that share one run of User-agent lines. Filled by parse(), then left alone."""

    __slots__ = ("delay_s", "rules", "signals")

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.delay_s: float | None = None
        self.signals: list[str] = []


class Rules:
    """What one agent is told: the merged groups that name it, or else those for `*`."""

    __slots__ = ("_blanket", "_matcher", "_signals", "_usage", "content_signals", "crawl_delay_s",
                 "rules")  # fmt: skip

    def __init__(self, groups: Iterable[_Group] = (), *, blanket: bool = True) -> None:
        groups = tuple(groups)
        rules = [rule for group in groups for rule in group.rules]
        self._matcher = Matcher(rules) if rules else None
        #: (pattern, allow), in order: what two sites may have in common.
        self.rules = tuple((rule.pattern, rule.allow) for rule in rules)
        # The answer where no rule speaks.
        self._blanket = blanket
        delays = [group.delay_s for group in groups if group.delay_s is not None]
        #: The largest of the groups' delays, as written; a limit is the caller's business.
        self.crawl_delay_s: float | None = max(delays) if delays else None
        #: Content-Usage and Content-Signal lines as they stand.
        self.content_signals: tuple[str, ...] = tuple(
            signal for group in groups for signal in group.signals
        )
        self._signals, self._usage = _read_signals(self.content_signals)

    def signals_for(self, target: str) -> list[tuple[str, str]]:
        """(key in lower case, value) of what is said about the use of a path's content.

        Of `Content-Usage` lines the one with the longest path that matches; one without is for
        every path.
        """
        found = list(self._signals)
        best = self._usage.best(target) if self._usage is not None else None
        if best is not None:
            found.append(("content-usage", best.text))
        return found

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


def _read_signals(lines: Iterable[str]) -> tuple[list[tuple[str, str]], Matcher | None]:
    """Signals for all paths, and those that are for some."""
    everywhere: list[tuple[str, str]] = []
    usage: list[Rule] = []
    for number, line in enumerate(lines):
        key, value = (part.strip(_SPACE) for part in line.partition("#")[0].split(":", 1))
        if key.lower() != "content-usage":
            everywhere.append((key.lower(), value))
            continue
        path, _, wish = value.partition(" ")
        if not path.startswith(("/", "*")):
            path, wish = "/", value
        octets = path.encode().decode("latin-1")
        pattern, weight = normal(octets, is_rule=True)
        usage.append(Rule(pattern, weight, True, number, wish.strip(_SPACE)))
    return everywhere, Matcher(usage) if usage else None


def whole_lines(body: bytes, limit_bytes: int) -> bytes:
    """The lines of a robots.txt that lie within a limit; one that it would tear is left out.

    Half a rule may say more than the whole one: `Disallow: /` of `Disallow: /private/`.
    """
    torn = len(body) > limit_bytes and body[limit_bytes] not in b"\r\n"
    body = body[:limit_bytes]
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1] if torn else body


def _lines(body: bytes, limit_bytes: int) -> Iterable[str]:
    """Lines as text of octets (latin-1), so that any byte survives."""
    body = whole_lines(body, limit_bytes)
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


def _rules(value: str, allow: bool, number: int, line: str) -> list[Rule]:
    if not value.startswith(("/", "*")):  # empty, or nothing that a path could begin with
        return []
    text = _text(line)
    pattern, weight = normal(value, is_rule=True)
    rules = [Rule(pattern, weight, allow, number, text)]
    head, slash, name = pattern.rpartition("/")
    if allow and slash and name.rstrip("$") in ("index.html", "index.htm"):
        rules.append(Rule(f"{head}/$", len(head) + 2, True, number, text))
    return rules
