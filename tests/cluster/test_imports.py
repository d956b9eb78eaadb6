"""Archives that others made are in a collection whole or not at all, and only once."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from geomi.archive.cdxj import from_warc, sort_lines
from geomi.archive.files import RealFiles
from geomi.archive.names import sha1_b32
from geomi.cluster import imports
from geomi.cluster.checked import check
from geomi.cluster.collection import Collection
from geomi.cluster.imports import Report, import_files
from geomi.cluster.story import story
from geomi.cluster.verify import verify
from geomi.errors import OperatorError, ResourceError
from geomi.store import Store

#: warcio leaves the closing of its temporary files to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PAGE = b'<html><a href="/b">b</a><a href="http://other.example/">o</a></html>'


def foreign(path: Path, *, plain: bool = False) -> Path:
    """What warcio writes: four captures of three pages, a revisit, things that are no pages."""
    with path.open("wb") as out:
        writer = WARCWriter(out, gzip=not plain)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "warcio"}))

        def put(uri: str, kind: str, date: str, status: str, body: bytes, *more: tuple[str, str],
                **headers: str) -> None:  # fmt: skip
            head = StatusAndHeaders(status, [("Content-Type", "text/html"), *more], "HTTP/1.1")
            writer.write_record(writer.create_warc_record(
                uri, kind, payload=io.BytesIO(body), http_headers=head if status else None,
                warc_headers_dict={"WARC-Date": date, **headers},
                warc_content_type="" if status else "text/plain",
            ))  # fmt: skip

        etag = ("ETag", '"one"')
        put("http://Example.org/a#top", "response", "2020-01-02T03:04:05Z", "200 OK", PAGE, etag)
        put("http://example.org/gone", "response", "2020-01-02T03:04:06Z", "200 OK", b"was here")
        put("http://example.org/gone", "response", "2021-01-02T03:04:06Z", "404 Not Found", b"no")
        put("http://example.org/moved", "response", "2020-01-02T03:04:07.5Z", "301 Moved", b"")
        put("urn:text:x", "resource", "2020-01-02T03:04:05Z", "", b"text")
        put("not a url", "response", "2020-01-02T03:04:05Z", "200 OK", b"x")
        writer.write_record(writer.create_revisit_record(
            "http://example.org/a", digest=sha1_b32(PAGE),
            refers_to_uri="http://Example.org/a#top", refers_to_date="2020-01-02T03:04:05Z",
            http_headers=StatusAndHeaders("200 OK", [("Content-Type", "text/html")], "HTTP/1.1"),
            warc_headers_dict={"WARC-Date": "2022-01-02T03:04:05Z"},
        ))  # fmt: skip
    return path


@pytest.fixture
def collection(tmp_path: Path, shared: str) -> Collection:
    made = Collection(tmp_path / "news")
    made.create({"store": shared} if shared else None)
    return made


@pytest.fixture
def store(collection: Collection) -> Iterator[Store]:
    with closing(collection.open_store(collection.settings())) as opened:
        yield opened


@pytest.fixture
def local(tmp_path: Path) -> Collection:
    """In SQLite alone: for what does not touch the store."""
    made = Collection(tmp_path / "news")
    made.create()
    return made


@pytest.fixture
def kept(local: Collection) -> Iterator[Store]:
    with closing(local.open_store(local.settings())) as opened:
        yield opened


def taken_in(collection: Collection, store: Store, *paths: Path, link: bool = False) -> Report:
    return import_files(collection, store, collection.settings(), paths, link=link)


def must_agree(collection: Collection, store: Store) -> None:
    report = verify(store, where=collection.archive_path, directories=("archive",))
    assert report.ok, report.problems
    proved = check([collection.path], now=0.0)
    assert proved.ok, proved.problems


def outcomes(store: Store) -> dict[str, str]:
    return dict(store.all("SELECT url, outcome FROM pages"))


WANTED = {
    "http://example.org/a": "OK",
    "http://example.org/gone": "gone",
    "http://example.org/moved": "code",
}


def test_captures_become_visits_and_pages_that_everything_knows(
    collection: Collection, store: Store, tmp_path: Path
) -> None:
    report = taken_in(collection, store, foreign(tmp_path / "w.warc.gz"))
    (one,) = report.files
    assert (one.state, one.captures, one.left_out, one.how) == ("imported", 5, 1, "copied")
    assert outcomes(store) == WANTED
    row = store.one(
        "SELECT visits, etag, first_visited, visited, changes FROM pages WHERE url = ?",
        ("http://example.org/a",),
    )
    assert row == (2, "", 1577934245.0, 1641092645.0, 0)
    told = story(store, "example.org/gone", settings=collection.settings(),
                 where=collection.archive_path, now=2e9)  # fmt: skip
    assert [event.what for event in told.events].count("stored") == 2
    assert store.all("SELECT count(*), count(seq) FROM batches") == [(1, 1)]
    assert store.all("SELECT change FROM log") == [("added",)]
    assert store.all("SELECT admitted FROM sites") == [("import",)]
    must_agree(collection, store)


@pytest.mark.parametrize("kind", ["plain", "bundled", "package", "folder", "linked"])
def test_every_way_to_keep_records_is_taken(
    collection: Collection, store: Store, tmp_path: Path, kind: str
) -> None:
    path = foreign(tmp_path / "w.warc.gz")
    how = "rewritten" if kind in ("plain", "bundled") else "copied"
    if kind == "plain":
        path = foreign(tmp_path / "w.warc", plain=True)
    elif kind == "bundled":
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())))
    elif kind == "package":
        path = package(tmp_path / "w.wacz", path)
    elif kind == "folder":
        path = path.rename((tmp_path / "many").absolute().with_suffix(".warc.gz")).parent / "sub"
        path.mkdir()
        foreign(path / "w.warc.gz")
    elif kind == "linked":
        how = "linked"
    (one,) = taken_in(collection, store, path, link=kind == "linked").files
    assert (one.state, one.how) == ("imported", how), one.why
    assert outcomes(store) == WANTED
    must_agree(collection, store)
    if kind == "linked":
        assert path.stat().st_nlink == 2


def package(path: Path, warc: Path, **more: bytes) -> Path:
    data = warc.read_bytes()
    lines = b"".join(sort_lines(from_warc(warc, warc.name)))
    facts = {"profile": "data-package", "resources": [
        {"name": warc.name, "path": f"archive/{warc.name}", "bytes": len(data),
         "hash": f"sha256:{sha256(data).hexdigest()}"}]}  # fmt: skip
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"archive/{warc.name}", data)
        made.writestr("indexes/index.cdx.gz", gzip.compress(lines))
        made.writestr("datapackage.json", json.dumps(facts))
        for name, value in more.items():
            made.writestr(name, value)
    return path


def test_a_file_is_taken_once_whatever_it_is_called(
    collection: Collection, store: Store, tmp_path: Path
) -> None:
    first = foreign(tmp_path / "w.warc.gz")
    again = tmp_path / "other.warc.gz"
    again.write_bytes(first.read_bytes())
    report = taken_in(collection, store, first, again, package(tmp_path / "w.wacz", first))
    assert [one.state for one in report.files] == ["imported", "there", "there"]
    assert store.all("SELECT count(*) FROM visits") == [(5,)]
    must_agree(collection, store)


def test_older_captures_do_not_undo_what_a_page_is(
    collection: Collection, store: Store, tmp_path: Path
) -> None:
    taken_in(collection, store, foreign(tmp_path / "w.warc.gz"))
    older = tmp_path / "older.warc.gz"
    data = gzip.decompress((tmp_path / "w.warc.gz").read_bytes())
    old = tmp_path / "older.warc"
    old.write_bytes(data.replace(b"WARC-Date: 202", b"WARC-Date: 201"))
    older = old
    assert taken_in(collection, store, older).ok
    assert outcomes(store) == WANTED
    assert store.all("SELECT visits FROM pages ORDER BY url") == [(4,), (4,), (2,)]
    assert store.one("SELECT stored_date FROM pages WHERE url LIKE '%/a'") == (
        "2020-01-02T03:04:05Z",
    )
    must_agree(collection, store)


def test_links_of_imported_pages_wait_outside_until_their_site_is_admitted(
    collection: Collection, store: Store, tmp_path: Path
) -> None:
    from geomi.cluster.coordinator import Coordinator
    from geomi.seeds.lists import Seed

    taken_in(collection, store, foreign(tmp_path / "w.warc.gz"))
    assert store.all("SELECT url, via FROM outside") == [
        ("http://example.org/b", "http://example.org/a")
    ]
    assert store.all("SELECT count(*) FROM pending") == [(0,)]
    coordinator = Coordinator(store, collection.settings())
    run = coordinator.begin(again=True, options={}, now=1.0)
    assert store.all("SELECT count(*) FROM pending") == [(0,)]
    coordinator.add_seeds([Seed(url="http://example.org/", labels={}, source="test")], now=1.0)
    coordinator.deliver(run=run, now=1.0)
    waiting = {row[0] for row in store.all(
        "SELECT p.url FROM pending w JOIN pages p ON p.page = w.page")}  # fmt: skip
    assert waiting == {*WANTED, "http://example.org/", "http://example.org/b"}
    assert verify(store, where=collection.archive_path, directories=("archive",)).ok


class Killed(BaseException):
    """The process ends here."""


def test_killed_at_any_moment_a_file_is_in_or_not(
    collection: Collection, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = foreign(tmp_path / "w.warc.gz")
    steps = ("create", "append", "sync", "rename", "write")
    for step in steps:
        real = getattr(RealFiles, step)
        for is_after in (False, True):

            def dies(self: RealFiles, *words: object, real: object = real,
                     is_after: bool = is_after) -> None:  # fmt: skip
                if is_after:
                    real(self, *words)  # type: ignore[operator]
                raise Killed

            with monkeypatch.context() as patch:
                patch.setattr(RealFiles, step, dies)
                with pytest.raises(Killed):
                    taken_in(collection, store, path)
            assert outcomes(store) == {}
            report = verify(store, where=collection.archive_path, directories=("archive",))
            assert report.ok, (step, is_after, report.problems)
    assert taken_in(collection, store, path).files[0].state == "imported"
    must_agree(collection, store)
    assert len([*collection.path.glob("archive/imported/*")]) == 2


def test_after_the_commit_a_killed_import_is_whole(
    collection: Collection, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = foreign(tmp_path / "w.warc.gz")

    def dies(_: Store) -> int:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(imports.history_tables, "number_batches", dies)
        with pytest.raises(Killed):
            taken_in(collection, store, path)
    assert outcomes(store) == WANTED
    assert taken_in(collection, store, path).files[0].state == "there"
    must_agree(collection, store)


@pytest.mark.parametrize("damage", ["torn", "flipped", "garbage", "zipped garbage", "no pages"])
def test_a_damaged_file_is_refused_and_leaves_nothing(
    local: Collection, kept: Store, tmp_path: Path, damage: str
) -> None:
    path = foreign(tmp_path / "w.warc.gz")
    data = bytearray(path.read_bytes())
    if damage == "torn":
        del data[-20:]
    elif damage == "flipped":
        data[len(data) // 2] ^= 4
    elif damage == "garbage":
        data[:] = b"garbage"
    elif damage == "zipped garbage":
        data[:] = gzip.compress(b"garbage")
    else:
        data[:] = zlib.compress(b"")
    path.write_bytes(data)
    sound = foreign(tmp_path / "sound.warc.gz")
    report = taken_in(local, kept, path, sound)
    assert [one.state for one in report.files] == ["refused", "imported"] and not report.ok
    assert str(path) in report.files[0].why
    assert len([*local.path.glob("archive/imported/*")]) == 2
    must_agree(local, kept)


@pytest.mark.parametrize("name", ["../../evil.warc.gz", "/evil.warc.gz", "archive/../../x.warc.gz"])
def test_names_that_lead_out_of_a_package_are_refused(
    local: Collection, kept: Store, tmp_path: Path, name: str
) -> None:
    path = package(tmp_path / "w.wacz", foreign(tmp_path / "w.warc.gz"), **{name: b"x"})
    before = {*tmp_path.rglob("*")}
    report = taken_in(local, kept, path)
    assert "leads out of the package" in report.files[0].why
    assert {*tmp_path.rglob("*")} - before <= {local.path / "archive"}
    proved = check([path], now=0.0)
    assert [p.what for p in proved.problems] and "leads out" in proved.problems[0].what


def test_a_package_that_inflates_without_measure_is_refused(
    local: Collection, kept: Store, tmp_path: Path
) -> None:
    path = tmp_path / "bomb.wacz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("archive/w.warc", b"WARC/1.0\r\n" + bytes(1 << 25))
    report = taken_in(local, kept, path)
    assert "says it inflates" in report.files[0].why


def test_while_an_agent_has_a_site_nothing_is_imported(
    collection: Collection, store: Store, tmp_path: Path
) -> None:
    with store.transaction():
        store.run("INSERT INTO sites (site, domain, added, holder, lease_until)"
                  " VALUES ('x.example', 'x.example', 0, 'a/1', 1e18)")  # fmt: skip
    with pytest.raises(OperatorError, match=r"agent a/1 still visits x\.example"):
        taken_in(collection, store, foreign(tmp_path / "w.warc.gz"))


def test_a_folder_that_cannot_be_written_is_an_error_that_leaves_nothing(
    local: Collection, kept: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise ResourceError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(RealFiles, "append", full)
        with pytest.raises(ResourceError, match="full"):
            taken_in(local, kept, foreign(tmp_path / "w.warc.gz"))
    assert verify(kept, where=local.archive_path, directories=("archive",)).ok


# -- packages, proved ------------------------------------------------------------------------------


def test_a_sound_package_is_proved_with_its_index(tmp_path: Path) -> None:
    path = package(tmp_path / "w.wacz", foreign(tmp_path / "w.warc.gz"))
    proved = check([path], now=0.0)
    assert proved.ok, proved.problems
    assert proved.counts["index lines"] == 7 and proved.counts["files"] == 1


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b'"bytes"', b'"bytez"', ""),
        (b'"bytes": ', b'"bytes": 1', "bytes, datapackage.json says"),
        (b"sha256:", b"sha256:0", "digest does not match sha256:0"),
        (b"sha256:", b"blake3:", "its digest is 'blake3:"),
        (b'"archive/w', b'"archive/../w', "names 'archive/../w.warc.gz', which is not in"),
        (b'"resources"', b'"sources"', "has no list of resources"),
        (b"{", b"[", "no JSON"),
    ],
)
def test_what_a_package_says_of_itself_must_hold(
    tmp_path: Path, old: bytes, new: bytes, what: str
) -> None:
    path = package(tmp_path / "w.wacz", foreign(tmp_path / "w.warc.gz"))
    with zipfile.ZipFile(path) as was:
        parts = {name: was.read(name) for name in was.namelist()}
    parts["datapackage.json"] = parts["datapackage.json"].replace(old, new, 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name, data)
    problems = [problem.what for problem in check([path], now=0.0).problems]
    assert (what in str(problems)) if what else problems == []


@pytest.mark.parametrize("place", ["directory", "entry", "end"])
def test_a_torn_package_is_one_sentence(tmp_path: Path, place: str) -> None:
    path = package(tmp_path / "w.wacz", foreign(tmp_path / "w.warc.gz"))
    data = bytearray(path.read_bytes())
    if place == "end":
        del data[-30:]
    elif place == "directory":
        data[data.rfind(b"PK\x01\x02") + 10] = 99
    else:
        data[200] ^= 1
    path.write_bytes(data)
    problems = check([path], now=0.0).problems
    assert problems and all(str(path) in problem.file for problem in problems)
