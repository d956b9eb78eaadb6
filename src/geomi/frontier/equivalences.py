"""Which URLs of a site are one page: rules that its own digests teach. Decides only.

A rule turns URLs into fewer. It is believed for what it would have saved: pages that it makes one,
and that had the same content. One content for very many URLs (a login wall, a soft 404) says
nothing about them, so a rule needs several contents.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import sqrt
from typing import NamedTuple

#: `why` of a page that is not asked for because a rule says which other one it is.
WHY = "rule:"
#: One in so many URLs that a rule would skip is fetched all the same, to check the rule.
CHECKED = 20
#: Contents that must agree before a rule is believed, however many URLs had each.
CONTENTS = 3
#: Names of parameters of a site that are looked at, the most frequent ones.
_PARAMETERS = 50
_Z = 1.96  # of a confidence of 95 %

_INDEX = re.compile(r"/((?:index|default|home)\.(?:html?|php|aspx?|jsp|cgi))(?=$|\?)")


class Rule(NamedTuple):
    """One equivalence. `kind` with `what`: drop NAME, order, index NAME, slash, scheme NAME."""

    kind: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.what}".strip()


class Numbered(NamedTuple):
    """A rule that is applied."""

    number: int
    rule: Rule


class Evidence(NamedTuple):
    """What the pages of a site say of a rule."""

    support: int  # pages that it would have spared, rightly
    against: int  # and wrongly
    contents: int  # different ones among the former
    example: tuple[str, str]  # two URLs it makes one, of different content if there are such

    @property
    def precision(self) -> float:
        """The lower end of what the share of right ones may be (Wilson, 95 %); 0 without any."""
        n = self.support + self.against
        if n == 0:
            return 0.0
        p = self.support / n
        middle = p + _Z * _Z / (2 * n)
        width = _Z * sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        return (middle - width) / (1 + _Z * _Z / n)


def parse(text: str) -> Rule | None:
    """A rule as people write it; None: it is none."""
    kind, _, what = text.strip().partition(" ")
    what = what.strip()
    needs = {"drop": True, "index": True, "scheme": True, "order": False, "slash": False}
    if kind not in needs or bool(what) != needs[kind]:
        return None
    if kind == "scheme" and what not in ("http", "https"):
        return None
    return Rule(kind, what)


def applied(rule: Rule, url: str) -> str:
    """The URL that stands for this one; itself where the rule says nothing."""
    kind, what = rule
    if kind == "scheme":
        scheme, _, rest = url.partition("://")
        has_port = ":" in rest.partition("/")[0].rpartition("]")[2]
        return url if scheme == what or has_port else f"{what}://{rest}"
    path, mark, query = url.partition("?")
    if kind == "index":
        return f"{path[: -len(what)]}{mark}{query}" if path.endswith("/" + what) else url
    if kind == "slash":
        is_root = path.find("/", path.find("://") + 3) == len(path) - 1
        return f"{path[:-1]}{mark}{query}" if path.endswith("/") and not is_root else url
    if not mark:
        return url
    words = query.split("&")
    if kind == "order":
        words.sort(key=lambda word: word.partition("=")[0])
    else:
        words = [word for word in words if word.partition("=")[0] != what]
    return f"{path}?{'&'.join(words)}" if words else path


def standing(rules: Iterable[Numbered], url: str) -> tuple[int, str] | None:
    """(number of the first rule that changed it, the URL that stands for it); None: it stands
    for itself."""
    first, twin = 0, url
    for number, rule in rules:
        other = applied(rule, twin)
        if other != twin:
            first, twin = first or number, other
    return (first, twin) if first else None


def candidates(urls: Iterable[str]) -> list[Rule]:
    """Rules that these URLs of one site could teach."""
    parameters: Counter[str] = Counter()
    indexes: Counter[str] = Counter()
    schemes: Counter[str] = Counter()
    has_order = has_slash = False
    for url in urls:
        schemes[url.partition(":")[0]] += 1
        path, _, query = url.partition("?")
        if found := _INDEX.search(url):
            indexes[found[1]] += 1
        has_slash = has_slash or path.endswith("/")
        names = [word.partition("=")[0] for word in query.split("&") if word]
        has_order = has_order or len(names) > 1
        parameters.update(set(names))
    found_rules = [Rule("drop", name) for name, _ in parameters.most_common(_PARAMETERS)]
    found_rules += [Rule("index", name) for name in indexes]
    if has_order:
        found_rules.append(Rule("order"))
    if has_slash:
        found_rules.append(Rule("slash"))
    if len(schemes) > 1:
        found_rules.append(Rule("scheme", "https"))
    return found_rules


def weighed(rule: Rule, pages: Sequence[tuple[str, str]]) -> Evidence:
    """What (URL, digest) of a site's pages say of a rule."""
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for url, digest in pages:
        groups[applied(rule, url)].append((url, digest))
    support = against = 0
    contents: set[str] = set()
    example = contrary = ("", "")
    for members in groups.values():
        if len(members) < 2:
            continue
        (common, number), *_ = Counter(digest for _, digest in members).most_common(1)
        support += number - 1
        against += len(members) - number
        first = next(url for url, digest in members if digest == common)
        if number > 1:
            contents.add(common)
            other = next(url for url, digest in members if digest == common and url != first)
            example = example if example[0] else (first, other)
        if number < len(members) and not contrary[0]:
            contrary = (first, next(url for url, digest in members if digest != common))
    return Evidence(support, against, len(contents), contrary if contrary[0] else example)


def is_believed(evidence: Evidence, confidence: float) -> bool:
    return evidence.contents >= CONTENTS and evidence.precision >= confidence
