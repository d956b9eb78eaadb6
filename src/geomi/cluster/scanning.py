"""The worker that reads what was kept and finds pages that mean nothing. Beside or after a crawl.

It follows the log by `seq`: features of new payloads are made from the WARC files, a batch at a
time, each time in one transaction with the `seq` it has come to; stopped at any moment it goes on
from there. Then it looks at sites as a whole: who is a candidate, whom to ask for a name that is
not there. It deletes nothing, and writes a page's row only where nobody holds the site.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from geomi.archive.reader import Member, members
from geomi.cluster.collection import Collection
from geomi.cluster.copies import Copies
from geomi.cluster.ledger import OPEN
from geomi.config import Settings
from geomi.errors import OperatorError, RemoteError, ResourceError
from geomi.extract import parse_head, text
from geomi.frontier import counters
from geomi.frontier import tables as frontier
from geomi.history import groups_tables as groups
from geomi.history import likeness, walls
from geomi.history import meaningless as kinds
from geomi.history import meaningless_tables as tables
from geomi.history import tables as history
from geomi.history.meaningless import Group, Limits, Verdicts
from geomi.history.meaningless_tables import Capture, Entry, Feature
from geomi.history.past import Past
from geomi.records import Reason, Wanted
from geomi.store import Store
from geomi.url import url_hash

_SEQ, _LISTED, _JUDGED = "meaningless.seq", "meaningless.listed", "meaningless.judged"
_BATCHES = 20  # numbered batches read of at once
_MOST_BYTES = 4 << 20  # of a body; text.MOST_BYTES of it are looked at once unpacked
_VISITS = 10_000  # looked at in one transaction
_FEATURES = 5_000
_RULED_CHARACTERS = 20_000  # of a text; rules are about short ones
_PROBES_A_SITE = 5  # directories of a site that are asked in one scan

Told = Callable[[Counter[str]], None]


class Scanner:
    """One scan. `run` does all of it; what it did is in `counts`."""

    def __init__(
        self, place: Collection, store: Store, settings: Settings, *,
        threshold: int | None = None, told: Told = lambda _: None, has_helm: bool = False,
    ) -> None:  # fmt: skip
        """`has_helm`: the caller is the collection's coordinator."""
        self._place = place
        self._store = store
        self._settings = settings
        self._has_helm = has_helm
        self._archive = settings.archive
        self._threshold = settings.archive.confirm_at if threshold is None else threshold
        self._limits = Limits(unlike=settings.archive.alike, distance=settings.archive.near)
        self._told = told
        self._paths: dict[int, str] = {}
        self.counts: Counter[str] = Counter()

    def run(self, *, anew: bool = False) -> None:
        """Reads what is new, finds candidates, brings all marks up to date.

        `anew`: reads the log from its start; payloads that could not be read are tried again.
        """
        if anew:
            self._set(_SEQ, 0)
        now = self._store.now()
        self._number()
        for _ in self.follow(now):
            self._told(self.counts)
        with self._store.transaction():
            self.counts["probes.answered"] = groups.answered(self._store, now=now)
        self.find(now)
        if self._get(_LISTED) != self._get(_JUDGED):
            self.judge(now)
        self.counts["settled"] = Copies(self._store, self._place.archive_path).run()
        self.counts["hidden"] = tables.number_hidden(self._store)
        self._number()

    # -- following the log -------------------------------------------------------------------------

    def follow(self, now: float) -> Iterator[None]:
        """Features of new payloads and marks of new visits, some batches at a time."""
        store = self._store
        while rows := tables.batches_beyond(store, self._get(_SEQ), limit=_BATCHES):
            captures = [one for row in rows for one in self._captures(row)]
            features = list(self._features(tables.unread(store, captures)))
            with store.transaction():
                tables.put_features(store, features)
                for _, _, first, last, moved in rows:
                    if last:
                        self._mark(tables.marked_wrongly(store, first, last), now)
                    if moved:
                        seen = [(one.visit, one.page, one.digest) for one in captures]
                        self._mark(tables.marks_of_moved(store, seen), now)
                self._set(_SEQ, rows[-1][0])
            self.counts["batches"] += len(rows)
            yield

    def _captures(self, row: tuple[int, int, int, int, int]) -> list[Capture]:
        """Of one batch, wherever its visits lie now."""
        _, batch, first, last, _ = row
        if not last:
            return []
        with self._store.image():
            found = tables.captures_of(self._store, batch, first, last)
            moved = self._store.one("SELECT moved FROM batches WHERE batch = ?", (batch,))
            if moved and moved[0]:
                past = Past.of(self._store, self._place.archive_path)
                rows = past.of_batch_where(batch, tables.CAPTURE, tables.READABLE)
                found += [Capture(*one) for one in rows]
        return found

    def _features(self, captures: Sequence[Capture]) -> Iterator[Feature]:
        """Of payloads that are on this node; what cannot be read is counted and left out."""
        judged = self._verdicts()
        for file, some in groupby(captures, attrgetter("file")):
            path = self._path(file)
            if not path:
                self.counts["elsewhere"] += len(list(some))
                continue
            try:
                with open(path, "rb") as source:
                    for one in some:
                        try:
                            source.seek(one.offset)
                            found = _read(next(members(source, one.offset)))
                        except (RemoteError, StopIteration):
                            self.counts["broken"] += 1
                            continue
                        self.counts["payloads"] += 1
                        feature = features_of(one.digest, found)
                        verdict = judged.of(_as_read(feature))
                        yield feature._replace(verdict=verdict)
            except OSError as error:
                raise ResourceError(f"{path}: {error.strerror or error}") from error

    def _path(self, file: int) -> str:
        """Where a WARC file lies on this node; empty: it does not."""
        if file not in self._paths:
            row = self._store.one("SELECT directory, name, base FROM files WHERE file = ?", (file,))
            self._paths[file] = _first_there(self._place, *row) if row else ""
        return self._paths[file]

    # -- marks -------------------------------------------------------------------------------------

    def _mark(self, rows: Sequence[tuple[object, ...]], now: float) -> None:
        """Inside a transaction: visits get the mark that the verdict on their content says."""
        hide: list[tuple[int, int, str, str]] = []
        show: list[tuple[int, int]] = []
        for visit, page, digest, verdict, has, url, kind, depth, hops in rows:
            is_seed = kind == "s" and not depth and not hops
            wants = "" if is_seed or kinds.is_front(str(url)) else str(verdict)
            if kind == kinds.PROBE_KIND:
                wants = "probe"
            if wants and wants != has:
                hide.append((int(str(visit)), int(str(page)), str(digest), wants))
            elif has and not wants:
                show.append((int(str(visit)), int(str(page))))
        tables.mark(self._store, hide, show, now=now)
        self.counts["marked"] += len(hide)
        self.counts["shown"] += len(show)

    def judge(self, now: float) -> None:
        """The list has changed: verdicts on all contents, then marks of all visits, anew."""
        store, changed_at = self._store, self._get(_LISTED)
        judged, after = self._verdicts(), ""
        while some := tables.features_beyond(store, after, limit=_FEATURES):
            after = some[-1].digest
            with store.transaction():
                tables.judge(store, [
                    (verdict, one.digest) for one in some
                    if (verdict := judged.of(_as_read(one))) != one.verdict
                ])  # fmt: skip
            self._told(self.counts)
        self._mark_all(now)
        self._set(_JUDGED, changed_at)

    def _mark_all(self, now: float) -> None:
        store = self._store
        row = store.one("SELECT coalesce(min(visit), 0), coalesce(max(visit), 0) FROM visits")
        first, last = row or (0, 0)
        while first <= last:
            with store.transaction():
                self._mark(tables.marked_wrongly(store, first, first + _VISITS - 1), now)
            first += _VISITS
            self._told(self.counts)
        with store.image():
            past = Past.of(store, self._place.archive_path)
        rows: list[tuple[int, int, str]] = []
        for one in past.by_visit("visit, page, digest, code"):
            if one[1] and one[3] in (200, 304):
                rows.append(one[:3])
            if len(rows) >= _VISITS:
                self._mark_moved(rows, now)
                rows = []
        self._mark_moved(rows, now)

    def _mark_moved(self, rows: list[tuple[int, int, str]], now: float) -> None:
        with self._store.transaction():
            self._mark(tables.marks_of_moved(self._store, rows), now)

    def _verdicts(self) -> Verdicts:
        return Verdicts(
            tables.in_state(self._store, kinds.State.CONFIRMED),
            tables.in_state(self._store, kinds.State.REJECTED),
            distance=self._limits.distance,
        )

    # -- sites as a whole --------------------------------------------------------------------------

    def find(self, now: float) -> None:
        """Candidates of every site, what confirms itself, and probes for what is not known yet."""
        store = self._store
        for site_id, contents in groups.contents(store):
            probed = groups.probed(store, site_id)
            site = groups.site_name(store, site_id)
            digests = {digest for one in contents for digest in one.digests}
            told = kinds.found(
                site, contents, limits=self._limits, probed=probed,
                known=tables.known_among(store, sorted(digests)),
            )  # fmt: skip
            if not told:
                continue
            with store.transaction():
                self._list([one for one in told if one.reason], now)
                self._probe(site_id, site, told, now)
            self.counts["sites"] += 1
            self._told(self.counts)
        with store.transaction():
            tables.drop_candidates(store, now)

    def _list(self, told: Sequence[Group], now: float) -> None:
        store = self._store
        for one in told:
            itself = kinds.confirms_itself(one, threshold=self._threshold)
            before = tables.entry(store, one.digest)
            is_new = before is None or before.state == kinds.State.CANDIDATE
            entry = Entry(
                one.digest, str(kinds.State.CANDIDATE), one.reason, one.site, one.example,
                one.count, "scan", now,
            )  # fmt: skip
            if itself and is_new:
                entry = entry._replace(state=str(kinds.State.CONFIRMED), by="threshold")
                self.counts["confirmed"] += 1
                list_changed(store)
            if is_new:
                tables.put(store, [entry])
                self.counts["candidates"] += 1
            else:
                tables.put_candidates(store, [entry])
            if one.reason.startswith("probe:") and tables.judge_probed(
                store, one.reason, one.digests
            ):
                list_changed(store)

    def _probe(self, site_id: int, site: str, told: Sequence[Group], now: float) -> None:
        """Where a 200 repeats, its directory is asked for a name that is not there."""
        if not self._archive.probe:
            return
        store, wanted = self._store, 0
        for one in told:
            if wanted >= _PROBES_A_SITE or not kinds.wants_probe(one):
                continue
            directory = kinds.directory(one.example)
            if groups.asked(store, directory, now=now):
                continue
            name = f"{url_hash(f'{directory} {int(now)}') & (1 << 48) - 1:012x}"
            url = kinds.probe_of(one.example, name)
            groups.put_probe(store, directory, site_id, url, now=now)
            frontier.want(store, [Wanted(
                url=url, site=site, reason=Reason.PROBE, kind=kinds.PROBE_KIND, via=one.example,
                depth=groups.depth_of(store, site_id, one.example),
            )])  # fmt: skip
            wanted += 1
        counters.count(store, [("probes.wanted", wanted)])
        self.counts["probes.wanted"] += wanted

    # -- small things ------------------------------------------------------------------------------

    def _number(self) -> None:
        """What is committed gets its number, unless a crawl does that."""
        if self._has_helm:
            history.number_batches(self._store)
            return
        try:
            helm = self._place.coordinate(self._settings)
        except OperatorError:
            return
        try:
            history.number_batches(self._store)
        finally:
            helm.release()

    def _get(self, name: str) -> int:
        return _get(self._store, name)

    def _set(self, name: str, value: int) -> None:
        _set(self._store, name, value)


