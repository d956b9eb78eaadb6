"""URLs: one canonical spelling, the site they belong to, and the keys they are filed under.

A *canonical* URL is what `canonical` returns: parsed and serialised by the WHATWG rules, http or
https, without fragment, credentials and default port. It is ASCII and always has a path. All
other functions here take canonical URLs and only cut strings; given other text they may be wrong.
"""

from __future__ import annotations

import pkgutil
import re
from functools import cache, lru_cache
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

import xxhash

# The C calls under ada_url's Python layer: 1.1 us a join instead of 1.6 (ada_url.join_url) or 2.6
# (ada_url.URL), measured with a documentation page's links on one 2-core machine.
from ada_url.ada_adapter import ffi, lib  # type: ignore[attr-defined,unused-ignore]

_parse = lib.ada_parse
_parse_with_base = lib.ada_parse_with_base
_is_valid = lib.ada_is_valid
_href = lib.ada_get_href
_free = lib.ada_free
_unpack = ffi.unpack

_DEFAULT_PORTS = {"http": 80, "https": 443}
_DIGITS = frozenset("0123456789")


class Parts(NamedTuple):
    """A canonical URL, cut up."""

    scheme: str
    host: str  # IPv6 without brackets
    port: int
    target: str  # path and query, as the request line wants it
    authority: str  # scheme://host[:port]: what robots.txt is kept for
    site: str


def canonical(text: str, base: str | None = None) -> str | None:
    """The canonical form of `text`, resolved against `base`; None if it is no http(s) URL.

    Credentials are dropped: an archived name must not carry a password, and two spellings of one
    page are one page. Length is not judged here.
    """
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raw = _mend(text)
    if base is None:
        parsed = _parse(raw, len(raw))
    else:
        try:
            raw_base = base.encode()
        except UnicodeEncodeError:
            raw_base = _mend(base)
        parsed = _parse_with_base(raw, len(raw), raw_base, len(raw_base))
    try:
        if not _is_valid(parsed):
            return None
        view = _href(parsed)
        url: str = _unpack(view.data, view.length).decode()
    finally:
        _free(parsed)
    if not url.startswith(("http://", "https://")):
        return None
    if "#" in url:  # raw, it can only be the fragment's
        url = url[: url.find("#")]
    if "@" in url:
        url = _without_credentials(url)
    return url


def _mend(text: str) -> bytes:
    """Lone surrogates become U+FFFD, as in a browser."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _without_credentials(url: str) -> str:
    start = url.find("//") + 2
    at = url.find("@", start, url.find("/", start))
    return url if at < 0 else url[:start] + url[at + 1 :]


def site_of(url: str) -> str:
    """Host and port, the port unless it is its scheme's default: http and https are one site."""
    start = 7 if url[4] == ":" else 8
    return url[start : url.find("/", start)]


def under(url: str, site: str) -> str:
    """The same path and scheme at another site. Canonical where both have the same port."""
    start = 7 if url[4] == ":" else 8
    return url[:start] + site + url[url.find("/", start) :]


def target_of(url: str) -> str:
    """Path and query, as the request line wants them."""
    return url[url.find("/", 8) :]


def host_of(site: str) -> str:
    """The host of a site, without port or brackets."""
    if site.startswith("["):
        return site[1 : site.index("]")]
    return site.partition(":")[0]


def split(url: str) -> Parts:
    """All parts of a canonical URL at once."""
    scheme_end = url.find(":")
    start = scheme_end + 3
    end = url.find("/", start)
    scheme, site = url[:scheme_end], url[start:end]
    host, port = site, _DEFAULT_PORTS[scheme]
    colon = site.rfind(":")
    if colon > site.rfind("]"):
        host, port = site[:colon], int(site[colon + 1 :])
    if host[0] == "[":
        host = host[1:-1]
    return Parts(scheme, host, port, url[end:], url[:end], site)


def directory_of(url: str) -> str:
    """The URL up to and including the last slash of its path."""
    query = url.find("?")
    return url[: url.rfind("/", 0, query if query >= 0 else len(url)) + 1]


def path_depth(url: str) -> int:
    """Number of named segments of the path: 0 for `/`, 2 for `/a/b` and `/a/b/`."""
    start = url.find("/", 8)
    query = url.find("?", start)
    path = url[start : query if query >= 0 else len(url)]
    return sum(1 for segment in path.split("/") if segment)


def url_hash(url: str) -> int:
    """XXH3 of the URL as a signed 64-bit number, which is what both databases store."""
    return (xxhash.xxh3_64_intdigest(url.encode()) ^ 1 << 63) - (1 << 63)


