"""The story of one URL: why it was found, when it was asked, refused, kept; what it waits for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from geomi import url as urls
from geomi.archive.duplicates_tables import kept, rows_of
from geomi.cluster.plan import site_rules
from geomi.config import Settings
from geomi.errors import OperatorError
from geomi.fetch.robots import Robots
from geomi.frontier import alias_tables, import_tables, tables
from geomi.history import meaningless_tables
from geomi.history import tables as history_tables
from geomi.history.past import Past
from geomi.records import Reason
from geomi.states import Outcome
from geomi.store import Store

#: `host:80/x` has none: a port is no scheme's rest.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to a page. `facts` are plain data for JSON."""

    at: float  # seconds since 1970, UTC; 0: the store keeps no time of it
    # found, asked, stored, hidden, denied, skipped, deleted, given up, waiting, outside, …
    what: str
    text: str  # a sentence for people
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the collection knows of a URL, in order of time. Unknown ones have a story too."""

    url: str
    is_known: bool
    outcome: str
    events: tuple[Event, ...]


def story(
    store: Store, text: str, *, settings: Settings, where: Callable[[str], str], now: float
) -> Story:
    """The story of a URL in any spelling. OperatorError if it is no http(s) URL at all.

    `where` turns a path below the collection into a path: old visits are in Parquet there.
    """
    with store.image():
        return _story(store, text, settings=settings, where=where, now=now)


def _story(
    store: Store, text: str, *, settings: Settings, where: Callable[[str], str], now: float
) -> Story:
    url = urls.canonical(text if _SCHEME.match(text) else f"http://{text}")
    if url is None:
        raise OperatorError(f"{text}: not a URL that can be crawled (http or https)")
    page = store.one(
        "SELECT p.page, p.site_id, p.depth, p.party, p.kind, p.via, p.hops, p.found, p.run,"
        " p.outcome, p.why, p.visited, p.moved FROM pages p JOIN sites s ON s.site_id = p.site_id"
        " WHERE s.site = ? AND p.url_hash = ? AND p.url = ?",
        (urls.site_of(url), urls.url_hash(url), url),
    )
    if page is None:
        return Story(
            url=url, is_known=False, outcome="", events=tuple(_unknown(store, url, settings))
        )
    number, site_id, depth, party, kind, via, hops, found, run, outcome, why, visited, moved = page
    events = [_found(store, found, depth=depth, party=party, kind=kind, via=via, hops=hops)]
    rows = Past.of(store, where).of_page(number) if moved else []
    # By number: the visit whose record is the copy stays behind in the store.
    visits = _asked(store, sorted([*rows, *history_tables.of_page(store, number)]))
    events += visits + _hidden(store, number)
    last = next((e.facts["outcome"] for e in reversed(visits) if e.what == "asked"), "")
    if outcome == Outcome.ERASED:
        facts = {"outcome": outcome, "why": why}
        text = f"{why or 'deleted'} from the archive; nobody asks for it again"
        events.append(Event(at=0.0, what="deleted", text=text, facts=facts))
    elif outcome in (Outcome.DENY, Outcome.SKIP):
        events.append(_refused(store, url, outcome, why, visited or found, settings=settings))
    elif outcome not in (last, Outcome.NULL):
        because = f": {why}" if why else ""
        given_up = f"given up as {outcome} with all that waited there{because}"
        facts = {"outcome": outcome, "why": why, "run": run}
        events.append(Event(at=0.0, what="given up", text=given_up, facts=facts))
    events += _waiting(store, site_id, number, now)
    return Story(url=url, is_known=True, outcome=outcome, events=tuple(_in_order(events)))


def _in_order(events: list[Event]) -> list[Event]:
    """By time; what has none stays behind what it follows."""
    timed: list[tuple[float, Event]] = []
    latest = 0.0
    for event in events:
        latest = max(latest, event.at)
        timed.append((event.at or latest, event))
    return [event for _, event in sorted(timed, key=lambda pair: pair[0])]


def _found(
    store: Store, at: float, *, depth: int, party: int, kind: str, via: str, hops: int
) -> Event:
    seed = store.one("SELECT url, source FROM seeds WHERE seed = ?", (party,))
    facts: dict[str, Any] = {"via": via, "kind": kind, "depth": depth, "redirects": hops}
    facts["party"] = {"seed": party, "url": seed[0] if seed else "",
                      "source": seed[1] if seed else ""}  # fmt: skip
    how = "by a redirect from" if hops else f"by a link of kind {kind} on"
    text = f"found {how} {via}" if via else f"given as a seed ({seed[1] if seed else 'unknown'})"
    if kind == import_tables.KIND:
        text = "found in an archive that was imported"
    elif kind == "s" and via and not hops:
        text = f"found as a seed on {via}"
    if kind != import_tables.KIND:
        text += f", depth {depth}, party {party}"
    return Event(at=at, what="found", text=text, facts=facts)


def _asked(store: Store, rows: Sequence[tuple[Any, ...]]) -> list[Event]:
    """Each visit (history.tables.STORY, oldest first), and what was kept of it."""
    events: list[Event] = []
    originals: dict[str, tuple[int, int, str]] = {}  # by digest: file, offset, date
    before: tuple[int, str, int] | None = None  # run, outcome, code
    tries = 0
    for (
        visit, run, reason, started, ended, outcome, code, mime, size, digest, changed, address,
        revisit, file, offset, length, date, detail,
    ) in rows:  # fmt: skip
        tries = tries + 1 if before is not None and before[0] == run else 1
        reasons = _reasons(reason)
        facts = {
            "run": run, "try": tries, "reason": reasons, "address": address, "outcome": outcome,
            "code": code, "seconds": round(ended - started, 6), "size_bytes": size, "mime": mime,
            "changed": {1: True, 0: False}.get(changed), "detail": detail,
        }  # fmt: skip
        because = f"because of {', '.join(reasons)}"
        if reason & Reason.IMPORT:
            tries, because = 1, "by somebody else"
        if tries > 1 and before is not None:
            said = f"{before[1]} {before[2]}" if before[1] == Outcome.CODE else before[1]
            facts["retried_after"] = said
            because = f"again, try {tries} of run {run}, because it came to {said}"
        came = f"{outcome} {code}" if code and outcome != Outcome.OK else outcome
        text = f"asked {because}: {came} in {ended - started:.3f} s, {size} bytes"
        text += f" from {address}" if address else ""
        text += f" ({detail})" if detail else ""
        events.append(Event(at=started, what="asked", text=text, facts=facts))
        if file:
            if not revisit:
                originals[digest] = (file, offset, date)
            elif digest not in originals and (twin := _twin(store, visit)) is not None:
                originals[digest] = twin
            events.append(_stored(
                store, ended, file=file, offset=offset, length=length, digest=digest,
                is_revisit=bool(revisit), original=originals.get(digest),
            ))  # fmt: skip
        before = (run, outcome, code)
    return events


def _twin(store: Store, visit: int) -> tuple[int, int, str] | None:
    """The record of another page that a revisit refers to; None: of another collection, or old."""
    home, original = rows_of(store, [visit]).get(visit, ("", 0))
    found = None if home else kept(store, [original]).get(original)
    return found and (found.file, found.offset, f"{found.date} of {found.url}")


def _hidden(store: Store, page: int) -> list[Event]:
    """Captures that tables and search leave out."""
    return [
        Event(
            at=at, what="hidden", facts={"digest": digest, "reason": reason},
            text=f"hidden from tables and search, {reason}: {digest}",
        )
        for _, digest, reason, at in meaningless_tables.hidden_of(store, page)
    ]  # fmt: skip


def _stored(
    store: Store, at: float, *, file: int, offset: int, length: int, digest: str,
    is_revisit: bool, original: tuple[int, int, str] | None,
) -> Event:  # fmt: skip
    name = _file_name(store, file)
    row = store.one("SELECT generation FROM files WHERE file = ?", (file,))
    generation = row[0] if row else 0
    facts: dict[str, Any] = {
        "place": {"file": name, "offset": offset, "length": length}, "digest": digest,
        "revisit_of": None, "generation": generation,
    }  # fmt: skip
    text = f"kept in {name} at {offset}, {length} bytes, {digest}"
    if is_revisit:
        if original is not None:
            first, place, date = original
            facts["revisit_of"] = {
                "file": _file_name(store, first),
                "offset": place,
                "date": date.partition(" ")[0],
            }
        text += f", as a revisit of {original[2]}" if original else ", as a revisit"
    if generation:
        text += f"; rewritten, generation {generation}"
    return Event(at=at, what="stored", text=text, facts=facts)


def _file_name(store: Store, file: int) -> str:
    row = store.one("SELECT directory, name FROM files WHERE file = ?", (file,))
    return f"{row[0]}/{row[1]}" if row else f"file {file}"


def _refused(
    store: Store, url: str, outcome: str, why: str, at: float, *, settings: Settings
) -> Event:
    facts: dict[str, Any] = {"outcome": outcome, "why": why}
    what = "denied" if outcome == Outcome.DENY else "skipped"
    text = f"{what}: {why or 'no reason is kept'}"
    kind, _, line = why.partition(":")
    if kind == "alias":
        return _another_name(store, url, why.removeprefix("alias:"), at)
    if kind == "robots" and outcome == Outcome.DENY:
        parts = urls.split(url)
        row = store.one("SELECT body FROM robots WHERE authority = ?", (parts.authority,))
        facts["robots"] = None
        if row is not None:
            verdict = Robots.parse(row[0]).for_agent(settings.robots.agent).verdict(parts.target)
            if str(verdict.line) == line and not verdict.allowed:
                facts["robots"] = {"line": verdict.line, "text": verdict.text}
                text = f"denied by line {line} of {parts.authority}/robots.txt: {verdict.text}"
        if facts["robots"] is None and line.isdigit():
            if 400 <= int(line) < 600:
                text = f"denied: robots.txt answered {line}, so nothing may be asked"
            else:
                text = f"denied by line {line} of a robots.txt that has changed since"
    return Event(at=at, what=what, text=text, facts=facts)


def _another_name(store: Store, url: str, twin: str, at: float) -> Event:
    """Its site is another name of one whose URLs are kept."""
    site, kept = urls.site_of(url), urls.site_of(twin)
    row = store.one("SELECT site_id FROM sites WHERE site = ?", (kept,))
    page = alias_tables.twins(store, row[0], [twin]).get(twin) if row else None
    pair = next(
        (one for one in alias_tables.listed(store, [site]) if one[1:3] == (kept, site)), None
    )
    because = f" ({pair[4]}; {pair[5]})" if pair else ""
    facts: dict[str, Any] = {
        "outcome": str(Outcome.SKIP), "why": f"alias:{twin}", "page": twin,
        "page_outcome": page.outcome if page else "",
        "evidence": f"geomi seeds aliases COLLECTION {site}",
    }  # fmt: skip
    text = f"not asked for: {site} is another name of {kept}{because}; the page is {twin}"
    text += f", which is {page.outcome}" if page else ", which is not known yet"
    return Event(at=at, what="skipped", text=text, facts=facts)


def _waiting(store: Store, site_id: int, page: int, now: float) -> list[Event]:
    row = store.one(
        "SELECT w.reason, w.not_before, w.tries, s.site, s.state, s.why, s.holder, s.rest_until,"
        " s.failures FROM pending w JOIN sites s ON s.site_id = w.site_id"
        " WHERE w.site_id = ? AND w.page = ?",
        (site_id, page),
    )
    if row is None:
        return []
    reason, not_before, tries, site, state, why, holder, rest_until, failures = row
    until = max(not_before, rest_until)
    facts = {
        "reason": _reasons(reason), "tries": tries, "not_before": not_before or None,
        "site": {"site": site, "state": state, "why": why, "holder": holder,
                 "rest_until": rest_until or None, "failures": failures},
    }  # fmt: skip
    text = f"waits because of {', '.join(facts['reason'])}"
    text += f", {tries} tries so far" if tries else ""
    if state != "open":
        text += f"; its site is {state}: {why}"
    elif until > now:
        text += f"; not before {until - now:.0f} s from now"
        text += ", when its hours begin" if why == tables.CLOSED else ""
    else:
        text += f"; its site is held by {holder}" if holder else "; it is due"
    return [Event(at=max(until, now), what="waiting", text=text, facts=facts)]


def _unknown(store: Store, url: str, settings: Settings) -> list[Event]:
    """A URL that is no page: on its way, outside, out of scope, or never seen."""
    url_hash, site = urls.url_hash(url), urls.site_of(url)
    letter = store.one("SELECT via, kind, depth FROM inbox WHERE site = ? AND url = ?", (site, url))
    if letter is not None:
        via, kind, depth = letter
        return [Event(
            at=0.0, what="letter", text=f"in the inbox, found on {via or 'a seed list'}",
            facts={"via": via, "kind": kind, "depth": depth},
        )]  # fmt: skip
    outside = store.one(
        "SELECT via, kind, depth, found FROM outside WHERE url_hash = ? AND url = ?",
        (url_hash, url),
    )
    if outside is not None:
        via, kind, depth, found = outside
        return [Event(
            at=found, what="outside",
            text=f"outside: found on {via} (kind {kind}), but no rule admits its site {site}",
            facts={"via": via, "kind": kind, "depth": depth, "site": site},
        )]  # fmt: skip
    admitted = store.one("SELECT site_id FROM sites WHERE site = ?", (site,)) is not None
    near = _near(store, url)
    facts: dict[str, Any] = {"site": site, "site_admitted": admitted, "refusal": "", "near": near}
    text = "never seen; its site is in the collection"
    if admitted:
        facts["refusal"] = refusal = site_rules(settings, site).scope.refusal(url, "a", 0)
        text += f", but it is out of scope: {refusal}" if refusal else ", no page links to it"
    else:
        text = f"never seen; its site {site} is not in the collection"
    if near:
        text += f"; known is {near}"
    return [Event(at=0.0, what="unknown", text=text, facts=facts)]


def _near(store: Store, url: str) -> str:
    """A known page whose URL differs in scheme or last slash alone; empty if there is none."""
    scheme, _, rest = url.partition("://")
    other = {"http": "https", "https": "http"}[scheme]
    twins = [f"{other}://{rest}"]
    for start in (scheme, other):
        twins.append(
            f"{start}://{rest.rstrip('/')}" if rest.endswith("/") else f"{start}://{rest}/"
        )
    for twin in twins:
        canonical = urls.canonical(twin)
        if canonical is None or canonical == url:
            continue
        row = store.one("SELECT site_id FROM sites WHERE site = ?", (urls.site_of(canonical),))
        if row and tables.find_page(store, row[0], canonical, urls.url_hash(canonical)):
            return canonical
    return ""


def _reasons(number: int) -> list[str]:
    return [reason.name.lower() for reason in Reason if number & reason and reason.name] or ["link"]
