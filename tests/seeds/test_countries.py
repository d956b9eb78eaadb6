from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from geomi.errors import OperatorError
from geomi.seeds.countries import Countries
from seeds.mmdb import database

KOREA = {"country": {"iso_code": "KR"}}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(content: bytes) -> Path:
        path = tmp_path / "country.mmdb"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (KOREA, "KR"),
        ({"country": {"iso_code": "JP"}, "registered_country": {"iso_code": "KR"}}, "JP"),
        ({"registered_country": {"iso_code": "KR"}}, "KR"),
        ({"country": {"names": {"en": "Korea"}}}, ""),
        ({"country": "kr"}, "KR"),
        ({"country_code": "KR"}, "KR"),
        ("KR", ""),
    ],
)
def test_the_country_is_found_in_each_shape_of_record(write: Any, record: Any, code: str) -> None:
    with Countries(write(database({"1.208.0.0/12": record}))) as countries:
        assert countries.country("1.209.3.4") == code
        assert countries.country("1.207.3.4") == ""


@pytest.mark.parametrize(
    "address", ["", "host", "1.2.3", "1.2.3.4.5", "::gg", "[::1]", "1.2.3.4/8"]
)
def test_what_is_no_address_has_no_country(write: Any, address: str) -> None:
    with Countries(write(database({"0.0.0.0/1": KOREA}))) as countries:
        assert countries.country(address) == ""


def test_an_ipv6_address_is_nowhere_in_a_database_of_ipv4(write: Any) -> None:
    with Countries(write(database({"0.0.0.0/1": KOREA}))) as countries:
        assert countries.country("2001:db8::1") == ""


def test_mapped_and_scoped_addresses_are_the_addresses_inside(write: Any) -> None:
    content = database({"2001:db8::/32": KOREA, "1.2.3.0/24": KOREA}, ip_version=6)
    with Countries(write(content)) as countries:
        assert countries.country("2001:db8::1%eth0") == "KR"
        assert countries.country("::ffff:1.2.3.4") == "KR"
        assert countries.country("1.2.3.4") == "KR"
        assert countries.country("2001:db9::1") == ""


def test_the_first_question_opens_the_file(write: Any) -> None:
    countries = Countries(write(database({"1.2.3.0/24": KOREA})))
    assert countries.country("1.2.3.4") == "KR"
    countries.close()
    countries.close()


def test_a_file_that_is_not_there_is_the_operators_error(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"country_database: .*no\.mmdb: No such file"):
        Countries(tmp_path / "no.mmdb").open()


@pytest.mark.parametrize("content", [b"", b"hello", b"\xab\xcd\xefMaxMind.com", bytes(10_000)])
def test_a_file_of_another_kind_is_the_operators_error(write: Any, content: bytes) -> None:
    with pytest.raises(OperatorError, match="no database in MaxMind's format"):
        Countries(write(content)).open()


def test_a_damaged_database_is_the_operators_error_and_never_another(write: Any) -> None:
    whole = database({"1.2.3.0/24": KOREA})
    tree = whole.index(bytes(16))
    data = whole.index(b"\x67country") if b"\x67country" in whole else tree + 16
    for damage in (b"\xff" * 8, b"\x20\xff\xff", b"\x00\x00"):
        broken = whole[:data] + damage + whole[data + len(damage) :]
        try:
            with Countries(write(broken)) as countries:
                assert isinstance(countries.country("1.2.3.4"), str)
        except OperatorError:
            pass
