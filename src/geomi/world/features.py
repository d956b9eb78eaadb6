"""What may occur in the small world: one table each for pages, sites, robots.txt and charsets.

A new feature is a new entry here. Every share can be changed by name in `Params.shares`;
`PLAIN` switches off everything that is no ordinary page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

from geomi.states import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a page is. Pages with links grow the tree; the others are leaves without any link."""

    name: str
    share: float = 0.0
    content: str = "html"  # which renderer, see render.py
    status: int = 200
    fault: str = ""  # an outcome that the wire shows, see serve.py
    flaky: int = 0  # so many 503 before it answers
    linking: bool = False
    folder: str = ""  # where it lives, if not anywhere
    hidden: bool = False  # only the sitemap knows it

    @property
    def outcome(self) -> str:
        """What a visit comes to, if nobody forbids it."""
        return self.fault or str(Outcome.OK if self.status == 200 else Outcome.CODE)


ROLES: tuple[Role, ...] = (
    Role(name="html", linking=True),
    Role(name="frameset", share=0.03, content="frameset", linking=True),
    Role(name="private", share=0.05, linking=True, folder="/private"),
    Role(name="cgi", share=0.02, linking=True, folder="/cgi"),
    Role(name="orphan", share=0.02, linking=True, hidden=True),
    Role(name="flaky", share=0.008, linking=True, flaky=1),
    Role(name="duplicate", share=0.04, linking=False),
    Role(name="redirect", share=0.04, content="redirect", status=301),
    Role(name="chain", share=0.01, content="redirect", status=302),
    Role(name="loop", share=0.004, content="redirect", status=302),
    Role(name="away", share=0.006, content="redirect", status=302),
    Role(name="text", share=0.02, content="text"),
    Role(name="pdf", share=0.02, content="pdf"),
    Role(name="picture", share=0.01, content="png"),
    Role(name="e403", share=0.005, content="error", status=403),
    Role(name="e404", share=0.02, content="error", status=404),
    Role(name="e410", share=0.004, content="error", status=410),
    Role(name="e500", share=0.004, content="error", status=500),
    Role(name="e503", share=0.002, content="error", status=503),
    *(
        Role(name=str(fault), share=0.002, fault=str(fault))
        for fault in (
            Outcome.H_ERR, Outcome.H_TIM, Outcome.H_SHT, Outcome.H_NPR, Outcome.D_ERR,
            Outcome.D_TIM,
        )
    ),
)  # fmt: skip
ROLE: Mapping[str, Role] = {role.name: role for role in ROLES}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteKind:
    """How a whole site answers."""

    name: str
    share: float = 0.0
    dns: str = "NOERROR"
    fault: str = ""  # outcome of every one of its pages


SITE_KINDS: tuple[SiteKind, ...] = (
    SiteKind(name="plain"),
    SiteKind(name="www", share=0.15),  # the bare name sends everything to www.
    SiteKind(name="moved", share=0.03),  # its front page sends to another site
    SiteKind(name="nxdomain", share=0.01, dns="NXDOMAIN", fault=str(Outcome.NO_IP)),
    SiteKind(name="servfail", share=0.005, dns="SERVFAIL", fault=str(Outcome.NO_IP)),
    SiteKind(name="nodata", share=0.005, fault=str(Outcome.NO_IP)),
    SiteKind(name="cErr", share=0.01, fault=str(Outcome.C_ERR)),
)

#: Habits of a site that do not exclude each other.
HABITS: Mapping[str, float] = {
    "child": 0.10,  # lives below the domain of another site
    "shared": 0.30,  # on one of few crowded addresses
    "two": 0.05,  # has two addresses
    "etag": 0.4,
    "modified": 0.5,
    "chunked": 0.1,
    "sitemap": 0.3,
    "feed": 0.25,
    "slow": 0.0,  # answers after a while, see Params.delay_s
}

Denies = Callable[[str, bool], bool]


def _under(*folders: str) -> Denies:
    return lambda target, _named: target.startswith(folders)


def _never(_target: str, _named: bool) -> bool:
    return False


def _always(_target: str, _named: bool) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsKind:
    """A kind of robots.txt, and what it denies, said without a matcher of robots.txt."""

    name: str
    share: float
    status: int = 200
    text: str = ""  # {delay} is Params.crawl_delay_s
    denies: Denies = _never  # (path and query, is it the agent geomi)
    delay: bool = False


