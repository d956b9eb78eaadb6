"""What becomes of a payload: stored, a revisit of one that is, or void. Decides only.

What the index knows is asked before an answer is handed to the machine (cluster.asking); here it is
looked up without waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from geomi import url as urls
from geomi.archive.duplicates import NOTHING_MET, REDIRECTS, Met, Original, key_of
from geomi.cluster.context import Context, Plan
from geomi.extract.head import parse_head
from geomi.frontier.tables import Known
from geomi.records import Capture, Page
from geomi.states import Outcome

#: Of the hits of a list of meaningless pages one in so many is judged as if it were none: support
#: for a rule counts only what it did not filter.
JUDGED = 100
_HTML = frozenset({"text/html", "application/xhtml+xml"})
#: States of a page whose row names the place of its last whole response.
_NAMES_ITS_COPY = frozenset({Outcome.OK, Outcome.SAME, Outcome.VOID})


class Payloads(Protocol):
    """What is known of payloads. The shell's, the simulator's, or a test's."""

    def met(self, capture: Capture) -> Met: ...


class Unasked:
    """Nobody asked: everything is new."""

    def met(self, capture: Capture) -> Met:
        return NOTHING_MET


class Verdict(Struct, frozen=True, kw_only=True):
    """What becomes of one payload."""

    digest: str | None = None  # None: not taken yet
    original: Original | None = None  # None: stored whole
    is_own: bool = False  # the original is what the page had last
    is_void: bool = False


STORE = Verdict()


def size_of(capture: Capture) -> int:
    return len(capture.body) if capture.spool is None else capture.spool.size


def may_refer(capture: Capture, plan: Plan) -> bool:
    """True of an answer that may become a revisit, or be referred to."""
    return (
        plan.duplicates
        and capture.outcome in (Outcome.OK, Outcome.CODE)
        and capture.code != 304
        and not capture.truncated
        and size_of(capture) >= plan.duplicate_bytes
    )


def own_digest(known: Known) -> str:
    """Of the copy that a page has: an equal payload needs no look into the index."""
    return known.stored_digest if known.outcome in _NAMES_ITS_COPY else ""


def location_of(capture: Capture) -> str:
    """Where a redirect leads, as it says; empty: it is none."""
    if capture.code not in REDIRECTS:
        return ""
    return parse_head(capture.head).get("location", "")


def key_of_capture(capture: Capture, digest: str) -> int:
    return key_of(digest, code=capture.code, location=location_of(capture))


class Fresh:
    """Originals of the batches that are not committed yet, for later captures of the same site.

    A batch is committed after the one before it or not at all, and a site is refused from one batch
    on; so a revisit never outlives what it refers to. Each is forgotten two batches later: the
    index knows it then.
    """

    def __init__(self, number: Callable[[], int]) -> None:
        self._number = number  # of the batch that fills
        self._seen = 0
        self._new: dict[tuple[int, int, int], Original] = {}
        self._old: dict[tuple[int, int, int], Original] = {}

    def put(self, ctx: Context, key: int, original: Original) -> None:
        self._turn()
        self._new[ctx.site_id, ctx.epoch, key] = original

    def get(self, ctx: Context, key: int) -> Original | None:
        self._turn()
        name = (ctx.site_id, ctx.epoch, key)
        return self._new.get(name) or self._old.get(name)

    def _turn(self) -> None:
        number = self._number()
        if number != self._seen:
            self._old = self._new if number == self._seen + 1 else {}
            self._new = {}
            self._seen = number


class Judge:
    """Says of each capture of one agent what becomes of its payload."""

    def __init__(self, plan: Plan, payloads: Payloads, *, number: Callable[[], int]) -> None:
        self._plan = plan
        self._payloads = payloads
        self.fresh = Fresh(number)
        self._voids = 0

    def verdict(self, ctx: Context, known: Known, capture: Capture, page: Page | None) -> Verdict:
        met = self._payloads.met(capture)
        digest = met.digest
        if not digest:
            return STORE
        is_void = met.is_void and self._is_void(known, capture, page)
        if not may_refer(capture, self._plan):
            return Verdict(digest=digest, is_void=is_void)
        if capture.outcome is Outcome.OK and digest == own_digest(known):
            own = Original(
                uri=known.stored_url or known.url, date=known.stored_date,
                record_id=known.stored_id,
            )  # fmt: skip
            return Verdict(digest=digest, original=own, is_own=True, is_void=is_void)
        original = met.original or self.fresh.get(ctx, key_of_capture(capture, digest))
        return Verdict(digest=digest, original=original, is_void=is_void)

    def _is_void(self, known: Known, capture: Capture, page: Page | None) -> bool:
        """A confirmed digest voids documents, but no front page, and not each hundredth of them."""
        if capture.outcome is not Outcome.OK or page is None or page.mime not in _HTML:
            return False
        if not known.page or urls.target_of(capture.url) == "/":
            return False
        self._voids += 1
        return self._voids % JUDGED != 0
