"""Rules of equal URLs in virtual time: learned, applied before the fetch, checked, taken back."""

from __future__ import annotations

import pytest
from rehearsal import HASTY, crawl, faults, simulation

from geomi.cluster import learning
from geomi.cluster.simulate import Simulation
from geomi.errors import OperatorError
from geomi.frontier import equivalence_tables as tables

APPLIED = (*HASTY, "archive.equivalents=true")


def outcomes(sim: Simulation) -> dict[str, tuple[str, str]]:
    return {
        url: (outcome, why)
        for url, outcome, why in sim.store.all("SELECT url, outcome, why FROM pages")
    }


def some_site(sim: Simulation) -> str:
    """The site with most pages under `?from=`, which this world serves as those without."""
    rows = sim.store.all(
        "SELECT s.site FROM pages p JOIN sites s ON s.site_id = p.site_id"
        " WHERE p.url LIKE '%?from=%' GROUP BY s.site ORDER BY count(*) DESC, s.site"
    )
    return str(rows[0][0])


def test_a_rule_skips_what_another_url_stands_for_and_its_removal_brings_it_back() -> None:
    sim, world = simulation(3, sets=APPLIED)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    assert faults(sim, world) == []
    site = some_site(sim)
    before = outcomes(sim)
    row = learning.add(sim.store, site, "drop from")
    assert crawl(sim, crash_ticks=[], kind="kill", again=True) == []
    after = outcomes(sim)
    skipped = {
        url: why for url, (outcome, why) in after.items() if why.startswith(f"rule:{row.rule}:")
    }
    assert skipped
    for url, why in skipped.items():
        assert "from=" in url
        twin = why.removeprefix(f"rule:{row.rule}:")
        assert "from=" not in twin
        assert after[twin][0] in ("OK", "same", "gone", "code")
    assert not [one for one in faults(sim, world, again=True) if one.startswith("verify")]
    (listed,) = [one for one in tables.listed(sim.store) if one["rule"] == row.rule]
    assert listed["skipped"] == len(skipped)
    removed, wanted = learning.remove(sim.store, row.rule)
    assert (removed.rule, wanted) == (row.rule, len(skipped))
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    assert faults(sim, world, again=True) == []
    assert {url: outcomes(sim)[url][0] for url in skipped}.keys() <= before.keys()


def test_a_rule_that_fails_is_withdrawn_and_what_it_skipped_is_wanted_again() -> None:
    sim, _ = simulation(3, sets=APPLIED)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    site = some_site(sim)
    row = learning.add(sim.store, site, "drop from")
    assert crawl(sim, crash_ticks=[], kind="kill", again=True) == []
    skipped = tables.skipped(sim.store, row)
    assert skipped > 0
    with sim.store.transaction():  # as if the checks had found other contents
        site_id = row.site_id
        for number in range(3):
            for end, digest in (("", "x"), ("?from=1", "y")):
                sim.store.run(
                    "INSERT INTO pages (page, site_id, url, url_hash, depth, party, kind, via,"
                    " found, run, outcome, digest) VALUES (?, ?, ?, ?, 1, 1, 'a', '', 0.0, 1, 'OK',"
                    " ?)",
                    (10**9 + number * 2 + (digest == "y"), site_id,
                     f"http://{site}/{number}{end}", number, digest),
                )  # fmt: skip
    done = learning.learn(sim.store, confidence=0.9)
    assert done["withdrawn"] == 1
    assert done["wanted"] == skipped
    again = tables.by_number(sim.store, row.rule)
    assert again is not None
    assert again.state == "withdrawn"
    assert tables.skipped(sim.store, row) == 0
    assert learning.learn(sim.store, confidence=0.9)["active"] == 0


def test_without_the_setting_a_rule_is_known_and_not_applied() -> None:
    sim, world = simulation(3)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    row = learning.add(sim.store, some_site(sim), "drop from")
    assert crawl(sim, crash_ticks=[], kind="kill", again=True) == []
    assert tables.skipped(sim.store, row) == 0
    assert faults(sim, world, again=True) == []


def test_crashes_while_rules_apply_lose_nothing() -> None:
    sim, world = simulation(3, sets=APPLIED)
    assert crawl(sim, crash_ticks=[], kind="kill") == []
    learning.add(sim.store, some_site(sim), "drop from")
    assert crawl(sim, crash_ticks=[60, 90, 70, 120], kind="power", again=True) == []
    assert not [one for one in faults(sim, world, again=True) if one.startswith("verify")]


@pytest.mark.parametrize(
    ("site", "rule", "said"),
    [
        ("nowhere.example", "drop x", "not a site of this collection"),
        ("", "forget x", "wanted drop NAME"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(site: str, rule: str, said: str) -> None:
    sim, _ = simulation(3, sites=1, pages=2)
    with pytest.raises(OperatorError, match=said):
        learning.add(sim.store, site, rule)
    with pytest.raises(OperatorError, match="there is none of that number"):
        learning.remove(sim.store, 77)
