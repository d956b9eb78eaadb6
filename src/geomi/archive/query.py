"""Questions to an index, as CDX servers take them, answered from sorted lines. Decides only.

The words are those of pywb's and the Internet Archive's servers; where the two differ, pywb's
meaning is taken (docs/reference/cdx.md).
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec

from geomi import url as urls
from geomi.archive.cdxj import CdxLine, key_of, parse_line
from geomi.errors import OperatorError, RemoteError

#: Lines of one answer, unless `limit` says less, and the most it may say.
LIMIT, LIMIT_MOST = 10_000, 100_000
#: Lines that are looked at for one answer; beyond it the answer ends and says where to go on.
SCANNED_MOST = 1_000_000
_PATTERN_MOST = 200  # characters of a pattern in a filter

MATCHES = ("exact", "prefix", "host", "domain")
OUTPUTS = ("cdxj", "json", "text")
SORTS = ("default", "closest", "reverse")

#: Fields of a line, in the order of a CDX file of eleven columns.
FIELDS = ("urlkey", "timestamp", "url", "mime", "status", "digest", "redirect", "robotflags",
          "length", "offset", "filename")  # fmt: skip
_OTHER_NAMES = {"original": "url", "mimetype": "mime", "statuscode": "status",
                "surt": "urlkey", "robots": "robotflags"}  # fmt: skip

Range = tuple[bytes, bytes]  # from, and before


class _Filter(NamedTuple):
    field: str
    is_not: bool
    matches: Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked for. Made by: parse_query.   Taken by: answer."""

    ranges: tuple[Range, ...]
    since: str = ""  # the first timestamp wanted
    until: str = ""  # the last one
    filters: tuple[_Filter, ...] = ()
    closest: str = ""
    order: str = "default"
    limit: int = LIMIT  # negative: the last so many
    output: str = "cdxj"
    fields: tuple[str, ...] = ()
    collapse: tuple[str, int] | None = None  # field, and how much of it; 0: all
    resume: bytes = b""  # only lines behind this one
    shows_resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Lines as they are written. `resume`: where to go on, empty if this is all there is."""

    lines: list[bytes]
    resume: str = ""


_KEYS = frozenset(
    ["url", "matchType", "from", "from_ts", "to", "filter", "closest", "sort", "reverse", "limit",
     "output", "collapse", "fl", "fields", "resumeKey", "showResumeKey", "allowFuzzy", "gzip"]
)  # fmt: skip
_PAGED = ("page", "pageSize", "showNumPages", "showPagedIndex")


def parse_query(text: str) -> Query:
    """Reads `url=…&limit=5`. OperatorError: one sentence about the first thing that is wrong."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=100, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise OperatorError("query: more than 100 fields, or not UTF-8") from None
    found: dict[str, str] = {}
    filters: list[str] = []
    for key, value in pairs:
        if key in _PAGED:
            raise OperatorError(f"{key}: pages are not offered; take limit and resumeKey")
        if key not in _KEYS:
            raise OperatorError(
                f"{key[:40]!r} is no field of a query; known: {', '.join(sorted(_KEYS))}"
            )
        if key == "filter":
            filters.append(value)
        elif key in found:
            raise OperatorError(f"{key}: given twice, wanted once")
        else:
            found[key] = value
    if not found.get("url"):
        raise OperatorError("url: not given, wanted the address that is looked up")
    fields = tuple(_field(name) for name in _list(found.get("fl") or found.get("fields", "")))
    output = _one_of("output", found.get("output") or ("text" if fields else "cdxj"), OUTPUTS)
    order = _one_of("sort", found.get("sort") or "default", SORTS)
    if found.get("reverse", "") in ("1", "true"):
        order = "reverse"
    closest = parse_time("closest", found.get("closest", ""), pad="0")
    if order == "closest" and not closest:
        order = "default"
    elif closest and order == "default":
        order = "closest"
    return Query(
        ranges=ranges_of(found["url"], found.get("matchType", "")),
        since=parse_time("from", found.get("from") or found.get("from_ts", ""), pad="0"),
        until=parse_time("to", found.get("to", ""), pad="9"),
        filters=tuple(_filter(one) for one in filters),
        closest=closest,
        order=order,
        limit=_limit(found.get("limit", "")),
        output=output,
        fields=fields,
        collapse=_collapse(found.get("collapse", "")),
        resume=found.get("resumeKey", "").encode(),
        shows_resume=found.get("showResumeKey", "") in ("1", "true"),
    )


