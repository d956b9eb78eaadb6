"""WACZ: what is packed, how it is written, and that others read it."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import warnings
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cluster.small import SEED, Small
from geomi.archive import cdxj
from geomi.archive.check import check_file
from geomi.archive.package import PART, packing
from geomi.archive.reader import members, read_at
from geomi.archive.selection import selection_of
from geomi.cluster.index import indexed
from geomi.cluster.pack import Order, Packed, pack
from geomi.errors import OperatorError, ResourceError
from replaying import captures, differences, needs_pywb, replayed

MADE = 1_790_000_000.0  # 2026-09-21T14:13:20Z


def visited_twice(path: Path, *, ends: bool = True) -> Small:
    small = Small(path)
    small.robots()
    links = "".join(f"<a href='{name}'>x</a>" for name in ("b", "moved", "pic.png"))
    small.visit(SEED, body=f"<title>Front</title><p>hello {links}".encode(), head='ETag: "1"\r\n')
    small.visit(f"{SEED}b", body="<title>한글 B</title><script>no()</script><p>말 &amp; b".encode())
    small.visit(f"{SEED}moved", code=301, head="Location: /b\r\n", body=b"")
    small.visit(f"{SEED}pic.png", body=b"\x89PNG" * 900)
    small.end()
    small.again()
    small.visit(SEED, code=304, body=b"", head='ETag: "1"\r\n')
    small.visit(f"{SEED}b", code=404, body=b"gone")
    if ends:
        small.end()
    return small


def packed(small: Small, path: Path, **wanted: Any) -> Packed:
    selection = selection_of(
        wanted.pop("site", ()), wanted.pop("since", ""), wanted.pop("until", "")
    )
    with indexed(small.place, small.store) as index:
        order = Order(selection=selection, created=MADE, title="small", **wanted)
        return pack(small.store, index, path, order, tell=lambda *_: None)


def valid(path: Path) -> None:
    """The reference implementation finds nothing wrong."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as said:
        warnings.simplefilter("ignore")
        from wacz.main import main

        assert main(["validate", "-f", str(path)]) == 0, said.getvalue()


def lines_of(path: Path) -> list[bytes]:
    with zipfile.ZipFile(path) as package:
        return gzip.decompress(package.read("indexes/index.cdx.gz")).splitlines(keepends=True)