def list_changed(store: Store) -> None:
    """Inside the transaction that changes what is confirmed or rejected: marks follow."""
    _set(store, _LISTED, _get(store, _LISTED) + 1)


def _get(store: Store, name: str) -> int:
    row = store.one("SELECT value FROM meta WHERE name = ?", (name,))
    return int(row[0]) if row else 0


def _set(store: Store, name: str, value: int) -> None:
    store.run(
        "INSERT INTO meta (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, str(value)),
    )


def features_of(digest: str, found: text.Text | None) -> Feature:
    """What is kept of one content. Not judged yet; of what is no HTML nothing is known."""
    if found is None:
        return Feature(digest, 0, "", "", 0, 0, "")
    main = likeness.words(f"{found.title} {found.main}")
    number = max(0, len(main) - main.count(likeness.MASK) - len(found.title.split()))
    rule = walls.rule_of(walls.Look(
        title=found.title, heading=found.heading, main=found.main[:_RULED_CHARACTERS],
        labels=found.labels, alerts=found.alerts, fields=found.fields, passwords=found.passwords,
        forms=found.forms, links=found.links, sends_to=found.sends_to, words=number,
    ))  # fmt: skip
    return Feature(
        digest, likeness.fingerprint(main), likeness.same_text(main), rule, number, found.length, ""
    )


def _as_read(one: Feature) -> kinds.Read:
    return kinds.Read(one.digest, one.simhash, one.main, one.words, one.hints, one.verdict)


def _read(member: Member) -> text.Text | None:
    """The document in a response record; None: it is none."""
    if member.type != "response":
        return None
    head = parse_head(member.http_head())
    body = bytearray()
    while len(body) < _MOST_BYTES and (piece := member.read()):
        body += piece
    return text.read(member.target_uri, head, bytes(body))


def _first_there(place: Collection, directory: str, name: str, base: str) -> str:
    """Where a file lies: in the collection, or where agents of this node keep theirs."""
    for folder in (place.archive_path(directory), base):
        for path in (os.path.join(folder, name), os.path.join(folder, name) + OPEN):
            if folder and Path(path).is_file():
                return path
    return ""
