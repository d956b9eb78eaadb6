"""The index of payloads as it grows: bytes an entry on disk, time of a look-up.

    digests.py [--entries N]... [--postgresql ADDRESS] [--folder DIRECTORY]

Keys are random, as digests are. `new`: what the loop of an agent pays for a payload that is not
there (the filter alone); `hit` and `miss`: what its other thread pays in the index, 250 asked at
once, keys spread over all of it. What is printed is also written to bench/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from geomi.archive import duplicates_tables as tables  # noqa: E402
from geomi.archive.bits import Bits  # noqa: E402
from geomi.store import SQLITE, Store, open_store  # noqa: E402
from geomi.store.migrate import migrate  # noqa: E402

RESULTS = HERE / "results"
_ASKED = 20_000
_TOGETHER = 250
_BATCH = 5_000


def keys(seed: int, number: int) -> Iterator[int]:
    rng = random.Random(seed)
    for _ in range(number):
        yield rng.getrandbits(64) - (1 << 63)


def each_us(work: Callable[[], object], number: int) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / number * 1e6


def asked_us(store: Store, some: Sequence[int], *, found: int) -> float:
    """Microseconds for one of these keys; all of them are there, or none."""

    def work() -> None:
        number = 0
        for start in range(0, len(some), _TOGETHER):
            number += len(tables.keys(store, some[start : start + _TOGETHER]))
        assert number == found, (number, found)

    return each_us(work, len(some))


def grow(store: Store, bits: Bits | None, first: int, wanted: int) -> Iterator[int]:
    """Adds entries in batches; every so manieth key is kept for the questions."""
    step = max(1, wanted // _ASKED)
    number = first
    batch = max(_BATCH, wanted // 50)  # of what agents commit at once ten millions take an hour
    for start in range(first, wanted, batch):
        some = list(keys(start, min(batch, wanted - start)))
        with store.transaction():
            tables.put(store, 1, [(key, start + n) for n, key in enumerate(some)])
        if bits is not None:
            bits.add(some)
        for key in some:
            number += 1
            if number % step == 0:
                yield key


def size_of(store: Store, path: str) -> int:
    """Bytes on disk; of a file with its filter."""
    if store.dialect == SQLITE:
        store.run("PRAGMA wal_checkpoint(TRUNCATE)")
        return os.path.getsize(path) + os.stat(path + ".bits").st_blocks * 512
    row = store.one("SELECT pg_total_relation_size('payloads')")
    return int(row[0]) if row else 0


def measure(address: str, entries: Sequence[int]) -> list[dict[str, object]]:
    store = open_store(address)
    bits = None
    if store.dialect == SQLITE:
        store.run("PRAGMA synchronous=NORMAL")
        bits = Bits(address + ".bits")
        bits.fill(lambda last: ())
    migrate(store, tables.INDEX_FILE, where=address)
    rows: list[dict[str, object]] = []
    have = 0
    asked: list[int] = []
    for wanted in entries:
        began = time.perf_counter()
        asked += grow(store, bits, have, wanted)
        added = (time.perf_counter() - began) / (wanted - have) * 1e6
        have = wanted
        random.Random(1).shuffle(asked)
        some = asked[:_ASKED]
        new = list(keys(-wanted, _ASKED))
        rows.append({
            "store": store.dialect, "entries": wanted,
            "bytes_an_entry": round(size_of(store, address) / wanted, 1),
            "added_us": round(added, 2),
            "hit_us": round(asked_us(store, some, found=len(some)), 2),
            "miss_us": round(asked_us(store, new, found=0), 2),
        })  # fmt: skip
        if bits is not None:
            began = time.perf_counter()
            known = sum(map(bits.may_have, new))
            rows[-1] |= {
                "new_us": round((time.perf_counter() - began) / len(new) * 1e6, 2),
                "falsely_known": round(known / len(new), 5),
            }
        print(json.dumps(rows[-1]), flush=True)
    store.close()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--entries", type=int, action="append")
    parser.add_argument("--postgresql", metavar="ADDRESS")
    parser.add_argument("--folder", help="where the files are made; default: a temporary directory")
    parser.add_argument("--runs", help="of no use here; as the other suites have it")
    given = parser.parse_args()
    entries = sorted(given.entries or [10**4, 10**6, 10**7])
    with tempfile.TemporaryDirectory(prefix="geomi-digests-", dir=given.folder) as folder:
        rows = measure(given.postgresql or str(Path(folder) / "digests.db"), entries)
    RESULTS.mkdir(exist_ok=True)
    name = RESULTS / f"digests-{time.strftime('%Y%m%d-%H%M%S')}.json"
    name.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
