"""What crosses a border between stages: frozen records with named fields, times in UTC seconds."""

from __future__ import annotations

from enum import IntFlag

from msgspec import Struct

from geomi.states import Outcome


class Reason(IntFlag):
    """Why a page is wanted. Equal wishes merge, so reasons add up."""

    SEED = 1
    LINK = 2
    DUE = 4
    NOTICE = 8
    AGAIN = 16
    ALIAS = 32  # two names are compared
    PROBE = 64  # a name that is not there: what does the site say to any?
    IMPORT = 128  # somebody else visited it: taken in from another archive


#: Reasons for which a page is visited although it was seen before.
PASSES_SEEN = Reason.DUE | Reason.NOTICE | Reason.AGAIN | Reason.ALIAS


class Wanted(Struct, frozen=True, kw_only=True):
    """A page somebody would like visited.

    Made by: seeds, extract, refresh, notify.   Taken by: frontier.
    """

    url: str  # canonical, see geomi.url
    site: str  # geomi.url.site_of(url)
    reason: Reason
    kind: str = "a"  # f, a, h, e; s for a seed, p for a probe
    via: str = ""  # the URL it was found on; empty for a seed
    party: int = 0  # seed id; 0 while unknown
    run: int = 0
    depth: int = 0
    hops: int = 0  # redirects before it
    not_before: float = 0.0  # seconds since 1970, UTC
    weight: float = 0.0  # greater is sooner


class Lease(Struct, frozen=True, kw_only=True):
    """The right to visit one site. Made by: coordinator.   Taken by: agent."""

    site_id: int
    site: str
    epoch: int  # only grows; a write that carries an older one is refused
    until: float


class Spool(Struct, frozen=True, kw_only=True):
    """A body too large for memory, kept in a temporary file until it is archived."""

    path: str
    size: int
    payload_sha1: bytes  # raw digest of the body
    block_sha1: bytes  # raw digest of head + body


class Capture(Struct, frozen=True, kw_only=True):
    """What came over the wire. Made by: fetch.   Taken by: extract, archive.

    `body` is the entity body: transfer-encoding removed, content-encoding kept.
    """

    ticket: int  # the number of the command it answers
    url: str
    address: str  # empty if no connection was tried
    started: float
    ended: float
    outcome: Outcome  # from the wire alone: OK, cut, code, or a network state
    code: int = 0  # 0 when no status line came
    request: bytes = b""  # as sent
    head: bytes = b""  # status line and header lines with the blank line; 1xx blocks cut
    body: bytes = b""
    spool: Spool | None = None  # then body holds only the first part, for sniffing
    truncated: str = ""  # WARC-Truncated: length, time, disconnect
    detail: str = ""  # one short phrase for story: what libcurl or the guard said
    is_unverified: bool = False  # the server's certificate was not checked; the archive says so


class Target:
    """A resolved link. One object per distinct URL in the extractor's cache.

    `known` belongs to the agent: the token of the seed context for which nothing more is to be
    done about this URL. Zero means unknown. (A record per link would cost more than the parse.)
    """

    __slots__ = ("known", "site", "url")

    def __init__(self, url: str, site: str) -> None:
        self.url = url
        self.site = site
        self.known = 0


class Page(Struct, kw_only=True):
    """What the bytes mean. Made by: extract.   Taken by: frontier, archive, history."""

    mime: str  # from the header, lower case, no parameters; empty if none
    charset: str = ""
    title: str = ""
    base: str = ""  # what links were resolved against
    links: list[tuple[str, Target]] = []  # (kind, target), each pair once
    link_type: str = "000"  # paper 000: h, a, f or zeros
    nofollow: bool = False
    noindex: bool = False
    noarchive: bool = False
    canonical: str = ""
    bad_links: int = 0  # links that are no URL; counted, never wanted
    cut_links: int = 0  # links beyond the limit of one page
    nofollow_links: int = 0  # links left out because they say rel=nofollow
    script_only: bool = False  # an empty shell that scripts would fill; geomi runs none


class Place(Struct, frozen=True, kw_only=True):
    """Where a capture is kept. Made by: archive.   Taken by: history, convert."""

    file: int
    offset: int
    length: int
    record_id: str = ""


class Answer(Struct, frozen=True, kw_only=True):
    """What the resolver says of a name. Addresses are unchecked; guard decides."""

    host: str
    addresses: tuple[str, ...]  # empty: no address
    ttl_s: float
    server: str = ""  # "hosts" when no server was asked
    error: str = ""
