"""Identity, access and IPv6 of the agent in virtual time, on a web that a test makes up."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from made import EXPIRED, NOT_THERE, Made, anchors, counters, crawl, html, simulate

from geomi.cluster.simweb import Reply, WorldWeb
from geomi.fetch.request import Fetch
from geomi.states import Outcome
from geomi.world import Params, World
from geomi.world.features import PLAIN

# -- a scheme that fails ---------------------------------------------------------------------------


def test_a_site_whose_https_has_a_bad_certificate_is_visited_whole_by_http() -> None:
    def answer(fetch: Fetch) -> Reply:
        bad = [f"https://a.example/{n}" for n in range(40)]
        return html(anchors(*bad, *(f"/{n}" for n in range(40))) if fetch.target == "/" else "x")

    class Half(Made):
        def ask(self, fetch: Fetch, *, at: float) -> Reply:
            if fetch.scheme == "https":
                self.asked.append((at, fetch))
                return EXPIRED
            return super().ask(fetch, at=at)

    web = Half(answer)
    sim = simulate(web, "http://a.example/")
    found = crawl(sim)
    assert len(found) == 81
    for url, came in found.items():
        assert came == (("cErr", "tls:expired") if url.startswith("https") else ("OK", "")), url
    tries = [at for at, fetch in web.asked if fetch.scheme == "https"]
    assert len(tries) == 3  # of its robots.txt, with the gaps of a failing site between
    gaps = [later - sooner for sooner, later in pairwise(tries)]
    assert gaps[0] >= 5.0 and gaps[1] >= 20.0
    assert counters(sim)["tls.expired"] == 3


def test_a_site_that_has_only_a_bad_certificate_is_given_up_with_its_name() -> None:
    class Bad(Made):
        def ask(self, fetch: Fetch, *, at: float) -> Reply:
            return EXPIRED

    found = crawl(simulate(Bad(lambda _: NOT_THERE), "https://a.example/"))
    assert found == {"https://a.example/": ("cErr", "tls:expired")}


# -- hours -----------------------------------------------------------------------------------------


def test_no_request_falls_outside_the_hours_while_the_clocks_change() -> None:
    zone = ZoneInfo("Europe/Berlin")
    start = datetime(
        2025, 3, 29, 21, 30, tzinfo=zone
    ).timestamp()  # summer time begins in this night
    web = Made(lambda fetch: html(anchors(*map(str, range(33))) if fetch.target == "/" else "x"))
    sets = ('access.hours=["22:00-04:00", "Sun 12:00-13:00"]', "access.timezone=Europe/Berlin",
            "manners.rest_s=600", "crawl.patience=700000")  # fmt: skip
    sim = simulate(web, "http://a.example/", sets=sets, start=start)
    found = crawl(sim)
    assert len(found) == 34 and {came for came, _ in found.values()} == {"OK"}
    days = set()
    for at, _ in web.asked:
        local = datetime.fromtimestamp(start + at, zone)
        night = local.hour >= 22 or local.hour < 4
        assert night or (local.weekday() == 6 and local.hour == 12), local
        days.add((local.date(), night))
    # The night is of two dates; then Sunday at noon.
    assert len(days) == 3 and sum(not night for _, night in days) == 1
    hours_of = [datetime.fromtimestamp(start + at, zone).hour for at, _ in web.asked]
    assert 1 in hours_of and 2 not in hours_of and 3 in hours_of  # 2 o'clock did not exist


def test_a_site_outside_its_hours_stays_pending_and_the_crawl_ends_by_patience() -> None:
    start = datetime(2025, 6, 2, 12, tzinfo=ZoneInfo("UTC")).timestamp()
    web = Made(lambda _: html("x"))
    sets = ('access.hours=["20:00-21:00"]',)
    sim = simulate(web, "http://a.example/", "http://b.example/", sets=sets, start=start)
    found = crawl(sim)
    assert web.asked == [] and sim.now - start < 600.0
    assert {came for came, _ in found.values()} == {"NULL"}
    assert counters(sim)["hours.closed"] == 2
    rows = sim.store.all("SELECT rest_until, why FROM sites")
    assert set(rows) == {(start + 8 * 3600.0, "hours")}
    # The hours are changed, or the time has come: the next crawl looks again.
    sim.now = start + 8 * 3600.0 + 1.0
    found = crawl(sim)
    assert {came for came, _ in found.values()} == {"OK"}


# -- cookies and passwords -------------------------------------------------------------------------


def test_the_lobby_opens_for_a_visitor_who_keeps_cookies() -> None:
    world = World(Params(seed=2, sites=2, pages=3, shares={**PLAIN, "corner.lobby": 1.0}))
    for cookies, outcome in (("true", "OK"), ("false", "code")):
        sim = simulate(WorldWeb(world), world.seeds()[0], sets=(f"access.cookies={cookies}",))
        found = crawl(sim)
        rooms = [came for url, (came, _) in found.items() if "/~lobby/room" in url]
        assert rooms == [outcome] * 3


def test_cookies_stay_with_the_site_that_set_them() -> None:
    def answer(fetch: Fetch) -> Reply:
        there = "http://b.a.example/x" if fetch.host == "a.example" else "http://a.example/y"
        return html(anchors(there, "/z"), f"Set-Cookie: of={fetch.host}; Domain=a.example")

    web = Made(answer)
    crawl(simulate(web, "http://a.example/", "http://b.a.example/"))
    for _, fetch in web.asked:
        for line in fetch.headers:
            assert line == f"Cookie: of={fetch.host}"
    assert sum(bool(fetch.headers) for _, fetch in web.asked) >= 4


# -- rate ------------------------------------------------------------------------------------------


def test_a_rate_is_kept_over_all_connections_of_a_site() -> None:
    web = Made(lambda fetch: html(
        (anchors(*map(str, range(100))) if fetch.target == "/" else "x").ljust(10_000)
    ))  # fmt: skip
    sets = ("access.rate_bytes=5000", 'manners.own=["a.example"]', "manners.own_connections=4")
    sim = simulate(web, "http://a.example/", sets=sets)
    crawl(sim)
    times = [at for at, _ in web.asked]
    assert len(times) == 102
    # Answers of 10 kB at 5 kB/s: two seconds each, whatever the number of connections; those under
    # way together are paid for before the next ones begin.
    for first, last in ((0, 50), (20, 70), (51, 101)):
        assert times[last] - times[first] >= 2.0 * (last - first - 4)
    assert times[-1] - times[0] < 2.2 * 102


# -- addresses -------------------------------------------------------------------------------------


def test_where_one_family_does_not_answer_the_other_is_asked() -> None:
    both = {"a.example": ["192.0.2.1", "2001:db8::1"]}

    class Six(Made):
        def ask(self, fetch: Fetch, *, at: float) -> Reply:
            if ":" not in fetch.address:
                return Reply(outcome=Outcome.C_TIM, seconds=10.0)
            return super().ask(fetch, at=at)

    web = Six(
        lambda fetch: html(anchors(*map(str, range(30))) if fetch.target == "/" else "x"), both
    )
    found = crawl(simulate(web, "http://a.example/"))
    assert len(found) == 31 and {came for came, _ in found.values()} == {"OK"}
    assert {fetch.address for _, fetch in web.asked} == {"2001:db8::1"}


def test_addresses_of_one_server_in_two_forms_keep_one_gap() -> None:
    names = [f"h{n}.example" for n in range(6)]
    forms = ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::c000:201"]
    web = Made(
        lambda fetch: html(anchors(*map(str, range(20))) if fetch.target == "/" else "x"),
        {name: [forms[n % 3]] for n, name in enumerate(names)},
    )
    seeds = [f"http://{name}/" for name in names]
    sim = simulate(web, *seeds, sets=("manners.address_rest_s=2",))
    crawl(sim)
    times = sorted(at for at, _ in web.asked)
    assert len(times) == 6 * 22
    assert all(later - sooner >= 2.0 - 1e-6 for sooner, later in pairwise(times))
    assert sim.store.all("SELECT DISTINCT address FROM addresses") in ([], [("192.0.2.1",)])


def test_a_robots_txt_that_lies_elsewhere_is_asked_for_in_the_hours_of_that_host() -> None:
    start = datetime(2025, 6, 2, 12, tzinfo=ZoneInfo("UTC")).timestamp()

    class Away(Made):
        def ask(self, fetch: Fetch, *, at: float) -> Reply:
            if fetch.host == "a.example" and fetch.target == "/robots.txt":
                self.asked.append((at, fetch))
                head = b"HTTP/1.1 301 X\r\nLocation: http://b.example/robots.txt\r\n\r\n"
                return Reply(outcome=Outcome.CODE, code=301, head=head)
            return super().ask(fetch, at=at)

    web = Away(lambda _: html("x"))
    hours = 'site."b.example".hours=["12:05-12:10"]'
    found = crawl(simulate(web, "http://a.example/", sets=(hours,), start=start))
    assert found == {"http://a.example/": ("OK", "")}
    (asked,) = [at for at, fetch in web.asked if fetch.host == "b.example"]
    assert 300.0 <= asked <= 600.0
    # If it is long, the site waits as if the hours were its own.
    web = Away(lambda _: html("x"))
    sim = simulate(web, "http://a.example/", sets=(hours.replace("12:", "20:"),), start=start)
    assert crawl(sim) == {"http://a.example/": ("NULL", "")}
    assert counters(sim)["hours.closed"] == 1


def test_a_scheme_that_failed_once_and_answers_again_holds_nobody() -> None:
    """Its failures are forgotten, and the crawl ends although a page waits for hours."""

    class Once(Made):
        def ask(self, fetch: Fetch, *, at: float) -> Reply:
            is_first = not any(f.scheme == "https" for _, f in self.asked)
            if fetch.scheme == "https" and is_first:
                self.asked.append((at, fetch))
                return EXPIRED
            return super().ask(fetch, at=at)

    def answer(fetch: Fetch) -> Reply:
        if fetch.target == "/busy":
            return Reply(outcome=Outcome.CODE, code=500, head=b"HTTP/1.1 500 X\r\n\r\n")
        return html(anchors("https://a.example/1", *(f"http://a.example/{n}" for n in (2, "busy"))))

    web = Once(answer)
    sim = simulate(web, "http://a.example/", sets=("retry.gap_factor=1000",))
    found = crawl(sim)
    assert found.pop("http://a.example/busy") == ("code", "")
    assert len(found) == 3 and set(found.values()) == {("OK", "")}
    assert sim.now - sim.began < 3600.0
    (waits,) = sim.store.all("SELECT not_before FROM pending")
    assert waits[0] > sim.now + 3600.0
