"""Which links there are, and of which kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.extract import Extractor, css, scripts

PAGE = "http://h.test/d/p.html"
HTML = {"content-type": "text/html; charset=utf-8"}


def short(document: str, **settings: bool) -> list[str]:
    page = Extractor(**settings).page(PAGE, HTML, document.encode())  # type: ignore[arg-type]
    return [f"{kind} {target.url.removeprefix('http://h.test/d/')}" for kind, target in page.links]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("<area href=x>", ["a x"]),
        ("<frameset><frame src=x>", ["f x"]),
        ("<iframe src=x>", ["f x"]),
        ("<img src=x srcset='y 1x, z 2x,w'>", ["e x", "e y", "e z", "e w"]),
        ("<img srcset='a,b 1x, ,c (d,e), data:image/x,y 1x'>", ["e a,b", "e c"]),
        ("<source src=x srcset=y><track src=z>", ["e x", "e y", "e z"]),
        ("<video src=x poster=y></video><audio src=z>", ["e x", "e y", "e z"]),
        ("<embed src=x><object data=y>", ["e x", "e y"]),
        ("<input type=IMAGE src=x><input type=text src=y>", ["e x"]),
        ("<body background=x><table background=y><td background=z>", ["e x", "e y", "e z"]),
        ("<TD BACKGROUND=x>", ["e x"]),
        ("<svg><image href=x /><use xlink:href='y#z'/><use href='#s'/>", ["e x", "e y"]),
        ("<script src=x></script>", ["e x"]),
        ("<link rel=stylesheet href=x>", ["e x"]),
        ("<link rel='shortcut ICON' href=x>", ["e x"]),
        ("<link rel='alternate stylesheet' href=x>", ["e x"]),
        ("<link rel=preload href=x imagesrcset='y 2x'><link rel=manifest href=z>",
         ["e x", "e y", "e z"]),
        ("<link rel=alternate href=x><link rel=next href=y>", ["h x", "h y"]),
        ("<link rel=dns-prefetch href=//x><link href=y><link rel=pingback href=z>", []),
        ("<p style='background:url(x)'>", ["e x"]),
        ("<p style=\"background:url(&quot;x&quot;)\">", ["e x"]),
        ("<style>@import 'x'; p{background:url( \"y\" )}</style>", ["e x", "e y"]),
        ("<meta http-equiv=Refresh content='5; url=x'>", ["h x"]),
        ("<meta http-equiv=refresh content=\"0;URL='x'\">", ["h x"]),
        ("<meta http-equiv=refresh content='0,x'>", ["h x"]),
        ("<meta http-equiv=refresh content='5'><meta name=refresh content='0;url=x'>", []),
        ("<td onclick=\"location.href='x'\">", ["h x"]),
        ("<td ONMOUSEOVER=\"if (a>b) window.open('x','_blank')\">", ["h x"]),
        ("<p onclick='location=&#34;x&#34;'>", ["h x"]),
        ("<a href=x onclick=\"document.location.replace('y')\">", ["a x", "h y"]),
        ("<a href=\"javascript:location='x'\">", ["h x"]),
        ("<a href=\"JavaScript:window.open(%27x%27)\">", ["h x"]),
        ("<script>location.href = \"x\"; location.assign('y')</script>", ["h x", "h y"]),
        ("<script>if (location.href == 'x') a = location + 'y'</script>", []),
        ("<script>location = 'x' + y; mylocation = 'z'</script>", []),
        ("<script type=application/json>{\"a\": \"location='x'\"}</script>", []),
        ("<script>location='x\\u002Dy\\/z'</script>", ["h x-y/z"]),
        ("<meta http-equiv=refresh content='5 url=x'>", ["h x"]),
        ("<meta http-equiv=refresh content='.5;x'>", ["h x"]),
        ("<meta http-equiv=refresh content=' 1.5 , URL = \"x\" y'>", ["h x"]),
        ("<meta http-equiv=refresh content='0; urls/x'><meta http-equiv=refresh content='0; u'>",
         ["h urls/x", "h u"]),
        ("<meta http-equiv=refresh content=';url=n'><meta http-equiv=refresh content='url=n'>", []),
        ("<meta http-equiv=refresh content='0url=n'>", []),
        ("<meta http-equiv=refresh content='0;url='>", []),
        ("<img srcset='x, y 1x'><img srcset=' ,v 1x),w\t2x,,z'>",
         ["e x", "e y", "e v", "e w", "e z"]),
        ("<img srcset='x 100w 50h,y (1,2) 2x,z\n3x'>", ["e x", "e y", "e z"]),
        ("<img srcset='x\u00a0y 1x'>", ["e x%C2%A0y"]),
        ("<picture><source srcset='x 1x, y 2x' media=z><img src=w></picture>",
         ["e x", "e y", "e w"]),
        ("<p style='background:image-set(\"x\" 1x, url(y) 2x)'>", ["e x", "e y"]),
        ("<img data-src=x data-srcset='y 1x, z 2x' data-original=w>",
         ["e y", "e z", "e x", "e w"]),
        ("<img data-src='{n}'><img data-src=true><img data-src='n m'><p data-src=n>", []),
        ("<iframe data-src=x></iframe>", ["f x"]),
        ("<tr data-href=x><div class=a DATA-HREF='y'><a data-href='' href=z>",
         ["h x", "h y", "a z"]),
        ("<div data-hrefs=n data-url=n>", []),
        ("<img longdesc=x><bgsound src=y>", ["h x", "e y"]),
        ("<blockquote cite=n><a ping=n href=x><q cite=n>", ["a x"]),
        ("<iframe srcdoc='<a href=x><img src=&quot;y&quot;><title>n</title><base href=/n/>'>",
         ["a x", "e y"]),
        ("<iframe src=w srcdoc='<iframe srcdoc=&quot;<a href=x>&quot;></iframe><a href=y>'>",
         ["f w", "a x", "a y"]),
        ("<noscript><a href=x><img src=y><meta http-equiv=refresh content='0;z'></noscript>",
         ["a x", "e y", "h z"]),
        ("<svg><style><![CDATA[a{b:url(x)}]]></style><script><![CDATA[location='y']]></script>"
         "<script href=z /></svg>", ["e x", "h y", "e z"]),
        ("<form action=x><input type=submit></form>", []),
        ("<a href=mailto:a@b><a href=tel:1><a href=ftp://h/><a href=data:,x><a href=about:>", []),
        ("<a href='java\nscript:void(0)'><a href=' JAVASCRIPT:x'>", []),
        ("<a href='#'><a href=''><a href=' '><a href='#x'>", []),
    ],
)  # fmt: skip
def test_links_have_their_kind(document: str, expected: list[str]) -> None:
    assert short(document) == expected


def test_a_pair_of_kind_and_url_comes_once_and_in_order() -> None:
    document = "<a href=b><a href=a><img src=b><a href=b#x><a href='./a'><iframe src=a>"
    assert short(document) == ["a b", "a a", "e b", "f a"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("<img src=x>", "000"),
        ("<a href=x>", "0a0"),
        ("<frame src=x>", "00f"),
        ("<script>location='x'</script><a href=y>", "ha0"),
        ("<meta http-equiv=refresh content='0;url=x'><a href=y><iframe src=z>", "haf"),
    ],
)
def test_the_link_type_names_the_kinds_in_the_order_h_a_f(document: str, expected: str) -> None:
    assert Extractor().page(PAGE, HTML, document.encode()).link_type == expected


def test_nofollow_links_are_left_out_where_that_is_obeyed() -> None:
    document = "<a rel='external NOFOLLOW' href=x onclick=\"location='y'\"><a href=z>"
    assert short(document) == ["a z"]
    assert short(document, obey_nofollow=False) == ["a x", "h y", "a z"]


def test_links_that_are_paid_for_or_written_by_users_are_links() -> None:
    assert short("<a rel=ugc href=x><a rel='sponsored noopener' href=y>") == ["a x", "a y"]
    assert short("<a rel='ugc nofollow' href=x><area rel=nofollow href=y>") == []


def test_documents_in_documents_are_read_two_deep() -> None:
    document = "<a href=x>"
    for _ in range(5):
        quoted = document.replace("&", "&amp;").replace('"', "&quot;")
        document = f'<a href="x"><iframe srcdoc="{quoted}"></iframe>'
    assert len(short(document)) == 1
    assert short(document.replace("href=", "ref=")) == []


def test_an_inner_document_obeys_the_same_rules() -> None:
    assert short("<iframe srcdoc='<a rel=nofollow href=x><a href=y>'>") == ["a y"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"refresh": "0; url=/x"}, ["h http://h.test/x"]),
        ({"refresh": "5"}, []),
        ({"link": '<x>; rel="next", <y>; rel=stylesheet'}, ["h x", "e y"]),
        ({"link": '<x>; rel="alternate"; title="a, <b>; \\" c", <y>;rel="NEXT foo"'},
         ["h x", "h y"]),
        ({"link": "<n>; rel=preconnect, <n>, n; rel=next, <n; rel=next"}, []),
        ({"link": '<n>; rel=next; anchor="#x"'}, []),
        ({"link": "</한>; rel=next".encode().decode("latin-1")}, ["h http://h.test/%ED%95%9C"]),
    ],
)  # fmt: skip
def test_fields_of_the_header_name_links_too(fields: dict[str, str], expected: list[str]) -> None:
    page = Extractor().page(PAGE, HTML | fields, b"<base href=/other/><p>")
    links = [f"{kind} {target.url.removeprefix('http://h.test/d/')}" for kind, target in page.links]
    assert links == expected


def test_a_link_field_names_the_canonical_url_of_any_document() -> None:
    for mime in ("text/html", "application/pdf"):
        head = {"content-type": mime, "link": '</c?x#y>; rel="canonical", </n>; rel=canonical'}
        page = Extractor().page(PAGE, head, b"<p>")
        assert page.canonical == "http://h.test/c?x"
        assert page.links == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a{b:url(x)} c{d:URL( 'y' )}", ["x", "y"]),
        ("/* url(x) */ a{b:url(y)}", ["y"]),
        ("a{content:'url(x)'; b:url(y)}", ["y"]),
        ("a{content:'\\'url(x)'; b:url(y)}", ["y"]),
        ('@import "x"; @IMPORT url(y) screen;', ["x", "y"]),
        ("@namespace svg url(http://www.w3.org/2000/svg); a{b:url(y)}", ["y"]),
        ("a{b:url(\\26 x)} c{d:url('a\\'b')}", ["&x", "a'b"]),
        ("a{b:url(x", []),
        ("a{b:'x\n; c:url(y)}", ["y"]),
        ("a{b:my-url(x)}", []),
        ("/* url(x)", []),
        (
            'a{b:image-set("x" 1x, url(y) 2x, url("z") type("image/png"))} c{d:url(w)}',
            ["x", "y", "z", "w"],
        ),
        ("a{b:-webkit-image-set(url(x) 1x,url( 'y' ) 2x)}", ["x", "y"]),
        ("a{b:image-set(linear-gradient(red, blue) 1x, 'x' 2x)} c{d:'n'}", ["x"]),
        ("a{b:my-image-set('n')} c{d:image-set('x' 1x", ["x"]),
    ],
)
def test_style_sheets_name_urls(text: str, expected: list[str]) -> None:
    assert css.links(text) == expected


def test_a_style_sheet_has_requisites_relative_to_itself() -> None:
    body = b'@charset "utf-8"; @import "a.css"; b{c:url(../i.png) url(data:,x) url(#f)}'
    page = Extractor().page("http://h.test/css/s.css", {"content-type": "text/css"}, body)
    assert [(kind, target.url) for kind, target in page.links] == [
        ("e", "http://h.test/css/a.css"),
        ("e", "http://h.test/i.png"),
    ]
    assert page.link_type == "000"
    assert page.charset == "utf-8"


@given(st.text(alphabet="'\"\\()/*url@import location=open.\n", max_size=60))
def test_no_script_or_style_raises(text: str) -> None:
    css.links(text)
    scripts.links(f"location='{text}'{text}")
