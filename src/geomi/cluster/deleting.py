"""`geomi archive delete`: captures that are removed for good, everywhere.

Planned and carried out like a rewrite, file by file; but it only goes forward. A capture that
refers to one that goes gets the payload itself first, or another that has it. The page stays as a
tombstone, so that no crawl asks for it again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Protocol

from geomi import url as urls
from geomi.archive import rewrite_tables
from geomi.archive.companions import Companions
from geomi.archive.edits import Action
from geomi.archive.generation import record_at
from geomi.archive.names import header_uri
from geomi.archive.reader import members
from geomi.archive.rewrite_tables import Edit, Job
from geomi.archive.source import opened
from geomi.cluster.certificate import facts_of, text_of
from geomi.cluster.doubles import (
    SEEN,
    Found,
    Seen,
    is_whole_response,
    original_of,
    refers_to,
)
from geomi.cluster.ledger import index_path, read_chunks
from geomi.cluster.rewriting import Done, Rewriting
from geomi.cluster.workplace import Workplace
from geomi.errors import OperatorError, RemoteError
from geomi.frontier import tombstones
from geomi.history.past import parts_of
from geomi.store import Store
from geomi.store.scrub import scrub

WHO = "archive delete"
#: So many digests are named in a certificate; all are counted.
_NAMED = 10_000


class Sharing(Protocol):
    """Other collections whose revisits may refer to payloads of this one."""

    def elsewhere(self, visits: Sequence[int]) -> list[str]:
        """Collections with captures that have their payload from these visits. OperatorError if
        one cannot be asked."""

    def forget(self, visits: Sequence[int]) -> None:
        """Nothing may refer to the payloads of these any more. Called before their records go."""


class Alone:
    """A collection that shares no index of digests."""

    def elsewhere(self, visits: Sequence[int]) -> list[str]:
        return []

    def forget(self, visits: Sequence[int]) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be deleted."""

    kind: str  # url, site, digest
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


def target_of(store: Store, text: str) -> Target:
    """What the words of a command mean. OperatorError if the collection knows no such thing."""
    if text.lower().startswith("sha1:"):
        return Target(kind="digest", value=f"sha1:{text[5:].upper()}")
    if "://" in text:
        url = urls.canonical(text)
        if url is None:
            raise OperatorError(f"{text}: not a URL that can be crawled (http or https)")
        if _page_of(store, url) is None and not store.one(
            "SELECT 1 FROM visits WHERE page = 0 AND url = ? LIMIT 1", (url,)
        ):
            raise OperatorError(f"{url}: the collection knows no such page")
        return Target(kind="url", value=url)
    site = text.lower()
    if store.one("SELECT 1 FROM sites WHERE site = ?", (site,)) is None:
        raise OperatorError(
            f"{text}: no site of the collection; wanted a URL with http://, a site, or sha1:DIGEST"
        )
    return Target(kind="site", value=site)


def _page_of(store: Store, url: str) -> int | None:
    row = store.one(
        "SELECT p.page FROM pages p JOIN sites s ON s.site_id = p.site_id"
        " WHERE s.site = ? AND p.url_hash = ? AND p.url = ?",
        (urls.site_of(url), urls.url_hash(url), url),
    )
    return None if row is None else int(row[0])


