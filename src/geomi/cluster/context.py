"""The seed context: all that an agent holds in memory for one site it visits.

(Paper 000 has one a party; here the parties of one site share it, because they share the server,
its address, its robots.txt and its seen-filter.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from geomi import url as urls
from geomi.cluster.guise import Guise
from geomi.fetch.access import Access
from geomi.fetch.cookies import Cookie
from geomi.fetch.robots import Rules
from geomi.frontier.equivalences import Numbered
from geomi.frontier.hints import Hints
from geomi.frontier.politeness import Host, Manners
from geomi.frontier.queue import Queue
from geomi.frontier.retry import Retry
from geomi.frontier.scope import Admission, Scope
from geomi.frontier.seen import SeenFilter
from geomi.frontier.tables import Known
from geomi.frontier.traps import Templates, Valves
from geomi.hours import Hours
from geomi.records import Lease
from geomi.states import Outcome

QUIET_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRules:
    """The settings of one site. Made by: config (through cluster.plan).   Taken by: agent."""

    manners: Manners
    scope: Scope
    retry: Retry
    valves: Valves = field(default_factory=Valves)
    is_prefix: bool = False  # scope is the directories of the seeds
    obey_robots: bool = True
    max_pages: int | None = None
    redirects: int = 5
    crawl_delay_max_s: float = 3600.0
    retry_after_max_s: float = 86_400.0
    groups: tuple[str, ...] = ()
    access: Access | None = None  # filled in for agents alone: it holds secrets
    cookies: bool = True
    own_cookies: tuple[Cookie, ...] = field(default=(), repr=False)  # the operator's
    hours: Hours | None = None  # None: always
    obeys_canonical: bool = False  # the page that rel=canonical names is taken in its place

    def twin(self, url: str, site: str, kind: str, depth: int) -> str:
        """A URL of a second name under the name that is kept, which these are the rules of.

        Empty where it would be refused. Where seeds stand for directories each has its own, and no
        URL of one stands for another's.
        """
        if self.is_prefix:
            return ""
        twin = urls.under(url, site)
        refused = self.scope.refusal(twin, kind, depth) or self.valves.refusal(twin, depth)
        return "" if refused else twin


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings of one agent."""

    agent: str
    incarnation: int
    run: int
    agents: int = 1  # that the crawl is to have: some of them may not be there yet
    rules: Callable[[str], SiteRules]
    admission: Admission = field(default_factory=Admission)
    contexts: int = 512
    connections: int = 256
    window: int = 1000
    waiting: int = 50_000
    batch_visits: int = 250
    batch_bytes: int = 8 * 2**20
    batch_s: float = 1.0
    is_exact: bool = False
    seen_error: float = 1e-9
    requests: bool = True
    metadata: bool = True
    dns: bool = True
    level: int = 1
    duplicates: bool = True  # payloads that are stored already become revisits
    duplicate_bytes: int = 256  # smaller ones do not
    duplicate_links: bool = True  # of a page that is equal to another one are followed
    applies_rules: bool = False  # of URLs that are one page only one is asked for
    is_paper_form: bool = False  # such revisits say 304
    drops_void: bool = False  # of meaningless pages nothing is kept
    sitemaps: bool = False  # those that robots.txt names are read for URLs
    robots_agent: str = "geomi"
    robots_cache_s: float = 86_400.0
    robots_limit: int = 512_000
    outside_per_site: int = 1000
    lease_s: float = 60.0
    address_margin_s: float = 0.01
    gap_s: float = 0.0  # of addresses; the same for all agents, who share their time by it
    slots: int = 1  # into which the time at an address may be divided
    has_quota: bool = False
    has_page_limit: bool = False
    has_prefix: bool = False  # some site is limited to directories
    has_depth_limit: bool = False  # for all sites, so that depths are exact across them
    patience_s: float = 600.0

    @property
    def holder(self) -> str:
        return f"{self.agent}/{self.incarnation}"

    @property
    def quiet_s(self) -> float:
        """Nothing starts, and nothing is sent, in this last part of a lease."""
        return self.lease_s * QUIET_SHARE

    @property
    def mourning_s(self) -> float:
        """So long after the end of a claim its address rests from a holder who vanished."""
        return max(0.0, self.gap_s - self.quiet_s)


class Server:
    """Another host that is asked for the sake of a site: its robots.txt lies there."""

    __slots__ = ("access", "address", "gap_s", "host", "is_slotted", "keys", "site")

    def __init__(
        self, site: str, *, host: Host, address: str, keys: tuple[str, ...], gap_s: float,
        access: Access | None,
    ) -> None:  # fmt: skip
        self.site = site
        self.host = host
        self.address = address
        self.keys = keys  # its address, for the gaps
        self.gap_s = gap_s
        self.access = access
        self.is_slotted = False  # holds a place in line at its address


