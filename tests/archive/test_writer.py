from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from geomi.archive.names import Ids
from geomi.archive.record import SpoolPart
from geomi.archive.writer import FileWrite, Writer

T = 1_714_979_289.0  # 2024-05-06T07:08:09Z
INFO = b"warcinfo"
SPOOL = SpoolPart(header=b"head", path="/spool/1", size=99)


def writer(*, directories: tuple[str, ...] = ("archive",), file_bytes: int = 100) -> Writer:
    numbers = count(1)
    return Writer(
        directories=directories, prefix="geomi-a0-00007", file_bytes=file_bytes,
        ids=Ids(bytes(10)), next_file=lambda: next(numbers), warcinfo=lambda *_: INFO,
    )  # fmt: skip


def test_a_file_begins_with_its_warcinfo_and_is_named_by_month_agent_and_number() -> None:
    made = writer()
    assert made.add(0, [b"one", b"two"], now=T) == (1, len(INFO), 3, 6, 1)
    (write,) = made.take()
    assert write.create and not write.close
    assert write.name == "2024-05/geomi-a0-00007-00001.warc.gz"
    assert (write.directory, write.file, write.start) == ("archive", 1, 0)
    assert write.parts == [INFO, b"one", b"two"]
    assert write.size == len(INFO) + 6


def test_the_warcinfo_is_told_the_name_without_its_directory() -> None:
    told: list[tuple[str, str, str]] = []

    def warcinfo(name: str, date: str, record_id: str) -> bytes:
        told.append((name, date, record_id))
        return INFO

    made = Writer(
        directories=("a",), prefix="p", file_bytes=100, ids=Ids(bytes(10)), next_file=lambda: 1,
        warcinfo=warcinfo,
    )  # fmt: skip
    assert made.warcinfo_id(0, T) == told[0][2]
    assert told[0][:2] == ("p-00001.warc.gz", "2024-05-06T07:08:09.000Z")


def test_the_second_batch_goes_on_where_the_first_ended() -> None:
    made = writer()
    made.add(0, [b"one"], now=T)
    made.take()
    assert made.add(0, [b"four"], now=T) == (1, 11, 4, 4, 0)
    (write,) = made.take()
    assert (write.create, write.start, write.parts) == (False, 11, [b"four"])


def test_nothing_to_append_is_no_write() -> None:
    made = writer()
    assert made.take() == []
    made.add(0, [b"x"], now=T)
    made.take()
    assert made.take() == []


def test_a_full_file_is_closed_with_its_batch_and_another_begins() -> None:
    made = writer(file_bytes=20)
    made.add(0, [b"x" * 11], now=T)
    assert not made.take()[0].close
    made.add(0, [b"x"], now=T)
    first = made.warcinfo_id(0, T)
    (write,) = made.take()
    assert write.close
    assert made.warcinfo_id(0, T + 30 * 86_400) != first
    file, offset, *_ = made.add(0, [b"y"], now=T + 30 * 86_400)
    assert (file, offset) == (2, len(INFO))
    (write,) = made.take()
    assert write.create
    assert write.name == "2024-06/geomi-a0-00007-00002.warc.gz"


def test_a_site_always_goes_to_the_same_directory_and_sites_are_spread() -> None:
    one, other = writer(directories=("a", "b", "c")), writer(directories=("a", "b", "c"))
    sites = [f"www{number}.example.org" for number in range(300)]
    roots = [one.root_of(site) for site in sites]
    assert roots == [other.root_of(site) for site in sites]
    assert all(roots.count(root) > 60 for root in range(3))


def test_each_directory_has_a_file_of_its_own() -> None:
    made = writer(directories=("a", "b"))
    made.add(0, [b"x"], now=T)
    made.add(1, [b"y"], now=T)
    writes = made.take()
    assert [(write.directory, write.file) for write in writes] == [("a", 1), ("b", 2)]
    assert len({write.name for write in writes}) == 2


def test_at_the_end_every_open_file_is_closed_also_without_new_records() -> None:
    made = writer(directories=("a", "b", "c"))
    made.add(0, [b"x"], now=T)
    made.add(1, [b"y"], now=T)
    made.take()
    made.add(1, [b"z"], now=T)
    writes = made.close_all()
    assert [(write.directory, write.close, write.parts) for write in writes] == [
        ("a", True, []), ("b", True, [b"z"]),
    ]  # fmt: skip
    assert made.close_all() == []


def test_what_follows_a_spooled_record_moves_when_its_length_is_known() -> None:
    made = writer()
    assert made.add(0, [SPOOL, b"request"], now=T) == (1, len(INFO), 0, 7, 1)
    made.take()
    made.add(0, [b"x"], now=T)  # fills while the first batch is written
    made.grew(1, 50)
    (write,) = made.take()
    assert write.start == len(INFO) + 7 + 50
    assert made.add(0, [b"y"], now=T)[1] == len(INFO) + 7 + 50 + 1


Steps = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.lists(st.one_of(st.binary(min_size=1, max_size=30), st.just(None)), min_size=1,
                 max_size=4),
        st.booleans(),
    ),
    max_size=40,
)  # fmt: skip


def appended(write: FileWrite, grown: Iterator[int]) -> tuple[bytes, int]:
    """What the shell would append, and by how much it grew beyond what was known."""
    data, more = b"", 0
    for part in write.parts:
        if isinstance(part, SpoolPart):
            size = next(grown)
            data += b"s" * size
            more += size
        else:
            data += part
    return data, more


@given(Steps, st.integers(0, 10**6))
def test_batches_written_one_behind_the_other_give_whole_files(
    steps: list[tuple[int, list[bytes | None], bool]], seed: int
) -> None:
    """While one batch is written the next one fills, as in the agent."""
    made = writer(directories=("a", "b", "c"), file_bytes=120)
    sizes = iter(int((seed * (number + 7)) % 40) + 1 for number in range(10_000))
    disk: dict[int, bytes] = {}
    closed: set[int] = set()
    under_way: list[FileWrite] = []

    def write_out() -> None:
        for write in under_way:
            assert write.file not in closed
            assert write.create == (write.file not in disk)
            assert len(disk.get(write.file, b"")) == write.start
            data, more = appended(write, sizes)
            disk[write.file] = disk.get(write.file, b"") + data
            if write.close:
                closed.add(write.file)
            made.grew(write.file, more)

    for root, parts, is_batch in steps:
        made.add(root, [SPOOL if part is None else part for part in parts], now=T)
        if is_batch:
            write_out()
            under_way[:] = made.take()
    write_out()
    under_way[:] = made.take()
    write_out()
    under_way[:] = made.close_all()
    write_out()
    assert closed == set(disk)
    assert all(data.startswith(INFO) for data in disk.values())
