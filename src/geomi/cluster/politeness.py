"""Judges what the servers saw by the settings each run was made with: `verify --politeness`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache

from geomi.cluster.collection import Collection
from geomi.cluster.plan import site_rules
from geomi.config import Settings
from geomi.fetch.robots import Robots, from_status
from geomi.frontier.politeness import server_of
from geomi.history.past import Past
from geomi.history.politeness import Politeness, Rule, in_order, measure
from geomi.store import Store


def check_politeness(
    store: Store, settings_of: Callable[[str], Settings], *, where: Callable[[str], str],
    worst: int = 20,
) -> Politeness:  # fmt: skip
    """What the servers saw, judged by the settings of each run (its `settings` in the store)."""
    texts: dict[int, str] = dict(store.all("SELECT run, settings FROM runs"))
    by_text: dict[str, Settings] = {}

    @lru_cache(maxsize=20_000)
    def rule(host: str, run: int) -> Rule:
        text = texts.get(run, "{}")
        settings = by_text.get(text)
        if settings is None:
            settings = by_text[text] = settings_of(text)
        rules = site_rules(settings, host)
        manners = rules.manners
        delay_s, since = _crawl_delay(store, host, settings) if rules.obey_robots else (0.0, 0.0)
        return Rule(
            rest_s=manners.rest_s, rest_factor=manners.rest_factor,
            rest_factor_max_s=manners.rest_factor_max_s, address_rest_s=manners.address_rest_s,
            connections=manners.connections, is_own=manners.is_own, groups=rules.groups,
            crawl_delay_s=delay_s, crawl_delay_since=since,
        )  # fmt: skip

    with store.image():
        past = Past.of(store, where)
        asked = (one._replace(address=server_of(one.address)) for one in in_order(store, past))
        return measure(asked, rule, worst=worst)


def _crawl_delay(store: Store, host: str, settings: Settings) -> tuple[float, float]:
    """(seconds, since when) of the robots.txt that is known of a host; zeros if none."""
    delay_s, since = 0.0, 0.0
    for body, fetched, code in store.all(
        "SELECT body, fetched, code FROM robots WHERE authority IN (?, ?)",
        (f"http://{host}", f"https://{host}"),
    ):
        if from_status(code) == "parse":
            said_s = Robots.parse(body).for_agent(settings.robots.agent).crawl_delay_s or 0.0
            if said_s > delay_s:
                delay_s, since = said_s, fetched
    return delay_s, since


def settings_of_run(collection: Collection, text: str) -> Settings:
    """The collection's settings with the options that a run was begun with."""
    given = json.loads(text or "{}")
    return collection.settings(given.get("sets", []), given.get("options", {}))
