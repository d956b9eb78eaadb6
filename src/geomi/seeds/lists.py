"""Seed lists: one URL a line, labels after it; and any file that names seeds, known by content.

    # institutions.txt
    https://www.example.go.kr/  category=ministry institution="Ministry of Examples"  # a comment
    www.example.ac.kr           category=university

A value in quotes is written as in JSON: `\\"`, `\\\\`, `\\n`, `\\u00e9`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geomi import url as urls
from geomi.errors import OperatorError
from geomi.seeds.sitemaps import Kind, Problem, parse_sitemap
from geomi.seeds.text import gunzip, is_gzip, list_lines, text_lines

__all__ = [
    "Problem", "Seed", "format_seed", "given_seeds", "parse_label", "parse_list", "parse_seeds",
    "read_seeds", "seed_url",
]  # fmt: skip

#: No list kept by hand comes near it; what does is another kind of file.
LONGEST_LINE = 65_536
_MOST_UNPACKED_BYTES = 2**30
_URL = re.compile(r"https?:/", re.I)  # a path has lost the second slash
_SHOWN = 80  # characters of a bad line in its problem
_RESERVED = frozenset({"given", "found", "redirect"})  # sources that are no file


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """Where a party starts. Made by: seeds.   Taken by: coordinator."""

    url: str  # canonical
    labels: Mapping[str, str] = field(default_factory=dict)
    source: str = "given"  # given, found, redirect; or the name of the file it came from


_QUOTED = r'"((?:[^"\\]|\\.)*+)"'
_LABEL = re.compile(rf'(?:{_QUOTED}|([^\s="#][^\s="]*+))=(?:{_QUOTED}|([^\s"]*+))(?=\s|\Z)', re.S)
_SPACE = re.compile(r"\s*+")
_WORD = re.compile(r"\S++")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.S)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_BARE = re.compile(r'[^\s"]+')

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?![0-9]{1,5}(?:[/?#]|\Z))")
_HOST = re.compile(r"\[[0-9a-f:.]+\]|(?=.{1,254}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_NUMBERS = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+")


def seed_url(text: str) -> tuple[str, str]:
    """(canonical URL, ""), or ("", what is wrong). Without scheme `http://` is meant."""
    scheme = _SCHEME.match(text)
    if scheme is not None:
        if scheme[1].lower() not in ("http", "https"):
            return "", f"{scheme[1].lower()} is neither http nor https"
        return _checked(urls.canonical(text))
    bare = text.removeprefix("//")
    host = re.split(r"[/?#\\]", bare, maxsplit=1)[0]
    if "@" in host:
        return "", "a mail address is no URL"
    name, _colon, _port = host.partition(":")
    if not ("." in name.strip(".") or "。" in name or name == "localhost" or host.startswith("[")):
        return "", "no URL; a name without dot needs http:// before it"
    url, what = _checked(urls.canonical(f"http://{bare}"))
    if url and _NUMBERS.fullmatch(found := urls.split(url).host) and found != name:
        return "", f"no URL; if the address {found} is meant, write it so"
    return url, what


def _checked(url: str | None) -> tuple[str, str]:
    if url is None:
        return "", "no http(s) URL"
    site = urls.site_of(url)
    host = site if site.endswith("]") else re.sub(r":[0-9]+\Z", "", site)
    if not _HOST.fullmatch(host):
        return "", f"{host[:_SHOWN]} is no name of a host"
    return url, ""


def parse_list(text: str | bytes, *, source: str = "given") -> tuple[list[Seed], list[Problem]]:
    """Seeds in order, and what could not be read, by line. Never fails.

    Lines of one URL are one seed with the labels of all; the later line wins. Bytes may be UTF-8,
    CP949 (EUC-KR), or UTF-16 with its mark.
    """
    if isinstance(text, str):
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        lines = text_lines(whole.removeprefix("\ufeff"))
    else:
        lines = list_lines(text)
    found: dict[str, dict[str, str]] = {}
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if line is None:
            problems.append(Problem(line=number, text="", what="neither UTF-8 nor CP949"))
        elif len(line) > LONGEST_LINE:
            problems.append(Problem(line=number, text=line[:_SHOWN], what="the line is too long"))
        else:
            _read(line, number, found, problems)
    seeds = [Seed(url=url, labels=labels, source=source) for url, labels in found.items()]
    return seeds, problems


def _read(
    line: str, number: int, found: dict[str, dict[str, str]], problems: list[Problem]
) -> None:
    at = _space_end(line, 0)
    word = _WORD.match(line, at)
    if word is None or word[0].startswith("#"):
        return
    url, what = seed_url(word[0])
    if not url:
        problems.append(Problem(line=number, text=word[0][:_SHOWN], what=what))
        return
    labels = found.setdefault(url, {})
    at = _space_end(line, word.end())
    while at < len(line) and line[at] != "#":
        label = _LABEL.match(line, at)
        if label is None:
            word = _WORD.match(line, at)
            assert word is not None  # neither space nor end is here
            problems.append(
                Problem(line=number, text=word[0][:_SHOWN], what="no label of the form key=value")
            )
            at = _space_end(line, word.end())
            continue
        key, value = _label(label)
        labels[key] = value
        at = _space_end(line, label.end())


def _space_end(line: str, at: int) -> int:
    space = _SPACE.match(line, at)
    return space.end() if space else at


def _label(found: re.Match[str]) -> tuple[str, str]:
    key = found[2] if found[1] is None else _unescaped(found[1])
    return key, found[4] if found[3] is None else _unescaped(found[3])


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _character(found: re.Match[str]) -> str:
    what = found[1]
    if len(what) > 1:
        return chr(int(what[1:], 16))
    if what in '"\\/':
        return what
    return _LETTERS.get(what) or found[0]


def parse_label(text: str) -> tuple[str, str]:
    """`key=value` as a shell hands it over; the value may hold anything. Else OperatorError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise OperatorError(f"{text!r} is no label; wanted key=value, as category=news")
    return key.strip(), value


