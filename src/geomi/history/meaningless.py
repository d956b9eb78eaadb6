"""Which pages mean nothing: the same content under many unlike URLs of a site. Decides only.

Three ways to find them: many unlike URLs with one text, a probe that shows how a site answers for
what it does not have, and the rules of `walls`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import parse_qsl

from msgspec import Struct

from geomi.history.likeness import Near


class State(StrEnum):
    """What was decided of a digest."""

    CANDIDATE = "candidate"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


#: Of a name that nobody can have given to a page; owners see in their log who asked.
PROBE_NAME = "geomi-probe-"
PROBE_KIND = "p"
PROBE_AGAIN_S = 30 * 86_400.0  # a directory is asked no sooner

#: So many words a text has at least, to be called near another; fewer are alike by chance.
LEAST_WORDS = 5
#: And no more: what says much is content, also where it stands under several names.
MOST_WORDS = 400

#: Parameters that name a visit, not a page.
_PASSING = re.compile(
    r"utm_.*|.*sess?ion_?(?:id|key)?|sid|s|phpsessid|jsessionid|aspsessionid.*|token|csrf.*|nonce"
    r"|fbclid|gclid|msclkid|_ga|ref|referr?er|from|via|_|t|ts|time(?:stamp)?|rand(?:om)?|cache",
    re.IGNORECASE,
)
_PATH_SESSION = re.compile(r";jsessionid=[^/;?]*|/\(S\([^/()]*\)\)", re.IGNORECASE)
_INDEX = re.compile(r"/(?:index|default)\d*\.(?:html?|php|jsp|aspx?)$", re.IGNORECASE)


def shape(url: str) -> str:
    """Of a URL what names the page: neither scheme nor host, sessions, tracking, order."""
    path, _, query = url.partition("://")[2].partition("/")[2].partition("?")
    path = _INDEX.sub("/", _PATH_SESSION.sub("", f"/{path}")).rstrip("/") or "/"
    pairs = sorted(
        (name, value)
        for name, value in parse_qsl(query, max_num_fields=None)
        if not _PASSING.fullmatch(name)
    )
    return path + "?" + "&".join(f"{name}={value}" for name, value in pairs) if pairs else path


def is_front(url: str) -> bool:
    """True of the root of a site: spared, whatever it looks like."""
    slash = url.find("/", url.find("://") + 3)
    return slash < 0 or url[slash:] in ("/", "/?")


def directory(url: str) -> str:
    """`http://host/a/b/` of a URL in it."""
    path = url.partition("?")[0].partition("#")[0]
    slash = path.rfind("/")
    return path[: slash + 1] if slash > path.find("://") + 2 else path + "/"


_ENDING = re.compile(r"\.[a-zA-Z][a-zA-Z0-9]{0,5}$")


def probe_of(example: str, name: str) -> str:
    """The URL of a probe beside a page: its directory, a name that is not there, its ending."""
    ending = _ENDING.search(example.partition("?")[0].rpartition("/")[2])
    return f"{directory(example)}{PROBE_NAME}{name}{ending[0] if ending else ''}"


class Content(Struct, frozen=True, kw_only=True):
    """One text on one site, whatever was masked in it."""

    same: str  # name of the masked text
    simhash: int
    words: int
    rule: str  # by which it was known, or empty
    digests: Mapping[str, int]  # of its payloads: how many pages have each
    urls: tuple[str, ...]  # some of them; those of the front page left out
    pages: int  # all of them, also those beyond `urls`


class Group(Struct, frozen=True, kw_only=True):
    """Contents of a site that are alike."""

    site: str
    digest: str  # the one that stands for all
    example: str
    count: int  # pages
    unlike: int  # shapes among the URLs looked at
    reason: str
    digests: tuple[str, ...]


class Limits(Struct, frozen=True, kw_only=True):
    """From when on something is told."""

    unlike: int = 5  # URLs with one text that is known by nothing else
    distance: int = 3  # bits in which near texts differ


def grouped(contents: Sequence[Content], *, distance: int) -> list[list[Content]]:
    """Contents of one site, those that are near together. Each is in one group.

    Near is not passed on: a group is what is near its greatest content.
    """
    order = sorted(contents, key=lambda one: (-one.pages, one.same))
    near = Near(distance)
    groups: dict[str, list[Content]] = {}
    for one in order:
        may_be_near = LEAST_WORDS <= one.words <= MOST_WORDS
        name = near.find(one.simhash) if may_be_near else ""
        if name and groups[name][0].rule == one.rule:
            groups[name].append(one)
            continue
        groups[one.same] = [one]
        if may_be_near:
            near.add(one.simhash, one.same)
    return list(groups.values())


def found(
    site: str,
    contents: Sequence[Content],
    *,
    limits: Limits,
    probed: Mapping[str, str] = {},
    known: Iterable[str] = (),
) -> list[Group]:
    """What is to be told of a site, the greatest first. Without a reason: a text that only repeats.

    `probed`: names of masked texts that a probe came to, with its directory; `known`: digests that
    are in the list already, which go on standing for their group.
    """
    listed = set(known)
    told = []
    for group in grouped(contents, distance=limits.distance):
        digests: dict[str, int] = defaultdict(int)
        for one in group:
            for digest, number in one.digests.items():
                digests[digest] += number
        urls = [url for one in group for url in one.urls]
        if not urls:
            continue  # nothing but a front page
        unlike = len({shape(url) for url in urls})
        head = group[0]
        at = next((probed[one.same] for one in group if one.same in probed), None)
        if head.rule:
            reason = f"rule:{head.rule}"
        elif at is not None:
            reason = f"probe:{at}"
        elif unlike >= limits.unlike and (head.words >= LEAST_WORDS or len(digests) == 1):
            reason = f"alike:{unlike}"
        elif unlike >= 2:
            reason = ""
        else:
            continue
        stands = min(digests, key=lambda one: (one not in listed, -digests[one], one))
        told.append(
            Group(
                site=site, digest=stands, example=min(urls), count=sum(one.pages for one in group),
                unlike=unlike, reason=reason, digests=tuple(sorted(digests)),
            )
        )  # fmt: skip
    told.sort(key=lambda one: (-one.count, one.digest))
    return told


def confirms_itself(group: Group, *, threshold: int | None) -> bool:
    """True if so many pages and a second sign stand against it that nobody need look.

    Many URLs with one text alone never do: a report under six names is a report.
    """
    if threshold is None or not group.reason.startswith(("rule:", "probe:")):
        return False
    return group.unlike >= threshold


def wants_probe(group: Group) -> bool:
    """Where a text stands under unlike URLs the site is asked once what it says to any name."""
    return group.unlike >= 2 and not group.reason.startswith("probe:")


class Read(NamedTuple):
    """What verdicts are made from. Made by: the table of features."""

    digest: str
    simhash: int
    main: str
    words: int
    rule: str
    before: str = ""  # the verdict it has


class Verdicts:
    """What becomes of a content: looked up, not searched for, however long the list.

    What a person rejected spares what is like it too.
    """

    def __init__(
        self,
        confirmed: Mapping[str, tuple[int, str] | None],
        rejected: Mapping[str, tuple[int, str] | None],
        *,
        distance: int,
    ) -> None:
        """Digests with fingerprint and name of the main text; None: never read here."""
        self._lists = [
            (frozenset(one), _mains(one), _near(one, distance)) for one in (confirmed, rejected)
        ]

    def of(self, one: Read) -> str:
        """Why a content means nothing: `confirmed`, `near:DIGEST`, `rule:NAME`, `probe:DIRECTORY`;
        empty: it may mean something."""
        (confirmed, mains, near), (rejected, spared, near_spared) = self._lists
        if one.digest in confirmed:
            return "confirmed"
        if one.digest in rejected or not one.main:
            return ""
        may_be_near = LEAST_WORDS <= one.words <= MOST_WORDS
        if may_be_near:
            if one.main in spared:
                return ""
            if other := mains.get(one.main) or near.find(one.simhash):
                return f"near:{other}"
            if near_spared.find(one.simhash):
                return ""
        if one.rule:
            return f"rule:{one.rule}"
        return one.before if one.before.startswith("probe:") else ""


def _mains(digests: Mapping[str, tuple[int, str] | None]) -> dict[str, str]:
    return {read[1]: digest for digest, read in digests.items() if read is not None}


def _near(digests: Mapping[str, tuple[int, str] | None], distance: int) -> Near:
    near = Near(distance)
    for digest, read in digests.items():
        if read is not None:
            near.add(read[0], digest)
    return near
