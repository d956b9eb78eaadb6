"""Forms that ask with GET, as the addresses they lead to when sent as they stand.

Such an address is a candidate, not a link: what a visitor would write into the form is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import quote_from_bytes

from geomi.extract import html
from geomi.extract.charset import mend
from geomi.extract.labels import codec_of, encoding_of
from geomi.extract.tags import Decode, Element, read_attributes

#: What no honest page exceeds.
_MOST_FORMS = 100
_MOST_FIELDS = 500
_LONGEST_VALUE = 2000
_BUTTONS = frozenset({"submit", "image", "button", "reset"})
_UTF_8_INSTEAD = frozenset({"utf-16le", "utf-16be", "replacement", "us-ascii"})
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(slots=True)
class _Form:
    action: str
    charset: str
    pairs: list[tuple[str, str]] = field(default_factory=list)
    has_button: bool = False
    # The select element that is open: its name (empty: not sent), what is chosen, what comes first.
    select: str = ""
    is_many: bool = False
    chosen: list[str] = field(default_factory=list)
    first: str | None = None


def candidates(
    document: bytes, decode: Decode, charset: str, *, is_xml: bool, obey_nofollow: bool
) -> Iterator[tuple[str, str]]:
    """(action as written, query) of each form with method GET; an empty action is the page."""
    form: _Form | None = None
    count = 0
    for tag in html.form_tags(document, xml=is_xml):
        name, attributes, end = read_attributes(tag)
        if end < 0:
            continue
        if name in ("/form", "form"):
            if form is not None and (name == "/form" or is_xml):
                yield form.action, _query(form)
                form = None
            if name == "form" and form is None and count < _MOST_FORMS:  # forms do not nest
                count += 1
                form = _start(Element(attributes, decode), charset, obey_nofollow=obey_nofollow)
        elif form is not None and len(form.pairs) < _MOST_FIELDS:
            _field(form, name, Element(attributes, decode), tag[end:])
    if form is not None:
        yield form.action, _query(form)


def _start(said: Element, charset: str, *, obey_nofollow: bool) -> _Form | None:
    method = said.text(b"method").strip().lower()
    if method in ("post", "dialog") or (obey_nofollow and "nofollow" in said.words(b"rel")):
        return None
    accepted = map(encoding_of, said.text(b"accept-charset").replace(",", " ").split())
    charset = next(filter(None, accepted), charset)
    return _Form(said.text(b"action"), "utf-8" if charset in _UTF_8_INSTEAD else charset)


def _field(form: _Form, tag: str, said: Element, inside: bytes) -> None:
    if tag in ("/select", "select"):
        _close_select(form)
    if b"disabled" in said.attributes or b"form" in said.attributes:
        return
    name = said.text(b"name")
    value = said.text(b"value")[:_LONGEST_VALUE]
    kind = said.text(b"type").strip().lower()
    if tag == "select":
        form.select, form.is_many = name, b"multiple" in said.attributes
    elif tag == "option":
        if b"value" not in said.attributes:
            text = said.decode(inside[: 4 * _LONGEST_VALUE])
            value = " ".join(unescape(text.partition("<")[0]).split())
        if b"selected" in said.attributes:
            form.chosen.append(value)
        elif form.first is None:
            form.first = value
    elif tag == "textarea":
        text = unescape(said.decode(inside[: 4 * _LONGEST_VALUE]))
        _add(form, name, _LINE_END.sub("\r\n", text.removeprefix("\n"))[:_LONGEST_VALUE])
    elif tag == "button" or kind in _BUTTONS:
        kind = kind or ("submit" if tag == "button" else "")
        if kind in ("submit", "image") and not form.has_button:
            form.has_button = True  # the one that the Enter key presses
            if kind == "submit":
                _add(form, name, value)
    elif kind in ("checkbox", "radio"):
        if b"checked" in said.attributes:
            _add(form, name, value if b"value" in said.attributes else "on")
    elif kind == "hidden" and name.lower() == "_charset_":
        _add(form, name, form.charset)
    elif kind != "file":
        _add(form, name, value)


def _close_select(form: _Form) -> None:
    values = form.chosen
    if not form.is_many:
        values = values[-1:] or ([] if form.first is None else [form.first])
    for value in values:
        _add(form, form.select, value)
    form.select, form.is_many, form.chosen, form.first = "", False, [], None


def _add(form: _Form, name: str, value: str) -> None:
    if name:
        form.pairs.append((name, value))


def _query(form: _Form) -> str:
    """The pairs as application/x-www-form-urlencoded, in the charset of the form."""
    _close_select(form)
    codec = codec_of(form.charset)
    return "&".join(f"{_sent(name, codec)}={_sent(value, codec)}" for name, value in form.pairs)


def _sent(text: str, codec: str) -> str:
    raw = mend(text).encode(codec, "xmlcharrefreplace")
    return quote_from_bytes(raw, safe=" *-._").replace("~", "%7E").replace(" ", "+")
