"""Bytes of documents. Each content has one renderer in the table at the end."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from geomi.world import corners, text
from geomi.world.changes import EPOCH_S
from geomi.world.links import FORMS, Link, Writer
from geomi.world.pages import Page
from geomi.world.sites import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """All that a renderer may need."""

    site: Site
    page: Page
    links: Sequence[Link]
    version: int
    changed_s: float  # since the world's start
    rng: Random  # depends on site and page, not on the version
    urls: Sequence[tuple[str, float]] = ()  # for sitemaps and feeds: URL, last change
    crawl_delay_s: float = 1.0


Rendered = tuple[str, bytes]  # content type, body


def _html_type(site: Site) -> str:
    return corners.html_type(site.charset)[1]


def _head(draft: Draft, extra: str) -> str:
    site = draft.site
    meta = corners.meta(site.charset)
    number = draft.page.number if draft.page.same_as < 0 else draft.page.same_as
    title = f"{text.title(draft.rng, korean=site.korean)} {site.domain} {number}"
    lang = "ko" if site.korean else "en"
    return f'<!doctype html>\n<html lang="{lang}">\n<head>\n{meta}<title>{title}</title>\n{extra}'


def _html(draft: Draft) -> Rendered:
    site, rng = draft.site, draft.rng
    raw = site.korean and site.charset.honest
    writer = Writer(
        rng=rng, base=site.base, path=draft.page.target, korean=site.korean, raw=raw,
        movable=bool(site.copies),
    )  # fmt: skip
    heads: list[str] = []
    bodies: list[str] = []
    for link in draft.links:
        form = FORMS[link.form]
        (heads if form.head else bodies).append(form.write(link.url, writer))
    if draft.page.role.content == "frameset":
        page = _head(draft, "</head>\n<frameset cols='*,*'>\n") + "".join(bodies)
        page += "<noframes>no frames here</noframes>\n</frameset>\n</html>\n"
        return _html_type(site), page.encode(site.charset.codec)
    pool = text.paragraphs(site.korean)
    count = min(100, 6 + int(rng.lognormvariate(2.2, 0.8)))
    blocks = rng.choices(pool, k=count)
    # A change replaces one paragraph and adds a dated line.
    key = rng.getrandbits(32)
    for version in range(max(1, draft.version - 3), draft.version + 1):
        fresh = Random(key ^ version)
        blocks[fresh.randrange(len(blocks))] = f"<p>no. {version}</p>\n{fresh.choice(pool)}"
    if "cp949" in site.charset.codec:
        blocks.append(f"<p>{text.RARE}</p>\n")
    step = max(1, len(bodies) // len(blocks) + 1)
    parts = [_head(draft, "".join(heads)), "</head>\n<body>\n<h1 id=top>", site.domain, "</h1>\n"]
    for k, block in enumerate(blocks):
        parts += bodies[k * step : (k + 1) * step]
        parts.append(block)
    parts += bodies[len(blocks) * step :]
    parts.append('<!-- <a href="/ghost.html">old</a> -->\n<a href="#top">top</a>\n')
    parts.append(
        f'<a href="mailto:web@{site.domain}">mail</a> <a href="javascript:void(0)">x</a>\n'
    )
    parts.append("</body>\n</html>\n")
    return _html_type(site), "".join(parts).encode(site.charset.codec)


def _text(draft: Draft) -> Rendered:
    pool = text.paragraphs(draft.site.korean)
    body = "".join(draft.rng.choices(pool, k=draft.rng.randint(3, 20)))
    body = body.replace("<p>", "").replace("</p>", "\n")
    body += f"see {draft.site.base}/nowhere-{draft.version}.html\n"
    return "text/plain; charset=utf-8", body.encode()


def _pdf(draft: Draft) -> Rendered:
    head = b"%%PDF-1.4\n%% %d %d %d\n" % (draft.site.number, draft.page.number, draft.version)
    return "application/pdf", head + draft.rng.randbytes(draft.rng.randint(2_000, 60_000))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png(draft: Draft) -> Rendered:
    side = draft.rng.randint(8, 40)
    rows = b"".join(b"\0" + draft.rng.randbytes(side * 3) for _ in range(side))
    name = f"name\0{draft.site.domain}{draft.page.target}".encode("latin-1", "replace")
    body = b"\x89PNG\r\n\x1a\n"
    body += _chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    body += _chunk(b"tEXt", name) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return "image/png", body


def _css(draft: Draft) -> Rendered:
    site = draft.site
    writer = Writer(
        rng=draft.rng, base=site.base, path=draft.page.target, korean=False, raw=False,
        movable=bool(site.copies),
    )  # fmt: skip
    rules = "".join(FORMS[link.form].write(link.url, writer) for link in draft.links)
    return "text/css", (rules + f"h1 {{ color: #{site.number % 4096:03x} }}\n").encode()


def _js(draft: Draft) -> Rendered:
    return "application/javascript", f"var site = {draft.site.number};\n".encode()


def _redirect(draft: Draft) -> Rendered:
    return "text/html", b"<html><head><title>moved</title></head><body>moved</body></html>\n"


def _error(draft: Draft) -> Rendered:
    return "text/html", error_body(draft.page.status, draft.page.target)


def error_body(status: int, target: str) -> bytes:
    """A page that says what went wrong, without any link."""
    name = f"{status} {target}"
    return f"<html><head><title>{status}</title></head><body>{name}</body></html>\n".encode()


def stamped(body: bytes, key: int, now_s: float) -> bytes:
    """An HTML page with a session and a clock in it; whatever has no end of a body as it is."""
    at = datetime.fromtimestamp(now_s, UTC)
    session = f"{key:016x}{key ^ 0x5A5A5A5A5A5A5A5A:016x}"
    stamp = (
        f'<form action="/find"><input type="hidden" name="token" value="{session}"></form>\n'
        f"<p>{at:%Y-%m-%d %H:%M:%S} ({session[:24]})\n"
    )
    return body.replace(b"</body>", stamp.encode() + b"</body>", 1)


def _robots(draft: Draft) -> Rendered:
    site = draft.site
    body = site.robots.text.format(delay=draft.crawl_delay_s)
    names = {"plain": "sitemap.xml", "gzip": "sitemap.xml.gz", "index": "sitemap-index.xml"}
    if site.sitemap and site.robots.legible:
        body += f"\nSitemap: {site.base}/{names[site.sitemap]}\n"
    return site.robots.mime, site.robots.encode(body)


def _day(changed_s: float) -> str:
    return datetime.fromtimestamp(EPOCH_S + changed_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SITEMAP_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def _xml(url: str) -> str:
    return url.replace("&", "&amp;")


def _sitemap(draft: Draft) -> Rendered:
    target, base = draft.page.target, draft.site.base
    if target == "/sitemap-index.xml":
        maps = "".join(
            f"<sitemap><loc>{base}{name}</loc></sitemap>\n"
            for name in ("/sitemap-1.xml", "/sitemap-2.xml.gz")
        )
        body = f"{_XML}<sitemapindex {_SITEMAP_NS}>\n{maps}</sitemapindex>\n".encode()
        return "application/xml", body
    half = {"/sitemap-1.xml": slice(0, None, 2), "/sitemap-2.xml.gz": slice(1, None, 2)}
    rows = "".join(
        f"<url><loc>{_xml(url)}</loc><lastmod>{_day(changed)}</lastmod></url>\n"
        for url, changed in draft.urls[half.get(target, slice(None))]
    )
    body = f"{_XML}<urlset {_SITEMAP_NS}>\n{rows}</urlset>\n".encode()
    if target.endswith(".gz"):
        return "application/gzip", gzip.compress(body, 6, mtime=0)
    return "application/xml", body


def _rss(draft: Draft) -> Rendered:
    rows = "".join(f"<item><link>{_xml(url)}</link></item>\n" for url, _ in draft.urls[:20])
    body = f'{_XML}<rss version="2.0"><channel><title>{draft.site.domain}</title>\n{rows}'
    return "application/rss+xml", f"{body}</channel></rss>\n".encode()


def _atom(draft: Draft) -> Rendered:
    rows = "".join(
        f'<entry><link href="{_xml(url)}"/><updated>{_day(changed)}</updated></entry>\n'
        for url, changed in draft.urls[:20]
    )
    body = f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom">\n{rows}</feed>\n'
    return "application/atom+xml", body.encode()


RENDERERS: Mapping[str, Callable[[Draft], Rendered]] = {
    "html": _html,
    "frameset": _html,
    "text": _text,
    "pdf": _pdf,
    "png": _png,
    "css": _css,
    "js": _js,
    "redirect": _redirect,
    "error": _error,
    "robots": _robots,
    "sitemap": _sitemap,
    "rss": _rss,
    "atom": _atom,
}
