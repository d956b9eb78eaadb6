"""`geomi archive meaningless`: pages that mean nothing, found, listed, decided and shared."""

from __future__ import annotations

import hashlib
import sys
from base64 import b32encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from geomi.archive.files import Lock
from geomi.cli.output import print_json_line, print_line, table
from geomi.cli.seeds import write_whole
from geomi.cluster import meaningless_orders as orders
from geomi.cluster.collection import Collection
from geomi.errors import OperatorError
from geomi.history import meaningless_tables as tables
from geomi.history import shared_list
from geomi.history.meaningless import State
from geomi.history.meaningless_tables import Entry
from geomi.history.shared_list import Bad
from geomi.history.walls import reason_of
from geomi.store import Store

_LIST = "list"
_MOST_FILE_BYTES = 1 << 28
_MOST_TOLD = 10


class _Group(TyperGroup):
    """`geomi archive meaningless COLLECTION` lists: what names no command is a collection."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [_LIST, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group, no_args_is_help=True, rich_markup_mode=None,
    help="Pages that mean nothing: walls, denials, errors dressed as pages.",
)  # fmt: skip


def register(into: typer.Typer) -> None:
    into.add_typer(app, name="meaningless")


Where = Annotated[Path, typer.Argument(metavar="COLLECTION", help="The collection.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
Digests = Annotated[
    list[str], typer.Argument(metavar="DIGEST...", help="Payload digests, as the list has them.")
]
Threshold = Annotated[
    int | None,
    typer.Option(
        "--threshold", metavar="N", min=1,
        help="Confirm what a rule or probe knows under N unlike URLs; default: archive.confirm_at.",
    ),
]  # fmt: skip
Anew = Annotated[
    bool,
    typer.Option("--anew", help="Read the log from its start: files that were away are there."),
]


@app.command(_LIST)
def list_(
    collection: Where,
    site: Annotated[str, typer.Option(metavar="SITE", help="Only of this site.")] = "",
    state: Annotated[
        str, typer.Option(metavar="STATE", help="Only candidate, confirmed or rejected.")
    ] = "",
    scan: Annotated[bool, typer.Option("--scan", help="Scan first.")] = False,
    threshold: Threshold = None,
    anew: Anew = False,
    as_json: AsJson = False,
) -> int:
    """List what was found: candidates first, with an example, a count and the reason.

    `geomi archive meaningless COLLECTION` is short for it.
    """
    if state and state not in list(State):
        raise OperatorError(f"--state {state}: wanted {', '.join(State)}")
    if (threshold is not None or anew) and not scan:
        raise OperatorError("--threshold and --anew go with --scan")
    place = Collection(collection).must_exist()
    if scan:
        _scan(place, threshold=threshold, anew=anew, is_quiet=as_json)
    with _reading(place) as store:
        rows = tables.listed(store, state=state, site=site)
        if as_json:
            for row in rows:
                print_json_line(_facts(row))
            return 0
        table(
            ("digest", "state", "count", "reason", "example"),
            ((one.digest, one.state, one.pages, _why(one), one.example) for one in rows),
        )
        number = tables.number_hidden(store)
        print_line(f"{number:,} captures are hidden from tables and search; all of them are kept")
    return 0


@app.command()
def scan(
    collection: Where, threshold: Threshold = None, anew: Anew = False, as_json: AsJson = False
) -> int:
    """Read what is new, find candidates, and bring the marks up to date.

    It goes on where it was stopped. A crawl may run beside it. Exit code 1: some payloads could not
    be read, because their files are on another node or broken.
    """
    place = Collection(collection).must_exist()
    counts = _scan(place, threshold=threshold, anew=anew, is_quiet=as_json)
    facts = {name.replace(".", "_"): counts[name] for name in _COUNTS}
    if as_json:
        print_json_line(facts)
    else:
        print_line(
            f"{collection}: {counts['payloads']:,} payloads read, {counts['candidates']:,}"
            f" candidates, {counts['hidden']:,} captures hidden,"
            f" {counts['probes.wanted']:,} probes for the next visits"
        )
        for name, what in (("elsewhere", "on another node, or gone"), ("broken", "broken")):
            if counts[name]:
                print(f"geomi: {counts[name]:,} payloads not read: {what}", file=sys.stderr)
    return 1 if counts["elsewhere"] or counts["broken"] else 0


_COUNTS = (
    "batches", "payloads", "elsewhere", "broken", "candidates", "confirmed", "marked", "shown",
    "hidden", "settled", "probes.wanted", "probes.answered",
)  # fmt: skip


def _scan(place: Collection, *, threshold: int | None, anew: bool, is_quiet: bool) -> Counter[str]:
    from geomi.cluster.scanning import Scanner

    settings = place.settings()
    lock = Lock(place.lock_path("meaningless"))
    if not lock.take():
        raise OperatorError(f"{place.path}: another scan of it runs")
    try:
        store = place.open_store(settings)
        try:
            progress = _Progress(is_quiet=is_quiet)
            scanner = Scanner(place, store, settings, threshold=threshold, told=progress.told)
            scanner.run(anew=anew)
            return scanner.counts
        finally:
            store.close()
    finally:
        lock.release()


class _Progress:
    """A line for each ten thousand payloads."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._next = 10_000

    def told(self, counts: Counter[str]) -> None:
        if not self._is_quiet and counts["payloads"] >= self._next:
            self._next = counts["payloads"] + 10_000
            print(
                f"geomi: {counts['payloads']:,} payloads, {counts['marked']:,} marked",
                file=sys.stderr, flush=True,
            )  # fmt: skip


