"""Finds the tags of an HTML document that can hold a link, in one pass over its bytes.

One regular expression is the tokenizer of the HTML standard as far as links need it: what is a
tag, a comment, raw text, a quoted value. It walks over everything boring inside the engine and
hands out only tags that may matter, whole. Each alternative consumes what it looks at and nothing
is given back (possessive quantifiers), so time is linear for any bytes. What a tag says is read in
`geomi.extract.tags`, and remembered by the bytes of the tag. Of an anchor as most are written only
its address is handed out: titles and fragments differ where the link is one.

Left out of the standard: where tags may nest (so what a browser drops from inside a select or a
table is found), and `noframes` is read like content, as crawlers of framed sites need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

#: The address of a plain anchor, or else a whole tag; the other is empty.
Glance = tuple[bytes, bytes]

_END = rb"[ \t\n\r\f/>]"
_VALUE = rb"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^"'> \t\n\r\f][^> \t\n\r\f]*+|(?=>|\Z))"""
_NEXT = rb"[ \t\n\r\f/]*+=?+[^>=]*+"
#: Attributes of any tag up to its end, or the document's: matches always.
_ATTRIBUTES = _NEXT + rb"(?:=[ \t\n\r\f]*+" + _VALUE + _NEXT + rb")*+(?:>|\Z)"
#: The same, but fails at an attribute that may hold a link in any tag: on*, style, background,
#: data-href.
#: (Most tags have no attribute, or one that is quoted: settled first, 10 % of the whole pass.)
_BORING_ATTRIBUTES = (
    rb'(?:>| [ace-np-rt-zACE-NP-RT-Z][a-zA-Z-]*+="[^"]*+">|'
    rb"(?:[ \t\n\r\f/]++(?![oO][nN]|[sS][tT][yY]|[bB][aA]|[dD][aA][tT][aA]-[hH])"
    rb'(?:[a-zA-Z-]++="[^"]*+"|=?+[^ \t\n\r\f/>=]++[ \t\n\r\f]*+(?:=[ \t\n\r\f]*+' + _VALUE
    + rb")?+))*+[ \t\n\r\f/]*+>)"
)  # fmt: skip

#: Elements that may name a URL, a title or the encoding, or that hold raw text.
_NAMES = (
    "a area audio base bgsound embed frame iframe image img input link meta noembed object"
    " plaintext script source style textarea title track use video xmp"
)
_RAW_IN_HTML = ("script", "style", "title", "textarea", "iframe", "noembed", "xmp")
_FORM_NAMES = ("form", "input", "select", "option", "button")
_RAW_IN_XML = ("script", "style", "title", "textarea")


def _any_case(word: str) -> bytes:
    return b"".join(b"[%c%c]" % (ord(c), ord(c.upper())) for c in word)


def _name_in(words: tuple[str, ...]) -> bytes:
    return b"(?:" + b"|".join(map(_any_case, words)) + b")" + _END


#: The name of a tag that is in none of the above. The first branches settle nearly all tags by
#: one or two characters (a lookahead for every name costs 30 % of the whole pass).
_BORING_NAME = (
    rb"(?:[cdghjkqrwyzCDGHJKQRWYZ]|[sS](?:[pP]|[tT][rR]|(?![cotCOT]))|[pP](?![lL])|[lL](?![iI][nN])"
    rb"|[tT](?:[dDhH]|[rR](?![aA])|(?![eirEIR]))|[bB](?![aAgG])|[eE](?![mM][bB])|[uU](?![sS])|[iI](?![fmnFMN])"
    rb"|[aA](?![ruRU \t\n\r\f/>])|(?=[a-zA-Z])(?!" + _name_in(tuple(_NAMES.split())) + rb").)"
    rb"[^ \t\n\r\f/>]*+"
)
_COMMENT = rb"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>|\Z))"

#: Script text: "<!-- <script> </script>" hides an end tag, as in the standard's escaped states.
_SCRIPT_END = rb"</" + _any_case("script") + _END
_SCRIPT_START = rb"<" + _any_case("script") + _END
_ESCAPED = (
    rb"[^<-]*+(?:-(?!->)[^<-]*+|" + _SCRIPT_START
    + rb"[^<-]*+(?:-(?!->)[^<-]*+|(?!" + _SCRIPT_END + rb")<[^<-]*+)*+(?:" + _SCRIPT_END
    + rb")?+[^<-]*+|(?!" + _SCRIPT_END + rb"|" + _SCRIPT_START + rb")<[^<-]*+)*+(?:-->)?+"
)  # fmt: skip
_SCRIPT_TEXT = (
    rb"[^<]*+(?:<!--(?!-?>)" + _ESCAPED + rb"[^<]*+|(?!" + _SCRIPT_END
    + rb"|<!--(?!-?>))<[^<]*+)*+"
)  # fmt: skip


def _raw(name: str, unless: bytes) -> bytes:
    """An element with raw text: its start tag and all up to its end tag or the document's end."""
    word = _any_case(name)
    if name == "script":
        text = _SCRIPT_TEXT
    else:
        text = rb"[^<]*+(?:<(?!/" + word + _END + rb")[^<]*+)*+"
    return word + rb"(?=" + _END + rb")" + _ATTRIBUTES + rb"(?:" + unless + text + rb")?+"


#: An anchor that leads nowhere else: a third of those in real documentation.
_HERE = (
    rb'[aA](?: (?:class|id|name|title)="[^"]*+")*+(?: href="#[^"]*+")?+'
    rb'(?: (?:class|id|name|title)="[^"]*+")*+>'
)

#: Attributes that say nothing of links. The usual ones as they are usually written first, because
#: that is twice as fast; none of the others begins like a `loud` one.
_BLANKS = rb"[ \t\n\r\f]"
_USUAL = rb' (?:class|id|name|title|target|accesskey|alt|width|height|border|type)="[^"]*+"'


