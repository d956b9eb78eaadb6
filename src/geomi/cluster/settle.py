"""What a visit came to: a capture becomes records, rows and new wishes. Decides only.

This is the hot path: it runs once a page and once a link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from geomi.archive.names import Ids, warc_date
from geomi.archive.record import capture_members, dns_member, dns_text, outlinks, revisit_members
from geomi.archive.writer import Writer
from geomi.cluster.batch import Stored
from geomi.cluster.context import Context, Plan
from geomi.cluster.filling import Filling
from geomi.cluster.notes import SCRIPT_ONLY, count, notes
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
    ) -> None:
        self._plan = plan
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
                ctx, known, capture, page, row, outcome=outcome, said=said,
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
                fields.get("etag", "")[:200] if keeps else known.etag if outcome is Outcome.SAME
                else "",
                fields.get("last-modified", "")[:100] if keeps
                else known.last_modified if outcome is Outcome.SAME else "",
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
        elif page is not None and gathered is None:
            self._wishes.some(ctx, known, self._wishes.chosen(ctx, known, page, now=now), now=now)
        elif code in REDIRECTS and outcome is Outcome.CODE:
            self._wishes.redirect(ctx, known, fields.get("location", ""), now=now)
        if again_at is not None:
            later = known._replace(not_before=again_at, tries=tries, outcome=str(outcome))
            batch.retried.append((ctx.site_id, later))
            return later
        batch.done.append((ctx.site_id, known.rank, known.page))
        return None

    def _archive(
        self,
        ctx: Context,
        known: Known,
        capture: Capture,
        page: Page | None,
        row: list[object],
        *,
        outcome: Outcome,
        said: Sequence[tuple[str, str]] = (),
        gathered: bytearray | None = None,
        now: float,
    ) -> tuple[str, int]:
        """Writes the records; returns the payload's digest and whether it changed (-1: unknown)."""
        plan = self._plan
        root = self._writer.root_of(ctx.site)
        date = warc_date(capture.started)
        info = self._writer.warcinfo_id(root, now)
        metadata = None
        if plan.metadata and known.page:
            links = page.links if page else []
            metadata = outlinks(links, known.via, depth=known.depth, fields=said, lines=gathered)
        if outcome is Outcome.SAME:
            members = revisit_members(
                capture,
                profile="server-not-modified",
                refers_to_uri=known.url,
                refers_to_date=known.stored_date,
                refers_to_id=known.stored_id or None,
                payload_digest=known.stored_digest,
                date=date,
                ids=self._ids,
                warcinfo_id=info,
                metadata=metadata,
                requests=plan.requests,
                level=plan.level,
            )
        else:
            members = capture_members(
                capture,
                date=date,
                ids=self._ids,
                warcinfo_id=info,
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
        changed = -1
        if outcome in (Outcome.OK, Outcome.CUT) and known.digest:
            changed = 1 if digest != known.digest else 0
        elif is_same:
            changed = 0
        row[13] = page.mime if page else _mime(capture)
        row[14] = digest
        row[16] = changed
        row[17], row[18], row[19], row[20], row[21] = file, offset, length, date, int(is_same)
        is_original = outcome is Outcome.OK
        batch.stored.append(
            Stored(
                row,
                known.page,
                index,
                extent,
                date if is_original else known.stored_date,
                members.record_id if is_original else known.stored_id,
                digest if is_original else known.stored_digest,
                is_same,
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
            self._archive(ctx, known, capture, None, row, outcome=capture.outcome, now=now)
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


_NO_PAGE = Known(
    0, "", 0, 0, 0, "r", "", 0, "NULL", 0, 0, "", "", "", "", "", "", 0, 0.0, 0
)  # fmt: skip
