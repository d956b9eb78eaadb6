"""What a page wishes for: links, sitemaps, redirects and letters become new pages. Decides only.

This is the hot path: it runs once a link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from geomi import url as urls
from geomi.cluster.commands import Letter
from geomi.cluster.context import Context, Plan
from geomi.cluster.filling import Filling
from geomi.cluster.found import NewPage
from geomi.frontier import aliases, equivalences, retry
from geomi.frontier.scope import prefix_of
from geomi.frontier.tables import Known
from geomi.records import PASSES_SEEN, Capture, Page, Reason, Target
from geomi.seeds.sitemaps import parse_sitemap

#: Kind of a page that lists others.
SITEMAP = "m"
#: Added to a mark where depths count: settled, but for a way that costs no depth.
_BUT_NEARER = 1 << 40
#: Set beside a URL's hash for "was refused", so that a later, admissible link is still new.
_REFUSED = 0x5BF0_3635_D1C9_7A2B
#: Sites outside whose candidates are counted; beyond it counting begins anew.
_OUTSIDE_SITES = 100_000

#: Reasons for which a URL is asked for whatever rules say of it.
_BY_NAME = Reason.SEED | Reason.DUE | Reason.NOTICE | Reason.ALIAS

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PAGE_HOPS = 20  # redirects in a row that a page may need


class Wishes:
    """Fills the batch of one agent with pages that were not known."""

    def __init__(
        self, plan: Plan, *, filling: Filling, sites: Mapping[str, Context],
        next_page: Callable[[], int],
    ) -> None:  # fmt: skip
        self._plan = plan
        self._filling = filling
        self._sites = sites  # contexts by site, the agent's own
        self._next_page = next_page
        self._outside: dict[str, int] = {}

    def chosen(
        self, ctx: Context, known: Known, page: Page, *, now: float
    ) -> list[tuple[str, Target]]:
        """What is to be taken of the links of a page: all, but where another is canonical."""
        if ctx.rules.obeys_canonical and self._canonical(ctx, known, page, now=now):
            return [link for link in page.links if link[0] == "e"]
        return page.links

    def _canonical(self, ctx: Context, known: Known, page: Page, *, now: float) -> bool:
        """True if the page is another name of one that is wanted in its place.

        One of this site; and not where a name led here already, or two pages that call each other
        canonical would both be left.
        """
        url = page.canonical
        if not url or url == known.url or known.hops or urls.site_of(url) != ctx.site:
            return False
        self._filling.batch.counts["canonical.obeyed"] += 1
        target = Target(url, ctx.site)
        kind = "h" if known.kind == "s" else known.kind
        self._inside(ctx, target, kind, known.depth, known.party, known.url, hops=1, now=now)
        return True

    def some(
        self, ctx: Context, known: Known, links: Iterable[tuple[str, Target]], *, now: float
    ) -> None:
        """Some of the links of a page, or all."""
        token, outside = ctx.token, self._outside_mark
        site = ctx.site
        for kind, target in links:
            mark = target.known
            if mark == token or mark == outside:  # noqa: SIM109 - twice as fast as a tuple
                continue
            if kind == "e" and not ctx.scope.requisites:
                continue
            # What a page needs to be shown is as deep as the page.
            depth = known.depth if kind == "e" else known.depth + 1
            if target.site == site:
                self._inside(ctx, target, kind, depth, known.party, known.url, now=now)
            else:
                self._elsewhere(ctx, target, kind, depth, known, now=now)

    def sitemaps(self, ctx: Context, named: Iterable[str], *, via: str, now: float) -> None:
        """Sitemaps that a robots.txt names are wanted like pages."""
        for text in named:
            url = urls.canonical(text)
            if url is not None and urls.site_of(url) == ctx.site:
                target = Target(url, ctx.site)
                self._inside(ctx, target, SITEMAP, 0, ctx.first_seed, via, now=now)

    def listed(self, ctx: Context, known: Known, capture: Capture, *, now: float) -> None:
        """What a sitemap of this site lists: pages one link from the start, and sitemaps."""
        listing = parse_sitemap(capture.body, base=known.url, site=ctx.site)
        for kind, depth, entries in (("a", 1, listing.entries), (SITEMAP, 0, listing.children)):
            for entry in entries:
                target = Target(entry.url, ctx.site)
                self._inside(ctx, target, kind, depth, known.party, known.url, now=now)
        self._filling.batch.counts["sitemaps.read"] += 1
        self._filling.batch.counts["sitemaps.problems"] += len(listing.problems)

    def redirect(self, ctx: Context, known: Known, location: str, *, now: float) -> None:
        url = urls.canonical(location, known.url) if location else None
        if url is None:
            self._filling.batch.counts["redirects.bad"] += 1
            return
        is_seed = known.kind == "s" and known.hops < ctx.rules.redirects
        kind = "s" if is_seed else ("a" if known.kind == "s" else known.kind)
        target = Target(url, urls.site_of(url))
        hops = known.hops + 1
        if hops > _PAGE_HOPS:
            self._filling.batch.counts["redirects.endless"] += 1
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
        if ctx.kept and not why and not reason & aliases.VISITED:
            why = self._of_another_name(ctx, url, kind, depth, party, via, hops=hops, now=now)
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
        self._filling.touch(ctx).new.append(new)
        if why:
            return
        if kind == "s" and ctx.rules.is_prefix:
            ctx.scope = replace(scope, prefixes=tuple({*scope.prefixes, prefix_of(url)}))
        if limit is not None and kind != "e" and is_new:
            ctx.party_pages[party] = ctx.party_pages.get(party, 0) + 1
        if not is_maybe:
            ctx.queue.put(known, now=now)

    def _of_another_name(
        self, ctx: Context, url: str, kind: str, depth: int, party: int, via: str, *, hops: int,
        now: float,
    ) -> str:  # fmt: skip
        """Why a URL of a second name is not asked for; it is wanted under the name that is kept.

        Empty where that name's scope would refuse it.
        """
        twin = self._plan.rules(ctx.kept).twin(url, ctx.kept, kind, depth)
        if not twin:
            return ""
        other = self._sites.get(ctx.kept)
        if other is not None and other.is_loaded and not other.is_leaving:
            target = Target(twin, ctx.kept)
            self._inside(other, target, kind, depth, party, via, hops=hops, now=now)
        else:
            domain = urls.domain_of(urls.host_of(ctx.kept))
            params = (urls.url_hash(twin), twin, ctx.kept, domain, kind, via, depth, party, now)
            self._filling.touch(ctx).outside.append((ctx.site_id, params, hops, ""))
        return aliases.WHY + twin

    def equivalent(self, ctx: Context, known: Known, *, now: float) -> str:
        """Why a URL is not asked for: a rule says which other one it is; that one is wanted.

        Empty where no rule says so, it was asked for by name, its turn for a check has come, or the
        other one would be refused.
        """
        if known.reason & _BY_NAME or (known.kind == "s" and not known.hops):
            return ""
        found = equivalences.standing(ctx.equivalents, known.url)
        if found is None or urls.url_hash(known.url) % equivalences.CHECKED == 0:
            return ""
        number, twin = found
        parts = urls.split(twin)
        state = ctx.robots.get(parts.authority)
        denied = state is not None and (
            state.given_up is not None
            or (state.rules is not None and not state.rules.allows(parts.target))
        )
        if denied or ctx.scope.refusal(twin, known.kind, known.depth):
            return ""
        self._inside(
            ctx, Target(twin, ctx.site), known.kind, known.depth, known.party, known.via,
            hops=known.hops, now=now,
        )  # fmt: skip
        return f"{equivalences.WHY}{number}:{twin}"

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
        if target.known == self._outside_mark + _BUT_NEARER and not is_free:
            return
        other = self._sites.get(site)
        if other is not None and other.is_loaded and not other.is_leaving and not admit:
            if target.known != other.token:
                party = other.first_seed or known.party
                self._inside(other, target, kind, depth, party, known.url, hops=hops, now=now)
            return
        plan = self._plan
        domain = urls.domain_of(urls.host_of(site))
        admit = admit or plan.admission.by_name(site, domain)
        if not admit:
            number = self._outside.get(site, 0)
            if number >= plan.outside_per_site:
                self._filling.batch.counts["outside.dropped"] += 1
                return
            if len(self._outside) >= _OUTSIDE_SITES:
                self._outside.clear()
            self._outside[site] = number + 1
        is_final = is_free or ctx.scope.max_depth is None
        target.known = self._outside_mark + (0 if is_final else _BUT_NEARER)
        url = target.url
        params = (
            urls.url_hash(url), url, site, domain, kind, known.url, depth, known.party, now
        )  # fmt: skip
        self._filling.touch(ctx).outside.append((ctx.site_id, params, hops, admit))

    @property
    def _outside_mark(self) -> int:
        """On a Target that lies outside and is remembered. Another one after a lease was lost: what
        its pages led to was perhaps not written, and is remembered by who visits them again."""
        return -1 - self._filling.lost

    def letter(self, ctx: Context, letter: Letter, *, now: float) -> None:
        """A URL from the inbox. It leaves the inbox with the batch that takes it in."""
        one = letter.wanted
        target = Target(one.url, one.site)
        party = ctx.first_seed if one.kind != "s" and ctx.first_seed else one.party
        batch = self._filling.touch(ctx)
        before = len(batch.new)
        self._inside(
            ctx, target, one.kind, one.depth, party, one.via, hops=one.hops,
            reason=one.reason, not_before=one.not_before, weight=one.weight, now=now,
        )  # fmt: skip
        for new in batch.new[before:]:
            new.by_letter = True
        batch.letters.append((letter.letter, ctx.site_id))