def ranges_of(url: str, match: str = "") -> tuple[Range, ...]:
    """The parts of an index where lines of a URL stand; `*.host` and `path*` need no `match`."""
    if not match and url.startswith("*."):
        url, match = url[2:], "domain"
    elif not match and url.endswith("*"):
        url, match = url[:-1], "prefix"
    match = _one_of("matchType", match or "exact", MATCHES)
    text = url if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])", url) else f"http://{url}"
    if match == "exact":
        key = key_of(text).encode()
        return ((key + b" ", key + b"!"),)
    canonical = urls.canonical(text)
    if canonical is None:
        raise OperatorError(f"url: {url[:200]!r} is no http(s) address")
    key = urls.surt(canonical).encode()
    host = key.partition(b")")[0]
    if match == "host":
        return ((host + b")", host + b"*"),)
    if match == "domain":  # those behind a comma are below it; a port comes behind a colon
        return ((host + b")", host + b"-"), (host + b":", host + b";"))
    if text.endswith("/") and not key.endswith(b"/"):
        key += b"/"
    elif text.endswith("?"):
        key += b"?"
    return ((key, key[:-1] + bytes([key[-1] + 1])),)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise OperatorError(f"{name}: {value[:40]!r}, wanted one of {', '.join(known)}")
    return value


def _list(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _field(name: str) -> str:
    name = _OTHER_NAMES.get(name, name)
    if name not in FIELDS:
        raise OperatorError(f"{name[:40]!r} is no field of a line; known: {', '.join(FIELDS)}")
    return name


def parse_time(name: str, text: str, *, pad: str) -> str:
    digits = re.sub(r"[-:TZ ]", "", text)
    if not digits:
        return ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 14):
        raise OperatorError(f"{name}: {text[:40]!r}, wanted up to 14 digits, as 20261118 or 202611")
    return digits.ljust(14, pad)


def _limit(text: str) -> int:
    if not text:
        return LIMIT
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise OperatorError(f"limit: {text[:40]!r}, wanted a number")
    limit = int(text)
    if not limit:
        raise OperatorError("limit: 0, wanted at least 1, or -1 for the last")
    return max(-LIMIT_MOST, min(limit, LIMIT_MOST))


def _collapse(text: str) -> tuple[str, int] | None:
    if not text:
        return None
    name, colon, size = text.partition(":")
    if colon and not re.fullmatch(r"[1-9][0-9]{0,3}", size):
        raise OperatorError(f"collapse: {text[:40]!r}, wanted field or field:characters")
    return _field(name), int(size or 0)


def _filter(text: str) -> _Filter:
    """`[!][=|~]field:value`: contains, equals, or begins with a pattern."""
    rest = text
    is_not = rest.startswith("!")
    rest = rest.removeprefix("!")
    kind = rest[:1] if rest[:1] in ("=", "~") else ""
    name, colon, value = rest.removeprefix(kind).partition(":")
    if not colon:
        raise OperatorError(f"filter: {text[:80]!r}, wanted [!][=|~]field:value")
    field = _field(name)
    if kind == "=":
        return _Filter(field, is_not, lambda seen: seen == value)
    if kind == "~":
        return _Filter(field, is_not, _pattern(value))
    return _Filter(field, is_not, lambda seen: value in seen)


def _pattern(text: str) -> Callable[[str], bool]:
    """Patterns without repeated groups and back references: those take time beyond bounds."""
    if len(text) > _PATTERN_MOST or re.search(r"[)}*+?]\s*[*+{]|\\[1-9]|\(\?", text):
        raise OperatorError(
            f"filter: pattern {text[:80]!r}, wanted at most {_PATTERN_MOST} characters, no repeated"
            " group and no reference"
        )
    if len(re.findall(r"[*+{]", text)) > 2:
        raise OperatorError(f"filter: pattern {text[:80]!r}, wanted at most two repetitions")
    try:
        found = re.compile(text)
    except re.error as error:
        raise OperatorError(f"filter: pattern {text[:80]!r}: {error}") from error
    return lambda seen: found.match(seen[:2048]) is not None