ROBOTS: tuple[RobotsKind, ...] = (
    RobotsKind(name="none", share=0.40, status=404),
    RobotsKind(name="all", share=0.12, text="User-agent: *\nDisallow:\n"),
    RobotsKind(
        name="dirs", share=0.20, denies=_under("/private/", "/cgi/"),
        text="# keep out\nUser-agent: *\nDisallow: /private/\nDisallow: /cgi/\n",
    ),
    RobotsKind(
        name="delay", share=0.03, denies=_under("/private/"), delay=True,
        text="User-agent: *\nCrawl-delay: {delay:g}\nDisallow: /private/\n",
    ),
    RobotsKind(
        name="open", share=0.06,
        text="User-agent: *\nDisallow: /private/\nAllow: /private/open/\n",
        denies=lambda target, _named: (
            target.startswith("/private/") and not target.startswith("/private/open/")
        ),
    ),
    RobotsKind(
        name="named", share=0.05,
        text="User-agent: *\nDisallow: /\n\nUser-agent: Geomi\nDisallow: /cgi/\n",
        denies=lambda target, named: not named or target.startswith("/cgi/"),
    ),
    RobotsKind(
        name="others", share=0.04,
        text="User-agent: BadBot\nUser-agent: Slurp\nDisallow: /\n",
    ),
    RobotsKind(
        name="wild", share=0.04, text="User-agent: *\nDisallow: /*.pdf$\nDisallow: /*from=\n",
        denies=lambda target, _named: target.endswith(".pdf") or "from=" in target,
    ),
    RobotsKind(
        name="pictures", share=0.03, text="User-agent: *\nDisallow: /img\n",
        denies=_under("/img"),
    ),
    RobotsKind(
        name="shut", share=0.01, text="User-agent: *\nDisallow: /\n", denies=_always
    ),
    RobotsKind(name="500", share=0.01, status=500, denies=_always),
    RobotsKind(name="403", share=0.01, status=403),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CharsetKind:
    """How a site writes and labels its text. An entry may be unlabelled or tell a lie."""

    name: str
    share: float
    codec: str  # Python's name
    header: str = ""
    meta: str = ""
    korean: bool = True

    @property
    def honest(self) -> bool:
        """True if a reader of the label finds the bytes; then paths may be written raw."""
        label = (self.header or self.meta).lower()
        return bool(label) and (label == "utf-8") == (self.codec == "utf-8")


CHARSETS: tuple[CharsetKind, ...] = (
    CharsetKind(name="utf8-both", share=0.25, codec="utf-8", header="utf-8", meta="utf-8"),
    CharsetKind(name="utf8-header", share=0.15, codec="utf-8", header="UTF-8"),
    CharsetKind(name="utf8-meta", share=0.15, codec="utf-8", meta="utf-8"),
    CharsetKind(name="euckr-header", share=0.13, codec="euc_kr", header="EUC-KR"),
    CharsetKind(name="euckr-meta", share=0.17, codec="euc_kr", meta="euc-kr"),
    CharsetKind(name="cp949-header", share=0.07, codec="cp949", header="ks_c_5601-1987"),
    CharsetKind(name="cp949-meta", share=0.08, codec="cp949", meta="euc-kr"),
    CharsetKind(name="utf8-none", share=0.0, codec="utf-8"),
    CharsetKind(name="euckr-none", share=0.0, codec="euc_kr"),
    CharsetKind(name="cp949-none", share=0.0, codec="cp949"),
    CharsetKind(name="euckr-as-utf8", share=0.0, codec="euc_kr", header="utf-8"),
    CharsetKind(name="en-utf8", share=0.8, codec="utf-8", header="utf-8", korean=False),
    CharsetKind(
        name="en-latin", share=0.2, codec="latin-1", meta="iso-8859-1", korean=False
    ),
)  # fmt: skip

#: Name of every share with its default: roles and site kinds by name, habits as `habit.NAME`,
#: the others as `robots.NAME` and `charset.NAME`.
SHARES: Mapping[str, float] = {
    **{role.name: role.share for role in ROLES},
    **{kind.name: kind.share for kind in SITE_KINDS},
    **{f"habit.{name}": share for name, share in HABITS.items()},
    **{f"robots.{kind.name}": kind.share for kind in ROBOTS},
    **{f"charset.{kind.name}": kind.share for kind in CHARSETS},
}

#: Shares of a world without any surprise: every page is html and answers, no robots.txt.
PLAIN: Mapping[str, float] = dict.fromkeys(
    chain(
        (role.name for role in ROLES),
        (kind.name for kind in SITE_KINDS),
        (f"habit.{name}" for name in ("child", "chunked", "slow")),
        (f"robots.{kind.name}" for kind in ROBOTS if kind.name != "none"),
    ),
    0.0,
)

#: Shares without what costs a visitor time: stalls, Retry-After, Crawl-delay.
PROMPT: Mapping[str, float] = {"hTim": 0.0, "dTim": 0.0, "e503": 0.0, "robots.delay": 0.0}
