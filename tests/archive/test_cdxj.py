"""Index lines are those of pywb's indexer."""

from __future__ import annotations

import io
import json

import pytest

from archive.samples import Sample
from geomi.archive import cdxj
from geomi.errors import RemoteError


def test_the_index_of_every_record_type_is_these_lines(sample: Sample) -> None:
    place = dict(zip(sample.offsets, sample.members, strict=True))
    got = cdxj.sort_lines(cdxj.from_warc(sample.path, "a.warc.gz"))
    page = "org,example)/a?b=1 20240506070809 "
    url = '"url": "http://example.org/a?b=1"'
    wanted = [
        ("dns:example.org 20240506070809 ",
         '"url": "dns:example.org", "mime": "text/dns", '
         '"digest": "DXLFCINVOHA7ZT4HAQTEWTW3A4HIAA7D"'),
        (page, f'{url}, "mime": "text/html", "status": "200", '
               '"digest": "JW4WCINSTARDNHUJ2XQX74SYF7CH4EFC"'),
        (page, f'{url}, "mime": "text/html", "status": "200", '
               '"digest": "Y2NYOTDEZTML3TB7AIYD6N7DC7GI36CE"'),
        (page, f'{url}, "mime": "unk", "status": "404", '
               '"digest": "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"'),
        (page, f'{url}, "mime": "warc/revisit", "digest": "Y2NYOTDEZTML3TB7AIYD6N7DC7GI36CE"'),
        (page, f'{url}, "mime": "warc/revisit", "status": "200", '
               '"digest": "Y2NYOTDEZTML3TB7AIYD6N7DC7GI36CE"'),
        ("urn:x:notice 20240506070809 ",
         '"url": "urn:x:notice", "mime": "application/json", '
         '"digest": "X4Q2T2H3YWRYI35QLNH2BBM6BEL3EIBP"'),
    ]  # fmt: skip
    assert len(got) == len(wanted)
    for raw, (key, fields) in zip(got, wanted, strict=True):
        read = cdxj.parse_line(raw)
        assert read.length == len(place[read.offset])
        assert raw.decode() == (
            f'{key}{{{fields}, "length": "{read.length}", "offset": "{read.offset}", '
            '"filename": "a.warc.gz"}\n'
        )


def test_a_line_is_json_whatever_the_url_holds() -> None:
    url = 'http://example.org/"\\\n한'
    raw = cdxj.line("org,example)/", "20240506070809", url=url, mime="a/b", status="200",
                    digest="sha1:ABC", length=1, offset=2, filename="x y.warc.gz")  # fmt: skip
    assert raw.count(b"\n") == 1 and raw.isascii()
    assert json.loads(raw.split(b" ", 2)[2]) == {
        "url": url, "mime": "a/b", "status": "200", "digest": "ABC", "length": "1", "offset": "2",
        "filename": "x y.warc.gz",
    }  # fmt: skip
    read = cdxj.parse_line(raw)
    assert (read.surt, read.timestamp14, read.url, read.digest) == (
        "org,example)/", "20240506070809", url, "ABC")  # fmt: skip
    assert (read.length, read.offset, read.filename) == (1, 2, "x y.warc.gz")


def test_lines_of_other_tools_are_read() -> None:
    raw = (b'com,x)/ 20200101000000 {"url": "http://x.com/", "digest": "sha1:ABC", '
           b'"length": 7, "offset": 9, "filename": "f", "referrer": "x"}')  # fmt: skip
    read = cdxj.parse_line(raw)
    assert (read.digest, read.length, read.offset, read.status) == ("ABC", 7, 9, "-")


@pytest.mark.parametrize(
    "raw",
    [b"", b"a b", b"a b {", b'a b {"url": "u"}', b"\xff b {}",
     b'a b {"url": "u", "filename": "f", "offset": "x"}'],
)  # fmt: skip
def test_a_broken_line_is_an_error(raw: bytes) -> None:
    with pytest.raises(RemoteError, match="index line"):
        cdxj.parse_line(raw)


def test_lines_sort_by_bytes_and_occur_once() -> None:
    lines = [b"org,b)/ 2\n", b"org,B)/ 1\n", b"org,b)/ 10\n", b"org,b)/ 2\n"]
    assert cdxj.sort_lines(lines) == [b"org,B)/ 1\n", b"org,b)/ 10\n", b"org,b)/ 2\n"]


@pytest.mark.parametrize(
    ("uri", "key"),
    [("http://www.example.org:80/A?c=2&b=1", "org,example)/a?b=1&c=2"), ("dns:x.org", "dns:x.org"),
     ("ftp://x/a b", "ftp://x/a%20b")],
)  # fmt: skip
def test_web_addresses_have_a_surt_and_other_uris_are_their_own_key(uri: str, key: str) -> None:
    assert cdxj.key_of(uri) == key


def test_a_missing_digest_is_computed_over_the_payload() -> None:
    data = (b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <http://x.org/>\r\n"
            b"WARC-Date: 2020-01-01T00:00:00Z\r\n"
            b"Content-Type: application/http;msgtype=response\r\n"
            b"Content-Length: 19\r\n\r\nHTTP/1.0 200 OK\r\n\r\n\r\n\r\n")  # fmt: skip
    read = cdxj.parse_line(next(cdxj.from_warc(io.BytesIO(data), "f")))
    assert read.digest == "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    assert (read.surt, read.status, read.mime) == ("org,x)/", "200", "unk")