@app.command()
def confirm(collection: Where, digests: Digests, as_json: AsJson = False) -> int:
    """Digests mean nothing: not stored again from the next visit on, hidden from the next scan."""
    return _decide(collection, digests, State.CONFIRMED, as_json=as_json)


@app.command()
def reject(collection: Where, digests: Digests, as_json: AsJson = False) -> int:
    """Digests are content: they and what is near them are shown again from the next scan on."""
    return _decide(collection, digests, State.REJECTED, as_json=as_json)


def _decide(collection: Path, digests: Sequence[str], state: State, *, as_json: bool) -> int:
    names = _names(digests)
    with _writing(collection) as store:
        changed = orders.decide(store, names, state, now=store.now())
    _tell(collection, f"{state}", changed, len(names), as_json=as_json)
    return 0


@app.command()
def add(
    collection: Where,
    given: Annotated[
        list[str],
        typer.Argument(metavar="DIGEST|FILE...", help="Digests, or files with the very payload."),
    ],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; kept with them.")] = "",
    as_json: AsJson = False,
) -> int:
    """Take digests into the list as confirmed, also such as were never seen here."""
    digests = [_digest_or_file(one) for one in given]
    with _writing(collection) as store:
        changed = orders.add(store, digests, reason=reason[:200], now=store.now())
    _tell(collection, "confirmed", changed, len(digests), as_json=as_json)
    return 0


@app.command()
def remove(collection: Where, digests: Digests, as_json: AsJson = False) -> int:
    """Take digests out of the list; what they hid is shown again from the next scan on."""
    names = _names(digests)
    with _writing(collection) as store:
        changed = orders.remove(store, names)
    _tell(collection, "removed", changed, len(names), as_json=as_json)
    return 0


@app.command()
def export(
    collection: Where,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; - to print.")],
    state: Annotated[
        str, typer.Option(metavar="STATE", help="candidate, confirmed or rejected.")
    ] = "confirmed",
) -> int:
    """Write the confirmed digests as JSON lines that another collection imports."""
    if state not in list(State):
        raise OperatorError(f"--state {state}: wanted {', '.join(State)}")
    with _reading(Collection(collection)) as store:
        lines = (shared_list.written(one) for one in tables.listed(store, state=state))
        if str(output) == "-":
            for line in lines:
                print_line(line)
            return 0
        number = write_whole(output, lines)
    print(f"{output}: {number} digests", file=sys.stderr)
    return 0


