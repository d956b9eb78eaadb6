from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.errors import OperatorError
from geomi.seeds.lists import (
    LONGEST_LINE,
    Problem,
    Seed,
    format_seed,
    given_seeds,
    parse_label,
    parse_list,
    parse_seeds,
    read_seeds,
    seed_url,
)

LIST = """\
# institutions

https://www.example.go.kr/    category=ministry institution="Ministry of Examples"
  https://www.example.ac.kr/  category=university   # a comment
example.org
"""
KOREAN = '# 기관\nhttp://학교.example.kr/ 분류=대학교 기관="예제 대학교"\n'


def urls_of(text: str | bytes) -> list[str]:
    seeds, problems = parse_list(text)
    assert not problems
    return [seed.url for seed in seeds]


def test_a_line_is_a_url_with_labels() -> None:
    seeds, problems = parse_list(LIST, source="institutions.txt")
    assert problems == []
    assert seeds == [
        Seed(
            url="https://www.example.go.kr/",
            labels={"category": "ministry", "institution": "Ministry of Examples"},
            source="institutions.txt",
        ),
        Seed(
            url="https://www.example.ac.kr/",
            labels={"category": "university"},
            source="institutions.txt",
        ),
        Seed(url="http://example.org/", source="institutions.txt"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp949"])
def test_line_ends_and_encodings_make_no_difference(end: str, encoding: str) -> None:
    data = (LIST + KOREAN).replace("\n", end).encode(encoding)
    seeds, problems = parse_list(data)
    assert problems == []
    assert seeds == parse_list(LIST + KOREAN)[0]
    assert seeds[-1].labels == {"분류": "대학교", "기관": "예제 대학교"}


def test_a_mark_in_text_is_no_part_of_the_first_url() -> None:
    assert urls_of("\ufeffexample.org") == ["http://example.org/"]


def test_one_wrong_byte_spoils_one_line() -> None:
    data = "http://가.example/\n".encode() + b"http://\xff\xff/\n" + KOREAN.encode("cp949")
    seeds, problems = parse_list(data)
    assert [seed.url for seed in seeds] == [
        "http://xn--o39a.example/", "http://xn--9d0b527e.example.kr/"
    ]  # fmt: skip
    assert problems == [Problem(line=2, text="", what="neither UTF-8 nor CP949")]


def test_a_hash_begins_a_comment_after_space_only() -> None:
    seeds, problems = parse_list(
        "http://a.org/#part a=b#c d=e #f=g\n#http://b.org\n http://c.org/x #"
    )
    assert problems == []
    assert [(seed.url, seed.labels) for seed in seeds] == [
        ("http://a.org/", {"a": "b#c", "d": "e"}), ("http://c.org/x", {})
    ]  # fmt: skip


@pytest.mark.parametrize("space", [" ", "\t", " \t ", "\u3000", "\xa0"])
def test_any_space_separates(space: str) -> None:
    seeds, problems = parse_list(f"{space}a.org{space}x=1{space}y=2{space}")
    assert problems == []
    assert seeds == [Seed(url="http://a.org/", labels={"x": "1", "y": "2"})]


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ("a=", {"a": ""}),
        ('a=""', {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ('a="b c"', {"a": "b c"}),
        (r'a="say \"x\" \\ \n \u00e9 \/"', {"a": 'say "x" \\ \n é /'}),
        (r'a="C:\data"', {"a": r"C:\data"}),
        (r'a="\ud800"', {"a": "\ufffd"}),
        ('"a key"=b', {"a key": "b"}),
        ("a=1 a=2", {"a": "2"}),
        ("분류=학교", {"분류": "학교"}),
    ],
)
def test_values_are_words_or_quoted_as_in_json(words: str, labels: dict[str, str]) -> None:
    seeds, problems = parse_list(f"a.org {words}")
    assert problems == []
    assert seeds[0].labels == labels


@pytest.mark.parametrize("words", ["junk", "=b", 'a="b', '"a"', 'a="b"c', 'a=b"c', "a = b"])
def test_a_word_that_is_no_label_is_told_and_the_seed_is_kept(words: str) -> None:
    seeds, problems = parse_list(f"\na.org x=1 {words} y=2")
    assert [seed.url for seed in seeds] == ["http://a.org/"]
    assert {"x": "1", "y": "2"}.items() <= seeds[0].labels.items()
    assert problems
    assert {(problem.line, problem.what) for problem in problems} == {
        (2, "no label of the form key=value")
    }


def test_lines_of_one_page_are_one_seed_with_all_labels() -> None:
    seeds, problems = parse_list(
        "HTTP://Example.org:80 a=1 b=1\nb.org\nexample.org/#x b=2 c=3\nhttp://me:pw@example.org/\n"
    )
    assert problems == []
    assert seeds == [
        Seed(url="http://example.org/", labels={"a": "1", "b": "2", "c": "3"}),
        Seed(url="http://b.org/"),
    ]


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.org", "http://example.org/"),
        ("example.org/a?b=http://c.org/", "http://example.org/a?b=http://c.org/"),
        ("example.org:8080/x", "http://example.org:8080/x"),
        ("//example.org/x", "http://example.org/x"),
        ("localhost:8000", "http://localhost:8000/"),
        ("localhost", "http://localhost/"),
        ("127.0.0.1", "http://127.0.0.1/"),
        ("[::1]:90/", "http://[::1]:90/"),
        ("가나.한국", "http://xn--o39a40g.xn--3e0b707e/"),
        ("HTTPS://EXAMPLE.ORG/", "https://example.org/"),
        ("http://intranet", "http://intranet/"),
        ("http://intranet:8080/", "http://intranet:8080/"),
        ("http://a_b.example.org", "http://a_b.example.org/"),
    ],
)
def test_a_url_without_scheme_is_http(text: str, url: str) -> None:
    assert seed_url(text) == (url, "")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ftp://example.org/", "ftp is neither"),
        ("mailto:a@example.org", "mailto is neither"),
        ("javascript:void(0)", "javascript is neither"),
        ("C:\\seeds.txt", "c is neither"),
        ("me@example.org", "mail address"),
        ("word", "needs http://"),
        ("1", "needs http://"),
        ("1.5", "1.0.0.5"),
        ("0x7f.1", "127.0.0.1"),
        ("http://", "no http"),
        ("http://a b/", "no http"),
        ("http://[::1", "no http"),
        ("http://example.org:99999/", "no http"),
        ("http://a.org,b.org/", "no name of a host"),
        ("http://a..b/", "no name of a host"),
        ("http://.../", "no name of a host"),
        (f"http://{'a' * 64}.org/", "no name of a host"),
        ("<a", "no"),
        ("", "no"),
    ],
)
def test_junk_is_told_with_its_reason(text: str, what: str) -> None:
    url, said = seed_url(text)
    assert url == ""
    assert what in said


