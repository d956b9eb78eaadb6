"""Secrets, cookie files and certificates: read once, checked, and shown to nobody."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from geomi import config
from geomi.cluster.coordinator import Coordinator
from geomi.cluster.plan import site_rules, with_access
from geomi.cluster.tables import MIGRATIONS
from geomi.cluster.vault import Vault, read_vault
from geomi.config import Settings
from geomi.errors import OperatorError
from geomi.fetch.access import lines
from geomi.keys import is_bare_secret
from geomi.store import open_store
from geomi.store.migrate import migrate

TLS = Path(__file__).resolve().parents[1] / "fetch" / "tls"
NO_FILE = Path("no-such-directory/geomi.toml")


def settings_of(*sets: str) -> Settings:
    return config.load(NO_FILE, sets)


def from_toml(folder: Path, text: str) -> Settings:
    path = folder / "geomi.toml"
    path.write_text(text)
    return config.load(path)


def test_a_secret_comes_from_the_environment_or_a_file_beside_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "key-1")
    (tmp_path / "password").write_text("me:pass word \n")
    settings = settings_of(
        'site."a.example".auth=file:password',
        'site."*.example".headers=["X-Key: env:A_KEY", "X-Open: yes"]',
        'site."a.example".user_agent=robot/1',
    )
    vault = read_vault(settings, str(tmp_path))
    access = with_access(site_rules(settings, "a.example"), settings, "a.example", vault).access
    assert access is not None
    assert access.auth == "me:pass word"
    assert lines(access)[:3] == ("X-Key: key-1", "X-Open: yes", "User-Agent: robot/1")
    assert access.withheld == ("x-key",)
    for shown in (repr(access), repr(vault), repr(settings)):
        assert "key-1" not in shown and "pass word" not in shown
    assert with_access(site_rules(settings, "b.org"), settings, "b.org", vault).access is None


def test_an_unread_secret_is_never_sent_as_it_is_written() -> None:
    settings = settings_of('site."a.example".auth=env:SOME')
    with pytest.raises(KeyError):
        with_access(site_rules(settings, "a.example"), settings, "a.example", Vault(folder=""))


def test_each_site_gets_the_cookies_that_are_for_it(tmp_path: Path) -> None:
    (tmp_path / "jar").write_text(
        "# Netscape HTTP Cookie File\n\n"
        ".example.org\tTRUE\t/\tFALSE\t0\tall\t1\n"
        "#HttpOnly_www.example.org\tFALSE\t/\tTRUE\t4102444800\tone\t2\n"
    )
    settings = settings_of("access.cookie_file=jar")
    vault = read_vault(settings, str(tmp_path))

    def names(site: str) -> list[str]:
        rules = with_access(site_rules(settings, site), settings, site, vault)
        assert (rules.access is not None) == bool(rules.own_cookies)
        return [cookie.name for cookie in rules.own_cookies]

    assert names("www.example.org") == ["all", "one"]
    assert names("example.org:8080") == ["all"]
    assert names("notexample.org") == []
    assert "4102444800" not in repr(site_rules(settings, "www.example.org"))


def test_a_rate_is_shared_by_the_connections_of_a_site() -> None:
    settings = settings_of("access.rate_bytes=100 kB", "manners.connections=3")
    rules = with_access(site_rules(settings, "a.example"), settings, "a.example", Vault(folder=""))
    assert rules.manners.rate_bytes_per_s == 100_000
    assert rules.access is not None and rules.access.rate_bytes_per_s == 33_334


def test_a_key_with_a_password_opens_with_it_and_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "pkey", "-in", TLS / "client.pem", "-aes256", "-passout", "pass:open",
         "-out", locked],
        check=True, capture_output=True,
    )  # fmt: skip
    monkeypatch.setenv("KEY_PASSWORD", "open")
    table = f'client_cert = "{TLS / "client.pem"}"\nclient_key = "locked.pem"\n'
    settings = from_toml(tmp_path, f"[access]\n{table}")
    with pytest.raises(OperatorError, match="a key with a password needs client_password"):
        read_vault(settings, str(tmp_path))
    settings = from_toml(tmp_path, f'[access]\n{table}client_password = "env:KEY_PASSWORD"\n')
    vault = read_vault(settings, str(tmp_path))
    access = with_access(site_rules(settings, "a.example"), settings, "a.example", vault).access
    assert access is not None
    assert access.client_key == str(locked) and access.client_password == "open"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('auth = "env:UNSET_VARIABLE"', 'site."a.example".access.auth: the environment has no'),
        ('auth = "file:empty"', "empty: wanted one line with the secret"),
        ('auth = "file:two"', "two: wanted one line with the secret"),
        ('auth = "file:binary"', "binary: it is not UTF-8"),
        ('cookie_file = "two"', "line 1 is no cookie of seven fields"),
        ('cookie_file = "."', "Is a directory"),
        ('client_cert = "none.pem"', "No such file"),
        ('client_cert = "two"', "no certificate with its key in PEM"),
        (f'client_cert = "{TLS / "client.pem"}"\nclient_key = "{TLS / "good.pem"}"',
         "no certificate with its key in PEM"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_with_its_setting_and_without_its_content(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "two").write_text("hunter2\nhunter3\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    settings = from_toml(tmp_path, f'[site."a.example"]\n{text}\n')
    with pytest.raises(OperatorError) as error:
        read_vault(settings, str(tmp_path))
    assert said in str(error.value)
    assert "hunter" not in str(error.value) and "\n" not in str(error.value)


def test_a_bare_secret_is_for_geomi_toml_alone(tmp_path: Path) -> None:
    bare = {
        "access.auth": "me:secret",
        "access.client_password": "secret",
        "access.proxy": "http://me:secret@proxy.example:3128",
        "access.headers": ("Authorization: Bearer secret",),
    }
    for full, value in bare.items():
        assert is_bare_secret(full, value)
        table, _, name = full.partition(".")
        shown = f'["{value[0]}"]' if isinstance(value, tuple) else f'"{value}"'
        with pytest.raises(OperatorError, match="would be remembered") as error:
            settings_of(f'site."a.example".{full}={shown}')
        assert "secret@" not in str(error.value) and ":secret" not in str(error.value)
        from_toml(tmp_path, f'[site."a.example".{table}]\n{name} = {shown}\n')
    for full, value in (("access.auth", "env:A"), ("access.proxy", "http://proxy.example:3128"),
                        ("access.headers", ("X-Open: yes", "Authorization: file:token")),
                        ("access.hours", ("22:00-06:00",))):  # fmt: skip
        assert not is_bare_secret(full, value)


@pytest.mark.parametrize("text", ["auth = 5", "proxy = [1]", "headers = 'hunter2'"])
def test_a_secret_of_the_wrong_type_is_not_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(OperatorError, match="cannot be used; wanted") as error:
        from_toml(tmp_path, f'[site."a.example"]\n{text}\n')
    assert "hunter2" not in str(error.value)


def test_passwords_and_unchecked_certificates_are_for_named_sites(tmp_path: Path) -> None:
    for table in ("[access]", '[site."*.kr"]', '[site."*.co.kr"]'):
        for line in ("verify = false", 'auth = "env:HOME"'):
            with pytest.raises(OperatorError, match=r"set it in a table \[site"):
                from_toml(tmp_path, f"{table}\n{line}\n")
    settings = from_toml(tmp_path, '[site."*.example.co.kr"]\nverify = false\n')
    assert not settings.for_site("www.example.co.kr").access.verify
    assert settings.for_site("example.co.kr").access.verify
    from_toml(tmp_path, "[access]\nverify = true\nauth = ''\n")


def test_what_the_store_keeps_of_the_settings_holds_no_access(tmp_path: Path) -> None:
    store = open_store(":memory:")
    migrate(store, MIGRATIONS, where="test")
    for text in ('auth = "me:hunter2"\nrest_s = 5', "rest_s = 5", "rest_s = 6"):
        settings = from_toml(tmp_path, f'[site."a.example"]\n{text}\n')
        Coordinator(store, settings).widen(run=1, now=0.0)
        mark = store.one("SELECT value FROM meta WHERE name = 'scope'")
        assert mark is not None and "rest_s" in mark[0] and "hunter2" not in mark[0]
    store.close()