def quiet(loud: bytes) -> bytes:
    """Any number of them. `loud`: names, or how they begin, that are not passed over."""
    value = rb"""(?:="[^"]*+"|='[^']*+'|=[^"'> \t\n\r\f][^> \t\n\r\f]*+)?+(?=[> \t\n\r\f])"""
    other = _BLANKS + rb"++(?!on|style|data-href|" + loud + rb")[a-z][a-z-]*+" + value
    return rb"(?:" + _USUAL + rb"(?=[> \t\n\r\f])|" + other + rb")*+"


#: What makes an anchor loud, beside what makes any tag so.
LOUD_IN_ANCHOR = rb"rel|href|xlink"
#: An address of nothing but ASCII, without references but `&amp;`.
_PLAIN_BYTE = rb"""[^"'<>#&\0-\x20\x7f-\xff]"""
PLAIN_ADDRESS = _PLAIN_BYTE + rb"++(?:&amp;" + _PLAIN_BYTE + rb"*+)*+"
_ENDS = _BLANKS + rb"*+(?<!=)/?+>"
_GLANCED = (
    rb"[aA]" + quiet(LOUD_IN_ANCHOR) + _BLANKS + rb'++href="(' + PLAIN_ADDRESS
    + rb""")(?:#[^"'<> \t\n\r\f]*+)?+"(?=[> \t\n\r\f])""" + quiet(LOUD_IN_ANCHOR) + _ENDS
)  # fmt: skip


def _tokenizer(
    raw: tuple[str, ...],
    *,
    xml: bool,
    with_own: bool = False,
    of_forms: bool = False,
    at_a_glance: bool = False,
) -> re.Pattern[bytes]:
    unless = rb"(?<!/>)" if xml else rb""
    cdata = rb"!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+(?:\]\]>|\Z)|" if xml else rb""
    plaintext = rb"" if xml else rb"|" + _any_case("plaintext") + rb"(?=" + _END + rb").*+"
    if of_forms:
        inside = rb"/?+[a-zA-Z]"
        names = _name_in((*raw, "plaintext", *_FORM_NAMES, "/form", "/select"))
        boring = (
            rb"(?:(?!" + names + rb")/?+[a-zA-Z][^ \t\n\r\f/>]*+" + _ATTRIBUTES + rb"|" + cdata
            + _COMMENT + rb"|[!?][^>]*+(?:>|\Z)|/(?![a-zA-Z])[^>]*+(?:>|\Z)|(?![a-zA-Z/!?]))"
        )  # fmt: skip
        text = rb"[^<]*+"  # of an option
    else:
        here = rb"" if with_own else _HERE + rb"|"
        inside, text = rb"[a-zA-Z]", rb""
        boring = (
            rb"(?:/[a-zA-Z][a-zA-Z0-9]*+>|" + here + _BORING_NAME + _BORING_ATTRIBUTES
            + rb"|/[a-zA-Z][^ \t\n\r\f/>]*+" + _ATTRIBUTES + rb"|" + cdata + _COMMENT
            + rb"|[!?/][^>]*+(?:>|\Z)|(?![a-zA-Z/!?]))"
        )  # fmt: skip
    letters = b"[" + b"".join(sorted({_any_case(word[0])[1:3] for word in raw})) + b"]"
    matter = (
        rb"(?:(?=" + letters + rb")(?:" + b"|".join(_raw(name, unless) for name in raw) + rb")"
        + plaintext + rb"|" + inside + rb"[^ \t\n\r\f/>]*+" + _ATTRIBUTES + text + rb")"
    )  # fmt: skip
    glance = rb"<" + _GLANCED + rb"|" if at_a_glance else rb""
    return re.compile(
        rb"[^<]*+(?:<" + boring + rb"[^<]*+)*+(?:" + glance + rb"(<" + matter + rb"|\Z))", re.DOTALL
    )


@cache
def _links(xml: bool, with_own: bool, at_a_glance: bool) -> re.Pattern[bytes]:
    """Compiled when first needed: 5 ms each, and most documents need one of them."""
    raw = _RAW_IN_XML if xml else _RAW_IN_HTML
    return _tokenizer(raw, xml=xml, with_own=with_own, at_a_glance=at_a_glance)


@cache
def _forms(xml: bool) -> re.Pattern[bytes]:
    return _tokenizer(_RAW_IN_XML if xml else _RAW_IN_HTML, xml=xml, of_forms=True)


def glances(document: bytes, *, xml: bool = False, with_own: bool = False) -> list[Glance]:
    """What may hold a link: a plain anchor by its address, other tags with their raw text.

    Unless `with_own`, most anchors that hold nothing but a fragment are left out: where there is no
    base element they lead to the page itself. At the end of the document both are empty.
    """
    return _links(xml, with_own, True).findall(document)


def each_glance(document: bytes, *, xml: bool = False, with_own: bool = False) -> Iterator[Glance]:
    """The same one by one, for documents of which no second copy shall be held."""
    for found in _links(xml, with_own, True).finditer(document):
        yield found[1] or b"", found[2] or b""


def each_tag(document: bytes, *, xml: bool = False) -> Iterator[bytes]:
    """The tags that may hold a link, plain anchors too, each with its raw text; some are empty."""
    for found in _links(xml, False, False).finditer(document):
        yield found[1]


def form_tags(document: bytes, *, xml: bool = False) -> Iterator[bytes]:
    """The tags of forms and their fields, ends of form and select too, each with its text.

    Besides them come elements with raw text, which hide what looks like a tag; some are empty.
    """
    for found in _forms(xml).finditer(document):
        yield found[1]
