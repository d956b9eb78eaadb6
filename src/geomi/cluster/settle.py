"""What a visit came to: a capture becomes records, rows and new wishes. Decides only.

This is the hot path: it runs once a page and once a link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from geomi import url as urls
from geomi.archive.names import Ids, warc_date
from geomi.archive.record import capture_members, dns_member, dns_text, outlinks, revisit_members
from geomi.archive.writer import Writer
from geomi.cluster.batch import Batch, Stored
from geomi.cluster.commands import Letter
from geomi.cluster.context import Context, Plan
from geomi.cluster.found import NewPage
from geomi.extract.head import parse_head
from geomi.frontier import retry
from geomi.frontier.scope import prefix_of
from geomi.frontier.tables import Known
from geomi.records import PASSES_SEEN, Answer, Capture, Page, Reason, Target
from geomi.seeds.sitemaps import parse_sitemap
from geomi.states import Outcome

#: Kind of a page that lists others.
SITEMAP = "m"
#: Mark on a Target that lies outside and is remembered.
OUTSIDE = -1
#: Added to a mark where depths count: settled, but for a way that costs no depth.
_BUT_NEARER = 1 << 40
#: Set beside a URL's hash for "was refused", so that a later, admissible link is still new.
_REFUSED = 0x5BF0_3635_D1C9_7A2B
#: Sites outside whose candidates are counted; beyond it counting begins anew.
_OUTSIDE_SITES = 100_000

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PAGE_HOPS = 20  # redirects in a row that a page may need


class Extract(Protocol):
    """geomi.extract.Extractor, or what a test puts in its place."""

    def page(self, url: str, head: Mapping[str, str], body: bytes) -> Page: ...


class Settler:
    """Fills the batch of one agent."""

    def __init__(
        self,
        plan: Plan,
        *,
        extractor: Extract,
        writer: Writer,
        ids: Ids,
        sites: Mapping[str, Context],
        next_page: Callable[[], int],
    ) -> None:
        self._plan = plan
        self._extractor = extractor
        self._writer = writer
        self._ids = ids
        self._sites = sites  # contexts by site, the agent's own
        self._next_page = next_page
        self._outside: dict[str, int] = {}
        self.number = 0  # of the batch that is filling
        self.batch = self._new_batch()

    def _new_batch(self) -> Batch:
        self.number += 1
        plan = self._plan
        return Batch(
            agent=plan.agent, incarnation=plan.incarnation, holder=plan.holder, run=plan.run
        )

    def take(self) -> Batch:
        """The filled batch; a new one begins."""
        batch = self.batch
        batch.files = self._writer.take()
        self.batch = self._new_batch()
        return batch

    def touch(self, ctx: Context) -> Batch:
        """The batch, for a row of this site."""
        batch = self.batch
        batch.epochs[ctx.site_id] = ctx.epoch
        ctx.dirty = self.number
        return batch

    # -- one page --------------------------------------------------------------------------------

    def page(self, ctx: Context, known: Known, capture: Capture, *, now: float) -> Known | None:
        """Settles a visit. A Known means: it waits again, and this is its new row."""
        plan = self._plan
        batch = self.touch(ctx)
        outcome = capture.outcome
        code = capture.code
        had = known.stored_date != ""
        fields = parse_head(capture.head) if capture.head else {}
        page: Page | None = None
        if outcome is Outcome.OK or outcome is Outcome.CUT:
            page = self._extractor.page(capture.url, fields, capture.body)
        elif outcome is Outcome.CODE and had:
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
        if capture.head:
            digest, changed = self._archive(
                ctx, known, capture, page, row, outcome=outcome, now=now
            )
        batch.visits.append(row)
        batch.parties.add(known.party)
        failed = ctx.rules.retry.is_transient(outcome, code)
        fails = known.fails + 1 if failed and again_at is None else known.fails if failed else 0
        keeps = page is not None and outcome is Outcome.OK
        batch.settled.append((
            ctx.site_id, known.outcome, str(outcome),
            (
                plan.run, str(outcome), "", code, row[13], digest, row[15],
                capture.ended - capture.started, page.link_type if page else "",
                page.title if page else "", capture.ended, 1, 1 if changed == 1 else 0, fails,
                fields.get("etag", "")[:200] if keeps else known.etag if outcome is Outcome.SAME
                else "",
                fields.get("last-modified", "")[:100] if keeps
                else known.last_modified if outcome is Outcome.SAME else "",
                known.page,
            ),
        ))  # fmt: skip
        if known.kind == "s" and known.hops == 0:
            batch.seeds[known.party] = (known.page, str(outcome), digest)
        if known.kind == SITEMAP and outcome is Outcome.OK:
            self._listed(ctx, known, capture, now=now)
        elif page is not None:
            self._links(ctx, known, page, now=now)
        elif code in REDIRECTS and outcome is Outcome.CODE:
            self._redirect(ctx, known, fields.get("location", ""), now=now)
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
        now: float,
    ) -> tuple[str, int]:
        """Writes the records; returns the payload's digest and whether it changed (-1: unknown)."""
        plan = self._plan
        root = self._writer.root_of(ctx.site)
        date = warc_date(capture.started)
        info = self._writer.warcinfo_id(root, now)
        metadata = None
        if plan.metadata and known.page:
            metadata = outlinks(page.links if page else [], known.via, depth=known.depth)
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
        batch = self.batch
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
        batch = self.touch(ctx)
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
        self.touch(ctx)
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
        self.batch.payload_bytes += len(member)

    def refuse(self, ctx: Context, known: Known, outcome: Outcome, why: str, *, now: float) -> None:
        """A page that is not asked for: robots.txt says no, or a limit."""
        batch = self.touch(ctx)
        batch.settled.append((
            ctx.site_id, known.outcome, str(outcome),
            (
                self._plan.run, str(outcome), why, 0, "", known.digest, 0, 0.0, "", "", now, 0, 0,
                known.fails, known.etag, known.last_modified, known.page,
            ),
        ))  # fmt: skip
        batch.done.append((ctx.site_id, known.rank, known.page))
        if known.kind == "s" and known.hops == 0:
            batch.seeds[known.party] = (known.page, str(outcome), "")

    # -- wishes ------------------------------------------------------------------------------------

    def _links(self, ctx: Context, known: Known, page: Page, *, now: float) -> None:
        token = ctx.token
        site = ctx.site
        for kind, target in page.links:
            mark = target.known
            if mark == token or mark == OUTSIDE:  # noqa: SIM109 - twice as fast as a tuple
                continue
            if kind == "e" and not ctx.scope.requisites:
                continue
            # What a page needs to be shown is as deep as the page.
            depth = known.depth if kind == "e" else known.depth + 1
            if target.site == site:
                self._inside(ctx, target, kind, depth, known.party, known.url, now=now)
            else:
                self._elsewhere(ctx, target, kind, depth, known, now=now)
        batch = self.batch
        if page.bad_links:
            batch.counts["links.bad"] += page.bad_links
        if page.cut_links:
            batch.counts["links.cut"] += page.cut_links

    def sitemaps(self, ctx: Context, named: Iterable[str], *, via: str, now: float) -> None:
        """Sitemaps that a robots.txt names are wanted like pages."""
        for text in named:
            url = urls.canonical(text)
            if url is not None and urls.site_of(url) == ctx.site:
                target = Target(url, ctx.site)
                self._inside(ctx, target, SITEMAP, 0, ctx.first_seed, via, now=now)

    def _listed(self, ctx: Context, known: Known, capture: Capture, *, now: float) -> None:
        """What a sitemap of this site lists: pages one link from the start, and sitemaps."""
        listing = parse_sitemap(capture.body, base=known.url, site=ctx.site)
        for kind, depth, entries in (("a", 1, listing.entries), (SITEMAP, 0, listing.children)):
            for entry in entries:
                target = Target(entry.url, ctx.site)
                self._inside(ctx, target, kind, depth, known.party, known.url, now=now)
        self.batch.counts["sitemaps.read"] += 1
        self.batch.counts["sitemaps.problems"] += len(listing.problems)

    def _redirect(self, ctx: Context, known: Known, location: str, *, now: float) -> None:
        url = urls.canonical(location, known.url) if location else None
        if url is None:
            self.batch.counts["redirects.bad"] += 1
            return
        is_seed = known.kind == "s" and known.hops < ctx.rules.redirects
        kind = "s" if is_seed else ("a" if known.kind == "s" else known.kind)
        target = Target(url, urls.site_of(url))
        hops = known.hops + 1
        if hops > _PAGE_HOPS:
            self.batch.counts["redirects.endless"] += 1
            return
        if target.site == ctx.site:
            self._inside(ctx, target, kind, known.depth, known.party, known.url, hops=hops, now=now)
        else:
            admit = f"redirect of seed {known.party}" if is_seed else ""
            self._elsewhere(ctx, target, kind, known.depth, known, hops=hops, admit=admit, now=now)

    def _inside(
        self,
        ctx: Context,
        target: Target,
        kind: str,
        depth: int,
        party: int,
        via: str,
        *,
        hops: int = 0,
        reason: int = Reason.LINK,
        not_before: float = 0.0,
        weight: float = 0.0,
        now: float,
    ) -> None:
        """A URL of a site held here: known, refused, or a new page."""
        seen = ctx.seen
        assert seen is not None
        scope = ctx.scope
        # Where depths count, a redirect or requisite of this level may lead to a page that a link
        # of this level put one deeper.
        is_free = hops > 0 or kind == "e"
        may_be_nearer = scope.max_depth is not None and is_free
        if target.known == ctx.token + _BUT_NEARER and not is_free:
            return
        url = target.url
        url_hash = urls.url_hash(url)
        why = ""
        if (not scope.is_open or len(url) > scope.max_url) and (kind != "s" or hops):
            why = scope.refusal(url, kind, depth)
        if not why:
            why = ctx.rules.valves.refusal(url, depth)
        limit = ctx.rules.max_pages
        if not why and limit is not None and kind != "e":
            if (
                url_hash in seen
                and ctx.is_seen_whole
                and not self._plan.is_exact
                and not may_be_nearer
            ):
                target.known = ctx.token
                return
            if ctx.party_pages.get(party, 0) >= limit:
                why = "max_pages"
        is_new = seen.add(url_hash ^ _REFUSED if why else url_hash)
        if is_new and not why and (why := ctx.templates.refusal(url)):
            seen.add(url_hash ^ _REFUSED)
        if not why or scope.is_open:
            # Also where no other link could be let in.
            is_final = is_free or scope.max_depth is None
            target.known = ctx.token if is_final else ctx.token + _BUT_NEARER
        is_maybe = not is_new or not ctx.is_seen_whole
        passes = bool(reason & PASSES_SEEN)
        passes = passes or may_be_nearer
        if is_maybe and ctx.is_seen_whole and not self._plan.is_exact and not passes:
            return
        if not scope.is_open or limit is not None or why:
            is_maybe = True  # it may be there, refused
        known = Known(
            self._next_page(), url, retry.rank(depth, weight=weight), depth, party, kind, via,
            hops, "skip" if why else "NULL", 0, 0, "", "", "", "", "", "", int(reason), not_before,
            0,
        )  # fmt: skip
        new = NewPage(
            ctx.site_id, known, url_hash, now, self._plan.run, why, is_maybe, may_be_nearer
        )
        self.touch(ctx).new.append(new)
        if why:
            return
        if kind == "s" and ctx.rules.is_prefix:
            ctx.scope = replace(scope, prefixes=tuple({*scope.prefixes, prefix_of(url)}))
        if limit is not None and kind != "e" and is_new:
            ctx.party_pages[party] = ctx.party_pages.get(party, 0) + 1
        if not is_maybe:
            ctx.queue.put(known, now=now)

    def _elsewhere(
        self,
        ctx: Context,
        target: Target,
        kind: str,
        depth: int,
        known: Known,
        *,
        hops: int = 0,
        admit: str = "",
        now: float,
    ) -> None:
        """A URL of another site: one held here takes it at once, else the store decides."""
        site = target.site
        is_free = hops > 0 or kind == "e"
        if target.known == OUTSIDE + _BUT_NEARER and not is_free:
            return
        other = self._sites.get(site)
        if other is not None and other.is_loaded and not other.is_leaving and not admit:
            if target.known != other.token:
                party = other.first_seed or known.party
                self._inside(other, target, kind, depth, party, known.url, hops=hops, now=now)
            return
        plan = self._plan
        domain = urls.domain_of(host_of(site))
        admit = admit or plan.admission.by_name(site, domain)
        if not admit:
            number = self._outside.get(site, 0)
            if number >= plan.outside_per_site:
                self.batch.counts["outside.dropped"] += 1
                return
            if len(self._outside) >= _OUTSIDE_SITES:
                self._outside.clear()
            self._outside[site] = number + 1
        is_final = is_free or ctx.scope.max_depth is None
        target.known = OUTSIDE if is_final else OUTSIDE + _BUT_NEARER
        url = target.url
        params = (
            urls.url_hash(url), url, site, domain, kind, known.url, depth, known.party, now
        )  # fmt: skip
        self.touch(ctx).outside.append((ctx.site_id, params, hops, admit))

    def letter(self, ctx: Context, letter: Letter, *, now: float) -> None:
        """A URL from the inbox. It leaves the inbox with the batch that takes it in."""
        one = letter.wanted
        target = Target(one.url, one.site)
        party = ctx.first_seed if one.kind != "s" and ctx.first_seed else one.party
        self._inside(
            ctx, target, one.kind, one.depth, party, one.via, hops=one.hops,
            reason=one.reason, not_before=one.not_before, weight=one.weight, now=now,
        )  # fmt: skip
        self.touch(ctx).letters.append((letter.letter, ctx.site_id))


def host_of(site: str) -> str:
    """The host of a site, without port or brackets."""
    if site.startswith("["):
        return site[1 : site.index("]")]
    return site.partition(":")[0]


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