def test_a_problem_has_its_line_and_how_it_begins() -> None:
    long = "x" * 200
    seeds, problems = parse_list(f"a.org\n\n{long}\nb.org {'y' * (LONGEST_LINE + 1)}\n")
    assert [seed.url for seed in seeds] == ["http://a.org/"]
    assert [(problem.line, len(problem.text)) for problem in problems] == [(3, 80), (4, 80)]
    assert problems[1].what == "the line is too long"


LABELS = st.dictionaries(st.text(), st.text(), max_size=4)
URLS = st.sampled_from(
    ["http://a.org/", "https://a.org/?q=%EA%B0%80&x=1", "http://[::1]:90/", "http://a.org/a=b"]
)


@given(URLS, LABELS)
def test_a_formatted_seed_reads_back(url: str, labels: dict[str, str]) -> None:
    seed = Seed(url=url, labels=labels, source="s")
    line = format_seed(seed)
    assert parse_list(line, source="s") == ([seed], [])
    assert parse_list((line + "\r\n").encode("utf-8-sig"), source="s") == ([seed], [])


@given(st.text())
def test_text_never_fails(text: str) -> None:
    seeds, problems = parse_list(text)
    lines = text.count("\n") + text.count("\r") + 1
    assert all(1 <= problem.line <= lines for problem in problems)
    for seed in seeds:
        assert parse_list(format_seed(seed)) == ([seed], [])