@app.command("import")
def import_(
    collection: Where,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A list; - for standard input.")],
    as_json: AsJson = False,
) -> int:
    """Take in a list that others made. What was decided here stays as it was decided.

    Exit code 1: some lines could not be read; the others were taken in.
    """
    bad: list[Bad] = []
    number = [0]
    with _writing(collection) as store, _lines(source) as lines:
        found = shared_list.read(lines, of=source.name, now=store.now())
        taken, left = orders.take_in(store, _good(found, bad, number))
    for one in bad[:_MOST_TOLD]:
        print(f"geomi: {source} line {one.line} {one.what}", file=sys.stderr)
    if number[0] > _MOST_TOLD:
        print(
            f"geomi: and {number[0] - _MOST_TOLD} more lines that cannot be read", file=sys.stderr
        )
    if as_json:
        print_json_line({"taken": taken, "left": left, "problems": number[0]})
    else:
        print_line(f"{collection}: {taken} digests taken in, {left} decided here before")
    return 1 if number[0] else 0


def _good(found: Iterator[Entry | Bad], bad: list[Bad], number: list[int]) -> Iterator[Entry]:
    """The entries; of the lines that are none the first are kept, and all are counted."""
    for one in found:
        if isinstance(one, Entry):
            yield one
            continue
        number[0] += 1
        if len(bad) < _MOST_TOLD:
            bad.append(one)


@contextmanager
def _lines(source: Path) -> Iterator[Iterator[bytes]]:
    """Lines of a file, each read no further than a line may be long."""
    if str(source) == "-":
        yield _bounded(sys.stdin.buffer)
        return
    try:
        file = open(source, "rb")  # noqa: SIM115  closed by the next with
    except OSError as error:
        raise OperatorError(f"{source}: cannot be read: {error.strerror or error}") from error
    with file:
        yield _bounded(file)


def _bounded(file: Any) -> Iterator[bytes]:
    most = shared_list.MOST_LINE_BYTES + 1
    while line := file.readline(most):
        rest = line
        while len(rest) == most and not rest.endswith(b"\n"):
            rest = file.readline(most)
        yield line


def _names(digests: Sequence[str]) -> list[str]:
    names = []
    for text in digests:
        name = shared_list.digest_of(text)
        if not name:
            raise OperatorError(f"{text}: wanted {shared_list.WANTED}")
        names.append(name)
    return list(dict.fromkeys(names))


def _digest_or_file(text: str) -> tuple[str, str]:
    """(digest, where it is from)."""
    if name := shared_list.digest_of(text):
        return name, ""
    path = Path(text)
    if not path.is_file():
        raise OperatorError(f"{text}: no such file, and not {shared_list.WANTED}")
    try:
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise OperatorError(f"{text}: over {_MOST_FILE_BYTES} bytes, wanted one payload")
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha1")
    except OSError as error:
        raise OperatorError(f"{text}: cannot be read: {error.strerror or error}") from error
    return f"sha1:{b32encode(found.digest()).decode()}", path.name


def _tell(collection: Path, what: str, changed: int, given: int, *, as_json: bool) -> None:
    if as_json:
        print_json_line({what: changed, "given": given})
    else:
        print_line(
            f"{collection}: {changed} {what}, {given - changed} were before;"
            f" marks follow with: geomi archive meaningless {collection} --scan"
        )


def _facts(one: Entry) -> dict[str, Any]:
    return {
        "digest": one.digest, "state": one.state, "reason": one.reason, "why": _why(one),
        "site": one.site, "example": one.example, "count": one.pages, "by": one.by, "at": one.at,
    }  # fmt: skip


def _why(one: Entry) -> str:
    """The reason for people."""
    kind, colon, rest = one.reason.partition(":")
    if colon and kind == "rule":
        return f"{rest}: {reason_of(rest)}"
    if colon and kind == "probe":
        return f"what the site says to any name in {rest}"
    if colon and kind == "alike":
        return f"one text under {rest} unlike URLs"
    return one.reason


@contextmanager
def _reading(place: Collection) -> Iterator[Store]:
    store = place.read_store()
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _writing(collection: Path) -> Iterator[Store]:
    place = Collection(collection).must_exist()
    store = place.open_store(place.settings())
    try:
        yield store
    finally:
        store.close()
