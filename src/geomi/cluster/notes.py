"""What a page says beside its links: kept in the archive with its capture, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from geomi import url as urls
from geomi.cluster.context import Context
from geomi.records import Capture, Page

#: `pages.why` of a page that only scripts would fill.
SCRIPT_ONLY = "script_only"
#: A field as long as this is no wish but an attack.
_LONGEST = 2000
#: Of the header: what may be done with the content (AIPREF).
_USAGE = "content-usage"


def notes(
    ctx: Context, capture: Capture, page: Page | None, head: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Fields for the metadata record, in the order in which they are written."""
    found: list[tuple[str, str]] = []
    if page is not None:
        if page.charset:
            found.append(("charset", page.charset))
        words = [word for word in ("nofollow", "noindex", "noarchive") if getattr(page, word)]
        if words:
            found.append(("robots", ", ".join(words)))
        if page.canonical:
            found.append(("canonical", page.canonical))
        if page.script_only:
            found.append(("script-only", "yes"))
    if _USAGE in head:
        found.append((_USAGE, head[_USAGE][:_LONGEST]))
    parts = urls.split(capture.url)
    state = ctx.robots.get(parts.authority)
    if state is not None and state.rules is not None and state.rules.content_signals:
        found += [
            (f"robots-{name}", value[:_LONGEST])
            for name, value in state.rules.signals_for(parts.target)
        ]
    return found


def count(counts: Counter[str], capture: Capture, page: Page | None, *, has_signals: bool) -> None:
    """What `status` shows of one visit."""
    if capture.truncated:
        counts[f"truncated.{capture.truncated}"] += 1
    if has_signals:
        counts["marks.usage"] += 1
    if page is None:
        return
    if page.bad_links:
        counts["links.bad"] += page.bad_links
    if page.cut_links:
        counts["links.cut"] += page.cut_links
    if page.nofollow_links:
        counts["links.nofollow"] += page.nofollow_links
    if page.script_only:
        counts["scripts.only"] += 1
    if page.canonical and page.canonical != capture.url:
        counts["marks.canonical"] += 1
    for word in ("nofollow", "noindex", "noarchive"):
        if getattr(page, word):
            counts[f"marks.{word}"] += 1
