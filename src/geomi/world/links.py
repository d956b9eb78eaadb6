"""Links of a page, and the ways in which markup writes a link: one table of forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from random import Random
from urllib.parse import unquote

from geomi.world import text
from geomi.world.chance import Choice


@dataclass(frozen=True, slots=True)
class Link:
    """One link as the generator knows it. `form` says how the page writes it."""

    form: str
    url: str  # absolute, canonical

    @property
    def kind(self) -> str:
        """The letter of records.Wanted.kind."""
        return FORMS[self.form].kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """What writing a link needs besides the link."""

    rng: Random
    base: str  # scheme and authority of the page
    path: str  # target of the page
    korean: bool
    raw: bool  # may non-ASCII paths be written as they are?
    movable: bool = False  # no absolute links within the site: it has several names

    def reference(self, url: str, *, raw: bool = False) -> str:
        """The link's text: absolute, from the root, or relative to the page."""
        if not url.startswith(self.base + "/"):
            return url
        target = url[len(self.base) :]
        if raw and self.raw and "%" in target and self.rng.random() < 0.5:
            target = unquote(target)
        draw = self.rng.random()
        if draw < 0.2 and not self.movable:
            return self.base + target
        if draw < 0.55:
            return target
        return relative(self.path, target)

    def words(self) -> str:
        return text.phrase(self.rng, korean=self.korean)


def relative(path: str, target: str) -> str:
    """The shortest relative reference from one target of a site to another."""
    here = path.partition("?")[0].split("/")[1:-1]
    there_path, mark, query = target.partition("?")
    *there, name = there_path.split("/")[1:]
    same = 0
    while same < min(len(here), len(there)) and here[same] == there[same]:
        same += 1
    up = "../" * (len(here) - same)
    reference = up + "/".join([*there[same:], name])
    return (reference or "./") + mark + query


def _anchor(url: str, w: Writer) -> str:
    href = escape(w.reference(url, raw=True))
    match int(w.rng.random() * 5):
        case 0:
            return f"<A HREF='{href}' class=more>{w.words()}</A>\n"
        case 1 if not href.endswith("/"):
            return f"<a href={href}>{w.words()}</a>\n"
        case 2:
            return f'<li><a class="item"\n title="1 > 0" href="{href}">{w.words()}</a></li>\n'
        case _:
            return f'<a href="{href}">{w.words()}</a>\n'


def _area(url: str, w: Writer) -> str:
    href = escape(w.reference(url))
    return f'<map name=m><area shape=rect coords="0,0,9,9" href="{href}" alt=""></map>\n'


def _iframe(url: str, w: Writer) -> str:
    return f'<iframe src="{escape(w.reference(url))}" width=300></iframe>\n'


def _frame(url: str, w: Writer) -> str:
    return f'<frame src="{escape(w.reference(url))}">\n'


def _onclick(url: str, w: Writer) -> str:
    call = escape(f"location.href='{w.reference(url)}'", quote=False)
    return f'<button onclick="{call}">{w.words()}</button>\n'


def _script(url: str, w: Writer) -> str:
    return f"<script>\nfunction go() {{ location.href = '{w.reference(url)}'; }}\n</script>\n"


def _popup(url: str, w: Writer) -> str:
    name = w.rng.randint(0, 99)
    return (
        f"<script>function pop{name}(){{window.open('{w.reference(url)}','w{name}');}}</script>\n"
    )


def _refresh(url: str, w: Writer) -> str:
    return f'<meta http-equiv="refresh" content="30; url={escape(w.reference(url))}">\n'


def _image(url: str, w: Writer) -> str:
    return f'<img src="{escape(w.reference(url))}" alt="{w.words()}">\n'


def _sheet(url: str, w: Writer) -> str:
    return f'<link rel="stylesheet" href="{escape(w.reference(url))}">\n'


def _code(url: str, w: Writer) -> str:
    return f'<script src="{escape(w.reference(url))}"></script>\n'


def _icon(url: str, w: Writer) -> str:
    return f'<link rel="shortcut icon" href="{escape(w.reference(url))}">\n'


def _feed(url: str, w: Writer) -> str:
    mime = "application/rss+xml" if "rss" in url else "application/atom+xml"
    href = escape(w.reference(url))
    return f'<link rel="alternate" type="{mime}" title="feed" href="{href}">\n'


def _css_url(url: str, w: Writer) -> str:
    return f"body {{ background: url('{w.reference(url)}') }}\n"


def _css_import(url: str, w: Writer) -> str:
    return f'@import "{w.reference(url)}";\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A way to write a link: its kind, its place in the page, how often a page uses it."""

    kind: str
    write: Callable[[str, Writer], str]
    head: bool = False
    share: float = 0.0  # among the forms for links to pages


FORMS: Mapping[str, Form] = {
    "anchor": Form(kind="a", write=_anchor, share=0.82),
    "area": Form(kind="a", write=_area, share=0.04),
    "iframe": Form(kind="f", write=_iframe, share=0.03),
    "onclick": Form(kind="h", write=_onclick, share=0.05),
    "script": Form(kind="h", write=_script, share=0.02),
    "popup": Form(kind="h", write=_popup, share=0.02),
    "refresh": Form(kind="h", write=_refresh, share=0.02, head=True),
    "frame": Form(kind="f", write=_frame),
    "feed": Form(kind="h", write=_feed, head=True),
    "icon": Form(kind="e", write=_icon, head=True),
    "sheet": Form(kind="e", write=_sheet, head=True),
    "code": Form(kind="e", write=_code, head=True),
    "image": Form(kind="e", write=_image),
    "css-import": Form(kind="e", write=_css_import),
    "css-url": Form(kind="e", write=_css_url),
}

#: Forms in which one page may point at another.
TO_PAGES = Choice(list(FORMS), [form.share for form in FORMS.values()])