class Deleting:
    """Its owner has the collection's helm."""

    def __init__(self, here: Workplace, work: Rewriting, *, sharing: Sharing | None = None) -> None:
        self._here = here
        self._store = here.store
        self._files = here.shell.files
        self._work = work
        self._sharing = sharing or Alone()
        self._paths = work.path_of()

    # -- plan --------------------------------------------------------------------------------------

    def plan(self, target: Target, sink: Any, *, forget: bool = False) -> dict[str, Any]:
        """Every edit to the sink; the counts. Changes nothing of this collection; `forget`: the
        index of payloads, if one is shared, does not name them from now on."""
        counts: Counter[str] = Counter()
        self._must_be_here()
        with self._work.captures() as captures, captures.transaction():
            captures.run(f"UPDATE seen SET doomed = 1 WHERE {_WHICH[target.kind]}",
                         (self._key(target),))  # fmt: skip
            captures.run('CREATE INDEX seen_doomed ON seen (file, "offset") WHERE doomed = 1')
            self._must_be_ours(captures, forget=forget)
            digests = self._rescue(captures, sink, counts)
            self._records(captures, target, sink, counts)
        gone = sorted(digests)
        return {
            **counts, "payloads": len(gone), "digests": gone[:_NAMED], "target": str(target),
        }  # fmt: skip

    def _key(self, target: Target) -> Any:
        if target.kind != "site":
            return target.value
        row = self._store.one("SELECT site_id FROM sites WHERE site = ?", (target.value,))
        assert row is not None
        return row[0]

    def _must_be_here(self) -> None:
        """For good, everywhere: so every file must be within reach."""
        for kept in rewrite_tables.closed_files(self._store):
            if self._here.folder_of(kept) is None:
                raise OperatorError(
                    f"{kept.name}: lies on {kept.node or 'no node known'}, and nothing is deleted"
                    " unless all of the archive can be; `geomi cluster gather` brings it here"
                )
        row = self._store.one("SELECT name FROM files WHERE state <> 'closed'")
        if row is not None:
            raise OperatorError(f"{row[0]}: is still open; it is closed where it was written")

    def _must_be_ours(self, captures: Store, *, forget: bool) -> None:
        """OperatorError while another collection has a payload from what is to go."""
        after = 0
        while visits := [row[0] for row in captures.all(
            "SELECT visit FROM seen WHERE doomed = 1 AND revisit = 0 AND visit > ? ORDER BY visit"
            " LIMIT 1000", (after,),
        )]:  # fmt: skip
            if names := self._sharing.elsewhere(visits):
                raise OperatorError(
                    f"captures of {', '.join(names)} have their payload from what is to be deleted;"
                    " delete those first, or restore that collection"
                )
            if forget:
                self._sharing.forget(visits)
            after = visits[-1]

    def _rescue(self, captures: Store, sink: Any, counts: Counter[str]) -> set[str]:
        """Captures that stay and refer to one that goes; the digests of payloads that go."""
        gone: set[str] = set()
        for (digest,) in captures.all("SELECT DISTINCT digest FROM seen WHERE doomed = 1"
                                      " AND digest <> ''"):  # fmt: skip
            edits = list(self._referring(captures, digest))
            is_kept = any(e.action == Action.RESPONSE for e in edits)
            if not is_kept and self._first_response(captures, digest) is None:
                gone.add(digest)
            counts.update(str(e.action) for e in edits)
            sink(edits)
        return gone

    def _first_response(
        self, captures: Store, digest: str, code: int | None = None
    ) -> Found | None:
        """The earliest record that stays and has the payload; with a code, of that status."""
        which = "" if code is None else f" AND code = {code}"
        for row in captures.all(
            f"SELECT {SEEN} FROM seen WHERE digest = ? AND doomed = 0 AND revisit = 0"
            f" AND outcome <> 'cut'{which} ORDER BY date, visit",
            (digest,),
        ):
            one = Seen(*row)
            if (found := self._record(one, must_be_whole=True)) is not None:
                return found
        return None

    def _record(self, one: Seen, *, must_be_whole: bool) -> Found | None:
        path = self._paths(one.file)
        assert path is not None  # all are here
        with opened(path) as (file, name):
            member = record_at(file, name, one.offset)
            if must_be_whole and not is_whole_response(member):
                return None
            return Found(original_of(member), one.visit)

    def _referring(self, captures: Store, digest: str) -> Iterator[Edit]:
        """What becomes of revisits that stay: their original goes.

        They refer to another response of the same status, or the first of them becomes one. Of
        redirects only those of one original, and so of one Location, are taken together.
        """
        stays: dict[Any, Found | None] = {}
        doomed = {
            (header_uri(one.url), one.date): one
            for one in (Seen(*row) for row in captures.all(
                f"SELECT {SEEN} FROM seen WHERE digest = ? AND doomed = 1 AND revisit = 0",
                (digest,),
            ))
        }  # fmt: skip
        if not doomed:
            return
        for row in captures.all(
            f"SELECT {SEEN} FROM seen WHERE digest = ? AND doomed = 0 AND revisit = 1"
            " ORDER BY date, visit",
            (digest,),
        ):
            one = Seen(*row)
            refers = refers_to(one, self._paths(one.file) or "")
            source = doomed.get((refers.uri, refers.date))
            if source is None:
                continue
            is_redirect = 300 <= source.code < 400
            alike = source.visit if is_redirect else source.code
            if alike not in stays:
                stays[alike] = None if is_redirect else self._first_response(
                    captures, digest, source.code
                )  # fmt: skip
            to = stays[alike]
            if to is not None and not refers.is_bare:
                uri, date = header_uri(to.record.uri), to.record.date
                yield Edit(one.file, one.offset, one.length, Action.POINT, uri, date,
                           to.record.record_id, original=to.visit)  # fmt: skip
                continue
            kept = rewrite_tables.kept(self._store, source.file)
            assert kept is not None
            yield Edit(one.file, one.offset, one.length, Action.RESPONSE, source=source.file,
                       source_generation=kept.generation, source_offset=source.offset)  # fmt: skip
            stays[alike] = to or self._record(one, must_be_whole=False)

    def _records(self, captures: Store, target: Target, sink: Any, counts: Counter[str]) -> None:
        """All records that go: captures, what belongs to them, and what no visit names."""
        orphans: dict[int, list[Edit]] = {}
        for edit in rewrite_tables.orphans(self._store):
            orphans.setdefault(edit.file, []).append(edit)
        hit = {row[0] for row in captures.all("SELECT DISTINCT file FROM seen WHERE doomed = 1")}
        for file in sorted(hit | orphans.keys()):
            path = self._paths(file)
            assert path is not None
            sink(orphans.get(file, []))
            counts["orphan"] += len(orphans.get(file, []))
            offsets = {row[0] for row in captures.all(
                'SELECT "offset" FROM seen WHERE doomed = 1 AND file = ?', (file,))}  # fmt: skip
            if offsets:
                sink(list(self._dropped(path, file, offsets, orphans.get(file, []), target,
                                        counts)))  # fmt: skip

    def _dropped(
        self, path: str, file: int, offsets: set[int], orphans: list[Edit], target: Target,
        counts: Counter[str],
    ) -> Iterator[Edit]:  # fmt: skip
        uris = {
            "url": {header_uri(target.value)},
            "site": {f"dns:{urls.host_of(target.value)}" if target.kind == "site" else ""},
            "digest": set[str](),
        }[target.kind]
        goes = Companions(
            offsets=offsets, uris=uris, digest=target.value if target.kind == "digest" else ""
        )
        for member in members(path):
            goes.see(member)
        found = 0
        for member in members(path):
            if any(o.offset <= member.offset < o.offset + o.length for o in orphans):
                continue
            if goes.goes(member):
                found += member.offset in offsets
                counts["records"] += 1
                counts[f"records.{member.type}"] += 1
                counts["bytes"] += member.length
                yield Edit(file, member.offset, member.length, Action.DROP)
        if found != len(offsets):
            raise RemoteError(
                f"{path}: {found} of {len(offsets)} records to delete are where the store says"
            )

    # -- carried out -------------------------------------------------------------------------------

    def run(self, job: Job) -> Done:
        """What is left of a job. Its certificate is written at the end, or `left` says why not."""
        target = Target(kind=job.options["kind"], value=job.options["value"])
        if job.state == "planning":
            with self._store.transaction():
                self._store.run("DELETE FROM edits")
            facts = self.plan(target, self._work.put, forget=True)
            with self._store.transaction():
                facts["pages"] = self._bury(target)
                job = self._work.planned(job, facts)
        done = Done(planned=job.facts)
        if "files" not in job.facts:
            self._work.carry_out(job, done, who=WHO)
            if done.left:
                return done
            job = self._note_files(job)
        if job.options["purge"]:
            self._purge({one["file"] for one in job.facts["files"]})
        self._certify(job)
        with self._store.transaction():
            rewrite_tables.set_job(self._store, job.rewrite, "done", job.facts, self._store.now())
        return done

    def _bury(self, target: Target) -> int:
        why = f"deleted {datetime.fromtimestamp(self._store.now(), UTC):%Y-%m-%d}"
        if target.kind == "site":
            return tombstones.put_site(self._store, self._key(target), why)
        if target.kind == "digest":
            return tombstones.put_digest(self._store, target.value, why)
        page = _page_of(self._store, target.value)
        return 0 if page is None else tombstones.put_page(self._store, page, why)

    def _note_files(self, job: Job) -> Job:
        """Names and digests of each file before and after, while both are there."""
        found = []
        for file, _, name, length in rewrite_tables.switched_by(self._store, job.rewrite):
            kept = rewrite_tables.kept(self._store, file)
            assert kept is not None
            folder = self._here.folder_of(kept) or ""
            found.append({
                "file": file, "before": name, "before_bytes": length,
                "before_sha256": _sha256(self._files.readable(os.path.join(folder, name))),
                "after": kept.name, "after_bytes": kept.committed,
                "after_sha256": _sha256(self._files.readable(os.path.join(folder, kept.name))),
            })  # fmt: skip
        return self._work.planned(job, {**job.facts, "files": found})

    def _certify(self, job: Job) -> None:
        facts = facts_of(job, collection=str(self._here.collection.path), ended=self._store.now())
        path = self._here.shell.where(certificate_name(job))
        self._files.write(f"{path}.json", [json.dumps(facts, indent=2).encode() + b"\n"])
        self._files.write(f"{path}.txt", [text_of(facts).encode()])

    def _purge(self, mine: set[int]) -> None:
        """Every earlier generation of the files, the old visits in Parquet, and what the database
        keeps of rows that changed."""
        for file, generation, name, *_ in rewrite_tables.replaced(self._store):
            kept = rewrite_tables.kept(self._store, file)
            if file not in mine or kept is None:
                continue
            path = os.path.join(self._here.folder_of(kept) or "", name)
            self._files.remove(path)
            self._files.remove(index_path(path))
            with self._store.transaction():
                rewrite_tables.purged(self._store, file, generation)
        for part in parts_of(self._store, "replaced"):
            self._files.remove(self._here.shell.where(part.name))
            with self._store.transaction():
                self._store.run("DELETE FROM past WHERE part = ?", (part.part,))
        scrub(self._store)


def certificate_name(job: Job) -> str:
    """Its path below the collection, without an ending."""
    return f"reports/deleted-{job.rewrite:04d}"


_WHICH = {"url": "url = ?", "site": "site_id = ?", "digest": "digest = ?"}


def _sha256(path: str) -> str:
    found = sha256()
    for piece in read_chunks(path):
        found.update(piece)
    return found.hexdigest()
