from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomi.config import Settings, load, matches, restore
from geomi.errors import OperatorError
from geomi.keys import KEYS
from geomi.settings import PRESETS
from geomi.sheet import default_toml, reference, to_toml

NOWHERE = Path("/nonexistent/geomi.toml")
REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"


def from_text(tmp_path: Path, text: str, *sets: str) -> Settings:
    path = tmp_path / "geomi.toml"
    path.write_text(text, "utf-8")
    return load(path, sets)


def complaint(tmp_path: Path, text: str, *sets: str) -> str:
    with pytest.raises(OperatorError) as caught:
        from_text(tmp_path, text, *sets)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_file_means_defaults() -> None:
    settings = load(NOWHERE)
    assert settings == Settings()
    assert (settings.manners.rest_s, settings.crawl.patience) == (2.0, 600.0)


def test_an_unknown_key_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    assert complaint(tmp_path, "[manners]\nrset_s = 5") == (
        "geomi.toml: unknown setting manners.rset_s; did you mean manners.rest_s?"
    )


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        ("[crawl]\nrest_s = 5", "manners.rest_s"),
        ("[maners]\nrest_s = 5", "manners"),
        ("max_dept = 3", "crawl.max_depth"),
        ("[seeds.admit]\ndomain = []", "seeds.admit.domains"),
        ('[site."a.example"]\nrst_s = 3', 'site."a.example".manners.rest_s'),
    ],
)
def test_the_suggestion_is_the_nearest_key(tmp_path: Path, text: str, suggested: str) -> None:
    assert complaint(tmp_path, text).endswith(f"did you mean {suggested}?")


def test_a_key_like_no_other_is_an_error_too(tmp_path: Path) -> None:
    assert complaint(tmp_path, "[crawl]\nqqqqq = 1") == (
        "geomi.toml: unknown setting crawl.qqqqq; `geomi init` lists all settings"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            '[manners]\nrest_s = "two"',
            "geomi.toml: manners.rest_s is 'two'; wanted seconds of at least 0, as 90 or \"10m\"",
        ),
        (
            '[crawl]\nscope = "all"',
            "geomi.toml: crawl.scope is 'all'; wanted one of site, prefix, domain",
        ),
        ("[crawl]\nrequisites = 1", "geomi.toml: crawl.requisites is 1; wanted true or false"),
        (
            "[crawl]\nagents = 0",
            "geomi.toml: crawl.agents is 0; wanted a whole number from 1 to 256",
        ),
        (
            "[crawl]\nagents = true",
            "geomi.toml: crawl.agents is true; wanted a whole number from 1 to 256",
        ),
        ("[agent]\ncontact = 5", "geomi.toml: agent.contact is 5; wanted text"),
        ("crawl = 3", "geomi.toml: crawl is 3; wanted a table"),
        (
            'store = "mysql://x"',
            "geomi.toml: store is 'mysql://x'; "
            'wanted "" (SQLite in the collection) or a postgresql:// address',
        ),
        (
            '[guard]\nallow_networks = ["10.0.0.0/40"]',
            "geomi.toml: guard.allow_networks is '10.0.0.0/40'; wanted networks, as \"10.0.0.0/8\"",
        ),
    ],
)
def test_a_wrong_value_names_file_key_seen_and_wanted(
    tmp_path: Path, text: str, wanted: str
) -> None:
    assert complaint(tmp_path, text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "[manners]\nrest_s = nan",
        "[manners]\nrest_s = inf",
        "[manners]\nrest_s = -1",
        '[crawl]\nexclude = ["("]',
        f'[crawl]\nexclude = ["{"a" * 3000}"]',
        '[manners]\nown = ["*"]',
        '[manners]\nown = ["https://a.example/"]',
        '[manners.groups]\nshop = ["a b"]',
        '[dns]\nservers = ["ns.example"]',
        '[dns.hosts]\n"a.example" = "b.example"',
        '[agent]\nuser_agent = "x\\r\\nCookie: y"',
        '[robots]\nagent = "geo mi"',
        "[archive]\ndirectories = []",
        "site = 3",
        '[site]\n"a.example" = 3',
        '[site."a b"]\nrest_s = 3',
        '[site."a.example"]\nagents = 3',
        '[site."a.example".crawl]\nagents = 3',
        '[seeds.admit]\ncountries = ["Korea"]',
        '[seeds.admit]\ncountries = ["KR"]',
        '[manners]\npreset = "own"',
        "[crawl",
    ],
)
def test_a_value_that_cannot_be_right_is_refused(tmp_path: Path, text: str) -> None:
    assert complaint(tmp_path, text).startswith("geomi.toml: ")