@cache
def _suffixes() -> frozenset[str]:
    """The rules of the public suffix list, `*.` and `!` included. Read in 8 ms (the library takes
    30 to read them), so only who asks for a domain pays."""
    import publicsuffixlist

    data = pkgutil.get_data(publicsuffixlist.__name__, "public_suffix_list.dat")
    assert data is not None
    lines = data.decode("utf-8").split("\n")
    rules = [line.split()[0] for line in lines if line and not line.startswith("//")]
    return frozenset(
        rule if rule.isascii() else rule.encode("idna").decode("ascii") for rule in rules
    )


@lru_cache(maxsize=65_536)
def domain_of(host: str) -> str:
    """The registrable domain of a host by the public suffix list, its private part included.

    An address, a single label and a public suffix are their own domain.
    """
    name = host.rstrip(".").lower()
    if ":" in name or not set(name.rpartition(".")[2]) - _DIGITS:
        return host
    rules = _suffixes()
    domain, rest = "", name  # from the longest name down to the one label that is always a suffix
    while "." in rest and rest not in rules:
        above = rest.partition(".")[2]
        if f"!{rest}" in rules:
            return rest
        if f"*.{above}" in rules:
            break
        domain, rest = rest, above
    return domain or name


def is_suffix(name: str) -> bool:
    """True if names below it belong to different owners: `kr`, `co.kr`."""
    return "." not in name or domain_of(f"x.{name}") == f"x.{name}"


# --- SURT -------------------------------------------------------------------------------------
# The key of the Wayback Machine's canonicaliser, as the `surt` package computes it and pywb looks
# it up (compared over random URLs, see tests/test_url.py). Its oddities are part of the format:
# percent-escapes are undone repeatedly, so %26 in a query separates parameters.

_WWW = re.compile(r"www\d*\.")
_PLAIN = re.compile(r"[!\"$&'()*+,\-./0-9:;<=>?@A-Z\[\\\]^_`a-z{|}~]*").fullmatch
_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_PATH_SESSIONS = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)"),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)"),
)
_QUERY_SESSIONS = tuple(
    re.compile(rf"(.*){session}(?:&(.*))?", re.IGNORECASE)
    for session in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt(url: str) -> str:
    """The key of a URL in CDXJ: `org,example)/a?b=1`."""
    scheme, host, port, target, _authority, _site = split(url)
    path, _mark, query = target.partition("?")
    name = host.replace("..", ".").strip(".")
    www = _WWW.match(name)
    if www:
        name = name[www.end() :]
    key = ",".join(reversed(name.split(".")))
    if port not in (0, _DEFAULT_PORTS[scheme]):  # port 0 is none to `surt`
        key = f"{key}:{port}"
    key = f"{key}){_surt_path(path)}"
    if query:
        query = _surt_query(query)
        if query:
            key = f"{key}?{query}"
    return key


def _unescape(text: str) -> str:
    """Percent-escapes undone until none is left, then made again where they must be."""
    if _PLAIN(text):
        return text
    raw = text.encode()
    while (once := unquote_to_bytes(raw)) != raw:
        raw = once
    return quote_from_bytes(raw, safe=_SAFE)


def _surt_path(path: str) -> str:
    plain = path
    if "%" in path:
        raw = path.encode()
        while (once := unquote_to_bytes(raw)) != raw:
            raw = once
        plain = raw.decode("latin-1")
    kept: list[str] = []
    for segment in plain.split("/")[1:]:
        if segment == ".":
            continue
        if segment == ".." and kept:
            kept.pop()
        else:
            kept.append(segment)
    middle = [segment for segment in kept[:-1] if segment]
    plain = "/" + "/".join(middle + kept[-1:])
    if not _PLAIN(plain):
        plain = quote_from_bytes(plain.encode("latin-1"), safe=_SAFE)
    plain = plain.lower()
    if ".aspx" in plain:
        for pattern in _PATH_SESSIONS:
            found = pattern.fullmatch(plain)
            if found:
                plain = found[1] + found[2]
    if plain.endswith("/") and len(plain) > 1:
        plain = plain[:-1]
    return plain


def _surt_query(query: str) -> str:
    query = _unescape(query)
    for pattern in _QUERY_SESSIONS:
        found = pattern.fullmatch(query)
        if found:
            query = found[1] + (found[2] or "")
    query = query.lower()
    if len(query) <= 1:
        return query
    pairs = sorted(tuple(pair.split("=", 1)) for pair in query.split("&"))
    return "&".join("=".join(pair) for pair in pairs)