@given(st.binary())
def test_bytes_never_fail(data: bytes) -> None:
    parse_list(data)
    parse_seeds(data)


def test_a_list_may_end_anywhere() -> None:
    whole = KOREAN.encode("cp949") + b'http://b.org/ a="b c" d=e\n'
    first = whole.index(b"\n", 8)  # the end of the first seed's line
    for end in range(len(whole) + 1):
        seeds, _ = parse_list(whole[:end])
        if end >= first:
            assert seeds[0] == parse_list(KOREAN)[0][0]
    assert [seed.labels for seed in seeds[1:]] == [{"a": "b c", "d": "e"}]


SITEMAP = (
    b"<urlset><url><loc>http://a.org/1</loc></url><url><loc>http://a.org/2</loc></url></urlset>"
)
RSS = b"<rss version='2.0'><channel><item><link>http://a.org/1</link></item></channel></rss>"


@pytest.mark.parametrize(
    ("content", "urls"),
    [
        (b"a.org/1\n", ["http://a.org/1"]),
        (SITEMAP, ["http://a.org/1", "http://a.org/2"]),
        (b"\xef\xbb\xbf \n" + SITEMAP, ["http://a.org/1", "http://a.org/2"]),
        (SITEMAP.decode().encode("utf-16"), ["http://a.org/1", "http://a.org/2"]),
        (RSS, ["http://a.org/1"]),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_is_known_by_its_content(
    tmp_path: Path, content: bytes, urls: list[str], is_packed: bool
) -> None:
    path = tmp_path / "seeds.any"
    path.write_bytes(gzip.compress(content) if is_packed else content)
    seeds, problems = read_seeds(path)
    assert problems == []
    assert [seed.url for seed in seeds] == urls
    assert {seed.source for seed in seeds} == {"seeds.any"}


def test_the_source_of_a_file_is_never_a_word_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "found"
    path.write_text("a.org")
    assert read_seeds(path)[0][0].source == "./found"
    assert read_seeds(path, source="given")[0][0].source == "given"


def test_an_index_gives_no_seeds_and_says_so() -> None:
    index = b"<sitemapindex><sitemap><loc>http://a.org/1.xml</loc></sitemap></sitemapindex>"
    seeds, problems = parse_seeds(index)
    assert seeds == []
    assert [(problem.text, problem.what) for problem in problems] == [
        ("http://a.org/1.xml", "an index of 1 sitemaps, which must be given themselves")
    ]


def test_a_torn_gzip_gives_what_is_there() -> None:
    packed = gzip.compress(b"".join(b"a.org/%d\n" % number for number in range(1000)), mtime=0)
    seeds, problems = parse_seeds(packed[:-20])
    assert 0 < len(seeds) <= 1000
    assert problems[0] == Problem(line=0, text="", what="the gzip data ends too early")


def test_a_file_that_cannot_be_read_is_the_operators_error(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"no\.txt: cannot be read: No such file"):
        read_seeds(tmp_path / "no.txt")
    with pytest.raises(OperatorError, match="cannot be read: Is a directory"):
        read_seeds(tmp_path)


def test_urls_of_a_command_are_right_or_an_error() -> None:
    assert given_seeds([" a.org "], labels={"a": "b"}) == [
        Seed(url="http://a.org/", labels={"a": "b"}, source="given")
    ]
    with pytest.raises(OperatorError, match=r"'ftp://a/' cannot be a seed: ftp is neither"):
        given_seeds(["a.org", "ftp://a/"])


def test_a_label_of_a_command_is_key_and_value() -> None:
    assert parse_label("a=b c=d") == ("a", "b c=d")
    for text in ("a", "=b", " =b", ""):
        with pytest.raises(OperatorError, match="wanted key=value"):
            parse_label(text)