def manifest(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as package:
        found: dict[str, Any] = json.loads(package.read("datapackage.json"))
        return found


def pages(path: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(path) as package:
        return [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]


def unpacked(path: Path, into: Path) -> tuple[list[Path], list[Path]]:
    """(indexes, WARC files) of a package."""
    with zipfile.ZipFile(path) as package:
        package.extractall(into)
    (into / "all.cdxj").write_bytes(b"".join(lines_of(path)))
    return [into / "all.cdxj"], sorted((into / "archive").iterdir())


def test_a_whole_collection_is_packed_as_it_lies(tmp_path: Path, shared: str) -> None:
    small = Small(tmp_path / "c", address=shared)
    small.robots()
    small.visit(SEED, body=b"<title>Front</title>")
    small.end()
    done = packed(small, tmp_path / "a.wacz")
    assert (done.files, done.captures, done.pages, done.outside) == (1, 2, 1, 0)
    valid(tmp_path / "a.wacz")
    (warc,) = (tmp_path / "c").glob("archive/**/*.warc.gz")
    with zipfile.ZipFile(tmp_path / "a.wacz") as package:
        assert package.read(f"archive/{warc.name}") == warc.read_bytes()


def test_the_package_is_as_the_format_asks(tmp_path: Path) -> None:
    packed(visited_twice(tmp_path / "c"), tmp_path / "a.wacz")
    path = tmp_path / "a.wacz"
    valid(path)
    with zipfile.ZipFile(path) as package:
        names = package.namelist()
        assert names[-2:] == ["datapackage.json", "datapackage-digest.json"]
        for name in names:
            stored = package.getinfo(name).compress_type == zipfile.ZIP_STORED
            assert stored == name.endswith(".gz"), name
        digest = json.loads(package.read("datapackage-digest.json"))
        raw = package.read("datapackage.json")
        assert digest == {
            "path": "datapackage.json", "hash": f"sha256:{sha256(raw).hexdigest()}",
        }  # fmt: skip
    facts = manifest(path)
    assert {one["path"] for one in facts["resources"]} == set(names[:-2])
    assert facts["wacz_version"] == "1.1.1"
    assert facts["created"] == "2026-09-21T14:13:20Z"
    assert facts["mainPageUrl"] == SEED
    assert "relation" not in facts


def test_pages_have_url_time_and_title_and_come_in_the_order_of_time(tmp_path: Path) -> None:
    packed(visited_twice(tmp_path / "c"), tmp_path / "a.wacz")
    header, *rest = pages(tmp_path / "a.wacz")
    assert header == {"format": "json-pages-1.0", "id": "pages", "title": "All pages"}
    assert [(one["url"], one.get("title")) for one in rest] == [
        (SEED, "Front"), (f"{SEED}b", "한글 B"), (f"{SEED}pic.png", None), (SEED, None),
    ]  # fmt: skip
    assert rest[0]["ts"] == "2023-11-14T22:13:39Z"
    assert len({one["id"] for one in rest}) == 4


def test_pages_have_their_text_where_it_is_wanted(tmp_path: Path) -> None:
    packed(visited_twice(tmp_path / "c"), tmp_path / "a.wacz", text=True)
    header, *rest = pages(tmp_path / "a.wacz")
    assert header["hasText"] is True
    texts = {one["url"]: one.get("text") for one in reversed(rest)}
    assert texts[f"{SEED}b"] == "말 & b"
    valid(tmp_path / "a.wacz")


def test_the_index_is_in_blocks_that_the_one_above_finds(tmp_path: Path) -> None:
    lines = [f"org,example)/{number:05d} 20260101000000 {{}}\n".encode() for number in range(2500)]
    with packing(tmp_path / "a.wacz", created=MADE) as package:
        package.index(lines, str(tmp_path))
        package.describe({})
    assert lines_of(tmp_path / "a.wacz") == lines
    with zipfile.ZipFile(tmp_path / "a.wacz") as package:
        blocks = package.read("indexes/index.cdx.gz")
        above = package.read("indexes/index.idx").splitlines()
    assert above[0] == b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}'
    assert len(above) == 4
    for line, first in zip(above[1:], lines[::1024], strict=True):
        key, stamp, raw = line.split(b" ", 2)
        fact = json.loads(raw)
        block = blocks[fact["offset"] :][: fact["length"]]
        assert gzip.decompress(block).startswith(first)
        assert first.startswith(key + b" " + stamp)
        assert fact["digest"] == f"sha256:{sha256(block).hexdigest()}"


def test_every_capture_replays_from_the_package(tmp_path: Path) -> None:
    needs_pywb()
    packed(visited_twice(tmp_path / "c"), tmp_path / "a.wacz")
    indexes, files = unpacked(tmp_path / "a.wacz", tmp_path / "u")
    wanted = captures(sorted((tmp_path / "c").glob("archive/**/*.warc.gz")))
    with replayed(indexes, files) as client:
        assert differences(client, wanted) == []


def test_equal_input_and_time_give_equal_bytes(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c")
    for wanted in ({}, {"since": "2023"}, {"self_contained": True, "text": True}):
        packed(small, tmp_path / "a.wacz", replace=True, **wanted)
        first = (tmp_path / "a.wacz").read_bytes()
        packed(small, tmp_path / "a.wacz", replace=True, **wanted)
        assert (tmp_path / "a.wacz").read_bytes() == first


def test_of_an_open_file_the_committed_part_is_packed(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c", ends=False)
    (growing,) = (tmp_path / "c").glob("archive/**/*.open")
    whole = growing.read_bytes()
    with growing.open("ab") as file:
        file.write(b"torn")
    assert packed(small, tmp_path / "a.wacz").captures == 7
    with zipfile.ZipFile(tmp_path / "a.wacz") as package:
        assert package.read(f"archive/{growing.name.removesuffix('.open')}") == whole
    valid(tmp_path / "a.wacz")


def second_run(small: Small) -> str:
    """The time at which it began."""
    (row,) = small.store.all("SELECT max(stored_date) FROM visits WHERE revisit = 1")
    return cdxj.date14(row[0])


def test_a_part_says_what_its_revisits_require(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c")
    done = packed(small, tmp_path / "a.wacz", since=second_run(small))
    assert (done.captures, done.outside, done.missing) == (2, 1, [])
    valid(tmp_path / "a.wacz")
    first = min((tmp_path / "c").glob("archive/**/*.warc.gz"))
    raw = first.read_bytes()
    assert manifest(tmp_path / "a.wacz")["relation"] == {"requires": [{
        "filename": first.name, "hash": f"sha256:{sha256(raw).hexdigest()}", "size": len(raw),
        "captures": 1,
    }]}  # fmt: skip


def test_chosen_records_are_copied_byte_for_byte_with_what_belongs_to_them(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c")
    packed(small, tmp_path / "a.wacz", until="20231114221350")
    (_, (chosen,)) = unpacked(tmp_path / "a.wacz", tmp_path / "u")
    assert check_file(chosen) == []
    first = min((tmp_path / "c").glob("archive/**/*.warc.gz"))
    there = {
        one.record_id: first.read_bytes()[one.offset :][: one.length] for one in members(first)
    }
    copied = [
        (one.type, one.record_id, chosen.read_bytes()[one.offset :][: one.length])
        for one in members(chosen)
    ]
    assert [kind for kind, _, _ in copied] == [
        "warcinfo", "response", "request",
        *("response", "request", "metadata") * 2,
    ]  # fmt: skip
    assert all(there[record_id] == raw for _, record_id, raw in copied[1:])
    for line in lines_of(tmp_path / "a.wacz"):
        found = cdxj.parse_line(line)
        assert read_at(chosen, found.offset, found.length).target_uri == found.url


def test_a_self_contained_part_replays_alone_as_the_whole_does(tmp_path: Path) -> None:
    needs_pywb()
    small = visited_twice(tmp_path / "c")
    since = second_run(small)
    done = packed(small, tmp_path / "a.wacz", since=since, self_contained=True)
    assert (done.captures, done.unfolded, done.outside) == (2, 1, 0)
    valid(tmp_path / "a.wacz")
    assert "relation" not in manifest(tmp_path / "a.wacz")
    indexes, files = unpacked(tmp_path / "a.wacz", tmp_path / "u")
    assert [problem for file in files for problem in check_file(file)] == []
    assert b"warc/revisit" not in b"".join(lines_of(tmp_path / "a.wacz"))
    wanted = captures(sorted((tmp_path / "c").glob("archive/**/*.warc.gz")))
    with replayed(indexes, files) as client:
        assert differences(client, [one for one in wanted if one.timestamp14 >= since]) == []


def test_a_revisit_whose_original_is_broken_stays_one_and_is_named(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c")
    since = second_run(small)
    first = min((tmp_path / "c").glob("archive/**/*.warc.gz"))
    line = next(line for line in first.with_name(first.name.replace(".warc.gz", ".cdxj"))
                .read_bytes().splitlines() if cdxj.parse_line(line).url == SEED)  # fmt: skip
    raw = bytearray(first.read_bytes())
    raw[cdxj.parse_line(line).offset + 200] ^= 0xFF
    first.write_bytes(raw)
    done = packed(small, tmp_path / "a.wacz", since=since, self_contained=True)
    assert (done.unfolded, done.outside, done.missing_number) == (0, 1, 1)
    assert done.missing[0].what.startswith(str(first))
    valid(tmp_path / "a.wacz")


def test_large_parts_become_several_files(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c")
    done = packed(small, tmp_path / "a.wacz", since="2023", file_bytes=2000)
    assert done.files > 1
    (_, files) = unpacked(tmp_path / "a.wacz", tmp_path / "u")
    assert [path.name for path in files][:2] == ["a-00001.warc.gz", "a-00002.warc.gz"]
    assert [problem for file in files for problem in check_file(file)] == []
    assert len(lines_of(tmp_path / "a.wacz")) == 7


def test_a_site_is_chosen_with_its_www_and_a_domain_with_all_below() -> None:
    assert selection_of(["example.org"]).ranges == ((b"org,example)", b"org,example*"),)
    assert selection_of(["www.example.org"]) == selection_of(["example.org"])
    assert selection_of(["*.example.org", "a.example.org", "b.org"]).ranges == (
        (b"org,b)", b"org,b*"), (b"org,example)", b"org,example-"),
        (b"org,example:", b"org,example;"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ({"site": ["nowhere.example"]}, "no capture is selected"),
        ({"since": "2050"}, "no capture is selected"),
        ({"site": ["http://a.example/"]}, "--site http://a.example/: wanted a host"),
        ({"since": "soon"}, "--from: 'soon', wanted up to 14 digits"),
    ],
)
def test_a_wrong_order_leaves_nothing(tmp_path: Path, wanted: dict[str, Any], what: str) -> None:
    small = visited_twice(tmp_path / "c")
    with pytest.raises(OperatorError, match=what):
        packed(small, tmp_path / "a.wacz", **wanted)
    assert not list(tmp_path.glob("a.wacz*"))


def test_a_package_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c")
    first = min((tmp_path / "c").glob("archive/**/*.warc.gz"))
    with first.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(ResourceError, match="100 bytes, wanted"):
        packed(small, tmp_path / "a.wacz")
    assert not list(tmp_path.glob("a.wacz*"))


def test_what_a_killed_one_left_is_written_over(tmp_path: Path) -> None:
    small = visited_twice(tmp_path / "c")
    (tmp_path / f"a.wacz{PART}").write_bytes(b"x" * 100_000)
    packed(small, tmp_path / "a.wacz")
    assert [path.name for path in tmp_path.glob("a.wacz*")] == ["a.wacz"]
    valid(tmp_path / "a.wacz")


def test_two_do_not_write_one_package_and_none_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    with packing(path, created=MADE) as package:
        package.describe({})
        with pytest.raises(OperatorError, match="somebody else"), packing(path, created=MADE):
            pass
    for name, what in (
        ("a.wacz", "a file already; --replace"), ("a", r"ends with \.wacz"),
        ("no/a.wacz", "cannot be written"),
    ):  # fmt: skip
        with pytest.raises(OperatorError, match=what), packing(tmp_path / name, created=MADE):
            pass
