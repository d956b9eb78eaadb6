"""Forms with GET as candidates, with the fields a browser would send as they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.extract import Extractor

PAGE = "http://h.test/d/p.html?old=1"
HTML = {"content-type": "text/html; charset=utf-8"}


def asked(document: str | bytes, head: dict[str, str] = HTML, **settings: bool) -> list[str]:
    body = document.encode() if isinstance(document, str) else document
    page = Extractor(forms=True, **settings).page(PAGE, head, body)  # type: ignore[arg-type]
    return [url.url.removeprefix("http://h.test/d/") for kind, url in page.links if kind == "h"]


@pytest.mark.parametrize(
    ("inside", "query"),
    [
        ("", "s"),
        ("<input name=q>", "s?q="),
        ("<input name=q value='a b+c&amp;d~é'>", "s?q=a+b%2Bc%26d%7E%C3%A9"),
        ("<INPUT TYPE=HIDDEN NAME=a VALUE=1><input name=b value=2>", "s?a=1&b=2"),
        ("<input value=x><input name=''>", "s"),
        ("<input type=checkbox name=a><input type=checkbox name=b checked>", "s?b=on"),
        ("<input type=radio name=a value=1><input type=radio name=a value=2 checked>", "s?a=2"),
        ("<input type=submit><input type=submit name=b value=c>", "s"),
        ("<input type=submit name=a value=1><button name=b value=2>x</button>", "s?a=1"),
        ("<button type=button name=a>x</button><button name=b value=2>y</button>", "s?b=2"),
        ("<input type=reset name=a><input type=file name=b><input type=image name=c>", "s"),
        ("<input name=a value=1 disabled><input name=b value=2 form=other>", "s"),
        ("<select name=a><option>x y </option><option value=2>z</select>", "s?a=x+y"),
        ("<select name=a><option value=1><option value=2 selected></select>", "s?a=2"),
        ("<select name=a><option disabled value=1><option value=2></select>", "s?a=2"),
        ("<select name=a multiple><option selected>1<option>2<option selected>3</select>",
         "s?a=1&a=3"),
        ("<select name=a><optgroup label=x><option>1</optgroup></select><input name=b>",
         "s?a=1&b="),
        ("<select name=a></select>", "s"),
        ("<textarea name=a>\nx\ny &lt;</textarea>", "s?a=x%0D%0Ay+%3C"),
        ("<input type=hidden name=_charset_>", "s?_charset_=utf-8"),
        ("<!-- <input name=n> --><script>'<input name=n>'</script><input name=q>", "s?q="),
        ("<p title='<input name=n>'><table><tr><td><input name=q></table>", "s?q="),
    ],
)  # fmt: skip
def test_a_form_asks_with_the_values_its_fields_begin_with(inside: str, query: str) -> None:
    assert asked(f"<input name=n><form action=s>{inside}</form><input name=n>") == [query]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("<form method=post action=x>", []),
        ("<form method=DIALOG action=x>", []),
        ("<form method=GET action=x>", ["x"]),
        ("<form method=nonsense action=x>", ["x"]),
        ("<form action='x?a=1#f'><input name=b value=2>", ["x?b=2"]),
        ("<form><input name=q value=1></form>", ["p.html?q=1"]),
        ("<form action=x><form action=n><input name=q></form><form action=y></form>",
         ["x?q=", "y"]),
        ("<form action=mailto:a@b><input name=q>", []),
        ("<base href='/b/'><form action=x></form>", ["http://h.test/b/x"]),
        ("<form action=x rel=nofollow>", []),
        ("<form action=x", []),
        ("<form action=x><input name=q></form><form action=x><input name=q></form>", ["x?q="]),
    ],
)  # fmt: skip
def test_forms_that_ask_with_get_are_candidates(document: str, expected: list[str]) -> None:
    assert asked(document) == expected


def test_forms_are_read_only_where_that_is_asked_for() -> None:
    page = Extractor().page(PAGE, HTML, b"<form action=x><input name=q></form>")
    assert page.links == []


def test_a_form_is_sent_in_the_charset_of_its_document_or_its_own() -> None:
    head = {"content-type": "text/html; charset=euc-kr"}
    body = "<form action='한'><input name=q value='한글 é'></form>".encode(
        "cp949", "xmlcharrefreplace"
    )
    assert asked(body, head) == ["%ED%95%9C?q=%C7%D1%B1%DB+%26%23233%3B"]
    body = "<form action=s accept-charset=utf-8><input name=q value='한'></form>".encode("cp949")
    assert asked(body, head) == ["s?q=%ED%95%9C"]


def test_forms_of_one_page_are_bounded() -> None:
    body = b"".join(b"<form action=%d></form>" % number for number in range(300))
    assert len(asked(body)) == 100
    assert len(asked(b"<form action=s>" + b"<input name=a>" * 3000)[0]) == len("s?") + 500 * 3 - 1
    assert asked(b"<form action=s>" + b"<input name=long>" * 500) == []  # longer than a URL may be
    assert asked(b"<form action=s>" + b"<input name=a disabled>" * 100_000) == ["s"]


@given(st.binary(max_size=200))
def test_no_form_raises(body: bytes) -> None:
    for start in (b"<form action=x>", b"<form><select name=a><option ", b"<form><textarea name=b>"):
        asked(start + body)
        asked(start + body, {"content-type": "application/xhtml+xml"})


@pytest.mark.parametrize(
    "piece",
    [b"<form ", b"<form>", b"<select><option>", b"<textarea>", b"</form", b"<option ", b"<"],
)
def test_a_hostile_form_is_read_once(piece: bytes) -> None:
    asked(b"<form action=x>" + piece * 60_000)
