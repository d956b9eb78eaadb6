"""Marks: every way to write a link, what pages say to robots, frames in frames, very long pages."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from geomi.world.corners import Asked, Corner, Found, Reference, document, html_type, meta, page

#: name: (kind, markup); {u} is the target /~zoo/NAME, {r} the same relative to the page.
ZOO: Mapping[str, tuple[str, str]] = {
    # -- a: anchors and areas
    "plain": ("a", '<a href="{u}">x</a>'),
    "bare": ("a", "<a href={u}>x</a>"),
    "single": ("a", "<A HREF = '{u}' >x</A>"),
    "blanks": ("a", '<a href="\n {u}\t ">x</a>'),
    "fragment": ("a", '<a href="{r}#part">x</a>'),
    "dots": ("a", '<a href="./a/../b/./../{r}">x</a>'),
    "backslash": ("a", '<a href="\\~zoo\\backslash">x</a>'),
    "entity": ("a", '<a href="&#47;~zoo&#x2F;entity">x</a>'),
    "unclosed": ("a", '<a href="{u}"><p>x'),
    "first-of-two": ("a", '<a href="{u}" href="/~zoo/not-second">x</a>'),
    "greater": ("a", '<a title="1 > 0" href="{u}">x</a>'),
    "slashes": ("a", "<a/href='{u}'/>x</a>"),
    "area": ("a", '<map name=m><area shape=rect coords="0,0,9,9" href="{u}" alt=""></map>'),
    "svg-anchor": ("a", '<svg><a xlink:href="{u}"><text>x</text></a></svg>'),
    "noscript": ("a", '<noscript><a href="{u}">x</a></noscript>'),
    "after-comment": ("a", '<!-- a > b --><!--><a href="{u}">x</a>'),
    "in-select": ("a", '<table><tr><td><a href="{u}">x</a></table>'),
    # -- f: frames
    "iframe": ("f", '<iframe src="{u}"></iframe>'),
    "iframe-bare": ("f", "<IFRAME SRC={u}></IFRAME>"),
    # -- h: everything else that leads to a page
    "refresh": ("h", '<meta http-equiv="refresh" content="600; url={u}">'),
    "refresh-quoted": ("h", "<META HTTP-EQUIV=Refresh CONTENT=\"600;URL='{u}'\">"),
    "refresh-short": ("h", '<meta http-equiv="refresh" content="600,{u}">'),
    "next": ("h", '<link rel="next" href="{u}">'),
    "alternate": ("h", '<link rel="alternate" hreflang="en" href="{u}">'),
    "onclick": ("h", "<button onclick=\"location.href='{u}'\">x</button>"),
    "onmouseover": ("h", "<td onmouseover='window.open(\"{u}\")'>x</td>"),
    "onchange": ("h", "<select onchange=\"document.location = '{u}'\"></select>"),
    "javascript": ("h", "<a href=\"javascript:window.open('{u}','w')\">x</a>"),
    "javascript-escaped": ("h", '<a href="javascript:location.href=%27{u}%27">x</a>'),
    "script-location": ("h", "<script>if (top) location.replace('{u}');</script>"),
    "script-assign": ("h", '<script>window.location.assign("{u}")</script>'),
    "script-slashes": ("h", "<script>location.href = '\\/~zoo\\/script-slashes';</script>"),
    "script-unicode": ("h", "<script>location = '\\u002f~zoo/script-unicode';</script>"),
    # -- e: what a page needs
    "image": ("e", '<img src="{u}" alt="">'),
    "image-upper": ("e", "<IMG SRC='{u}'>"),
    "source": ("e", '<picture><source srcset="{u} 2x"></picture>'),
    "poster": ("e", '<video poster="{u}"></video>'),
    "video": ("e", '<video><source src="{u}"></video>'),
    "audio": ("e", '<audio src="{u}"></audio>'),
    "track": ("e", '<video><track src="{u}"></video>'),
    "embed": ("e", '<embed src="{u}">'),
    "object": ("e", '<object data="{u}"></object>'),
    "input": ("e", '<input type="image" src="{u}">'),
    "td-background": ("e", '<table><tr><td background="{u}">x</table>'),
    "style-attribute": ("e", "<p style=\"background: url('{u}')\">x"),
    "style-element": ("e", "<style>h1 {{ background: url({u}) }}</style>"),
    "style-import": ("e", '<style>@import "{u}";</style>'),
    "style-escape": ("e", "<style>h2 {{ background: url(\\2f ~zoo/style-escape) }}</style>"),
    "svg-image": ("e", '<svg><image xlink:href="{u}"/></svg>'),
    "svg-use": ("e", '<svg><use href="{u}"/></svg>'),
    "script": ("e", '<script src="{u}"></script>'),
    "module": ("e", '<script type="module" src="{u}"></script>'),
    "sheet": ("e", '<link rel="stylesheet" href="{u}">'),
    "touch-icon": ("e", '<link rel="apple-touch-icon" href="{u}">'),
    "manifest": ("e", '<link rel=manifest href="{u}">'),
    "preload": ("e", '<link rel="preload" as=image href="{u}">'),
}
#: Several links in one attribute: names of further targets, all of kind e.
SETS: Mapping[str, tuple[str, ...]] = {
    '<img srcset="{0} 1x, {1} 2x,{2} 300w">': ("set-a", "set-b", "set-c"),
    '<link rel=preload as=image imagesrcset="{0} 1x, {1} 2x">': ("preset-a", "preset-b"),
}
#: Nothing of this is a link. Who follows one asks for a name that begins with /~zoo/not-.
NOT_LINKS: tuple[str, ...] = (
    '<!-- <a href="/~zoo/not-comment">x</a> -->',
    '<!-- -- > <a href="/~zoo/not-comment-2">x</a> --!>',
    '<textarea><a href="/~zoo/not-textarea">x</a></textarea>',
    "<script>var t = '<a href=\"/~zoo/not-string\">x</a>';</script>",
    "<style>/* url(/~zoo/not-css-comment) */</style>",
    '<a name="/~zoo/not-name">x</a>',
    '<p href="/~zoo/not-p">x',
    '<a data-title="/~zoo/not-data">x</a>',
    '<link rel="dns-prefetch" href="/~zoo/not-prefetch">',
    '<form method="post" action="/~zoo/not-post"></form>',
    '<a href="mailto:a@b.example">x</a> <a href="tel:+82-2">x</a> <a href="data:text/html,x">x</a>',
    '<a href="javascript:void(0)">x</a> <a href="about:blank">x</a> <a href="#here">x</a>',
    '<a href="ftp://ftp.example/~zoo/not-ftp">x</a> <a href="http://">x</a> <a>x</a>',
    "<a title='<a href=\"/~zoo/not-inside\">'>x</a>",
    '<script type="application/json">{"location.href": "/~zoo/not-json"}</script>',
)


def _zoo(asked: Asked) -> Found | None:
    """One page with every form of link; each leads to a page of its own."""
    if asked.rest in ZOO or any(asked.rest in names for names in SETS.values()):
        return page(asked, asked.rest, ["/"])
    if asked.rest:
        return None
    lines = [markup.format(u=asked.folder + name, r=name) for name, (_, markup) in ZOO.items()]
    links: list[Reference] = [(kind, asked.folder + name) for name, (kind, _) in ZOO.items()]
    for markup, names in SETS.items():
        lines.append(markup.format(*(asked.folder + name for name in names)))
        links += [("e", asked.folder + name) for name in names]
    lines += NOT_LINKS
    return Found(
        headers=(html_type(asked.charset),),
        body=document(asked.charset, "zoo", "\n".join(lines) + "\n"),
        links=tuple(links),
    )


#: page: (extra header value of X-Robots-Tag, elements of its head, does geomi take its links)
_SIGNS: Mapping[str, tuple[str, str, bool]] = {
    "meta-nofollow": ("", '<meta name="robots" content="NOFOLLOW">\n', False),
    "meta-none": ("", "<META CONTENT='none' NAME='ROBOTS'>\n", False),
    "meta-geomi": ("", '<meta name="geomi" content="noindex, nofollow">\n', False),
    "meta-other": ("", '<meta name="otherbot" content="nofollow">\n', True),
    "meta-noindex": ("", '<meta name="robots" content="noindex">\n', True),
    "meta-noarchive": ("", '<meta name="robots" content="noarchive">\n', True),
    "tag-nofollow": ("noindex, nofollow", "", False),
    "tag-geomi": ("geomi: nofollow", "", False),
    "tag-other": ("otherbot: nofollow", "", True),
    "tag-date": ("unavailable_after: 25 Jun 2010 15:00:00 PST", "", True),
    "canonical": ("", '<link rel="canonical" href="/~signs/">\n', True),
}


def _signs(asked: Asked) -> Found | None:
    """What pages say to robots, by element, header and link."""
    if asked.rest.removeprefix("from-") in _SIGNS and asked.rest.startswith("from-"):
        return page(asked, asked.rest, ["/"])
    if asked.rest == "nofollowed":
        return page(asked, "nofollowed", ["/"])
    if not asked.rest:
        targets = [asked.folder + name for name in _SIGNS]
        hidden = f"{asked.folder}nofollowed"
        lines = "".join(f'<p><a href="{target}">x</a>\n' for target in targets)
        lines += f'<p><a rel="external nofollow" href="{hidden}">x</a>\n'
        return Found(
            headers=(html_type(asked.charset),),
            body=document(asked.charset, "signs", lines),
            links=tuple(("a", target) for target in targets),
            nofollow=(("a", hidden),),
        )
    if asked.rest not in _SIGNS:
        return None
    tag, head, takes = _SIGNS[asked.rest]
    links: tuple[Reference, ...] = (("a", f"{asked.folder}from-{asked.rest}"),)
    inside = f'<p><a href="from-{asked.rest}">x</a>\n'
    return Found(
        headers=(html_type(asked.charset), *([("X-Robots-Tag", tag)] if tag else [])),
        body=document(asked.charset, asked.rest, inside, head=head),
        links=links if takes else (),
        nofollow=() if takes else links,
        original=asked.folder if asked.rest == "canonical" else "",
    )


_FRAMES = 4


def _frames(asked: Asked) -> Found | None:
    """Frames in frames, four deep; the innermost page frames the outermost."""
    if not asked.rest:
        return page(asked, "frames", [f"{asked.folder}set-0.html"])
    if asked.rest == "menu.html":
        return page(asked, "menu", [f"{asked.folder}text.html"])
    if asked.rest == "text.html":
        return page(asked, "text", ["/"])
    kind, _, number = asked.rest.removesuffix(".html").partition("-")
    if kind != "set" or number not in map(str, range(_FRAMES)):
        return None
    inner = f"set-{(int(number) + 1) % _FRAMES}.html"
    links: tuple[Reference, ...] = (
        ("f", asked.folder + inner), ("f", f"{asked.folder}menu.html"),
        ("a", f"{asked.folder}text.html"),
    )  # fmt: skip
    if int(number) % 2:
        inside = f'<iframe src="{inner}"></iframe>\n<iframe src="menu.html"></iframe>\n'
        inside += '<p><a href="text.html">x</a>\n'
        body = document(asked.charset, asked.rest, inside)
    else:
        text = (
            f"<html>\n<head>\n{meta(asked.charset)}<title>{escape(asked.rest)}</title></head>\n"
            f'<frameset cols="*,*">\n<frame src="{inner}">\n<frame src="menu.html">\n'
            '<noframes><a href="text.html">x</a></noframes>\n</frameset>\n</html>\n'
        )
        body = text.encode(asked.charset.codec)
    return Found(headers=(html_type(asked.charset),), body=body, links=links)


_BASES: Mapping[str, str] = {"base-root": "/", "base-folder": "/~base/deep/er/"}


def _base(asked: Asked) -> Found | None:
    """Pages whose base element moves every link."""
    if not asked.rest:
        return page(asked, "bases", [asked.folder + name for name in _BASES])
    if asked.rest == "deep/er/near.html":
        return page(asked, asked.rest, ["/"])
    if asked.rest not in _BASES:
        return None
    base = _BASES[asked.rest]
    target = f"{asked.folder}deep/er/near.html"
    inside = f'<p><a href="{target.removeprefix(base)}">x</a> <a href="#top">x</a>\n'
    return Found(
        headers=(html_type(asked.charset),),
        body=document(asked.charset, asked.rest, inside, head=f'<base href="{base}">\n'),
        # A fragment alone means the URL of the base element.
        links=(("a", target), ("a", base)),
    )


_PARAGRAPH = "<p class=text>Nothing is said here, at length, so that the page becomes long.</p>\n"
_LONG = 18_000


def _big(asked: Asked) -> Found | None:
    """A page over 1 MiB with a link at either end."""
    ends = [f"{asked.folder}first.html", f"{asked.folder}last.html"]
    if asked.folder + asked.rest in ends:
        return page(asked, asked.rest, ["/"])
    if asked.rest:
        return None
    inside = f'<p><a href="first.html">x</a>\n{_PARAGRAPH * _LONG}<p><a href="last.html">x</a>\n'
    return Found(
        headers=(html_type(asked.charset),),
        body=document(asked.charset, "long", inside),
        links=tuple(("a", end) for end in ends),
    )


CORNERS: tuple[Corner, ...] = (
    Corner(name="zoo", find=_zoo),
    Corner(name="signs", find=_signs),
    Corner(name="frames", find=_frames),
    Corner(name="base", find=_base),
    Corner(name="big", find=_big),
)