# -- answers ---------------------------------------------------------------------------------------


def answer(query: Query, lines: Callable[[tuple[Range, ...]], Iterable[bytes]]) -> Answer:
    """`lines` gives the sorted lines of some ranges. Memory: the lines of the answer."""
    scan = _Scan(query)
    wanted = scan.wanted(lines(_behind(query.ranges, query.resume)))
    limit = query.limit
    if query.order == "closest":
        middle = seconds_of(query.closest)
        found = heapq.nsmallest(
            abs(limit), wanted, key=lambda line: abs(seconds_of(_stamp(line)) - middle)
        )
    elif query.order == "reverse":
        found = list(deque(wanted, maxlen=abs(limit)))[::-1]
    elif limit < 0:
        found = list(deque(wanted, maxlen=-limit))
    else:
        found = []
        for line in wanted:
            if len(found) == limit:
                scan.is_cut = True
                break
            found.append(line)
    goes_on = scan.is_cut and query.order == "default" and limit > 0
    last = found[-1] if goes_on and found and len(found) == limit else scan.last
    shown = [_written(query, line) for line in found]
    return Answer(lines=shown, resume=_resume(last) if goes_on else "")


class _Scan:
    """Lines on their way through the filters; knows how far it came."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self.is_cut = False
        self.last = b""

    def wanted(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        query = self._query
        before: str | None = None
        for number, line in enumerate(lines):
            if number >= SCANNED_MOST:
                self.is_cut = True
                return
            self.last = line
            stamp = _stamp(line)
            if stamp < query.since or (query.until and stamp > query.until):
                continue
            if query.filters or query.collapse:
                fields = fields_of(line)
                if any(one.matches(fields[one.field]) is one.is_not for one in query.filters):
                    continue
                if query.collapse:
                    name, size = query.collapse
                    value = fields[name][: size or None]
                    if value == before:
                        continue
                    before = value
            yield line


def _behind(ranges: tuple[Range, ...], resume: bytes) -> tuple[Range, ...]:
    """What of the ranges comes behind a line; a line begins with what names it."""
    if not resume:
        return ranges
    return tuple((max(start, resume + b"\n\0"), end) for start, end in ranges if end > resume)


def _resume(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\n")


def _stamp(line: bytes) -> str:
    parts = line.split(b" ", 2)
    return parts[1].decode("ascii", "replace") if len(parts) == 3 else ""


def seconds_of(stamp: str) -> float:
    """A timestamp of 14 digits as seconds; one that is no date counts as its month's first day."""
    try:
        return datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        year, month = int(stamp[:4] or 0) or 1, min(max(int(stamp[4:6] or 1), 1), 12)
        return datetime(year, month, 1, tzinfo=UTC).timestamp()


def fields_of(line: bytes) -> dict[str, str]:
    """All fields of a line by name; "-" where it has none."""
    got: CdxLine = parse_line(line)
    return {
        "urlkey": got.surt, "timestamp": got.timestamp14, "url": got.url, "mime": got.mime,
        "status": got.status, "digest": got.digest, "redirect": "-", "robotflags": "-",
        "length": str(got.length), "offset": str(got.offset), "filename": got.filename,
    }  # fmt: skip


def _written(query: Query, line: bytes) -> bytes:
    if query.output == "cdxj" and not query.fields:
        return line if line.endswith(b"\n") else line + b"\n"
    try:
        fields = fields_of(line)
    except RemoteError:
        return b""
    names = query.fields or FIELDS
    if query.output == "text":
        return (" ".join(fields[name].replace(" ", "%20") for name in names) + "\n").encode()
    names = tuple(name for name in names if fields[name] != "-" or query.fields)
    if query.output == "json":
        return msgspec.json.encode({name: fields[name] for name in names}) + b"\n"
    rest = {name: fields[name] for name in names if name not in ("urlkey", "timestamp")}
    return f"{fields['urlkey']} {fields['timestamp']} ".encode() + msgspec.json.encode(rest) + b"\n"
