"""What a visit came to: a capture becomes records, rows and new wishes. Decides only.

This is the hot path: it runs once a page and once a link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from geomi.archive.duplicates import Original, paper_head
from geomi.archive.names import Ids, warc_date
from geomi.archive.record import capture_members, dns_member, dns_text, outlinks, revisit_members
from geomi.archive.writer import Writer
from geomi.cluster.batch import Stored
from geomi.cluster.context import Context, Plan
from geomi.cluster.filling import Filling
from geomi.cluster.notes import SCRIPT_ONLY, count, notes
from geomi.cluster.payloads import (
    Judge,
    Unasked,
    Verdict,
    key_of_capture,
    location_of,
    may_refer,
)
from geomi.cluster.wishes import REDIRECTS, SITEMAP, Wishes
from geomi.extract.head import parse_head
from geomi.frontier.tables import Known
from geomi.history.meaningless import PROBE_KIND
from geomi.records import Answer, Capture, Page
from geomi.states import Outcome


class Extract(Protocol):
    """geomi.extract.Extractor, or what a test puts in its place."""

    def page(self, url: str, head: Mapping[str, str], body: bytes) -> Page: ...


class Settler:
    """Fills the batch of one agent with what was visited."""

    def __init__(
        self,
        plan: Plan,
        *,
        filling: Filling,
        wishes: Wishes,
        extractor: Extract,
        writer: Writer,
        ids: Ids,
        judge: Judge | None = None,
    ) -> None:
        self._plan = plan
        self._judge = judge or Judge(plan, Unasked(), number=lambda: filling.number)
        self._filling = filling
        self._wishes = wishes
        self._extractor = extractor
        self._writer = writer
        self._ids = ids

    # -- one page --------------------------------------------------------------------------------

    def read(self, capture: Capture) -> Page | None:
        """What a document says; None: it is none."""
        if capture.outcome is Outcome.OK or capture.outcome is Outcome.CUT:
            return self._extractor.page(capture.url, parse_head(capture.head), capture.body)
        return None

    def page(
        self,
        ctx: Context,
        known: Known,
        capture: Capture,
        *,
        page: Page | None = None,
        gathered: bytearray | None = None,
        now: float,
    ) -> Known | None:
        """Settles a visit. A Known means: it waits again, and this is its new row.

        `page`: what it says, if that was read; `gathered`: its links were taken in before, and
        this is what the archive keeps of them.
        """
        plan = self._plan
        batch = self._filling.touch(ctx)
        outcome = capture.outcome
        code = capture.code
        had = known.stored_date != ""
        fields = parse_head(capture.head) if capture.head else {}
        page = page or self.read(capture)
        if outcome is Outcome.CODE and had:
            if code == 304:
                outcome = Outcome.SAME
            elif code in (404, 410):
                outcome = Outcome.GONE
        verdict = self._judge.verdict(ctx, known, capture, page)
        if verdict.is_void:
            outcome = Outcome.VOID
        tries = known.tries + 1
        again_at = ctx.rules.retry.again_at(
            outcome, code, tries=tries, fails_before=known.fails, now=now
        )
        digest, changed = known.digest, -1
        row = [
            known.page, ctx.site_id, "", "page", plan.run, known.reason, ctx.epoch, ctx.site,
            capture.address, capture.started, capture.ended, str(outcome), code, "", "",
            len(capture.body) if capture.spool is None else capture.spool.size, changed, 0, 0, 0,
            "", 0, 0, capture.detail,
        ]  # fmt: skip
        said = notes(ctx, capture, page, fields) if capture.head else []
        count(batch.counts, capture, page, has_signals=any("content-" in name for name, _ in said))
        if capture.head:
            digest, changed = self._archive(
                ctx, known, capture, page, row, verdict, outcome=outcome, said=said,
                gathered=gathered, now=now,
            )  # fmt: skip
        if known.kind == "h" and not known.hops:
            ctx.hints.came(outcome, code)
            # Where depths are limited a place in line is a depth.
            ctx.queue.doubts_hints = ctx.hints.are_doubted and ctx.scope.max_depth is None
        batch.visits.append(row)
        batch.parties.add(known.party)
        failed = ctx.rules.retry.is_transient(outcome, code)
        fails = known.fails + 1 if failed and again_at is None else known.fails if failed else 0
        keeps = page is not None and outcome is Outcome.OK
        batch.settled.append((
            ctx.site_id, known.outcome, str(outcome),
            (
                plan.run, str(outcome), SCRIPT_ONLY if page and page.script_only else "", code,
                row[13], digest, row[15],
                capture.ended - capture.started, page.link_type if page else "",
                page.title if page else "", capture.ended, 1, 1 if changed == 1 else 0, fails,
                1 if failed else 0,
                fields.get("etag", "")[:200] if keeps else known.etag if outcome in _KEEPS_COPY
                else "",
                fields.get("last-modified", "")[:100] if keeps
                else known.last_modified if outcome in _KEEPS_COPY else "",
                capture.started, *((capture.started,) * 2 if changed == 1 else (0.0, 0.0)),
                known.page,
            ),
        ))  # fmt: skip
        if seed := _seed_of(ctx, known):
            batch.seeds[seed] = (known.page, str(outcome), digest)
        if keeps and row[15] and known.url.find("/", 8) == len(known.url) - 1:
            batch.faces.append((ctx.site_id, known.url, digest, capture.address))
        if known.kind == PROBE_KIND:
            pass  # it says how a site answers to any name: where it leads, nobody meant to go
        elif known.kind == SITEMAP and outcome is Outcome.OK:
            self._wishes.listed(ctx, known, capture, now=now)
        elif page is not None and gathered is None and self._follows(known, outcome, verdict):
            self._wishes.some(ctx, known, self._wishes.chosen(ctx, known, page, now=now), now=now)
        elif code in REDIRECTS and outcome is Outcome.CODE:
            self._wishes.redirect(ctx, known, fields.get("location", ""), now=now)
        if again_at is not None:
            later = known._replace(not_before=again_at, tries=tries, outcome=str(outcome))
            batch.retried.append((ctx.site_id, later))
            return later
        batch.done.append((ctx.site_id, known.rank, known.page))
        return None

    def _follows(self, known: Known, outcome: Outcome, verdict: Verdict) -> bool:
        """True if a page's links are wanted: no meaningless one's; and, as set, one's that is
        equal to a page under another URL."""
        if outcome is Outcome.VOID:
            return False
        twin = verdict.original
        return self._plan.duplicate_links or twin is None or verdict.is_own or twin.uri == known.url

    def _archive(
        self,
        ctx: Context,
        known: Known,
        capture: Capture,
        page: Page | None,
        row: list[Any],
        verdict: Verdict,
        *,
        outcome: Outcome,
        said: Sequence[tuple[str, str]] = (),
        gathered: bytearray | None = None,
        now: float,
    ) -> tuple[str, int]:
        """Writes the records; returns the payload's digest and whether it changed (-1: unknown)."""
        plan = self._plan
        original = verdict.original
        digest = verdict.digest
        if verdict.is_void and plan.drops_void:
            row[13], row[14] = page.mime if page else "", digest or ""
            if capture.spool is not None:
                self._filling.batch.spools.append(capture.spool.path)
            return known.digest, -1
        root = self._writer.root_of(ctx.site)
        date = warc_date(capture.started)
        info = self._writer.warcinfo_id(root, now)
        metadata = None
        lean = not (plan.metadata or plan.requests)
        if plan.metadata and known.page:
            # Links of an unchanged page are those of the copy, as they are after a 304.
            links = page.links if page and not verdict.is_own else []
            lines = None if verdict.is_own else gathered
            metadata = outlinks(links, known.via, depth=known.depth, fields=said, lines=lines)
        if original is not None:
            members = revisit_members(
                capture,
                profile="identical-payload-digest",
                refers_to_uri=original.uri,
                refers_to_date=original.date,
                refers_to_id=original.record_id or None,
                payload_digest=digest or "",
                date=date,
                ids=self._ids,
                warcinfo_id=info,
                metadata=metadata,
                requests=plan.requests,
                level=plan.level,
                head=paper_head(capture.head) if plan.is_paper_form else None,
                lean=lean,
            )
        elif outcome is Outcome.SAME:
            members = revisit_members(
                capture,
                profile="server-not-modified",
                refers_to_uri=known.stored_url or known.url,
                refers_to_date=known.stored_date,
                refers_to_id=known.stored_id or None,
                payload_digest=known.stored_digest,
                date=date,
                ids=self._ids,
                warcinfo_id=info,
                metadata=metadata,
                requests=plan.requests,
                level=plan.level,
                lean=lean,
            )
        else:
            members = capture_members(
                capture,
                date=date,
                ids=self._ids,
                warcinfo_id=info,
                payload_digest=digest if capture.spool is None else None,
                metadata=metadata,
                requests=plan.requests,
                level=plan.level,
            )
        file, offset, length, extent, index = self._writer.add(root, members.parts, now=now)
        batch = self._filling.batch
        batch.payload_bytes += extent
        if capture.spool is not None:
            batch.spools.append(capture.spool.path)
            batch.payload_bytes += 1  # its length is not known yet; it is not in memory either
        digest = members.payload_digest
        is_same = outcome is Outcome.SAME
        is_revisit = is_same or original is not None
        changed = -1
        if outcome in (Outcome.OK, Outcome.CUT) and known.digest:
            changed = 1 if digest != known.digest else 0
        elif is_same:
            changed = 0
        row[13] = page.mime if page else _mime(capture)
        row[14] = digest
        row[16] = changed
        row[17], row[18], row[19], row[20], row[21] = file, offset, length, date, int(is_revisit)
        is_original = outcome is Outcome.OK
        batch.counts["revisits"] += is_revisit
        if original is not None:
            batch.counts["revisits.bytes"] += row[15]
            if not verdict.is_own:
                batch.references.refers.append((row, original))
        elif may_refer(capture, plan) and outcome is not Outcome.SAME and digest:
            fresh = Original(uri=capture.url, date=date, record_id=members.record_id)
            batch.references.fresh.append((row, fresh))
            self._judge.fresh.put(ctx, key_of_capture(capture, digest), fresh)
            if where := location_of(capture):
                batch.references.locations.append((row, where))
        batch.stored.append(
            Stored(
                row,
                known.page,
                index,
                extent,
                date if is_original else known.stored_date,
                members.record_id if is_original else known.stored_id,
                digest if is_original else known.stored_digest,
                is_revisit,
                original if is_original and not verdict.is_own else None,
                original.uri if original is not None and original.uri != known.url else "",
            )
        )
        if outcome not in (Outcome.OK, Outcome.CUT, Outcome.SAME):
            digest = known.digest
        return digest, changed

    # -- robots.txt and names ----------------------------------------------------------------------

    def robots(self, ctx: Context, capture: Capture, *, site: str, now: float) -> None:
        """A visit to a robots.txt: a line of history and a record, no page."""
        plan = self._plan
        batch = self._filling.touch(ctx)
        known = _NO_PAGE
        row = [
            0, ctx.site_id, capture.url, "robots", plan.run, 0, ctx.epoch, site, capture.address,
            capture.started, capture.ended, str(capture.outcome), capture.code, "", "",
            len(capture.body) if capture.spool is None else capture.spool.size, -1, 0, 0, 0, "",
            0, 0, capture.detail,
        ]  # fmt: skip
        if capture.head:
            verdict = self._judge.verdict(ctx, known, capture, None)
            self._archive(ctx, known, capture, None, row, verdict, outcome=capture.outcome, now=now)
        batch.visits.append(row)

    def name(self, ctx: Context, answer: Answer, *, now: float) -> None:
        """A name server's answer: a resource record."""
        plan = self._plan
        if not plan.dns or answer.server in ("", "hosts", "literal"):
            return
        self._filling.touch(ctx)
        root = self._writer.root_of(ctx.site)
        date = warc_date(now)
        member = dns_member(
            answer.host,
            dns_text(answer, date),
            address_of_server=address_of(answer.server),
            date=date,
            record_id=self._ids.next(),
            warcinfo_id=self._writer.warcinfo_id(root, now),
            level=plan.level,
        )
        self._writer.add(root, [member], now=now)
        self._filling.batch.payload_bytes += len(member)

    def refuse(self, ctx: Context, known: Known, outcome: Outcome, why: str, *, now: float) -> None:
        """A page that is not asked for: robots.txt says no, or a limit."""
        batch = self._filling.touch(ctx)
        batch.settled.append((
            ctx.site_id, known.outcome, str(outcome),
            (
                self._plan.run, str(outcome), why, 0, "", known.digest, 0, 0.0, "", "", now, 0, 0,
                known.fails, 0, known.etag, known.last_modified, 0.0, 0.0, 0.0, known.page,
            ),
        ))  # fmt: skip
        batch.done.append((ctx.site_id, known.rank, known.page))
        if seed := _seed_of(ctx, known):
            batch.seeds[seed] = (known.page, str(outcome), "")


def _seed_of(ctx: Context, known: Known) -> int:
    """The seed whose own page this is; 0: none."""
    if known.kind == "s" and known.hops == 0:
        return known.party
    return ctx.fronts.get(known.url, 0)


def address_of(server: str) -> str:
    """That of a name server, given as `address`, `address:port` or `[address]:port`.

    Empty if it is one of several: which of them answered is not known.
    """
    if "," in server:
        return ""
    if server.startswith("["):
        return server[1 : server.index("]")]
    return server if server.count(":") > 1 else server.partition(":")[0]


def _mime(capture: Capture) -> str:
    return parse_head(capture.head).get("content-type", "").partition(";")[0].strip().lower()[:100]


#: The page keeps its stored copy, and with it that copy's validators.
_KEEPS_COPY = frozenset({Outcome.SAME, Outcome.VOID})

_NO_PAGE = Known(
    0, "", 0, 0, 0, "r", "", 0, "NULL", 0, 0, "", "", "", "", "", "", 0, 0.0, 0
)  # fmt: skip