def format_seed(seed: Seed) -> str:
    """One line that parse_list reads back."""
    words = [seed.url]
    for key, value in seed.labels.items():
        is_bare = _is_bare(key) and "=" not in key and not key.startswith("#")
        shown = key if is_bare else _quoted(key)
        words.append(f"{shown}={value if _is_bare(value) else _quoted(value)}")
    return " ".join(words)


def _is_bare(text: str) -> bool:
    return bool(_BARE.fullmatch(text)) and text.isprintable()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def given_seeds(
    texts: Iterable[str], *, labels: Mapping[str, str] | None = None, source: str = "given"
) -> list[Seed]:
    """URLs of a command line. OperatorError names the first that is none."""
    seeds = []
    for text in texts:
        url, what = seed_url(text.strip())
        if not url:
            raise OperatorError(f"{text!r} cannot be a seed: {what}")
        seeds.append(Seed(url=url, labels=dict(labels or {}), source=source))
    return seeds


def parse_seeds(data: bytes, *, source: str = "given") -> tuple[list[Seed], list[Problem]]:
    """Seeds of a text list, sitemap or feed, gzipped or not: what it is, its content says."""
    what = ""
    if is_gzip(data):
        data, what = gunzip(data, limit_bytes=_MOST_UNPACKED_BYTES)
    # In UTF-16 a NUL stands before or after each mark of markup.
    if data[:64].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1] != b"<":
        seeds, problems = parse_list(data, source=source)
    else:
        listing = parse_sitemap(data)
        seeds = [Seed(url=entry.url, source=source) for entry in listing.entries]
        problems = list(listing.problems)
        if listing.kind is Kind.INDEX:
            first = listing.children[0].url if listing.children else ""
            said = f"an index of {len(listing.children)} sitemaps, which must be given themselves"
            problems.append(Problem(line=0, text=first, what=said))
    if what:
        problems.insert(0, Problem(line=0, text="", what=what))
    return seeds, problems


def read_seeds(path: str | Path, *, source: str | None = None) -> tuple[list[Seed], list[Problem]]:
    """The seeds of a file. OperatorError if it cannot be read; `source` is its name by default."""
    path = Path(path)
    if _URL.match(str(path)):
        raise OperatorError(f"{path}: a file is wanted; fetch it first, and give that")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read: {error.strerror or error}") from error
    name = path.name or str(path)
    return parse_seeds(data, source=source or (f"./{name}" if name in _RESERVED else name))
