"""What may occur in the small world: one table each for pages, sites and habits.

Those of robots.txt, charsets and corners stand in their own files. A new feature is a new entry.
Every share can be changed by name in `Params.shares`; `PLAIN` switches off everything that is no
ordinary page, `WHOLE` switches everything on.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from geomi.errors import OperatorError
from geomi.states import Outcome
from geomi.world import doors, marks, traps, variants, walls
from geomi.world.charsets import CHARSETS
from geomi.world.corners import Corner
from geomi.world.robots import ROBOTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a page is. Pages with links grow the tree; the others are leaves without any link."""

    name: str
    share: float = 0.0
    content: str = "html"  # which renderer, see render.py
    status: int = 200
    fault: str = ""  # an outcome that the wire shows, see server.py
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
    SiteKind(name="secure"),  # its http sends everything to its https
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
    "alias": 0.0,  # the same content under www. and the bare name
    "domain": 0.0,  # the same content under a name in another domain
    "literal": 0.0,  # the same content under its address
    "https": 0.0,  # the same content by https
    "six": 0.0,  # only an IPv6 address: ::1, which all of them share
    "dual": 0.0,  # an IPv6 address besides
    "soft404": 0.0,  # says 200 to every name it does not know
    "stamped": 0.0,  # its pages hold a session and the time, others at every visit
}

#: How the https of a site is certified, among sites that have any.
TLS: Mapping[str, float] = {"good": 0.7, "expired": 0.1, "name": 0.1, "self": 0.1}

#: Parts of a site made from the request alone, see corners.py.
CORNERS: Mapping[str, Corner] = {
    corner.name: corner
    for corner in chain(
        traps.CORNERS, walls.CORNERS, variants.CORNERS, marks.CORNERS, doors.CORNERS
    )
}

#: Name of every share with its default: roles and site kinds by name, habits as `habit.NAME`,
#: the others as `robots.NAME` and `charset.NAME`.
SHARES: Mapping[str, float] = {
    **{role.name: role.share for role in ROLES},
    **{kind.name: kind.share for kind in SITE_KINDS},
    **{f"habit.{name}": share for name, share in HABITS.items()},
    **{f"robots.{kind.name}": kind.share for kind in ROBOTS},
    **{f"charset.{kind.name}": kind.share for kind in CHARSETS},
    **{f"tls.{name}": share for name, share in TLS.items()},
    **{f"corner.{corner.name}": corner.share for corner in CORNERS.values()},
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

#: What `WHOLE` gives to entries that do not occur otherwise.
_NEW_HABITS = ("alias", "domain", "literal", "https", "six", "dual", "soft404")
_SILENT = ("robots.stall",)
#: What only a visitor with a memory finds: one that is killed on the way must not fail for it.
_REMEMBERING = ("lobby",)

#: Shares of a world in which everything occurs that has a truth. With `Params.trap_steps` 0 its
#: traps are endless: a visitor needs limits.
WHOLE: Mapping[str, float] = {
    "secure": 0.04,
    **{f"habit.{name}": 0.08 for name in _NEW_HABITS},
    **{f"robots.{kind.name}": 0.012 for kind in ROBOTS if not kind.share},
    **{f"charset.{kind.name}": 0.04 for kind in CHARSETS if not kind.share},
    **{f"corner.{name}": 0.12 for name in CORNERS if name not in _REMEMBERING},
}

#: `WHOLE` without what costs a visitor time.
WHOLE_PROMPT: Mapping[str, float] = {
    **WHOLE, **PROMPT, **dict.fromkeys(_SILENT, 0.0), "corner.busy": 0.0
}  # fmt: skip


def all_shares(given: Mapping[str, float]) -> dict[str, float]:
    """The default of each share but for those given; OperatorError names one that is wrong."""
    for name, share in given.items():
        if name not in SHARES:
            near = difflib.get_close_matches(name, SHARES, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise OperatorError(f"the small world: unknown share {name}{hint}")
        if not 0 <= share <= 1:
            raise OperatorError(f"the small world: share {name} is {share}, wanted 0 to 1")
    return {**SHARES, **given}
