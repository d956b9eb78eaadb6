"""The extractor: bytes in, `Page` out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from geomi.extract import css, html, scripts, tags
from geomi.extract.charset import decode, sniff_bom, sniff_css, sniff_html, sniff_xml, to_utf8
from geomi.extract.guess import doubted
from geomi.extract.head import charset_of, link_fields, mime_of, refresh_url, robots_tag
from geomi.extract.resolve import BAD, Found, Library, Memo, Rebase
from geomi.extract.script_only import is_script_only
from geomi.extract.unpack import unpack
from geomi.records import Page, Target
from geomi.url import directory_of, site_of

_HTML = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
#: Types that say no more than none at all (MIME sniffing standard).
_UNKNOWN = frozenset({"", "unknown/unknown", "application/unknown", "*/*"})
_SCRIPTS = frozenset(
    {"application/javascript", "text/javascript", "application/x-javascript", "text/ecmascript",
     "application/ecmascript"}
)  # fmt: skip
#: Longer scripts are bundles of libraries at most.
_SCRIPT_BYTES = 4 << 20
_FORM = re.compile(rb"<[fF][oO][rR][mM][ \t\n\r\f/>]")
_SNIFFED_BYTES = 512
_LOOKS_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?[ \t\n\r\f]*+(?:<!--|<(?:!doctype\s+html|html|head|body|title|script|iframe"
    rb"|h1|div|font|table|a|style|b|br|p|meta|frameset|img|ul|center)[ \t\n\r\f/>])",
    re.IGNORECASE,
)
_BINARY = (b"%PDF-", b"\x89PNG\r\n", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
#: Longer documents are walked tag by tag, so that no list of all tags is held beside them.
_WALKED_BYTES = 1 << 20
_NOTES = frozenset({tags.TITLE, tags.CANONICAL, tags.ROBOTS, tags.NOFOLLOW})
_MOST_NOTES = 100
_LINKS_SOMEWHERE = re.compile(rb"[ \t\n\r\f\"'/](?:href|src)[ \t\n\r\f]*+=", re.IGNORECASE)


class Extractor:
    """Reads documents, remembering links: a tag seen before in a directory costs one look-up.

    One an agent, not for several threads. The same `Target` stands for the same URL until more
    than `cache_targets` of them (or of tags) are held; then all are forgotten at once, and what
    was written into `Target.known` with them. It is a cache, never the truth.

    `obey_nofollow` is about single links (rel), `obey_meta` about whole pages (meta robots,
    X-Robots-Tag); what is not obeyed is recorded all the same. `forms` and `scripts` add guesses.
    """

    def __init__(
        self,
        *,
        agent: str = "geomi",
        cache_targets: int = 50_000,  # 25 MiB; more made no corpus quicker (openjdk-17-doc)
        max_links: int = 100_000,
        max_url: int = 2083,
        decode_bytes: int = 10 << 20,
        decode_ratio: float = 200.0,
        obey_nofollow: bool = True,
        obey_meta: bool = True,
        forms: bool = False,
        scripts: bool = False,
    ) -> None:
        self._agent = agent.lower()
        self._max_links = max_links
        self._decode_bytes = decode_bytes
        self._decode_ratio = decode_ratio
        self._obey_meta = obey_meta
        self._reads_forms = forms
        self._rules = tags.Rules(agent=self._agent, obey_nofollow=obey_nofollow, scripts=scripts)
        self._library = Library(
            self._rules,
            cache_targets=cache_targets,
            max_url=max_url,
        )

    def page(self, url: str, head: Mapping[str, str], body: bytes) -> Page:
        """What the document at the canonical `url` says; `head` has names in lower case.

        Never raises for what a server sent. A document that is neither HTML nor a style sheet, or
        cannot be unpacked, has no links.
        """
        mime = mime_of(head)
        page = Page(mime=mime, base=url)
        if "x-robots-tag" in head:
            _obey(page, robots_tag(head["x-robots-tag"], self._agent))
        if "content-encoding" in head and body:
            unpacked = unpack(
                body,
                head["content-encoding"],
                limit_bytes=self._decode_bytes,
                ratio=self._decode_ratio,
            )
            if unpacked is None:
                return page
            body = unpacked
        if mime in _HTML or mime in _UNKNOWN or "/" not in mime:
            if is_html(mime, body):
                fields = _named_by(head) if "link" in head or "refresh" in head else ()
                self._html(page, charset_of(head), body, fields)
                return page
        elif mime == "text/css":
            page.charset = sniff_bom(body) or charset_of(head) or sniff_css(body)
            self._read_text(page, [("e", link) for link in css.links(decode(body, page.charset))])
        elif self._rules.scripts and mime in _SCRIPTS:
            page.charset = sniff_bom(body) or charset_of(head) or "utf-8"
            text = decode(body[:_SCRIPT_BYTES], page.charset)
            self._read_text(page, [("h", link) for link in scripts.addresses(text)])
        if "link" in head:
            named = [item for item in _named_by(head) if item[0] == tags.CANONICAL]
            for link in self._resolved(page, named):
                page.canonical = page.canonical or str(link[1])
        return page

    def _html(self, page: Page, named: str, body: bytes, fields: Sequence[tags.Item]) -> None:
        is_xml = page.mime.endswith("+xml")
        page.charset = sniff_bom(body)
        if not page.charset:
            tld = tld_of(page.base)
            named = named or (sniff_xml(body) if is_xml else sniff_html(body, tld=tld))
            page.charset = doubted(body, named, tld=tld)
        document = to_utf8(body, page.charset)
        if document is None:
            document = body
        # Before anything is known of a base element, which is not for fields of the header.
        more = self._resolved(page, fields) if fields else ()
        memo = self._library.memo(directory_of(page.base), page.charset, is_whole=False)
        memo.start(page.base)
        try:
            self._read(page, memo, document, more, is_xml=is_xml)
        except Rebase as rebase:
            memo = self._library.memo(rebase.base, page.charset, is_whole=True)
            memo.start(page.base)
            page.base = rebase.base
            self._read(page, memo, document, more, is_xml=is_xml)
        if page.link_type[1:] == "00":
            page.script_only = is_script_only(document, page)

    def _read(
        self,
        page: Page,
        memo: Memo,
        document: bytes,
        more: Iterable[Found],
        *,
        is_xml: bool,
    ) -> None:
        if len(document) <= _WALKED_BYTES:
            glances = html.glances(document, xml=is_xml, with_own=memo.is_whole)
            # All in C once they are known: 0.1 us a link.
            found = dict.fromkeys(chain.from_iterable(map(memo.__getitem__, glances)))
        else:
            each = html.each_glance(document, xml=is_xml, with_own=memo.is_whole)
            found = self._walk(page, memo, each)
        found.update(dict.fromkeys(more))
        if self._reads_forms and _FORM.search(document):
            obeyed = self._rules.obey_nofollow
            found.update(dict.fromkeys(memo.forms(document, is_xml=is_xml, obey_nofollow=obeyed)))
        self._settle(page, found)

    def _walk(self, page: Page, memo: Memo, glances: Iterable[html.Glance]) -> dict[Found, None]:
        """Tag by tag; past the limit nothing is resolved, tags that hold a link are counted."""
        found: dict[Found, None] = {}
        cut = notes = 0
        for glance in glances:
            if len(found) - notes <= self._max_links:
                for pair in memo[glance]:
                    if pair not in found:
                        found[pair] = None
                        notes += notes < _MOST_NOTES and pair[0] in _NOTES
            elif glance[0] or _LINKS_SOMEWHERE.search(glance[1]):
                cut += 1
        page.cut_links = cut
        return found

    def _read_text(self, page: Page, items: Iterable[tags.Item]) -> None:
        """Links of a document that is no HTML."""
        self._settle(page, dict.fromkeys(self._resolved(page, list(dict.fromkeys(items)))))

    def _resolved(self, page: Page, items: Sequence[tags.Item]) -> Sequence[Found]:
        memo = self._library.memo(directory_of(page.base), page.charset, is_whole=False)
        memo.start(page.base)
        return memo.resolve(list(items))[0]

    def _settle(self, page: Page, found: Iterable[Found]) -> None:
        """Notes into fields, links into `page.links`."""
        links: list[tuple[str, Target]] = []
        for pair in found:
            kind, what = pair
            if what.__class__ is Target:
                links.append(pair)  # type: ignore[arg-type]
            elif kind == tags.TITLE:
                page.title = page.title or str(what)
            elif kind == tags.CANONICAL:
                page.canonical = page.canonical or str(what)
            elif kind == tags.ROBOTS:
                _obey(page, frozenset(str(what).split()))
            elif kind == BAD:
                page.bad_links += 1
            elif kind == tags.NOFOLLOW:
                page.nofollow_links += 1
        if page.nofollow and self._obey_meta:
            links = [link for link in links if link[0] == "e"]
        if len(links) > self._max_links:
            page.cut_links += len(links) - self._max_links
            del links[self._max_links :]
        page.links = links
        kinds = {kind for kind, _ in links}
        page.link_type = "".join(letter if letter in kinds else "0" for letter in "haf")


def _obey(page: Page, words: frozenset[str]) -> None:
    page.nofollow = page.nofollow or "nofollow" in words
    page.noindex = page.noindex or "noindex" in words
    page.noarchive = page.noarchive or "noarchive" in words


def _named_by(head: Mapping[str, str]) -> list[tags.Item]:
    """Links in fields of the header: Link and Refresh."""
    items: list[tags.Item] = []
    for url, rel in link_fields(head.get("link", "")):
        kind = tags.kind_of_link(rel)
        if kind:
            items.append((kind, url))
    url = refresh_url(head.get("refresh", ""))
    if url:
        items.append(("h", url))
    return items


def is_html(mime: str, body: bytes) -> bool:
    """False for what a server calls HTML though it is not, and for unknown types without markup."""
    start = body[:_SNIFFED_BYTES]
    if start.startswith(_BINARY):
        return False
    if mime not in _HTML:
        return _LOOKS_HTML.match(start) is not None
    if b"\0" not in start:
        return True
    # UTF-16 has NULs, and a page may have a stray one; then it begins like a page at least.
    return start.lstrip(b"\0 \t\n\r\f")[:1] == b"<" or bool(sniff_bom(start))


def tld_of(url: str) -> str:
    return site_of(url).partition(":")[0].rpartition(".")[2]