class RobotsState:
    """robots.txt of one scheme and authority: unknown, being fetched, known."""

    __slots__ = (
        "expires", "failing_since", "failures", "given_up", "hops", "is_fetching", "not_before",
        "rules", "server", "url",
    )  # fmt: skip

    def __init__(self) -> None:
        self.rules: Rules | None = None  # None: not known
        self.expires = 0.0
        self.failing_since = 0.0
        self.is_fetching = False
        self.url = ""  # where a redirect leads; empty: /robots.txt
        self.hops = 0
        self.server: Server | None = None  # of the host it leads to
        # Where it alone fails, while the site's other scheme answers:
        self.failures = 0  # in a row
        self.not_before = 0.0  # the next try
        self.given_up: tuple[Outcome, str] | None = None  # what its pages come to


class Context:
    """One leased site. `token` marks Targets that are settled for it."""

    __slots__ = (
        "address", "address_expires", "answered", "claims", "closed_until", "dirty", "elsewhere",
        "epoch", "equivalents", "failing_until", "failures", "first_seed", "flying", "fronts",
        "gap_s", "go_to",
        "guise", "hints", "host", "is_closed", "is_gone", "is_half_failing", "is_leaving",
        "is_loaded",
        "is_named", "is_resolving", "is_seen_whole", "is_slotted", "kept", "keys", "level",
        "party_pages", "queue", "robots", "rules", "scope", "seen", "site", "site_id",
        "templates", "token", "turn", "turn_at", "unanswered", "until", "visits",
    )  # fmt: skip

    def __init__(
        self, lease: Lease, rules: SiteRules, *, window: int, token: int, until: float,
        now: float = 0.0, host: Host | None = None,
    ) -> None:  # fmt: skip
        self.site = lease.site
        self.site_id = lease.site_id
        self.epoch = lease.epoch
        self.until = until
        self.token = token
        self.rules = rules
        self.scope = rules.scope
        self.host = host or Host(rules.manners)
        self.elsewhere: dict[str, Host] = {}  # hosts that speak for it, by the key claimed for each
        self.guise = Guise(
            rules.access, cookies=rules.cookies, own_cookies=rules.own_cookies, now=now
        )
        self.is_closed = False  # outside its hours: given back until they begin
        self.closed_until = 0.0  # hours of another host, whose robots.txt speaks for this one
        self.is_named = rules.manners.is_own
        self.gap_s = 0.0 if rules.manners.is_own else rules.manners.address_rest_s
        self.queue = Queue(window=window)
        self.seen: SeenFilter | None = None
        self.templates = Templates(rules.valves, pages=0)
        self.hints = Hints()
        self.is_seen_whole = False  # False while the filter is being rebuilt
        self.is_loaded = False
        self.address = ""
        self.address_expires = 0.0
        self.unanswered = 0  # connections in a row that failed: another address may answer
        self.is_resolving = False
        self.keys: tuple[str, ...] = ()  # address and groups, for the gaps
        self.claims: tuple[str, ...] = ()  # those of them that are claimed in the store
        self.robots: dict[str, RobotsState] = {}  # by scheme://authority; two at most, usually one
        self.answered = ""  # scheme://authority that answered last
        self.is_half_failing = False  # one of its schemes fails, and is to be tried again
        self.party_pages: dict[int, int] = {}
        self.first_seed = 0
        self.equivalents: tuple[Numbered, ...] = ()  # rules: which of its URLs are one page
        self.kept = ""  # the name whose URLs are kept in the place of this one's
        self.fronts: dict[str, int] = {}  # URL of a seed's own page, however it was found
        self.failures = 0  # failed connections in a row, counted once a rest
        self.failing_until = 0.0  # end of the rest that the last of them earned
        self.flying: set[int] = set()  # tickets
        self.level = -(1 << 40)  # with a depth limit: the rank that is being visited
        self.dirty = 0  # number of the last batch with a row of this site
        self.turn = 0  # serial of its entry among the agent's turns; 0: it has none
        self.turn_at = 0.0
        self.is_slotted = False  # holds a place in line at its address
        self.is_leaving = False  # to be released when nothing is under way
        self.is_gone = False
        self.go_to = ""  # on leaving: the holder of its address, who should take it
        self.visits = 0


@dataclass(slots=True)
class Flight:
    """A request under way. Filled at its start, emptied when its capture is settled."""

    ctx: Context
    known: Known | None  # None: robots.txt
    started: float
    host: Host
    site: str  # the server asked, for the history
    authority: str = ""  # whose robots.txt
    hops: int = 0
    keys: tuple[str, ...] = ()  # where it keeps a gap to others, and which
    gap_s: float = 0.0
    is_sending: bool = False  # the request is being written, or was
    sent_at: float | None = None  # it was, by then