def test_a_file_that_cannot_be_read_is_the_operators_matter(tmp_path: Path) -> None:
    (tmp_path / "geomi.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(OperatorError, match="not UTF-8"):
        load(tmp_path / "geomi.toml")
    with pytest.raises(OperatorError, match="cannot be read"):
        load(tmp_path)


def test_set_wins_over_the_file_and_options_over_both(tmp_path: Path) -> None:
    path = tmp_path / "geomi.toml"
    path.write_text("[crawl]\nmax_depth = 1\nmax_pages = 1\nmax_visits = 1")
    settings = load(
        path,
        ["crawl.max_pages=2", "max_visits=2"],
        options={"crawl.max_visits": 3, "crawl.agents": None},
    )
    crawl = settings.crawl
    assert (crawl.max_depth, crawl.max_pages, crawl.max_visits, crawl.agents) == (1, 2, 3, 1)


def test_lists_from_options_are_added(tmp_path: Path) -> None:
    path = tmp_path / "geomi.toml"
    path.write_text('[manners]\nown = ["a.example"]')
    settings = load(path, options={"manners.own": ["b.example", "a.example"]})
    assert settings.manners.own == ("a.example", "b.example")


def test_a_wrong_option_names_the_command_line() -> None:
    with pytest.raises(OperatorError, match=r"^command line: crawl\.agents is 0; wanted"):
        load(NOWHERE, options={"crawl.agents": 0})


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("manners.rest_s=5", "manners.rest_s", 5.0),
        ("rest_s = 5", "manners.rest_s", 5.0),
        ("rest_s=90s", "manners.rest_s", 90.0),
        ("crawl.patience=10m", "crawl.patience", 600.0),
        ('crawl.patience="1.5 h"', "crawl.patience", 5400.0),
        ("batch_bytes=4 MiB", "agent.batch_bytes", 4 * 2**20),
        ("file_bytes=1GB", "archive.file_bytes", 10**9),
        ("crawl.scope=domain", "crawl.scope", "domain"),
        ("manners.own=127.0.0.1:8080", "manners.own", ("127.0.0.1:8080",)),
        ('manners.own=["a.example", "b.example"]', "manners.own", ("a.example", "b.example")),
        ("agent.contact=12", "agent.contact", "12"),
        ("requisites=false", "crawl.requisites", False),
        ('dns.hosts={"a.example" = "127.0.0.1"}', "dns.hosts", {"a.example": "127.0.0.1"}),
        ("dns.hosts.a=127.0.0.1", "dns.hosts", {"a": "127.0.0.1"}),
        ("store=postgresql://h/d", "store", "postgresql://h/d"),
    ],
)
def test_set_reads_toml_and_falls_back_to_text(text: str, key: str, value: object) -> None:
    found = load(NOWHERE, [text])
    for part in key.split("."):
        found = getattr(found, part)
    assert found == value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rest_s", "--set rest_s: wanted table.key=value, as manners.rest_s=5"),
        ("=5", "--set =5: wanted table.key=value, as manners.rest_s=5"),
        (
            "connections=5",
            "--set: connections may mean manners.connections or agent.connections; name the table",
        ),
        ("rset_s=5", "--set: unknown setting rset_s; did you mean manners.rest_s?"),
        ("manners.rset_s=5", "--set: unknown setting manners.rset_s; did you mean manners.rest_s?"),
        ("crawl=5", "--set crawl=5: wanted table.key=value, as manners.rest_s=5"),
    ],
)
def test_a_wrong_set_is_one_clear_sentence(text: str, wanted: str) -> None:
    with pytest.raises(OperatorError) as caught:
        load(NOWHERE, [text])
    assert str(caught.value) == wanted


@given(st.text(), st.text())
def test_set_never_fails_in_another_way(name: str, value: str) -> None:
    try:
        load(NOWHERE, [f"{name}={value}"])
    except OperatorError as error:
        assert "wanted" in str(error) or "unknown" in str(error) or "mean" in str(error)


def test_a_preset_gives_way_to_what_is_set(tmp_path: Path) -> None:
    settings = from_text(tmp_path, '[manners]\npreset = "paper"\nrest_s = 40')
    assert (settings.manners.rest_s, settings.fetch.idle_s, settings.agent.contexts) == (40, 5, 15)


def test_own_hosts_get_no_rest_and_others_stay_polite() -> None:
    settings = load(NOWHERE, ["manners.own=127.0.0.1:8080", "manners.rest_s=9"])
    own, other = settings.for_site("127.0.0.1:8080"), settings.for_site("127.0.0.1:8081")
    assert (own.own, own.manners.rest_s, own.manners.connections) == (True, 0, 8)
    assert own.manners.address_rest_s == own.manners.rest_factor == 0
    assert (other.own, other.manners.rest_s, other.manners.connections) == (False, 9, 1)


