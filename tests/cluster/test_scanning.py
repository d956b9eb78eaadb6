"""The worker that reads what was kept: it reads all, once, wherever it lies, and spoils nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from small import SEED, Small

from geomi.archive.files import RealFiles
from geomi.cluster import meaningless_orders as orders
from geomi.cluster import scanning
from geomi.cluster.mover import Mover
from geomi.cluster.scanning import Scanner
from geomi.cluster.story import story
from geomi.cluster.verify import verify
from geomi.history import meaningless_tables as tables
from geomi.history.meaningless import State
from geomi.history.past import parts_of
from geomi.records import Reason
from geomi.settings import History

WALL = b"<title>Members</title><h1>Login</h1><form>ID <input name=id><input type=password></form>"
NEWS = b"<title>News</title><p>the council met again and spoke about the old bridge, part "
NAMES = tuple(f"x{number}" for number in range(6))


def body_of(name: str) -> bytes:
    """Every second page is a wall with a clock in it."""
    number = int(name[1:])
    return WALL + b"<p>10:11:%02d" % number if number % 2 else NEWS + name.encode() * 3


def opened(path: Path, address: str = "", *, front: bytes = b"<p>hello") -> Small:
    """A site whose front page names the others; nothing of them was visited."""
    small = Small(path, address=address)
    links = "".join(f"<a href=/{name}>x</a>" for name in NAMES)
    small.visit(SEED, body=front + links.encode())
    return small


def grown(path: Path, address: str = "", *, front: bytes = b"<p>hello") -> Small:
    small = opened(path, address, front=front)
    for name in NAMES:
        small.visit(SEED + name, body=body_of(name))
    small.end()
    return small


def scan(small: Small, *, anew: bool = False) -> Counter[str]:
    scanner = Scanner(small.place, small.store, small.settings)
    scanner.run(anew=anew)
    return scanner.counts


def marks(small: Small) -> dict[str, str]:
    """URL -> reason of what is hidden."""
    return dict(
        small.store.all(
            "SELECT p.url, h.reason FROM hidden h JOIN pages p ON p.page = h.page ORDER BY p.url"
        )
    )


def move(small: Small) -> None:
    """All visits but the last three of each page go to Parquet."""
    mover = Mover(
        small.store, RealFiles(), where=small.place.archive_path, keep=History(keep_visits=3)
    )
    for _ in mover.finish(small.now):
        pass


def problems(small: Small) -> list[str]:
    report = verify(small.store, where=small.place.archive_path, directories=("archive",))
    return [f"{one.where}: {one.what}" for one in report.problems]


WALLS = {SEED + name: "rule:login" for name in NAMES if int(name[1:]) % 2}


def test_walls_are_marked_and_content_and_front_page_are_spared(
    tmp_path: Path, shared: str
) -> None:
    small = grown(tmp_path / "c", shared, front=WALL)
    counts = scan(small)
    assert marks(small) == WALLS
    assert (counts["payloads"], counts["marked"], counts["hidden"]) == (7, 3, 3)
    assert scan(small)["payloads"] == 0
    assert problems(small) == []
    told = story(
        small.store, SEED + NAMES[1], settings=small.settings, where=small.place.archive_path,
        now=small.now,
    )  # fmt: skip
    assert [event.facts["reason"] for event in told.events if event.what == "hidden"] == [
        "rule:login"
    ]


def test_a_scan_that_was_stopped_goes_on_and_reads_nothing_twice(
    tmp_path: Path, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = grown(tmp_path / "c", shared)
    monkeypatch.setattr(scanning, "_BATCHES", 1)
    read = 0
    for _ in range(20):
        rounds = Counter[str]()

        def told(counts: Counter[str], rounds: Counter[str] = rounds) -> None:
            rounds["payloads"] = counts["payloads"]
            raise KeyboardInterrupt

        scanner = Scanner(small.place, small.store, small.settings, told=told)
        try:
            scanner.run()
        except KeyboardInterrupt:
            read += rounds["payloads"]
        else:
            read += scanner.counts["payloads"]
            break
    else:
        read += scan(small)["payloads"]
    assert read == 7
    assert marks(small) == WALLS
    assert problems(small) == []


def test_visits_in_parquet_are_read_marked_and_shown_again(tmp_path: Path, shared: str) -> None:
    small = grown(tmp_path / "c", shared)
    for _ in range(4):
        small.again()
        for url in (SEED, *(SEED + name for name in NAMES)):
            small.visit(url, body=WALL if url != SEED else b"<p>later")
        small.end()
    move(small)
    assert parts_of(small.store, "whole")
    scan(small)
    number = small.store.one("SELECT count(*) FROM hidden")
    assert number == (3 + 4 * len(NAMES),)
    digests = [row[0] for row in small.store.all("SELECT DISTINCT digest FROM hidden")]
    orders.add(small.store, [(digest, "") for digest in digests], reason="", now=1.0)
    orders.decide(small.store, digests, State.REJECTED, now=2.0)
    assert scan(small)["shown"] == number[0]
    assert marks(small) == {}
    orders.decide(small.store, digests, State.CONFIRMED, now=3.0)
    scan(small)
    assert small.store.one("SELECT count(*) FROM hidden") == number
    assert set(marks(small).values()) == {"confirmed"}
    assert problems(small) == []


def test_a_crawl_that_runs_is_read_as_far_as_it_is_committed(tmp_path: Path) -> None:
    small = opened(tmp_path / "c")
    small.visit(SEED + NAMES[1], body=WALL)
    assert scan(small)["payloads"] == 2  # the file is open yet
    small.visit(SEED + NAMES[3], body=WALL + b"<p>10:12:13")
    scan(small)
    small.end()
    assert set(marks(small)) == {SEED + NAMES[1], SEED + NAMES[3]}
    assert problems(small) == []


def test_a_wall_before_a_page_for_some_hours_is_not_its_copy(tmp_path: Path, shared: str) -> None:
    small = grown(tmp_path / "c", shared)
    row = 'SELECT file, "offset", stored_date, stored_digest FROM pages WHERE url = ?'
    good = small.store.one(row, (SEED + NAMES[0],))
    for _ in range(2):
        small.again()
        small.visit(SEED + NAMES[0], body=WALL)
        small.end()
    assert small.store.one(row, (SEED + NAMES[0],)) != good
    assert scan(small)["settled"] == 1
    assert small.store.one(row, (SEED + NAMES[0],)) == good
    assert problems(small) == []
    small.again()  # whoever visits it next refers to the good copy
    assert small.known(SEED + NAMES[0]).stored_date == (good or ())[2]


def test_a_record_that_is_broken_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    small = grown(tmp_path / "c")
    place = small.store.one('SELECT "offset" FROM pages WHERE url = ?', (SEED + NAMES[1],))
    assert place is not None
    (warc,) = (tmp_path / "c").glob("archive/**/*.warc.gz")
    with open(warc, "r+b") as file:
        file.seek(place[0] + 30)
        file.write(b"\xff" * 20)
    counts = scan(small)
    assert (counts["broken"], counts["payloads"]) == (1, 6)
    assert set(marks(small)) == set(WALLS) - {SEED + NAMES[1]}


HOSTILE = {
    "large": WALL + b"<p>" + b"long " * 2_000_000,
    "deep": WALL + b"<div>" * 300_000,
    "no html": b"%PDF-1.4 " + WALL,
    "empty": b"",
    "noise": bytes(range(256)) * 400,
    "wrong charset": b"<meta charset=utf-8>" + "로그인".encode("cp949") + WALL,
}


def test_hostile_payloads_are_read_and_what_is_no_html_is_known_as_such(tmp_path: Path) -> None:
    small = opened(tmp_path / "c")
    for name, body in zip(NAMES, HOSTILE.values(), strict=True):
        small.visit(SEED + name, body=body)
    small.end()
    counts = scan(small)
    assert (counts["payloads"], counts["broken"]) == (7, 0)
    found = {
        kind: small.store.one(
            "SELECT f.main <> '', f.hints FROM features f JOIN pages p ON p.digest = f.digest"
            " WHERE p.url = ?", (SEED + name,),
        )
        for name, kind in zip(NAMES, HOSTILE, strict=True)
    }  # fmt: skip
    assert [kind for kind, row in found.items() if row and row[0]] == [
        "large", "deep", "empty", "wrong charset",
    ]  # fmt: skip
    assert [kind for kind, row in found.items() if row and row[1]] == ["deep", "wrong charset"]


def test_where_a_text_repeats_a_name_that_is_not_there_is_wanted_once(
    tmp_path: Path, shared: str
) -> None:
    small = grown(tmp_path / "c", shared)
    assert scan(small)["probes.wanted"] == 1
    ((url, kind, reason, via),) = small.store.all("SELECT url, kind, reason, via FROM inbox")
    assert url.startswith(f"{SEED}geomi-probe-")
    assert (kind, reason, via) == ("p", int(Reason.PROBE), SEED + NAMES[1])
    assert scan(small)["probes.wanted"] == 0
    small.again()
    small.coordinator.deliver(run=small.run, now=small.now)
    assert small.store.one("SELECT 1 FROM inbox") in (None, (1,))  # its holder drains it


def test_what_a_probe_came_to_is_hidden_and_so_is_the_probe(tmp_path: Path, shared: str) -> None:
    small = opened(tmp_path / "c", shared)
    soft = b"<title>Our site</title><p>welcome to our portal, here are some of the places to go to"
    for name in NAMES[:3]:
        small.visit(SEED + name, body=soft + b" 10:11:12")
    small.visit(SEED + NAMES[3], body=NEWS)
    small.end()
    scan(small)
    assert marks(small) == {}  # it only repeats
    (url,) = small.store.one("SELECT url FROM probes") or ("",)
    small.now += 1000.0
    small.coordinator.step(run=small.run, now=small.now)  # nobody holds the site: it is a page now
    small._begin(again=False)
    small.visit(url, body=soft + b" 20:30:40 <a href=/never></a>")
    small.end()
    assert small.store.one("SELECT 1 FROM pages WHERE url = ?", (f"{SEED}never",)) is None
    scan(small)
    assert marks(small) == {
        **dict.fromkeys((SEED + name for name in NAMES[:3]), f"probe:{SEED}"), url: "probe",
    }  # fmt: skip
    ((reason, state),) = small.store.all("SELECT reason, state FROM meaningless")
    assert (reason, state) == (f"probe:{SEED}", "candidate")
    assert problems(small) == []
    small.again()
    assert small.store.one(
        "SELECT 1 FROM pending w JOIN pages p ON p.page = w.page WHERE p.url = ?", (url,)
    ) is None  # fmt: skip


def test_what_is_near_a_confirmed_digest_is_hidden_when_it_comes(
    tmp_path: Path, shared: str
) -> None:
    small = opened(tmp_path / "c", shared)
    plain = b"<title>Notice</title><p>this part of our house is for guests of the house alone, "
    small.visit(SEED + NAMES[0], body=plain + b"10:11:12")
    small.end()
    scan(small)
    (digest,) = small.store.one(
        "SELECT digest FROM pages WHERE url = ?", (SEED + NAMES[0],)
    ) or ("",)  # fmt: skip
    orders.add(small.store, [(digest, "")], reason="ours", now=1.0)
    small.again()
    small.visit(SEED + NAMES[0], body=plain + b"10:11:12")
    small.end()
    scan(small)
    assert set(marks(small).values()) == {"confirmed"}
    small._begin(again=False)
    small.visit(SEED + NAMES[1], body=plain + b"20:21:22")
    small.end()
    scan(small)
    assert marks(small)[SEED + NAMES[1]] == f"near:{digest}"
    assert tables.entry(small.store, digest) is not None