def test_a_site_table_holds_for_its_site_alone_and_the_most_exact_wins(tmp_path: Path) -> None:
    settings = from_text(
        tmp_path,
        """
        [manners]
        own = ["*.own.example"]
        [site."*.example"]
        rest_s = "1m"
        max_depth = 3
        [site."www.example"]
        crawl.max_depth = 5
        [site."www.example".fetch]
        idle_s = 7
        [site."slow.own.example"]
        rest_s = 4
        """,
    )
    www = settings.for_site("www.example")
    assert (www.manners.rest_s, www.crawl.max_depth, www.fetch.idle_s) == (60, 5, 7)
    assert settings.for_site("mail.example:81").crawl.max_depth == 3
    assert settings.for_site("example") is settings.for_site("elsewhere.test")
    assert settings.for_site("slow.own.example").manners.rest_s == 4
    assert settings.for_site("slow.own.example").manners.connections == 8


def test_set_reaches_a_site_table() -> None:
    settings = load(NOWHERE, ['site."a.example:81".max_depth=4', "site.b.robots.obey=false"])
    assert settings.for_site("a.example:81").crawl.max_depth == 4
    assert settings.for_site("a.example").crawl.max_depth is None
    assert settings.for_site("b").robots.obey is False


def test_patterns_are_compiled_once_per_site() -> None:
    site = load(NOWHERE, [r'exclude=["/calendar/\\d+"]']).for_site("a.example")
    assert site.exclude[0].search("http://a.example/calendar/7")
    assert site.include == ()


@pytest.mark.parametrize(
    ("pattern", "site", "covered"),
    [
        ("a.example", "a.example", True),
        ("A.example", "a.example", True),
        ("a.example", "a.example:8080", True),
        ("a.example:8080", "a.example:8080", True),
        ("a.example:8080", "a.example", False),
        ("a.example:443", "a.example", True),
        ("a.example", "b.a.example", False),
        ("*.a.example", "b.a.example", True),
        ("*.a.example", "c.b.a.example:81", True),
        ("*.a.example", "a.example", False),
        ("*.a.example", "ba.example", False),
        ("[::1]", "[::1]", True),
        ("[::1]:80", "[::1]:8080", False),
        ("[::1]", "[::1]:8080", True),
        ("[0:0:0:0:0:0:0:1]", "[::1]", True),
        ("[2001:DB8::0:1]:443", "[2001:db8::1]", True),
        ("[2001:db8::2]", "[2001:db8::1]", False),
    ],
)
def test_a_host_pattern_covers(pattern: str, site: str, covered: bool) -> None:
    assert matches(pattern, site) is covered


def test_the_user_agent_names_a_contact() -> None:
    sets = ["agent.contact=https://example.org/robot"]
    assert load(NOWHERE, sets).user_agent.endswith(" (+https://example.org/robot)")
    assert load(NOWHERE).user_agent.startswith("geomi/")
    assert load(NOWHERE, ["user_agent=other/1"]).user_agent == "other/1"


def test_what_is_dumped_can_be_restored() -> None:
    sets = ["manners.own=a.example", 'site."b".exclude=["x"]', "dns.hosts.a=127.0.0.1"]
    settings = load(NOWHERE, sets)
    restored = restore(json.loads(json.dumps(settings.dump())))
    assert restored == settings
    assert restored.for_site("b").exclude[0].pattern == "x"


def test_every_default_passes_its_own_check() -> None:
    for full, key in KEYS.items():
        if key.default is not None:
            plain = tomllib.loads(f"v = {to_toml(key.default)}")["v"]
            assert key.check(plain, where="default", name=full) == key.default
    for preset in PRESETS.values():
        for full, value in preset.items():
            KEYS[full].check(value, where="preset", name=full)


def test_the_written_file_means_the_defaults(tmp_path: Path) -> None:
    text = default_toml()
    assert from_text(tmp_path, text) == Settings()
    for full in KEYS:
        assert f"# {full.rpartition('.')[2]} =" in text


def test_the_written_file_carries_what_was_given(tmp_path: Path) -> None:
    text = default_toml({"manners.own": ["a.example"], "crawl.max_depth": 3, "manners.rest_s": 0.5})
    settings = from_text(tmp_path, text)
    assert (settings.manners.own, settings.crawl.max_depth) == (("a.example",), 3)
    assert settings.manners.rest_s == 0.5


def test_the_commented_defaults_are_valid_when_uncommented(tmp_path: Path) -> None:
    lines = [
        line.removeprefix("# ")
        for line in default_toml().splitlines()
        if line.startswith("[") or re.match(r"# \w+ = ", line)
    ]
    lines = [line for line in lines if not line.startswith("rest_s = 10")]
    assert from_text(tmp_path, "\n".join(lines)) == Settings()


def test_the_reference_is_up_to_date() -> None:
    assert REFERENCE.read_text("utf-8") == reference(), "run `make docs`"
